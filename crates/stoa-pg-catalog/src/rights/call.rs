//! One call of `has_table_privilege` or its like.
//!
//! In: names or OIDs, as texts that PostgreSQL takes. Out: yes, no, NULL, or PostgreSQL's error.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use stoa_access::{Access, Columns, Policy};
use stoa_error::{Error, Result};

use super::Object;
use crate::relations::{FIRST_USER_OID, RelationInfo, Relations, name_parts};

/// OID of the owner of everything that has no owner, in `pg_class` and `pg_roles`.
const BOOTSTRAP_OID: i64 = 10;

/// Schemas whose tables everybody may read; rows are left out of them.
const SYSTEM_SCHEMAS: [&str; 3] = ["pg_catalog", "information_schema", "system"];

/// An argument.
#[derive(Debug)]
pub(super) enum Value {
    Null,
    Number(i64),
    Text(String),
}

impl Value {
    pub(super) fn of(value: &ScalarValue) -> Self {
        match value {
            null if null.is_null() => Self::Null,
            ScalarValue::Int16(Some(number)) => Self::Number((*number).into()),
            ScalarValue::Int32(Some(number)) => Self::Number((*number).into()),
            ScalarValue::Int64(Some(number)) => Self::Number(*number),
            ScalarValue::UInt32(Some(number)) => Self::Number((*number).into()),
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)) => Self::Text(text.clone()),
            other => Self::Text(other.to_string()),
        }
    }
}

/// A privilege that is asked for.
struct Wanted {
    name: String,
    /// Whether the right to pass it on is asked for, too.
    grantable: bool,
}

/// One call.
pub(super) struct Asked<'a> {
    pub(super) object: Object,
    pub(super) database: &'a str,
    /// The role of the session.
    pub(super) role: &'a str,
    pub(super) policy: Arc<Policy>,
    pub(super) relations: Arc<Relations>,
    /// Of names without one.
    pub(super) namespace: &'a str,
}

