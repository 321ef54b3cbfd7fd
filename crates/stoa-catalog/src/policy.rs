//! The policy as it is stored: reading all of it, and counting its changes.

use std::collections::HashMap;

use sqlx::{Sqlite, SqliteConnection, Transaction};
use stoa_access::{Membership, Policy, PolicyParts};
use stoa_error::{Error, Result};
use uuid::Uuid;

use crate::{Catalog, error};

impl Catalog {
    /// How often roles, memberships, grants and owners were changed. Asked again, it costs a few
    /// microseconds as long as nobody changed the database: fit for asking before each statement.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer.
    pub async fn policy_version(&self) -> Result<u64> {
        let version = match self.inner.known.policy_version() {
            Some(Ok(known)) => return Ok(known),
            Some(Err(version)) => Some(version),
            None => None,
        };
        let mut connection =
            self.inner.pool.acquire().await.map_err(|source| self.failed(source))?;
        let policy_version = self.read_version(&mut connection).await?;
        if let Some(version) = version {
            self.inner.known.put_policy_version(policy_version, version);
        }
        Ok(policy_version)
    }

    /// All of the policy as of one version. Reads everything: keep it until
    /// [`Self::policy_version`] is another.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer, `Corrupt` where what is stored
    /// contradicts itself.
    pub async fn policy(&self) -> Result<Policy> {
        // A transaction that only reads sees one state of the database.
        let mut transaction =
            self.inner.pool.begin().await.map_err(|source| self.failed(source))?;
        let version = self.read_version(&mut transaction).await?;
        let parts = PolicyParts {
            roles: self.read_roles(&mut transaction).await?,
            memberships: self.read_memberships(&mut transaction).await?,
            grants: self.read_grants(&mut transaction).await?,
            owners: self.read_owners(&mut transaction).await?,
        };
        transaction.rollback().await.map_err(|source| self.failed(source))?;
        let refused = |error| {
            self.damaged("what it holds of roles and grants is no policy").with_source(error)
        };
        Policy::new(version, parts).map_err(refused)
    }

    /// Commits a change of the policy that touched `rows` rows; if it was none, nothing is counted.
    pub(crate) async fn commit_change(
        &self,
        mut transaction: Transaction<'static, Sqlite>,
        rows: u64,
    ) -> Result<()> {
        if rows > 0 {
            self.count_change(&mut transaction).await?;
        }
        self.commit(transaction).await
    }

    pub(crate) async fn count_change(&self, connection: &mut SqliteConnection) -> Result<()> {
        let count = sqlx::query(
            "INSERT INTO stoa_policy_version (catalog_name, version) VALUES (?, 1)
             ON CONFLICT (catalog_name) DO UPDATE SET version = version + 1",
        );
        self.execute(connection, count.bind(self.name())).await?;
        Ok(())
    }

    /// An error of what is stored, naming the file.
    pub(crate) fn damaged(&self, what: impl std::fmt::Display) -> Error {
        error::damaged_policy(&self.file().display().to_string(), what)
    }

    async fn read_version(&self, connection: &mut SqliteConnection) -> Result<u64> {
        let query = sqlx::query("SELECT version FROM stoa_policy_version WHERE catalog_name = ?");
        let rows = self.fetch_all(connection, query.bind(self.name())).await?;
        let Some(row) = rows.first() else { return Ok(0) };
        let version: i64 = self.value(row, 0)?;
        u64::try_from(version)
            .map_err(|_| self.damaged(format!("the policy has version {version}")))
    }

    pub(crate) async fn read_memberships(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<Vec<Membership>> {
        let query = sqlx::query(
            "SELECT role_name, member_name FROM stoa_role_members WHERE catalog_name = ?",
        );
        let rows = self.fetch_all(connection, query.bind(self.name())).await?;
        let membership =
            |row| Ok(Membership { role: self.value(row, 0)?, member: self.value(row, 1)? });
        rows.iter().map(membership).collect()
    }

    async fn read_owners(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<HashMap<Uuid, String>> {
        let query =
            sqlx::query("SELECT table_uuid, role_name FROM stoa_owners WHERE catalog_name = ?");
        let rows = self.fetch_all(connection, query.bind(self.name())).await?;
        let owner = |row| Ok((self.uuid(self.value(row, 0)?)?, self.value(row, 1)?));
        rows.iter().map(owner).collect()
    }

    pub(crate) fn uuid(&self, text: &str) -> Result<Uuid> {
        Uuid::parse_str(text).map_err(|_| self.damaged(format!("\"{text}\" is no UUID of a table")))
    }
}
