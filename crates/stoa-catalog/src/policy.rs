//! The policy as it is stored: reading all of it, and counting its changes.

use std::collections::HashMap;

use stoa_access::{Policy, PolicyParts};
use stoa_error::{Error, Result};
use uuid::Uuid;

use crate::database::{Change, Row, Statement};
use crate::{Catalog, error, grants, roles};

impl Catalog {
    /// How often roles, memberships, grants, owners and resource plans were changed. Asked again, it costs a few
    /// microseconds as long as nobody changed the database: fit for asking before each statement.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer.
    pub async fn policy_version(&self) -> Result<u64> {
        self.version_of(self.database().policy_version().await?)
    }

    /// All of the policy as of one version. Reads everything: keep it until
    /// [`Self::policy_version`] is another.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer, `Corrupt` where what is stored
    /// contradicts itself.
    pub async fn policy(&self) -> Result<Policy> {
        let queries =
            [version_query, roles::query, roles::memberships_query, grants::query, owners_query]
                .map(|query| query(self.name()));
        let found = self.database().fetch_all(queries.into()).await?;
        let rows = |index: usize| found.get(index).map_or(&[][..], Vec::as_slice);
        let version = match rows(0).first() {
            Some(row) => self.version_of(self.value(row, 0)?)?,
            None => 0,
        };
        let parts = PolicyParts {
            roles: self.roles_of(rows(1))?,
            memberships: self.memberships_of(rows(2))?,
            grants: self.grants_of(rows(3))?,
            owners: self.owners_of(rows(4))?,
        };
        let refused = |error| {
            self.damaged("what it holds of roles and grants is no policy").with_source(error)
        };
        Policy::new(version, parts).map_err(refused)
    }

    /// Commits a change of the policy that touched `rows` rows; if it was none, nothing is counted.
    pub(crate) async fn commit_change(&self, mut change: Box<dyn Change>, rows: u64) -> Result<()> {
        if rows > 0 {
            self.count_change(&mut *change).await?;
        }
        change.commit().await
    }

    pub(crate) async fn count_change(&self, change: &mut dyn Change) -> Result<()> {
        let count = Statement::new(
            "INSERT INTO stoa_policy_version (catalog_name, version) VALUES ($1, 1)
             ON CONFLICT (catalog_name) DO UPDATE SET version = stoa_policy_version.version + 1",
        );
        change.execute(count.bind(self.name())).await.map(|_| ())
    }

    /// An error of what is stored, naming the database.
    pub(crate) fn damaged(&self, what: impl std::fmt::Display) -> Error {
        error::damaged(self.place(), what)
    }

    fn version_of(&self, stored: i64) -> Result<u64> {
        u64::try_from(stored).map_err(|_| self.damaged(format!("the policy has version {stored}")))
    }

    fn owners_of(&self, rows: &[Row]) -> Result<HashMap<Uuid, String>> {
        let owner = |row| Ok((self.uuid(self.value(row, 0)?)?, self.value(row, 1)?));
        rows.iter().map(owner).collect()
    }

    pub(crate) fn uuid(&self, text: &str) -> Result<Uuid> {
        Uuid::parse_str(text).map_err(|_| self.damaged(format!("\"{text}\" is no UUID of a table")))
    }
}

/// The version of the policy of the catalog `name`, if it was ever changed.
pub(crate) fn version_query(name: &str) -> Statement {
    Statement::new("SELECT version FROM stoa_policy_version WHERE catalog_name = $1").bind(name)
}

fn owners_query(name: &str) -> Statement {
    Statement::new("SELECT table_uuid, role_name FROM stoa_owners WHERE catalog_name = $1")
        .bind(name)
}
