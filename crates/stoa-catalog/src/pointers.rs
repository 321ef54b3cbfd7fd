//! Pointers of tables and views: what both have in common. `tables` and `views` say what can be done with each.

use sqlx::{Row, SqliteConnection};
use stoa_error::{Condition, Error, Result};

use crate::relation::{Relation, RelationKind};
use crate::{Catalog, Swap, TableIdent, error};

impl Catalog {
    /// What `ident` stands for now, and where its metadata is. Asked again, it costs a few
    /// microseconds as long as nobody changed the database.
    ///
    /// # Errors
    /// `NotFound` (42P01, or 3F000 where the namespace does not exist either).
    pub async fn relation(&self, ident: &TableIdent) -> Result<Relation> {
        self.known_relation(ident, RelationKind::Table).await
    }

    /// Whether a table or view may be made under the name `ident`; another process may take it at any
    /// time.
    ///
    /// # Errors
    /// `AlreadyExists` (42P07) where there is a table or view of this name, `NotFound` (3F000) where
    /// the namespace does not exist.
    pub async fn check_free(&self, ident: &TableIdent) -> Result<()> {
        match self.relation(ident).await {
            Ok(relation) => Err(error::duplicate_relation(relation.kind, ident)),
            Err(error) if error.is(Condition::UndefinedTable) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The pointer of `ident`, which must be of this kind.
    pub(crate) async fn pointer_of(
        &self,
        kind: RelationKind,
        ident: &TableIdent,
    ) -> Result<String> {
        let relation = self.known_relation(ident, kind).await?;
        match relation.kind == kind {
            true => Ok(relation.location),
            false => Err(error::wrong_kind(relation.kind, ident)),
        }
    }

    /// `wanted` is for the words of an error only.
    async fn known_relation(&self, ident: &TableIdent, wanted: RelationKind) -> Result<Relation> {
        let version = match self.inner.known.relation(ident) {
            Some(Ok(known)) => return Ok(known),
            Some(Err(version)) => Some(version),
            None => None,
        };
        let mut connection =
            self.inner.pool.acquire().await.map_err(|source| self.failed(source))?;
        let Some(relation) = self.find_any(&mut connection, ident).await? else {
            return Err(self.missing(&mut connection, wanted, ident).await?);
        };
        if let Some(version) = version {
            self.inner.known.put_relation(ident, &relation, version);
        }
        Ok(relation)
    }

    /// The names of one kind in `namespace`, in order.
    pub(crate) async fn names(&self, kind: RelationKind, namespace: &str) -> Result<Vec<String>> {
        let rows = sqlx::query(
            "SELECT table_name FROM iceberg_tables
             WHERE catalog_name = ? AND table_namespace = ?
               AND coalesce(iceberg_type, 'TABLE') = ? ORDER BY 1",
        )
        .bind(self.name())
        .bind(namespace)
        .bind(kind.stored())
        .fetch_all(&self.inner.pool)
        .await
        .map_err(|source| self.failed(source))?;
        if rows.is_empty() && !self.namespace_exists(namespace).await? {
            return Err(error::missing_namespace(namespace));
        }
        rows.iter().map(|row| self.value(row, 0)).collect()
    }

    pub(crate) async fn create(
        &self,
        kind: RelationKind,
        ident: &TableIdent,
        location: &str,
    ) -> Result<()> {
        let mut transaction = self.begin().await?;
        if !self.has_namespace(&mut transaction, &ident.namespace).await? {
            return Err(error::missing_namespace(&ident.namespace));
        }
        // Before and not by the key's violation, to say what has the name. The lock is held.
        self.check_unused(&mut transaction, ident).await?;
        let insert = sqlx::query(
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,
                 metadata_location, previous_metadata_location, iceberg_type)
             VALUES (?, ?, ?, ?, NULL, ?)",
        );
        let insert = insert.bind(self.name()).bind(&ident.namespace).bind(&ident.name);
        self.execute(&mut transaction, insert.bind(location).bind(kind.stored())).await?;
        self.commit(transaction).await
    }

    /// Moves pointers of one kind, all of them or none.
    pub(crate) async fn swap_pointers(&self, kind: RelationKind, swaps: &[Swap<'_>]) -> Result<()> {
        let mut transaction = self.begin().await?;
        for swap in swaps {
            self.check_points_to(&mut transaction, kind, swap.ident, swap.expected).await?;
            if let Some(new) = swap.new {
                self.move_pointer(&mut transaction, swap, new).await?;
            }
        }
        self.commit(transaction).await
    }

    async fn move_pointer(
        &self,
        connection: &mut SqliteConnection,
        swap: &Swap<'_>,
        new: &str,
    ) -> Result<()> {
        let update = sqlx::query(
            "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?
             WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
        );
        let update = update.bind(new).bind(swap.expected).bind(self.name());
        let update = update.bind(&swap.ident.namespace).bind(&swap.ident.name);
        self.execute(connection, update).await.map(|_| ())
    }

    /// Forgets `ident`, only while it points to `expected` if that is given; gives back where it
    /// pointed to.
    pub(crate) async fn remove(
        &self,
        kind: RelationKind,
        ident: &TableIdent,
        expected: Option<&str>,
    ) -> Result<String> {
        let mut transaction = self.begin().await?;
        let location = self.find(&mut transaction, kind, ident).await?;
        if expected.is_some_and(|expected| expected != location) {
            return Err(error::moved(kind, ident));
        }
        let delete = sqlx::query(
            "DELETE FROM iceberg_tables
             WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
        );
        let delete = delete.bind(self.name()).bind(&ident.namespace).bind(&ident.name);
        self.execute(&mut transaction, delete).await?;
        self.commit(transaction).await?;
        Ok(location)
    }

    /// Gives `from` the name `to`, only while it points to `expected` if that is given.
    pub(crate) async fn rename(
        &self,
        kind: RelationKind,
        from: &TableIdent,
        expected: Option<&str>,
        to: &TableIdent,
    ) -> Result<()> {
        let mut transaction = self.begin().await?;
        if !self.has_namespace(&mut transaction, &to.namespace).await? {
            return Err(error::missing_namespace(&to.namespace));
        }
        let location = self.find(&mut transaction, kind, from).await?;
        if expected.is_some_and(|expected| expected != location) {
            return Err(error::moved(kind, from));
        }
        if from != to {
            self.check_unused(&mut transaction, to).await?;
        }
        let update = sqlx::query(
            "UPDATE iceberg_tables SET table_namespace = ?, table_name = ?
             WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
        );
        let update = update.bind(&to.namespace).bind(&to.name).bind(self.name());
        self.execute(&mut transaction, update.bind(&from.namespace).bind(&from.name)).await?;
        self.commit(transaction).await
    }

    async fn check_points_to(
        &self,
        connection: &mut SqliteConnection,
        kind: RelationKind,
        ident: &TableIdent,
        expected: &str,
    ) -> Result<()> {
        match self.find(connection, kind, ident).await? == expected {
            true => Ok(()),
            false => Err(error::moved(kind, ident)),
        }
    }

    async fn check_unused(
        &self,
        connection: &mut SqliteConnection,
        ident: &TableIdent,
    ) -> Result<()> {
        match self.find_any(connection, ident).await? {
            None => Ok(()),
            Some(relation) => Err(error::duplicate_relation(relation.kind, ident)),
        }
    }

    /// Where `ident` points to, which must be there and of this kind.
    async fn find(
        &self,
        connection: &mut SqliteConnection,
        kind: RelationKind,
        ident: &TableIdent,
    ) -> Result<String> {
        match self.find_any(connection, ident).await? {
            Some(relation) if relation.kind == kind => Ok(relation.location),
            Some(relation) => Err(error::wrong_kind(relation.kind, ident)),
            None => Err(self.missing(connection, kind, ident).await?),
        }
    }

    async fn find_any(
        &self,
        connection: &mut SqliteConnection,
        ident: &TableIdent,
    ) -> Result<Option<Relation>> {
        let row = sqlx::query(
            "SELECT iceberg_type, metadata_location FROM iceberg_tables
             WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
        )
        .bind(self.name())
        .bind(&ident.namespace)
        .bind(&ident.name)
        .fetch_optional(connection)
        .await
        .map_err(|source| self.failed(source))?;
        let Some(row) = row else { return Ok(None) };
        let stored: Option<String> = row.try_get(0).map_err(|source| self.failed(source))?;
        let location: Option<String> = row.try_get(1).map_err(|source| self.failed(source))?;
        let kind = RelationKind::of_stored(stored.as_deref()).ok_or_else(|| {
            let stored = stored.unwrap_or_default();
            Error::corrupt(format!("the catalog has {ident} as {stored:?}"))
                .with_hint("only TABLE and VIEW are known")
        })?;
        let location = location.ok_or_else(|| {
            Error::corrupt(format!("{kind} {ident} has no metadata location in the catalog"))
        })?;
        Ok(Some(Relation { kind, location }))
    }

    /// What to say about a relation that was not found: the schema may be missing, too.
    async fn missing(
        &self,
        connection: &mut SqliteConnection,
        wanted: RelationKind,
        ident: &TableIdent,
    ) -> Result<Error> {
        Ok(match self.has_namespace(connection, &ident.namespace).await? {
            true => error::undefined_relation(wanted, ident),
            false => error::missing_namespace(&ident.namespace),
        })
    }
}
