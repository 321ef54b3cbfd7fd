//! Grants and owners. Of views, too: a view is to them a table with the view's UUID.
//!
//! A grant of the whole is one row; a grant of columns is one row for each, beside that of the whole
//! if there is one. So grants add up, and counts of changes count rows.
//!
//! Other engines that drop a namespace in this file leave the grants on it; they hold for a later one
//! of that name.

use stoa_access::{Grant, Grantee, Object, Privilege};
use stoa_error::Result;
use uuid::Uuid;

use crate::database::{Change, Row, Statement};
use crate::{Catalog, error};

/// Stands for all columns: in the rows, and where rows are deleted.
const WHOLE: i32 = -1;

/// Stands for PUBLIC: no role has an empty name.
const PUBLIC: &str = "";

const INSERT: &str = "INSERT INTO stoa_grants
     (catalog_name, object_type, object, grantee, privilege, field_id)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";

/// Field -1 stands for the whole, which takes single columns with it.
const DELETE: &str = "DELETE FROM stoa_grants
     WHERE catalog_name = $1 AND object_type = $2 AND object = $3 AND grantee = $4
       AND privilege = $5 AND (field_id = $6 OR $6 = -1)";

impl Catalog {
    /// Grants all of `grants` or none. Gives back how many are new, each column counted: what was
    /// granted before stays and is not counted.
    ///
    /// # Errors
    /// `NotFound` for a role (42704) or namespace (3F000) that does not exist, and what
    /// [`Grant::check`] says. Whether a table exists is not looked at.
    pub async fn grant(&self, grants: &[Grant]) -> Result<u64> {
        let mut change = self.begin().await?;
        let mut rows = 0;
        for grant in grants {
            self.check_grant(&mut *change, grant).await?;
            self.check_namespace(&mut *change, &grant.object).await?;
            rows += self.for_each_row(&mut *change, grant, INSERT).await?;
        }
        self.commit_change(change, rows).await?;
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
        let mut change = self.begin().await?;
        let mut rows = 0;
        for grant in grants {
            self.check_grant(&mut *change, grant).await?;
            rows += self.for_each_row(&mut *change, grant, DELETE).await?;
        }
        self.commit_change(change, rows).await?;
        Ok(rows)
    }

    /// Makes `role` the owner of `table`, which is the UUID of a table or view; gives back whether it was not before.
    ///
    /// # Errors
    /// `NotFound` (42704). Whether the table exists is not looked at.
    pub async fn set_owner(&self, table: Uuid, role: &str) -> Result<bool> {
        let mut change = self.begin().await?;
        self.require_role(&mut *change, role).await?;
        let set = Statement::new(
            "INSERT INTO stoa_owners (catalog_name, table_uuid, role_name) VALUES ($1, $2, $3)
             ON CONFLICT (catalog_name, table_uuid) DO UPDATE SET role_name = excluded.role_name
             WHERE stoa_owners.role_name <> excluded.role_name",
        );
        let set = set.bind(self.name()).bind(table.to_string()).bind(role);
        let rows = change.execute(set).await?;
        self.commit_change(change, rows).await?;
        Ok(rows > 0)
    }

    /// Removes owner and grants of a table or view that was dropped; gives back how many rows there were.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer.
    pub async fn forget_table(&self, table: Uuid) -> Result<u64> {
        let mut change = self.begin().await?;
        let mut rows = self.remove_grants_on(&mut *change, &Object::Table(table)).await?;
        let delete =
            Statement::new("DELETE FROM stoa_owners WHERE catalog_name = $1 AND table_uuid = $2");
        let delete = delete.bind(self.name()).bind(table.to_string());
        rows += change.execute(delete).await?;
        self.commit_change(change, rows).await?;
        Ok(rows)
    }

    pub(crate) async fn remove_grants_on(
        &self,
        change: &mut dyn Change,
        object: &Object,
    ) -> Result<u64> {
        let delete = Statement::new(
            "DELETE FROM stoa_grants WHERE catalog_name = $1 AND object_type = $2 AND object = $3",
        );
        let (object_type, object) = stored_object(object);
        change.execute(delete.bind(self.name()).bind(object_type).bind(object)).await
    }

    pub(crate) fn grants_of(&self, rows: &[Row]) -> Result<Vec<Grant>> {
        rows.iter().map(|row| self.grant_of(row)).collect()
    }

    async fn check_grant(&self, change: &mut dyn Change, grant: &Grant) -> Result<()> {
        grant.check()?;
        if let Grantee::Role(name) = &grant.grantee {
            self.require_role(change, name).await?;
        }
        Ok(())
    }

    async fn check_namespace(&self, change: &mut dyn Change, object: &Object) -> Result<()> {
        let Object::Namespace(name) = object else { return Ok(()) };
        match self.has_namespace(change, name).await? {
            true => Ok(()),
            false => Err(error::missing_namespace(name)),
        }
    }

    /// Runs `statement` for each row that a grant is stored as. Its parameters: `$1` catalog, `$2` and
    /// `$3` object, `$4` grantee, `$5` privilege, `$6` field.
    async fn for_each_row(
        &self,
        change: &mut dyn Change,
        grant: &Grant,
        statement: &'static str,
    ) -> Result<u64> {
        let (object_type, object) = stored_object(&grant.object);
        let mut rows = 0;
        for field in fields(grant) {
            let query = Statement::new(statement)
                .bind(self.name())
                .bind(object_type)
                .bind(object.as_str())
                .bind(stored_grantee(&grant.grantee))
                .bind(grant.privilege.name())
                .bind(i64::from(field));
            rows += change.execute(query).await?;
        }
        Ok(rows)
    }

    /// One row as a grant: of the whole, or of one column.
    fn grant_of(&self, row: &Row) -> Result<Grant> {
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

/// All grants of the catalog `name`, for [`Catalog::grants_of`].
pub(crate) fn query(name: &str) -> Statement {
    Statement::new(
        "SELECT object_type, object, grantee, privilege, field_id FROM stoa_grants
         WHERE catalog_name = $1",
    )
    .bind(name)
}

/// What was granted to `role` itself, for [`Catalog::grants_of`].
pub(crate) fn query_of(name: &str, role: &str) -> Statement {
    let query = Statement::new(
        "SELECT object_type, object, grantee, privilege, field_id FROM stoa_grants
         WHERE catalog_name = $1 AND grantee = $2",
    );
    query.bind(name).bind(role)
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
