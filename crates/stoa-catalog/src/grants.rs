//! Grants and owners. Of views, too: a view is to them a table with the view's UUID.
//!
//! A grant of the whole is one row; a grant of columns is one row for each, beside that of the whole
//! if there is one. So grants add up, and counts of changes count rows.
//!
//! Other engines that drop a namespace in this file leave the grants on it; they hold for a later one
//! of that name.

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use stoa_access::{Grant, Grantee, Object, Privilege};
use stoa_error::Result;
use uuid::Uuid;

use crate::{Catalog, error};

/// Stands for all columns: in the rows, and where rows are deleted.
const WHOLE: i32 = -1;

/// Stands for PUBLIC: no role has an empty name.
const PUBLIC: &str = "";

const INSERT: &str = "INSERT OR IGNORE INTO stoa_grants
     (catalog_name, object_type, object, grantee, privilege, field_id)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Field -1 stands for the whole, which takes single columns with it.
const DELETE: &str = "DELETE FROM stoa_grants
     WHERE catalog_name = ?1 AND object_type = ?2 AND object = ?3 AND grantee = ?4
       AND privilege = ?5 AND (field_id = ?6 OR ?6 = -1)";

impl Catalog {
    /// Grants all of `grants` or none. Gives back how many are new, each column counted: what was
    /// granted before stays and is not counted.
    ///
    /// # Errors
    /// `NotFound` for a role (42704) or namespace (3F000) that does not exist, and what
    /// [`Grant::check`] says. Whether a table exists is not looked at.
    pub async fn grant(&self, grants: &[Grant]) -> Result<u64> {
        let mut transaction = self.begin().await?;
        let mut rows = 0;
        for grant in grants {
            self.check_grant(&mut transaction, grant).await?;
            self.check_namespace(&mut transaction, &grant.object).await?;
            rows += self.for_each_row(&mut transaction, grant, INSERT).await?;
        }
        self.commit_change(transaction, rows).await?;
        Ok(rows)
    }

    /// Takes back all of `grants`. Gives back how many there were, each column counted: 0 is no
    /// error.
    ///
    /// As in PostgreSQL, revoking the whole takes back what was granted on columns, too, and revoking
    /// columns takes back nothing of a grant of the whole.
    ///
    /// # Errors
    /// `NotFound` for a role (42704) that does not exist, and what [`Grant::check`] says.
    pub async fn revoke(&self, grants: &[Grant]) -> Result<u64> {
        let mut transaction = self.begin().await?;
        let mut rows = 0;
        for grant in grants {
            self.check_grant(&mut transaction, grant).await?;
            rows += self.for_each_row(&mut transaction, grant, DELETE).await?;
        }
        self.commit_change(transaction, rows).await?;
        Ok(rows)
    }

    /// Makes `role` the owner of `table`, which is the UUID of a table or view; gives back whether it was not before.
    ///
    /// # Errors
    /// `NotFound` (42704). Whether the table exists is not looked at.
    pub async fn set_owner(&self, table: Uuid, role: &str) -> Result<bool> {
        let mut transaction = self.begin().await?;
        self.require_role(&mut transaction, role).await?;
        let set = sqlx::query(
            "INSERT INTO stoa_owners (catalog_name, table_uuid, role_name) VALUES (?, ?, ?)
             ON CONFLICT (catalog_name, table_uuid) DO UPDATE SET role_name = excluded.role_name
             WHERE role_name <> excluded.role_name",
        );
        let set = set.bind(self.name()).bind(table.to_string()).bind(role);
        let rows = self.execute(&mut transaction, set).await?;
        self.commit_change(transaction, rows).await?;
        Ok(rows > 0)
    }

    /// Removes owner and grants of a table or view that was dropped; gives back how many rows there were.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer.
    pub async fn forget_table(&self, table: Uuid) -> Result<u64> {
        let mut transaction = self.begin().await?;
        let mut rows = self.remove_grants_on(&mut transaction, &Object::Table(table)).await?;
        let delete =
            sqlx::query("DELETE FROM stoa_owners WHERE catalog_name = ? AND table_uuid = ?");
        let delete = delete.bind(self.name()).bind(table.to_string());
        rows += self.execute(&mut transaction, delete).await?;
        self.commit_change(transaction, rows).await?;
        Ok(rows)
    }