impl Asked<'_> {
    /// What the function comes to; NULL is `None`.
    ///
    /// # Errors
    /// PostgreSQL's: 42P01, 42703, 42704, 3D000, 3F000 for names of nothing, 42883 for other arguments.
    pub(super) fn answer(&self, values: &[Value]) -> Result<Option<bool>> {
        let arguments = self.object.arguments();
        let (user, values) = match values.len().checked_sub(arguments) {
            Some(0) => (None, values),
            Some(1) => (values.first(), &values[1..]),
            _ => return Err(self.misused()),
        };
        if values.iter().any(|value| matches!(value, Value::Null)) {
            return Ok(None);
        }
        let (Some(object), Some(Value::Text(privileges))) = (values.first(), values.last()) else {
            return Err(self.misused());
        };
        let role = match user {
            None => self.role,
            Some(Value::Text(name)) => self.policy.require(name)?.name.as_str(),
            // The one role with an OID is a superuser.
            Some(Value::Number(oid)) => return Ok((*oid == BOOTSTRAP_OID).then_some(true)),
            Some(Value::Null) => return Ok(None),
        };
        let is_superuser = self.policy.role(role).is_some_and(|role| role.is_superuser);
        let wanted = self.wanted(privileges)?;
        let any = |has: &dyn Fn(&Wanted) -> bool| Ok(Some(wanted.iter().any(has)));
        match self.object {
            Object::Table | Object::AnyColumn | Object::Column => {
                self.about_table(role, is_superuser, object, values.get(1), &wanted)
            }
            Object::Schema => match self.has_schema(object)? {
                false => Ok(None),
                true => any(&|one| is_superuser || one.name == "USAGE" && !one.grantable),
            },
            Object::Database => {
                self.check_database(object)?;
                any(&|one| is_superuser || one.name == "CONNECT" && !one.grantable)
            }
            Object::Function | Object::Type => any(&|one| is_superuser || !one.grantable),
            Object::Sequence | Object::Tablespace => Ok(Some(is_superuser)),
            Object::Role => {
                let is_member = self.is_member(role, is_superuser, object)?;
                any(&|one| is_superuser || is_member && !one.grantable)
            }
        }
    }

    fn about_table(
        &self,
        role: &str,
        is_superuser: bool,
        object: &Value,
        column: Option<&Value>,
        wanted: &[Wanted],
    ) -> Result<Option<bool>> {
        let Some(found) = self.relation(object)? else { return Ok(None) };
        let Found::Table(relation) = found else {
            let reads = |one: &Wanted| one.name == "SELECT" && !one.grantable;
            return Ok(Some(is_superuser || wanted.iter().any(reads)));
        };
        let Some(uuid) = relation.uuid else { return Ok(Some(is_superuser)) };
        let access = self.policy.access(role, &relation.namespace, uuid);
        let reads = match self.object {
            Object::Table => access.select == Columns::All,
            Object::AnyColumn => access.select != Columns::None,
            _ => {
                let Some(place) = column_place(relation, column)? else { return Ok(None) };
                let id = relation.field_ids.get(place).copied().flatten();
                access.select == Columns::All || id.is_some_and(|id| access.select.allows(id))
            }
        };
        Ok(Some(wanted.iter().any(|one| holds(one, reads, &access))))
    }

    fn relation(&self, object: &Value) -> Result<Option<Found<'_>>> {
        let name = match object {
            Value::Null => return Ok(None),
            Value::Number(oid) if *oid < i64::from(FIRST_USER_OID) => {
                return Ok(Some(Found::System));
            }
            Value::Number(oid) => {
                return Ok(self.relations.with_oid(*oid).map(Found::Table));
            }
            Value::Text(name) => name,
        };
        let parts = name_parts(name);
        let is_system = match parts.as_slice() {
            [table] => table.starts_with("pg_"),
            [.., namespace, _] => SYSTEM_SCHEMAS.contains(&namespace.as_str()),
            [] => false,
        };
        if is_system || SYSTEM_SCHEMAS.contains(&self.namespace) && parts.len() == 1 {
            return Ok(Some(Found::System));
        }
        self.relations.named(name, self.namespace).map(|relation| Some(Found::Table(relation)))
    }

    /// Whether a schema is there; `false` for an OID of none.
    fn has_schema(&self, object: &Value) -> Result<bool> {
        let mut all = self.relations.namespaces.iter();
        match object {
            Value::Null => Ok(false),
            Value::Number(oid) => Ok(all.any(|one| i64::from(one.oid) == *oid)),
            Value::Text(name) if all.any(|one| one.name == *name) || name == "system" => Ok(true),
            Value::Text(name) => Err(Error::not_found(format!("schema \"{name}\" does not exist"))
                .with_sqlstate("3F000")),
        }
    }

    fn is_member(&self, role: &str, is_superuser: bool, object: &Value) -> Result<bool> {
        match object {
            Value::Text(name) if name == self.database && self.policy.role(name).is_none() => {
                Ok(is_superuser)
            }
            Value::Text(name) => {
                self.policy.require(name)?;
                Ok(self.policy.memberships().roles_of(role).contains(name.as_str()))
            }
            Value::Null | Value::Number(_) => Ok(is_superuser),
        }
    }

    /// `SELECT, INSERT WITH GRANT OPTION`: any of them will do.
    fn wanted(&self, privileges: &str) -> Result<Vec<Wanted>> {
        let one = |text: &str| {
            let text = text.trim().to_ascii_uppercase();
            let bare = [" WITH GRANT OPTION", " WITH ADMIN OPTION"]
                .iter()
                .find_map(|suffix| text.strip_suffix(suffix));
            let name = bare.unwrap_or(&text).trim_end().to_owned();
            if !self.object.privileges().contains(&name.as_str()) {
                return Err(Error::invalid(format!("unrecognized privilege type: \"{name}\""))
                    .with_hint(format!("there are {}", self.object.privileges().join(", "))));
            }
            Ok(Wanted { name, grantable: bare.is_some() })
        };
        privileges.split(',').map(one).collect()
    }

    fn check_database(&self, object: &Value) -> Result<()> {
        match object {
            Value::Text(name) if name != self.database && name != "postgres" => {
                Err(Error::not_found(format!("database \"{name}\" does not exist"))
                    .with_sqlstate("3D000"))
            }
            _ => Ok(()),
        }
    }

    fn misused(&self) -> Error {
        let (name, arguments) = (self.object.function(), self.object.arguments());
        let more = arguments + 1;
        Error::invalid(format!("{name} takes {arguments} arguments, or {more} with a role first"))
            .with_sqlstate("42883")
    }
}

/// What a name or OID means.
enum Found<'a> {
    System,
    Table(&'a RelationInfo),
}

/// Whether a privilege is there, where `reads` says so for `SELECT`.
fn holds(wanted: &Wanted, reads: bool, access: &Access) -> bool {
    let has = match wanted.name.as_str() {
        "SELECT" => reads,
        "INSERT" => access.insert,
        "UPDATE" => access.update,
        "DELETE" | "TRUNCATE" => access.delete,
        _ => access.is_owner,
    };
    has && (access.is_owner || !wanted.grantable)
}

/// The place of a column that is given by its name or number; `None` for a number of none.
fn column_place(relation: &RelationInfo, column: Option<&Value>) -> Result<Option<usize>> {
    let fields = relation.columns.fields();
    match column {
        Some(Value::Text(name)) => {
            let place = fields.iter().position(|field| field.name() == name);
            place.map(Some).ok_or_else(|| {
                let message =
                    format!("column \"{name}\" of relation \"{}\" does not exist", relation.name);
                Error::not_found(message).with_sqlstate("42703")
            })
        }
        Some(Value::Number(number)) => {
            let place = number.checked_sub(1).and_then(|place| usize::try_from(place).ok());
            Ok(place.filter(|place| *place < fields.len()))
        }
        Some(Value::Null) | None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
