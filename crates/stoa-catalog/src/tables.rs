//! Table pointers: which metadata file a table's name stands for.

use stoa_error::Result;

use crate::relation::RelationKind::Table;
use crate::{Catalog, TableIdent};

/// What is to become of a pointer.
#[derive(Clone, Copy, Debug)]
pub struct Swap<'a> {
    /// The table.
    pub ident: &'a TableIdent,
    /// Where its pointer must be.
    pub expected: &'a str,
    /// Where it is to be; where it is if `None`.
    pub new: Option<&'a str>,
}

impl Catalog {
    /// The names of the tables in `namespace`, in order.
    ///
    /// # Errors
    /// `NotFound` (3F000) where the namespace does not exist.
    pub async fn tables(&self, namespace: &str) -> Result<Vec<String>> {
        self.names(Table, namespace).await
    }

    /// The metadata location that the table `ident` points to now. Asked again, it costs a few
    /// microseconds as long as nobody changed the database.
    ///
    /// # Errors
    /// `NotFound` (42P01, or 3F000 where the namespace does not exist either), `Invalid` (42809) where
    /// it is a view.
    pub async fn pointer(&self, ident: &TableIdent) -> Result<String> {
        self.pointer_of(Table, ident).await
    }

    /// Makes `ident` point to `location`.
    ///
    /// # Errors
    /// `AlreadyExists` (42P07) also for a view of that name, `NotFound` (3F000) where the
    /// namespace does not exist.
    pub async fn create_table(&self, ident: &TableIdent, location: &str) -> Result<()> {
        self.create(Table, ident, location).await
    }

    /// Moves the pointer of `ident` from `expected` to `new`, if it still is `expected`.
    ///
    /// # Errors
    /// `Conflict` where somebody else moved it first, `NotFound` (42P01) where it is gone, `Invalid`
    /// (42809) where it is a view.
    pub async fn swap(&self, ident: &TableIdent, expected: &str, new: &str) -> Result<()> {
        self.swap_all(&[Swap { ident, expected, new: Some(new) }]).await
    }

    /// Moves pointers of tables, all of them or none: each only where it still is what was expected.
    ///
    /// # Errors
    /// As [`Self::swap`]. None has moved then.
    pub async fn swap_all(&self, swaps: &[Swap<'_>]) -> Result<()> {
        self.swap_pointers(Table, swaps).await
    }

    /// Gives `from` the name `to`, in the same namespace or another.
    ///
    /// # Errors
    /// `NotFound` (42P01 for `from`, 3F000 for the namespace of `to`), `Invalid` (42809) where it is a
    /// view, `AlreadyExists` (42P07).
    pub async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        self.rename(Table, from, None, to).await
    }

    /// As [`Self::rename_table`], but only while `from` points to `expected`.
    ///
    /// # Errors
    /// `Conflict` where it points elsewhere, and those of [`Self::rename_table`].
    pub async fn rename_table_at(
        &self,
        from: &TableIdent,
        expected: &str,
        to: &TableIdent,
    ) -> Result<()> {
        self.rename(Table, from, Some(expected), to).await
    }

    /// Forgets `ident`; gives back the metadata location it pointed to. Files stay.
    ///
    /// # Errors
    /// `NotFound` (42P01), `Invalid` (42809) where it is a view.
    pub async fn drop_table(&self, ident: &TableIdent) -> Result<String> {
        self.remove(Table, ident, None).await
    }

    /// As [`Self::drop_table`], but only while `ident` points to `expected`.
    ///
    /// # Errors
    /// `Conflict` where it points elsewhere, and those of [`Self::drop_table`].
    pub async fn drop_table_at(&self, ident: &TableIdent, expected: &str) -> Result<()> {
        self.remove(Table, ident, Some(expected)).await.map(|_| ())
    }
}
