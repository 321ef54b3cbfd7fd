//! Table pointers: which metadata file a name stands for.

use sqlx::{Row, SqliteConnection};
use stoa_error::{Error, Result};

use crate::{Catalog, TableIdent, error};

/// Rows that are tables: views share the relation; rows of schema version V0 have no type.
macro_rules! is_table {
    () => {
        "(iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
    };
}

/// What is to become of a table's pointer.
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
        let rows = sqlx::query(concat!(
            "SELECT table_name FROM iceberg_tables
             WHERE catalog_name = ? AND table_namespace = ? AND ",
            is_table!(),
            " ORDER BY 1"
        ))
        .bind(self.name())
        .bind(namespace)
        .fetch_all(&self.inner.pool)
        .await
        .map_err(|source| self.failed(source))?;
        if rows.is_empty() && !self.namespace_exists(namespace).await? {
            return Err(error::missing_namespace(namespace));
        }
        rows.iter().map(|row| row.try_get(0).map_err(|source| self.failed(source))).collect()
    }

    /// The metadata location that `ident` points to now. Asked again, it costs a few microseconds
    /// as long as nobody changed the database.
    ///
    /// # Errors
    /// `NotFound` (42P01, or 3F000 where the namespace does not exist either).
    pub async fn pointer(&self, ident: &TableIdent) -> Result<String> {
        let version = match self.inner.known.pointer(ident) {
            Some(Ok(known)) => return Ok(known),
            Some(Err(version)) => Some(version),
            None => None,
        };
        let pointer = self.read_pointer(ident).await?;
        if let Some(version) = version {
            self.inner.known.put_pointer(ident, &pointer, version);
        }
        Ok(pointer)
    }

    async fn read_pointer(&self, ident: &TableIdent) -> Result<String> {
        let mut connection =
            self.inner.pool.acquire().await.map_err(|source| self.failed(source))?;
        match self.find(&mut connection, ident).await? {
            Some(location) => Ok(location),
            None => Err(self.missing(&mut connection, ident).await?),
        }
    }

    /// Makes `ident` point to `location`.
    ///
    /// # Errors
    /// `AlreadyExists` (42P07) also for a view of that name, `NotFound` (3F000) where the
    /// namespace does not exist.
    pub async fn create_table(&self, ident: &TableIdent, location: &str) -> Result<()> {
        let mut transaction = self.begin().await?;
        if !self.has_namespace(&mut transaction, &ident.namespace).await? {
            return Err(error::missing_namespace(&ident.namespace));
        }
        let inserted = sqlx::query(
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,
                 metadata_location, previous_metadata_location, iceberg_type)
             VALUES (?, ?, ?, ?, NULL, 'TABLE')",
        )
        .bind(self.name())
        .bind(&ident.namespace)
        .bind(&ident.name)
        .bind(location)
        .execute(&mut *transaction)
        .await;
        match inserted {
            Ok(_) => self.commit(transaction).await,
            Err(source) if error::is_duplicate_key(&source) => Err(error::duplicate_table(ident)),
            Err(source) => Err(self.failed(source)),
        }
    }

    /// Moves the pointer of `ident` from `expected` to `new`, if it still is `expected`.
    ///
    /// # Errors
    /// `Conflict` where somebody else moved it first, `NotFound` (42P01) where it is gone.
    pub async fn swap(&self, ident: &TableIdent, expected: &str, new: &str) -> Result<()> {
        self.swap_all(&[Swap { ident, expected, new: Some(new) }]).await
    }

    /// Moves pointers, all of them or none: each only where it still is what was expected.
    ///
    /// # Errors
    /// `Conflict` where somebody else moved one first, `NotFound` (42P01) where one is gone. None
    /// has moved then.
    pub async fn swap_all(&self, swaps: &[Swap<'_>]) -> Result<()> {
        let mut transaction = self.begin().await?;
        for swap in swaps {
            let changed = match swap.new {
                Some(new) => self.move_pointer(&mut transaction, swap, new).await?,
                None => {
                    self.find(&mut transaction, swap.ident).await?.as_deref() == Some(swap.expected)
                }
            };
            if !changed {
                return match self.find(&mut transaction, swap.ident).await? {
                    Some(_) => Err(error::moved(swap.ident)),
                    None => Err(self.missing(&mut transaction, swap.ident).await?),
                };
            }
        }
        self.commit(transaction).await
    }

    /// Whether the pointer was where it was expected.
    async fn move_pointer(
        &self,
        connection: &mut SqliteConnection,
        swap: &Swap<'_>,
        new: &str,
    ) -> Result<bool> {
        let moved = sqlx::query(concat!(
            "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?
             WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?
               AND metadata_location = ? AND ",
            is_table!()
        ))
        .bind(new)
        .bind(swap.expected)
        .bind(self.name())
        .bind(&swap.ident.namespace)
        .bind(&swap.ident.name)
        .bind(swap.expected)
        .execute(connection)
        .await
        .map_err(|source| self.failed(source))?;
        Ok(moved.rows_affected() == 1)
    }

    /// Gives `from` the name `to`, in the same namespace or another.
    ///
    /// # Errors
    /// `NotFound` (42P01 for `from`, 3F000 for the namespace of `to`), `AlreadyExists` (42P07).
    pub async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        let mut transaction = self.begin().await?;
        if !self.has_namespace(&mut transaction, &to.namespace).await? {
            return Err(error::missing_namespace(&to.namespace));
        }
        match self.move_name(&mut transaction, from, to).await? {
            true => self.commit(transaction).await,
            false => Err(self.missing(&mut transaction, from).await?),
        }
    }

    /// Forgets `ident`; gives back the metadata location it pointed to. Files stay.
    ///
    /// # Errors
    /// `NotFound` (42P01).
    pub async fn drop_table(&self, ident: &TableIdent) -> Result<String> {
        let mut transaction = self.begin().await?;
        let Some(location) = self.find(&mut transaction, ident).await? else {
            return Err(self.missing(&mut transaction, ident).await?);
        };
        self.forget(&mut transaction, ident).await?;
        self.commit(transaction).await?;
        Ok(location)
    }

    /// As [`Self::drop_table`], but only while `ident` points to `expected`.
    ///
    /// # Errors
    /// `Conflict` where it points elsewhere, `NotFound` (42P01).
    pub async fn drop_table_at(&self, ident: &TableIdent, expected: &str) -> Result<()> {
        let mut transaction = self.begin().await?;
        self.check_points_to(&mut transaction, ident, expected).await?;
        self.forget(&mut transaction, ident).await?;
        self.commit(transaction).await
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
        let mut transaction = self.begin().await?;
        if !self.has_namespace(&mut transaction, &to.namespace).await? {
            return Err(error::missing_namespace(&to.namespace));
        }
        self.check_points_to(&mut transaction, from, expected).await?;
        self.move_name(&mut transaction, from, to).await?;
        self.commit(transaction).await
    }

    /// Gives `from` the name `to`; `false` where there is no `from`.
    async fn move_name(
        &self,
        connection: &mut SqliteConnection,
        from: &TableIdent,
        to: &TableIdent,
    ) -> Result<bool> {
        let renamed = sqlx::query(concat!(
            "UPDATE iceberg_tables SET table_namespace = ?, table_name = ?
             WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND ",
            is_table!()
        ))
        .bind(&to.namespace)
        .bind(&to.name)
        .bind(self.name())
        .bind(&from.namespace)
        .bind(&from.name)
        .execute(connection)
        .await;
        match renamed {
            Ok(done) => Ok(done.rows_affected() == 1),
            Err(source) if error::is_duplicate_key(&source) => Err(error::duplicate_table(to)),
            Err(source) => Err(self.failed(source)),
        }
    }

    async fn forget(&self, connection: &mut SqliteConnection, ident: &TableIdent) -> Result<()> {
        sqlx::query(concat!(
            "DELETE FROM iceberg_tables
             WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND ",
            is_table!()
        ))
        .bind(self.name())
        .bind(&ident.namespace)
        .bind(&ident.name)
        .execute(connection)
        .await
        .map_err(|source| self.failed(source))?;
        Ok(())
    }

    async fn check_points_to(
        &self,
        connection: &mut SqliteConnection,
        ident: &TableIdent,
        expected: &str,
    ) -> Result<()> {
        match self.find(connection, ident).await? {
            Some(location) if location == expected => Ok(()),
            Some(_) => Err(error::moved(ident)),
            None => Err(self.missing(connection, ident).await?),
        }
    }

    async fn find(
        &self,
        connection: &mut SqliteConnection,
        ident: &TableIdent,
    ) -> Result<Option<String>> {
        let row = sqlx::query(concat!(
            "SELECT metadata_location FROM iceberg_tables
             WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND ",
            is_table!()
        ))
        .bind(self.name())
        .bind(&ident.namespace)
        .bind(&ident.name)
        .fetch_optional(connection)
        .await
        .map_err(|source| self.failed(source))?;
        let Some(row) = row else { return Ok(None) };
        let location: Option<String> = row.try_get(0).map_err(|source| self.failed(source))?;
        location.map(Some).ok_or_else(|| {
            Error::corrupt(format!("table {ident} has no metadata location in the catalog"))
        })
    }

    /// What to say about a table that was not found: the schema may be missing, too.
    async fn missing(
        &self,
        connection: &mut SqliteConnection,
        ident: &TableIdent,
    ) -> Result<Error> {
        Ok(match self.has_namespace(connection, &ident.namespace).await? {
            true => error::undefined_table(ident),
            false => error::missing_namespace(&ident.namespace),
        })
    }
}
