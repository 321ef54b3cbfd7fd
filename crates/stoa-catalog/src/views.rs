//! View pointers: which metadata file a view's name stands for.
//!
//! Owner and grants of a view are kept as those of a table, under the view's UUID.

use stoa_error::Result;

use crate::database::Statement;
use crate::relation::RelationKind::View;
use crate::{Catalog, Swap, TableIdent};

impl Catalog {
    /// The names of the views in `namespace`, in order.
    ///
    /// # Errors
    /// `NotFound` (3F000) where the namespace does not exist.
    pub async fn views(&self, namespace: &str) -> Result<Vec<String>> {
        self.names(View, namespace).await
    }

    /// The metadata location that the view `ident` points to now. Asked again, it costs a few
    /// microseconds as long as nobody changed the database.
    ///
    /// # Errors
    /// `NotFound` (42P01, or 3F000 where the namespace does not exist either), `Invalid` (42809) where
    /// it is a table.
    pub async fn view_pointer(&self, ident: &TableIdent) -> Result<String> {
        self.pointer_of(View, ident).await
    }

    /// The metadata locations of all views.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer.
    pub async fn view_pointers(&self) -> Result<Vec<String>> {
        let query = Statement::new(
            "SELECT metadata_location FROM iceberg_tables
             WHERE catalog_name = $1 AND iceberg_type = $2 AND metadata_location IS NOT NULL",
        );
        let rows = self.fetch(query.bind(self.name()).bind(View.stored())).await?;
        rows.iter().map(|row| self.value(row, 0)).collect()
    }

    /// Makes the view `ident` point to `location`.
    ///
    /// # Errors
    /// `AlreadyExists` (42P07) also for a table of that name, `NotFound` (3F000) where the namespace
    /// does not exist.
    pub async fn create_view(&self, ident: &TableIdent, location: &str) -> Result<()> {
        self.create(View, ident, location).await
    }

    /// Moves the pointer of the view `ident` from `expected` to `new`, if it still is `expected`.
    ///
    /// # Errors
    /// `Conflict` where somebody else moved it first, `NotFound` (42P01) where it is gone, `Invalid`
    /// (42809) where it is a table.
    pub async fn swap_view(&self, ident: &TableIdent, expected: &str, new: &str) -> Result<()> {
        self.swap_pointers(View, &[Swap { ident, expected, new: Some(new) }]).await
    }

    /// Gives the view `from` the name `to`, in the same namespace or another.
    ///
    /// # Errors
    /// `NotFound` (42P01 for `from`, 3F000 for the namespace of `to`), `Invalid` (42809) where it is a
    /// table, `AlreadyExists` (42P07).
    pub async fn rename_view(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        self.rename(View, from, None, to).await
    }

    /// As [`Self::rename_view`], but only while `from` points to `expected`.
    ///
    /// # Errors
    /// `Conflict` where it points elsewhere, and those of [`Self::rename_view`].
    pub async fn rename_view_at(
        &self,
        from: &TableIdent,
        expected: &str,
        to: &TableIdent,
    ) -> Result<()> {
        self.rename(View, from, Some(expected), to).await
    }

    /// Forgets the view `ident`; gives back the metadata location it pointed to. Files stay.
    ///
    /// # Errors
    /// `NotFound` (42P01), `Invalid` (42809) where it is a table.
    pub async fn drop_view(&self, ident: &TableIdent) -> Result<String> {
        self.remove(View, ident, None).await
    }

    /// As [`Self::drop_view`], but only while `ident` points to `expected`.
    ///
    /// # Errors
    /// `Conflict` where it points elsewhere, and those of [`Self::drop_view`].
    pub async fn drop_view_at(&self, ident: &TableIdent, expected: &str) -> Result<()> {
        self.remove(View, ident, Some(expected)).await.map(|_| ())
    }
}
