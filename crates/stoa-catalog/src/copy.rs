//! Copying a catalog into another database.

use stoa_error::{Error, Result};

use crate::Catalog;
use crate::database::{Row, Statement};

/// A table and how its rows are read and written; the catalog's name is `$1`, and no column is read for
/// it.
struct Table {
    name: &'static str,
    read: &'static str,
    write: &'static str,
}

macro_rules! table {
    ($name:literal, $columns:literal, $values:literal) => {
        Table {
            name: $name,
            read: concat!("SELECT ", $columns, " FROM ", $name, " WHERE catalog_name = $1"),
            write: concat!(
                "INSERT INTO ",
                $name,
                " (catalog_name, ",
                $columns,
                ") VALUES ($1, ",
                $values,
                ")"
            ),
        }
    };
}

/// Not those of the cluster (`stoa_daemons` and others): members and leases are of one database and of the
/// daemons that run on it now.
const TABLES: [Table; 11] = [
    table!(
        "iceberg_tables",
        "table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type",
        "$2, $3, $4, $5, $6"
    ),
    table!("iceberg_namespace_properties", "namespace, property_key, property_value", "$2, $3, $4"),
    table!("stoa_roles", "role_name, can_login, is_superuser, secret", "$2, $3, $4, $5"),
    table!("stoa_role_members", "role_name, member_name", "$2, $3"),
    table!(
        "stoa_grants",
        "object_type, object, grantee, privilege, field_id",
        "$2, $3, $4, $5, $6"
    ),
    table!("stoa_owners", "table_uuid, role_name", "$2, $3"),
    table!("stoa_policy_version", "version", "$2"),
    table!("stoa_logs", "log_id, place, closed_at", "$2, $3, $4"),
    table!("stoa_login_key", "login_key", "$2"),
    table!("stoa_sequences", "sequence_id, next_value, step", "$2, $3, $4"),
    table!("stoa_resource_plans", "plan_name, definition", "$2, $3"),
];

/// What was copied: each table with its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Names of tables of the database, and how many rows of the catalog each has.
    pub rows: Vec<(&'static str, u64)>,
}

impl Catalog {
    /// Copies all that this catalog holds into `target`, which must hold nothing, in one change of
    /// `target`. The copy is read back and compared before it counts. This catalog is read as of one
    /// moment: stop what changes it, or later changes are missing in the copy. The names of the two
    /// may differ.
    ///
    /// # Errors
    /// `AlreadyExists` where `target` holds anything, `Corrupt` where the copy is not equal, and
    /// those of every change. Nothing is copied then, unless it is 08007.
    pub async fn copy_to(&self, target: &Self) -> Result<Copied> {
        let reads = TABLES.map(|table| Statement::new(table.read).bind(self.name())).into();
        let source = self.database().fetch_now(reads).await?;
        let mut change = target.begin().await?;
        let mut copied = Copied::default();
        for (table, mut rows) in TABLES.into_iter().zip(source) {
            let read = Statement::new(table.read).bind(target.name());
            if let held @ 1.. = change.fetch(read.clone()).await?.len() {
                return Err(target.not_empty(table.name, held));
            }
            for row in &rows {
                let write = Statement::new(table.write).bind(target.name());
                let values = row.0.iter().cloned();
                change.execute(values.fold(write, Statement::bind)).await?;
            }
            let mut written: Vec<Row> = change.fetch(read).await?;
            written.sort_unstable();
            rows.sort_unstable();
            if written != rows {
                return Err(Error::corrupt(format!(
                    "{} in catalog {} is not equal to that in {}",
                    table.name,
                    target.place(),
                    self.place()
                ))
                .with_hint("nothing was copied; please report this"));
            }
            copied.rows.push((table.name, rows.len() as u64));
        }
        change.commit().await?;
        Ok(copied)
    }

    fn not_empty(&self, table: &str, rows: usize) -> Error {
        let (place, name) = (self.place(), self.name());
        Error::already_exists(format!("catalog {place} is not empty"))
            .with_detail(format!("{table} has {rows} rows of the catalog \"{name}\""))
            .with_hint("copy into a new file or database, or into another schema (currentSchema)")
    }
}

impl Catalog {
    /// Points all tables and views below the literal location `from` below `to` instead, and forgets all commit logs.
    /// For a copy of a catalog in a file of its own, whose files are to be elsewhere.
    ///
    /// # Errors
    /// Those of every change; nothing is changed then, unless it is 08007.
    pub async fn relocate(&self, from: &str, to: &str) -> Result<()> {
        let mut change = self.begin().await?;
        for moved in [
            "UPDATE iceberg_tables SET metadata_location = $2 || substr(metadata_location, length($3) + 1)
             WHERE catalog_name = $1 AND substr(metadata_location, 1, length($3) + 1) = $3 || '/'",
            "UPDATE iceberg_tables
             SET previous_metadata_location = $2 || substr(previous_metadata_location, length($3) + 1)
             WHERE catalog_name = $1 AND substr(previous_metadata_location, 1, length($3) + 1) = $3 || '/'",
        ] {
            change.execute(Statement::new(moved).bind(self.name()).bind(to).bind(from)).await?;
        }
        let forget = Statement::new("DELETE FROM stoa_logs WHERE catalog_name = $1");
        change.execute(forget.bind(self.name())).await?;
        change.commit().await
    }
}
