//! Namespaces (SQL: schemas) and their properties.
//!
//! A namespace exists when it has a property (the catalogs of Java and Python set `exists = true`)
//! or holds a table or view.

use std::collections::BTreeMap;

use sqlx::{Row, SqliteConnection};
use stoa_access::Object;
use stoa_error::Result;

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
        let rows = sqlx::query(
            "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?1
             UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?1 ORDER BY 1",
        )
        .bind(self.name())
        .fetch_all(&self.inner.pool)
        .await
        .map_err(|source| self.failed(source))?;
        rows.iter().map(|row| row.try_get(0).map_err(|source| self.failed(source))).collect()
    }

    /// All namespaces and what they hold, by name, as they are at one moment.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer.
    pub async fn listing(&self) -> Result<Vec<Listing>> {
        let rows = sqlx::query(
            "SELECT known.namespace, held.table_name, held.iceberg_type
             FROM (SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?1
                   UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?1) AS known
             LEFT JOIN iceberg_tables AS held
               ON held.catalog_name = ?1 AND held.table_namespace = known.namespace
             ORDER BY 1, 2",
        )
        .bind(self.name())
        .fetch_all(&self.inner.pool)
        .await
        .map_err(|source| self.failed(source))?;
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
        let mut connection =
            self.inner.pool.acquire().await.map_err(|source| self.failed(source))?;
        self.has_namespace(&mut connection, namespace).await
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
        let mut transaction = self.begin().await?;
        if self.has_namespace(&mut transaction, namespace).await? {
            return Err(error::duplicate_namespace(namespace));
        }
        self.put_property(&mut transaction, namespace, EXISTS, "true").await?;
        for (key, value) in properties {
            self.put_property(&mut transaction, namespace, key, value).await?;
        }
        self.commit(transaction).await
    }

    /// Removes an empty namespace, and the grants on it: they must not hold for a later one of this
    /// name.
    ///
    /// # Errors
    /// `NotFound` (3F000), `Conflict` (2BP01) where it holds a table or view.
    pub async fn drop_namespace(&self, namespace: &str) -> Result<()> {
        let mut transaction = self.begin().await?;
        if !self.has_namespace(&mut transaction, namespace).await? {
            return Err(error::missing_namespace(namespace));
        }
        let held = sqlx::query(
            "SELECT table_name FROM iceberg_tables
             WHERE catalog_name = ? AND table_namespace = ? ORDER BY 1 LIMIT 1",
        )
        .bind(self.name())
        .bind(namespace)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(|source| self.failed(source))?;
        if let Some(row) = held {
            let first: String = row.try_get(0).map_err(|source| self.failed(source))?;
            return Err(error::namespace_not_empty(namespace, &first));
        }
        sqlx::query(
            "DELETE FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?",
        )
        .bind(self.name())
        .bind(namespace)
        .execute(&mut *transaction)
        .await
        .map_err(|source| self.failed(source))?;
        if self.remove_grants_on(&mut transaction, &Object::Namespace(namespace.to_owned())).await?
            > 0
        {
            self.count_change(&mut transaction).await?;
        }
        self.commit(transaction).await
    }

    /// The properties of `namespace`, without the marker that makes it exist.
    ///
    /// # Errors
    /// `NotFound` (3F000).
    pub async fn namespace_properties(&self, namespace: &str) -> Result<BTreeMap<String, String>> {
        let rows = sqlx::query(
            "SELECT property_key, property_value FROM iceberg_namespace_properties
             WHERE catalog_name = ? AND namespace = ?",
        )
        .bind(self.name())
        .bind(namespace)
        .fetch_all(&self.inner.pool)
        .await
        .map_err(|source| self.failed(source))?;
        if rows.is_empty() && !self.namespace_exists(namespace).await? {
            return Err(error::missing_namespace(namespace));
        }
        let mut properties = BTreeMap::new();
        for row in rows {
            let key: String = row.try_get(0).map_err(|source| self.failed(source))?;
            let value: Option<String> = row.try_get(1).map_err(|source| self.failed(source))?;
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
        let mut transaction = self.begin().await?;
        if !self.has_namespace(&mut transaction, namespace).await? {
            return Err(error::missing_namespace(namespace));
        }
        for (key, value) in changes.iter().filter(|(key, _)| *key != EXISTS) {
            match value {
                Some(value) => self.put_property(&mut transaction, namespace, key, value).await?,
                None => self.remove_property(&mut transaction, namespace, key).await?,
            }
        }
        // Without this, removing the last property would make an empty namespace vanish.
        self.put_property(&mut transaction, namespace, EXISTS, "true").await?;
        self.commit(transaction).await
    }

    pub(crate) async fn has_namespace(
        &self,
        connection: &mut SqliteConnection,
        namespace: &str,
    ) -> Result<bool> {
        sqlx::query(
            "SELECT EXISTS (SELECT 1 FROM iceberg_namespace_properties
                            WHERE catalog_name = ?1 AND namespace = ?2)
                 OR EXISTS (SELECT 1 FROM iceberg_tables
                            WHERE catalog_name = ?1 AND table_namespace = ?2)",
        )
        .bind(self.name())
        .bind(namespace)
        .fetch_one(connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(|source| self.failed(source))
    }

    async fn put_property(
        &self,
        connection: &mut SqliteConnection,
        namespace: &str,
        key: &str,
        value: &str,
    ) -> Result<()> {
        sqlx::query(
            "INSERT OR REPLACE INTO iceberg_namespace_properties
             (catalog_name, namespace, property_key, property_value) VALUES (?, ?, ?, ?)",
        )
        .bind(self.name())
        .bind(namespace)
        .bind(key)
        .bind(value)
        .execute(connection)
        .await
        .map_err(|source| self.failed(source))?;
        Ok(())
    }

    async fn remove_property(
        &self,
        connection: &mut SqliteConnection,
        namespace: &str,
        key: &str,
    ) -> Result<()> {
        sqlx::query(
            "DELETE FROM iceberg_namespace_properties
             WHERE catalog_name = ? AND namespace = ? AND property_key = ?",
        )
        .bind(self.name())
        .bind(namespace)
        .bind(key)
        .execute(connection)
        .await
        .map_err(|source| self.failed(source))?;
        Ok(())
    }
}
