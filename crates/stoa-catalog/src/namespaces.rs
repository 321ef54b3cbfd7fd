//! Namespaces (SQL: schemas) and their properties.
//!
//! A namespace exists when it has a property (the catalogs of Java and Python set `exists = true`)
//! or holds a table or view.

use std::collections::BTreeMap;

use stoa_access::Object;
use stoa_error::Result;

use crate::database::{Change, Statement};
use crate::relation::RelationKind;
use crate::{Catalog, error};

/// A namespace and the names of what it holds, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its name.
    pub namespace: String,
    /// Its tables.
    pub tables: Vec<String>,
    /// Its views.
    pub views: Vec<String>,
}

/// The property that Java's and Python's catalogs set to make a namespace exist.
const EXISTS: &str = "exists";

impl Catalog {
    /// All namespaces, by name.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer.
    pub async fn namespaces(&self) -> Result<Vec<String>> {
        let query = Statement::new(
            "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = $1
             UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = $1",
        );
        let rows = self.fetch(query.bind(self.name())).await?;
        // Databases order texts in several ways.
        let mut names = rows.iter().map(|row| self.value(row, 0)).collect::<Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    /// All namespaces and what they hold, by name, as they are at one moment.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer.
    pub async fn listing(&self) -> Result<Vec<Listing>> {
        let query = Statement::new(
            "SELECT known.namespace, held.table_name, held.iceberg_type
             FROM (SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = $1
                   UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = $1) AS known
             LEFT JOIN iceberg_tables AS held
               ON held.catalog_name = $1 AND held.table_namespace = known.namespace",
        );
        let mut rows = self.fetch(query.bind(self.name())).await?;
        rows.sort_unstable();
        let mut listing: Vec<Listing> = Vec::new();
        for row in &rows {
            let namespace: String = self.value(row, 0)?;
            if listing.last().is_none_or(|last| last.namespace != namespace) {
                listing.push(Listing { namespace, ..Listing::default() });
            }
            let (name, kind): (Option<String>, Option<String>) =
                (self.value(row, 1)?, self.value(row, 2)?);
            let kind = RelationKind::of_stored(kind.as_deref());
            if let (Some(last), Some(name)) = (listing.last_mut(), name) {
                match kind {
                    Some(RelationKind::Table) => last.tables.push(name),
                    Some(RelationKind::View) => last.views.push(name),
                    None => {}
                }
            }
        }
        Ok(listing)
    }

    /// Whether `namespace` exists.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer.
    pub async fn namespace_exists(&self, namespace: &str) -> Result<bool> {
        let rows = self.fetch(exists_query(self.name(), namespace)).await?;
        Ok(rows.first().and_then(|row| row.get(0)).unwrap_or(false))
    }

    /// Makes `namespace` with `properties`.
    ///
    /// # Errors
    /// `AlreadyExists` (42P06).
    pub async fn create_namespace(
        &self,
        namespace: &str,
        properties: &BTreeMap<String, String>,
    ) -> Result<()> {
        let mut change = self.begin().await?;
        if self.has_namespace(&mut *change, namespace).await? {
            return Err(error::duplicate_namespace(namespace));
        }
        self.put_property(&mut *change, namespace, EXISTS, "true").await?;
        for (key, value) in properties {
            self.put_property(&mut *change, namespace, key, value).await?;
        }
        change.commit().await
    }

    /// Removes an empty namespace, and the grants on it: they must not hold for a later one of this
    /// name.
    ///
    /// # Errors
    /// `NotFound` (3F000), `Conflict` (2BP01) where it holds a table or view.
    pub async fn drop_namespace(&self, namespace: &str) -> Result<()> {
        let mut change = self.begin().await?;
        if !self.has_namespace(&mut *change, namespace).await? {
            return Err(error::missing_namespace(namespace));
        }
        let held = Statement::new(
            "SELECT table_name FROM iceberg_tables
             WHERE catalog_name = $1 AND table_namespace = $2",
        );
        let held = change.fetch(held.bind(self.name()).bind(namespace)).await?;
        if let Some(row) = held.iter().min() {
            return Err(error::namespace_not_empty(namespace, self.value(row, 0)?));
        }
        let delete = Statement::new(
            "DELETE FROM iceberg_namespace_properties WHERE catalog_name = $1 AND namespace = $2",
        );
        change.execute(delete.bind(self.name()).bind(namespace)).await?;
        if self.remove_grants_on(&mut *change, &Object::Namespace(namespace.to_owned())).await? > 0
        {
            self.count_change(&mut *change).await?;
        }
        change.commit().await
    }

    /// The properties of `namespace`, without the marker that makes it exist.
    ///
    /// # Errors
    /// `NotFound` (3F000).
    pub async fn namespace_properties(&self, namespace: &str) -> Result<BTreeMap<String, String>> {
        let query = Statement::new(
            "SELECT property_key, property_value FROM iceberg_namespace_properties
             WHERE catalog_name = $1 AND namespace = $2",
        );
        let rows = self.fetch(query.bind(self.name()).bind(namespace)).await?;
        if rows.is_empty() && !self.namespace_exists(namespace).await? {
            return Err(error::missing_namespace(namespace));
        }
        let mut properties = BTreeMap::new();
        for row in &rows {
            let key: String = self.value(row, 0)?;
            let value: Option<String> = self.value(row, 1)?;
            if key != EXISTS {
                properties.insert(key, value.unwrap_or_default());
            }
        }
        Ok(properties)
    }

    /// Sets properties of `namespace` (`None` removes one).
    ///
    /// # Errors
    /// `NotFound` (3F000).
    pub async fn set_namespace_properties(
        &self,
        namespace: &str,
        changes: &BTreeMap<String, Option<String>>,
    ) -> Result<()> {
        let mut change = self.begin().await?;
        if !self.has_namespace(&mut *change, namespace).await? {
            return Err(error::missing_namespace(namespace));
        }
        for (key, value) in changes.iter().filter(|(key, _)| *key != EXISTS) {
            match value {
                Some(value) => self.put_property(&mut *change, namespace, key, value).await?,
                None => self.remove_property(&mut *change, namespace, key).await?,
            }
        }
        // Without this, removing the last property would make an empty namespace vanish.
        self.put_property(&mut *change, namespace, EXISTS, "true").await?;
        change.commit().await
    }

    pub(crate) async fn has_namespace(
        &self,
        change: &mut dyn Change,
        namespace: &str,
    ) -> Result<bool> {
        let rows = change.fetch(exists_query(self.name(), namespace)).await?;
        Ok(rows.first().and_then(|row| row.get(0)).unwrap_or(false))
    }

    async fn put_property(
        &self,
        change: &mut dyn Change,
        namespace: &str,
        key: &str,
        value: &str,
    ) -> Result<()> {
        let put = Statement::new(
            "INSERT INTO iceberg_namespace_properties
             (catalog_name, namespace, property_key, property_value) VALUES ($1, $2, $3, $4)
             ON CONFLICT (catalog_name, namespace, property_key)
             DO UPDATE SET property_value = excluded.property_value",
        );
        let put = put.bind(self.name()).bind(namespace).bind(key).bind(value);
        change.execute(put).await.map(|_| ())
    }

    async fn remove_property(
        &self,
        change: &mut dyn Change,
        namespace: &str,
        key: &str,
    ) -> Result<()> {
        let delete = Statement::new(
            "DELETE FROM iceberg_namespace_properties
             WHERE catalog_name = $1 AND namespace = $2 AND property_key = $3",
        );
        change.execute(delete.bind(self.name()).bind(namespace).bind(key)).await.map(|_| ())
    }
}

/// One row: whether `namespace` exists in the catalog `name`.
fn exists_query(name: &str, namespace: &str) -> Statement {
    Statement::new(
        "SELECT EXISTS (SELECT 1 FROM iceberg_namespace_properties
                        WHERE catalog_name = $1 AND namespace = $2)
             OR EXISTS (SELECT 1 FROM iceberg_tables
                        WHERE catalog_name = $1 AND table_namespace = $2)",
    )
    .bind(name)
    .bind(namespace)
}