    pub(crate) async fn remove_grants_on(
        &self,
        connection: &mut SqliteConnection,
        object: &Object,
    ) -> Result<u64> {
        let delete = sqlx::query(
            "DELETE FROM stoa_grants WHERE catalog_name = ? AND object_type = ? AND object = ?",
        );
        let (object_type, object) = stored_object(object);
        self.execute(connection, delete.bind(self.name()).bind(object_type).bind(object)).await
    }

    pub(crate) async fn read_grants(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<Vec<Grant>> {
        let query = sqlx::query(
            "SELECT object_type, object, grantee, privilege, field_id FROM stoa_grants
             WHERE catalog_name = ?",
        );
        let rows = self.fetch_all(connection, query.bind(self.name())).await?;
        rows.iter().map(|row| self.grant_of(row)).collect()
    }

    /// What was granted to the role itself, in order.
    pub(crate) async fn read_grants_of(
        &self,
        connection: &mut SqliteConnection,
        role: &str,
    ) -> Result<Vec<Grant>> {
        let query = sqlx::query(
            "SELECT object_type, object, grantee, privilege, field_id FROM stoa_grants
             WHERE catalog_name = ? AND grantee = ? ORDER BY 1, 2, 4, 5",
        );
        let rows = self.fetch_all(connection, query.bind(self.name()).bind(role)).await?;
        rows.iter().map(|row| self.grant_of(row)).collect()
    }

    async fn check_grant(&self, connection: &mut SqliteConnection, grant: &Grant) -> Result<()> {
        grant.check()?;
        if let Grantee::Role(name) = &grant.grantee {
            self.require_role(connection, name).await?;
        }
        Ok(())
    }

    async fn check_namespace(
        &self,
        connection: &mut SqliteConnection,
        object: &Object,
    ) -> Result<()> {
        let Object::Namespace(name) = object else { return Ok(()) };
        match self.has_namespace(connection, name).await? {
            true => Ok(()),
            false => Err(error::missing_namespace(name)),
        }
    }

    /// Runs `statement` for each row that a grant is stored as. Its parameters: `?1` catalog, `?2` and
    /// `?3` object, `?4` grantee, `?5` privilege, `?6` field.
    async fn for_each_row(
        &self,
        connection: &mut SqliteConnection,
        grant: &Grant,
        statement: &'static str,
    ) -> Result<u64> {
        let (object_type, object) = stored_object(&grant.object);
        let mut rows = 0;
        for field in fields(grant) {
            let query = sqlx::query(statement)
                .bind(self.name())
                .bind(object_type)
                .bind(&object)
                .bind(stored_grantee(&grant.grantee))
                .bind(grant.privilege.name())
                .bind(field);
            rows += self.execute(connection, query).await?;
        }
        Ok(rows)
    }

    /// One row as a grant: of the whole, or of one column.
    fn grant_of(&self, row: &SqliteRow) -> Result<Grant> {
        let (object_type, object): (&str, &str) = (self.value(row, 0)?, self.value(row, 1)?);
        let object = match object_type {
            "table" => Object::Table(self.uuid(object)?),
            "namespace" => Object::Namespace(object.to_owned()),
            other => return Err(self.damaged(format!("there is a grant on a \"{other}\""))),
        };
        let grantee = match self.value(row, 2)? {
            PUBLIC => Grantee::Public,
            name => Grantee::Role(name.to_owned()),
        };
        let privilege: &str = self.value(row, 3)?;
        let privilege = Privilege::parse(privilege)
            .ok_or_else(|| self.damaged(format!("there is a grant of \"{privilege}\"")))?;
        let grant = Grant::new(grantee, privilege, object);
        Ok(match self.value(row, 4)? {
            WHOLE => grant,
            field => grant.on_columns([field]),
        })
    }
}

/// Type and name of an object as they are stored.
fn stored_object(object: &Object) -> (&'static str, String) {
    match object {
        Object::Table(uuid) => ("table", uuid.to_string()),
        Object::Namespace(name) => ("namespace", name.clone()),
    }
}

fn stored_grantee(grantee: &Grantee) -> &str {
    match grantee {
        Grantee::Role(name) => name,
        Grantee::Public => PUBLIC,
    }
}

/// The values of `field_id` that a grant is stored with.
fn fields(grant: &Grant) -> Vec<i32> {
    match &grant.columns {
        None => vec![WHOLE],
        Some(columns) => columns.iter().copied().collect(),
    }
}
