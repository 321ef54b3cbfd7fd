//! Pointers of tables and views: what both have in common. `tables` and `views` say what can be done with each.

use stoa_error::{Condition, Error, Result};

use crate::database::{Change, Statement};
use crate::relation::{Relation, RelationKind};
use crate::{Catalog, Swap, TableIdent, error, lookup};

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
        match self.database().relation(ident).await? {
            Some(relation) => Ok(relation),
            None if self.namespace_exists(&ident.namespace).await? => {
                Err(error::undefined_relation(wanted, ident))
            }
            None => Err(error::missing_namespace(&ident.namespace)),
        }
    }

    /// The names of one kind in `namespace`, in order.
    pub(crate) async fn names(&self, kind: RelationKind, namespace: &str) -> Result<Vec<String>> {
        let query = Statement::new(
            "SELECT table_name FROM iceberg_tables
             WHERE catalog_name = $1 AND table_namespace = $2
               AND coalesce(iceberg_type, 'TABLE') = $3",
        );
        let query = query.bind(self.name()).bind(namespace).bind(kind.stored());
        let rows = self.fetch(query).await?;
        if rows.is_empty() && !self.namespace_exists(namespace).await? {
            return Err(error::missing_namespace(namespace));
        }
        let mut names = rows.iter().map(|row| self.value(row, 0)).collect::<Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    pub(crate) async fn create(
        &self,
        kind: RelationKind,
        ident: &TableIdent,
        location: &str,
    ) -> Result<()> {
        let mut change = self.begin().await?;
        if !self.has_namespace(&mut *change, &ident.namespace).await? {
            return Err(error::missing_namespace(&ident.namespace));
        }
        let insert = Statement::new(
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,
                 metadata_location, previous_metadata_location, iceberg_type)
             VALUES ($1, $2, $3, $4, NULL, $5) ON CONFLICT DO NOTHING",
        );
        let insert = insert.bind(self.name()).bind(ident.namespace.as_str());
        let insert = insert.bind(ident.name.as_str()).bind(location).bind(kind.stored());
        if change.execute(insert).await? == 0 {
            // To say what has the name; other engines may have dropped it since.
            self.check_unused(&mut *change, ident).await?;
            return Err(error::moved(kind, ident));
        }
        self.commit_moves(change, &[ident]).await
    }

    /// Moves pointers of one kind, all of them or none.
    ///
    /// They are moved in the order of their names, so that two that move the same never wait for each
    /// other.
    pub(crate) async fn swap_pointers(&self, kind: RelationKind, swaps: &[Swap<'_>]) -> Result<()> {
        let mut swaps: Vec<&Swap<'_>> = swaps.iter().collect();
        swaps.sort_by_key(|swap| swap.ident);
        let mut change = match kind {
            RelationKind::Table => self.begin_moves().await?,
            // Rare, and a database that remembers reads forgets those of all views.
            RelationKind::View => self.begin_rows().await?,
        };
        for swap in &swaps {
            self.move_pointer(&mut *change, kind, swap).await?;
        }
        let moved: Vec<&TableIdent> = swaps.iter().map(|swap| swap.ident).collect();
        self.commit_moves(change, &moved).await
    }

    /// A pointer that is to stay where it is, is written as well: so it stays until the commit.
    async fn move_pointer(
        &self,
        change: &mut dyn Change,
        kind: RelationKind,
        swap: &Swap<'_>,
    ) -> Result<()> {
        let Swap { ident, expected, new } = swap;
        let update = Statement::new(match new {
            Some(_) => {
                "UPDATE iceberg_tables SET metadata_location = $6, previous_metadata_location = $5
                 WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3
                   AND coalesce(iceberg_type, 'TABLE') = $4 AND metadata_location = $5"
            }
            None => {
                "UPDATE iceberg_tables SET metadata_location = metadata_location
                 WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3
                   AND coalesce(iceberg_type, 'TABLE') = $4 AND metadata_location = $5"
            }
        });
        let update = update.bind(self.name()).bind(ident.namespace.as_str());
        let update = update.bind(ident.name.as_str()).bind(kind.stored()).bind(*expected);
        let update = match new {
            Some(new) => update.bind(*new),
            None => update,
        };
        if change.execute(update).await? > 0 {
            return Ok(());
        }
        self.find(change, kind, ident).await?;
        Err(error::moved(kind, ident))
    }

    /// Forgets `ident`, only while it points to `expected` if that is given; gives back where it
    /// pointed to.
    pub(crate) async fn remove(
        &self,
        kind: RelationKind,
        ident: &TableIdent,
        expected: Option<&str>,
    ) -> Result<String> {
        let mut change = self.begin().await?;
        self.hold(&mut *change, ident).await?;
        let location = self.find(&mut *change, kind, ident).await?;
        if expected.is_some_and(|expected| expected != location) {
            return Err(error::moved(kind, ident));
        }
        let delete = Statement::new(
            "DELETE FROM iceberg_tables
             WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3",
        );
        let delete = delete.bind(self.name()).bind(ident.namespace.as_str());
        change.execute(delete.bind(ident.name.as_str())).await?;
        self.commit_moves(change, &[ident]).await?;
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
        let mut change = self.begin().await?;
        if !self.has_namespace(&mut *change, &to.namespace).await? {
            return Err(error::missing_namespace(&to.namespace));
        }
        self.hold(&mut *change, from).await?;
        let location = self.find(&mut *change, kind, from).await?;
        if expected.is_some_and(|expected| expected != location) {
            return Err(error::moved(kind, from));
        }
        if from != to {
            self.check_unused(&mut *change, to).await?;
        }
        let update = Statement::new(
            "UPDATE iceberg_tables SET table_namespace = $4, table_name = $5
             WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3",
        );
        let update = update.bind(self.name()).bind(from.namespace.as_str());
        let update = update.bind(from.name.as_str());
        let update = update.bind(to.namespace.as_str()).bind(to.name.as_str());
        change.execute(update).await?;
        self.commit_moves(change, &[from, to]).await
    }

    async fn commit_moves(&self, change: Box<dyn Change>, idents: &[&TableIdent]) -> Result<()> {
        let outcome = change.commit().await;
        self.database().forget(idents);
        outcome
    }

    /// Keeps the pointer of `ident`, if there is one, where it is until the change ends: pointers move
    /// while others change the catalog.
    pub(crate) async fn hold(&self, change: &mut dyn Change, ident: &TableIdent) -> Result<()> {
        let touch = Statement::new(
            "UPDATE iceberg_tables SET metadata_location = metadata_location
             WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3",
        );
        let touch = touch.bind(self.name()).bind(ident.namespace.as_str());
        change.execute(touch.bind(ident.name.as_str())).await.map(|_| ())
    }

    async fn check_unused(&self, change: &mut dyn Change, ident: &TableIdent) -> Result<()> {
        match self.find_any(change, ident).await? {
            None => Ok(()),
            Some(relation) => Err(error::duplicate_relation(relation.kind, ident)),
        }
    }

    /// Where `ident` points to, which must be there and of this kind.
    async fn find(
        &self,
        change: &mut dyn Change,
        kind: RelationKind,
        ident: &TableIdent,
    ) -> Result<String> {
        match self.find_any(change, ident).await? {
            Some(relation) if relation.kind == kind => Ok(relation.location),
            Some(relation) => Err(error::wrong_kind(relation.kind, ident)),
            None => Err(self.missing(change, kind, ident).await?),
        }
    }

    async fn find_any(
        &self,
        change: &mut dyn Change,
        ident: &TableIdent,
    ) -> Result<Option<Relation>> {
        let rows = change.fetch(lookup::find(self.name(), ident)).await?;
        rows.first().map(|row| lookup::of_row(row, ident)).transpose()
    }

    /// What to say about a relation that was not found: the schema may be missing, too.
    async fn missing(
        &self,
        change: &mut dyn Change,
        wanted: RelationKind,
        ident: &TableIdent,
    ) -> Result<Error> {
        Ok(match self.has_namespace(change, &ident.namespace).await? {
            true => error::undefined_relation(wanted, ident),
            false => error::missing_namespace(&ident.namespace),
        })
    }
}
