//! Roles and their memberships: making, changing and dropping them.

use stoa_access::{Grant, Membership, Memberships, Role, ScramSecret, unknown_role};
use stoa_error::Result;

use crate::database::{Change, Row, Statement};
use crate::{Catalog, error, grants};

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
        let mut change = self.begin().await?;
        let insert = Statement::new(
            "INSERT INTO stoa_roles (catalog_name, role_name, can_login, is_superuser, secret)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
        )
        .bind(self.name())
        .bind(role.name.as_str())
        .bind(role.can_login)
        .bind(role.is_superuser)
        .bind(role.secret.as_ref().map(ToString::to_string));
        match change.execute(insert).await? {
            0 => Err(error::duplicate_role(&role.name)),
            rows => self.commit_change(change, rows).await,
        }
    }

    /// Changes attributes or password of a role; gives back whether anything is different now.
    ///
    /// # Errors
    /// `NotFound` (42704).
    pub async fn alter_role(&self, name: &str, wanted: &RoleChange) -> Result<bool> {
        let mut change = self.begin().await?;
        let before = self.require_role(&mut *change, name).await?;
        let mut role = before.clone();
        wanted.apply(&mut role);
        if role == before {
            return Ok(false);
        }
        let update = Statement::new(
            "UPDATE stoa_roles SET can_login = $1, is_superuser = $2, secret = $3
             WHERE catalog_name = $4 AND role_name = $5",
        )
        .bind(role.can_login)
        .bind(role.is_superuser)
        .bind(role.secret.as_ref().map(ToString::to_string))
        .bind(self.name())
        .bind(name);
        let rows = change.execute(update).await?;
        self.commit_change(change, rows).await?;
        Ok(true)
    }

    /// Drops a role that owns nothing and was granted nothing; its memberships, either way, go.
    ///
    /// # Errors
    /// `NotFound` (42704), `Conflict` (2BP01) with what it owns and was granted as detail: tables
    /// by their UUIDs.
    pub async fn drop_role(&self, name: &str) -> Result<()> {
        let mut change = self.begin().await?;
        self.require_role(&mut *change, name).await?;
        let held = self.held_by(&mut *change, name).await?;
        if !held.is_empty() {
            return Err(error::role_in_use(name, &held));
        }
        let mut rows = 0;
        for delete in [
            "DELETE FROM stoa_role_members WHERE catalog_name = $1 AND $2 IN (role_name, member_name)",
            "DELETE FROM stoa_roles WHERE catalog_name = $1 AND role_name = $2",
        ] {
            let delete = Statement::new(delete).bind(self.name()).bind(name);
            rows += change.execute(delete).await?;
        }
        self.commit_change(change, rows).await
    }

    /// Makes `member` a member of `role`; gives back whether it was none before.
    ///
    /// # Errors
    /// `NotFound` (42704), `Invalid` (0LP01) where a role would become a member of itself.
    pub async fn grant_role(&self, role: &str, member: &str) -> Result<bool> {
        let mut change = self.begin().await?;
        self.require_role(&mut *change, role).await?;
        self.require_role(&mut *change, member).await?;
        let mut memberships = Memberships::default();
        let known = change.fetch(memberships_query(self.name())).await?;
        for known in self.memberships_of(&known)? {
            memberships.add(known)?;
        }
        if !memberships.add(Membership::new(role, member))? {
            return Ok(false);
        }
        let insert = Statement::new(
            "INSERT INTO stoa_role_members (catalog_name, role_name, member_name) VALUES ($1, $2, $3)",
        );
        let insert = insert.bind(self.name()).bind(role).bind(member);
        let rows = change.execute(insert).await?;
        self.commit_change(change, rows).await?;
        Ok(true)
    }

    /// Takes `member` out of `role`; gives back whether it was in, directly.
    ///
    /// # Errors
    /// `NotFound` (42704).
    pub async fn revoke_role(&self, role: &str, member: &str) -> Result<bool> {
        let mut change = self.begin().await?;
        self.require_role(&mut *change, role).await?;
        self.require_role(&mut *change, member).await?;
        let delete = Statement::new(
            "DELETE FROM stoa_role_members
             WHERE catalog_name = $1 AND role_name = $2 AND member_name = $3",
        );
        let delete = delete.bind(self.name()).bind(role).bind(member);
        let rows = change.execute(delete).await?;
        self.commit_change(change, rows).await?;
        Ok(rows > 0)
    }

    /// The role `name`, or an error that hints at the nearest name there is.
    pub(crate) async fn require_role(&self, change: &mut dyn Change, name: &str) -> Result<Role> {
        let find = Statement::new(
            "SELECT role_name, can_login, is_superuser, secret FROM stoa_roles
             WHERE catalog_name = $1 AND role_name = $2",
        );
        let rows = change.fetch(find.bind(self.name()).bind(name)).await?;
        match rows.first() {
            Some(row) => self.role_of(row),
            None => {
                let known = self.roles_of(&change.fetch(query(self.name())).await?)?;
                Err(unknown_role(name, known.iter().map(|role| role.name.as_str())))
            }
        }
    }

    pub(crate) fn roles_of(&self, rows: &[Row]) -> Result<Vec<Role>> {
        rows.iter().map(|row| self.role_of(row)).collect()
    }

    pub(crate) fn memberships_of(&self, rows: &[Row]) -> Result<Vec<Membership>> {
        let membership =
            |row| Ok(Membership { role: self.value(row, 0)?, member: self.value(row, 1)? });
        rows.iter().map(membership).collect()
    }

    fn role_of(&self, row: &Row) -> Result<Role> {
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
    async fn held_by(&self, change: &mut dyn Change, name: &str) -> Result<Vec<String>> {
        let owned = Statement::new(
            "SELECT table_uuid FROM stoa_owners WHERE catalog_name = $1 AND role_name = $2",
        );
        let owned = change.fetch(owned.bind(self.name()).bind(name)).await?;
        let owner_of = |row| Ok(format!("owner of table {}", self.value::<&str>(row, 0)?));
        let mut held = owned.iter().map(owner_of).collect::<Result<Vec<_>>>()?;
        held.sort_unstable();
        let mut granted = change.fetch(grants::query_of(self.name(), name)).await?;
        granted.sort_unstable();
        let granted: Vec<Grant> = self.grants_of(&granted)?;
        held.extend(granted.iter().map(|grant| format!("{} on {}", grant.privilege, grant.object)));
        held.dedup();
        Ok(held)
    }
}

/// All roles of the catalog `name`, for [`Catalog::roles_of`].
pub(crate) fn query(name: &str) -> Statement {
    Statement::new(
        "SELECT role_name, can_login, is_superuser, secret FROM stoa_roles WHERE catalog_name = $1",
    )
    .bind(name)
}

/// All memberships, for [`Catalog::memberships_of`].
pub(crate) fn memberships_query(name: &str) -> Statement {
    Statement::new("SELECT role_name, member_name FROM stoa_role_members WHERE catalog_name = $1")
        .bind(name)
}
