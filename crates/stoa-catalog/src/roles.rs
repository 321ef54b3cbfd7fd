//! Roles and their memberships: making, changing and dropping them.

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use stoa_access::{Grant, Membership, Memberships, Role, ScramSecret, unknown_role};
use stoa_error::Result;

use crate::{Catalog, error};

/// What is to change about a role; `None` leaves it as it is.
#[derive(Clone, Debug, Default)]
pub struct RoleChange {
    /// Whether it may log in.
    pub can_login: Option<bool>,
    /// Whether it may do everything.
    pub is_superuser: Option<bool>,
    /// Its secret; `Some(None)` takes the password away.
    pub secret: Option<Option<ScramSecret>>,
}

impl RoleChange {
    fn apply(&self, role: &mut Role) {
        role.can_login = self.can_login.unwrap_or(role.can_login);
        role.is_superuser = self.is_superuser.unwrap_or(role.is_superuser);
        if let Some(secret) = &self.secret {
            role.secret.clone_from(secret);
        }
    }
}

impl Catalog {
    /// Makes a role.
    ///
    /// # Errors
    /// `AlreadyExists` (42710), and what [`Role::check_name`] says.
    pub async fn create_role(&self, role: &Role) -> Result<()> {
        Role::check_name(&role.name)?;
        let mut transaction = self.begin().await?;
        let insert = sqlx::query(
            "INSERT OR IGNORE INTO stoa_roles
             (catalog_name, role_name, can_login, is_superuser, secret) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(self.name())
        .bind(&role.name)
        .bind(role.can_login)
        .bind(role.is_superuser)
        .bind(role.secret.as_ref().map(ToString::to_string));
        match self.execute(&mut transaction, insert).await? {
            0 => Err(error::duplicate_role(&role.name)),
            rows => self.commit_change(transaction, rows).await,
        }
    }

    /// Changes attributes or password of a role; gives back whether anything is different now.
    ///
    /// # Errors
    /// `NotFound` (42704).
    pub async fn alter_role(&self, name: &str, change: &RoleChange) -> Result<bool> {
        let mut transaction = self.begin().await?;
        let before = self.require_role(&mut transaction, name).await?;
        let mut role = before.clone();
        change.apply(&mut role);
        if role == before {
            return Ok(false);
        }
        let update = sqlx::query(
            "UPDATE stoa_roles SET can_login = ?, is_superuser = ?, secret = ?
             WHERE catalog_name = ? AND role_name = ?",
        )
        .bind(role.can_login)
        .bind(role.is_superuser)
        .bind(role.secret.as_ref().map(ToString::to_string))
        .bind(self.name())
        .bind(name);
        let rows = self.execute(&mut transaction, update).await?;
        self.commit_change(transaction, rows).await?;
        Ok(true)
    }

    /// Drops a role that owns nothing and was granted nothing; its memberships, either way, go.
    ///
    /// # Errors
    /// `NotFound` (42704), `Conflict` (2BP01) with what it owns and was granted as detail: tables
    /// by their UUIDs.
    pub async fn drop_role(&self, name: &str) -> Result<()> {
        let mut transaction = self.begin().await?;
        self.require_role(&mut transaction, name).await?;
        let held = self.held_by(&mut transaction, name).await?;
        if !held.is_empty() {
            return Err(error::role_in_use(name, &held));
        }
        let mut rows = 0;
        for delete in [
            "DELETE FROM stoa_role_members WHERE catalog_name = ?1 AND ?2 IN (role_name, member_name)",
            "DELETE FROM stoa_roles WHERE catalog_name = ?1 AND role_name = ?2",
        ] {
            let delete = sqlx::query(delete).bind(self.name()).bind(name);
            rows += self.execute(&mut transaction, delete).await?;
        }
        self.commit_change(transaction, rows).await
    }

    /// Makes `member` a member of `role`; gives back whether it was none before.
    ///
    /// # Errors
    /// `NotFound` (42704), `Invalid` (0LP01) where a role would become a member of itself.
    pub async fn grant_role(&self, role: &str, member: &str) -> Result<bool> {
        let mut transaction = self.begin().await?;
        self.require_role(&mut transaction, role).await?;
        self.require_role(&mut transaction, member).await?;
        let mut memberships = Memberships::default();
        for known in self.read_memberships(&mut transaction).await? {
            memberships.add(known)?;
        }
        if !memberships.add(Membership::new(role, member))? {
            return Ok(false);
        }
        let insert = sqlx::query(
            "INSERT INTO stoa_role_members (catalog_name, role_name, member_name) VALUES (?, ?, ?)",
        );
        let insert = insert.bind(self.name()).bind(role).bind(member);
        let rows = self.execute(&mut transaction, insert).await?;
        self.commit_change(transaction, rows).await?;
        Ok(true)
    }

    /// Takes `member` out of `role`; gives back whether it was in, directly.
    ///
    /// # Errors
    /// `NotFound` (42704).
    pub async fn revoke_role(&self, role: &str, member: &str) -> Result<bool> {
        let mut transaction = self.begin().await?;
        self.require_role(&mut transaction, role).await?;
        self.require_role(&mut transaction, member).await?;
        let delete = sqlx::query(
            "DELETE FROM stoa_role_members
             WHERE catalog_name = ? AND role_name = ? AND member_name = ?",
        );
        let delete = delete.bind(self.name()).bind(role).bind(member);
        let rows = self.execute(&mut transaction, delete).await?;
        self.commit_change(transaction, rows).await?;
        Ok(rows > 0)
    }

    /// The role `name`, or an error that hints at the nearest name there is.
    pub(crate) async fn require_role(
        &self,
        connection: &mut SqliteConnection,
        name: &str,
    ) -> Result<Role> {
        let query = sqlx::query(
            "SELECT role_name, can_login, is_superuser, secret FROM stoa_roles
             WHERE catalog_name = ? AND role_name = ?",
        );
        let rows = self.fetch_all(connection, query.bind(self.name()).bind(name)).await?;
        match rows.first() {
            Some(row) => self.role_of(row),
            None => {
                let known = self.read_roles(connection).await?;
                Err(unknown_role(name, known.iter().map(|role| role.name.as_str())))
            }
        }
    }

    pub(crate) async fn read_roles(&self, connection: &mut SqliteConnection) -> Result<Vec<Role>> {
        let query = sqlx::query(
            "SELECT role_name, can_login, is_superuser, secret FROM stoa_roles
             WHERE catalog_name = ?",
        );
        let rows = self.fetch_all(connection, query.bind(self.name())).await?;
        rows.iter().map(|row| self.role_of(row)).collect()
    }

    fn role_of(&self, row: &SqliteRow) -> Result<Role> {
        let name: String = self.value(row, 0)?;
        let secret: Option<&str> = self.value(row, 3)?;
        let secret = secret.map(str::parse::<ScramSecret>).transpose().map_err(|source| {
            self.damaged(format!("the secret of role \"{name}\" cannot be read"))
                .with_source(source)
        })?;
        let (can_login, is_superuser) = (self.value(row, 1)?, self.value(row, 2)?);
        Ok(Role { name, can_login, is_superuser, secret })
    }

    /// What the role owns and was granted, in words.
    async fn held_by(&self, connection: &mut SqliteConnection, name: &str) -> Result<Vec<String>> {
        let query = sqlx::query(
            "SELECT table_uuid FROM stoa_owners WHERE catalog_name = ? AND role_name = ? ORDER BY 1",
        );
        let owned = self.fetch_all(connection, query.bind(self.name()).bind(name)).await?;
        let owner_of = |row| Ok(format!("owner of table {}", self.value::<&str>(row, 0)?));
        let mut held = owned.iter().map(owner_of).collect::<Result<Vec<_>>>()?;
        let granted: Vec<Grant> = self.read_grants_of(connection, name).await?;
        held.extend(granted.iter().map(|grant| format!("{} on {}", grant.privilege, grant.object)));
        held.dedup();
        Ok(held)
    }
}
