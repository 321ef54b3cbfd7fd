//! `has_table_privilege` and its like, where clients must log in.
//!
//! In: names or OIDs, as texts that PostgreSQL takes. Out: what the policy says now; errors and NULLs
//! are PostgreSQL's. What Stoa grants nobody (`REFERENCES`, `TRIGGER`) owners have, what it grants
//! everybody (`USAGE` on schemas and types) all have, `CREATE` superusers.
//!
//! Which tables there are is read before a statement is planned or executed that calls one of these
//! functions ([`KnownTables::learn`]). Where nobody is asked who he is, all of them say yes
//! (`functions`).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result as EngineResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use parking_lot::RwLock;
use stoa_access::{Access, Columns, Policy};
use stoa_error::{Error, Result};
use stoa_table::Warehouse;

use super::relations::{FIRST_USER_OID, RelationInfo, Relations};
use crate::DATABASE;
use crate::access::{Caller, field_id};
use crate::error::to_datafusion;

/// OID of the owner of everything that has no owner, in `pg_class` and `pg_roles`.
const BOOTSTRAP_OID: i64 = 10;

/// Schemas whose tables everybody may read; rows are left out of them.
const SYSTEM_SCHEMAS: [&str; 3] = ["pg_catalog", "information_schema", "system"];

/// The tables that the functions know of.
#[derive(Debug, Default)]
pub(crate) struct KnownTables(RwLock<Arc<Relations>>);

impl KnownTables {
    /// Reads which tables there are now.
    ///
    /// # Errors
    /// The catalog's.
    pub(crate) async fn learn(&self, warehouse: &Warehouse) -> Result<()> {
        let relations = Relations::read(warehouse, &[], true, None).await?;
        *self.0.write() = Arc::new(relations);
        Ok(())
    }
}

/// Whether a statement may call one of the functions.
pub(crate) fn asks_for_rights(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["_privilege", "pg_has_role"].iter().any(|mark| lower.contains(mark))
}

/// Tells a session's functions who asks.
pub(crate) fn set_rights(
    state: &mut SessionState,
    caller: &Arc<Caller>,
    tables: &Arc<KnownTables>,
) -> EngineResult<()> {
    for object in ALL {
        let function = HasPrivilege {
            object,
            caller: Arc::clone(caller),
            tables: Arc::clone(tables),
            signature: Signature::one_of(
                vec![TypeSignature::VariadicAny, TypeSignature::Nullary],
                Volatility::Stable,
            ),
        };
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(function)))?;
    }
    Ok(())
}

/// What a function asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Object {
    Table,
    AnyColumn,
    Column,
    Schema,
    Database,
    Function,
    Sequence,
    Tablespace,
    Type,
    Role,
}

const ALL: [Object; 10] = [
    Object::Table,
    Object::AnyColumn,
    Object::Column,
    Object::Schema,
    Object::Database,
    Object::Function,
    Object::Sequence,
    Object::Tablespace,
    Object::Type,
    Object::Role,
];

impl Object {
    fn function(self) -> &'static str {
        match self {
            Self::Table => "has_table_privilege",
            Self::AnyColumn => "has_any_column_privilege",
            Self::Column => "has_column_privilege",
            Self::Schema => "has_schema_privilege",
            Self::Database => "has_database_privilege",
            Self::Function => "has_function_privilege",
            Self::Sequence => "has_sequence_privilege",
            Self::Tablespace => "has_tablespace_privilege",
            Self::Type => "has_type_privilege",
            Self::Role => "pg_has_role",
        }
    }

    /// Arguments without the role that is asked about.
    fn arguments(self) -> usize {
        if self == Self::Column { 3 } else { 2 }
    }

    fn privileges(self) -> &'static [&'static str] {
        match self {
            Self::Table => {
                &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
            }
            Self::AnyColumn | Self::Column => &["SELECT", "INSERT", "UPDATE", "REFERENCES"],
            Self::Schema => &["CREATE", "USAGE"],
            Self::Database => &["CREATE", "CONNECT", "TEMPORARY", "TEMP"],
            Self::Function => &["EXECUTE"],
            Self::Sequence => &["USAGE", "SELECT", "UPDATE"],
            Self::Tablespace => &["CREATE"],
            Self::Type => &["USAGE"],
            Self::Role => &["USAGE", "MEMBER", "SET"],
        }
    }
}

/// One of the functions, for one session.
#[derive(Debug)]
struct HasPrivilege {
    object: Object,
    caller: Arc<Caller>,
    tables: Arc<KnownTables>,
    signature: Signature,
}

impl PartialEq for HasPrivilege {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object && Arc::ptr_eq(&self.caller, &other.caller)
    }
}

impl Eq for HasPrivilege {}

impl Hash for HasPrivilege {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.object.hash(state);
    }
}

impl ScalarUDFImpl for HasPrivilege {
    fn name(&self) -> &str {
        self.object.function()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let namespace = args.config_options.catalog.default_schema.as_str();
        let asked = Asked {
            object: self.object,
            caller: &self.caller,
            policy: self.caller.policy(),
            relations: Arc::clone(&self.tables.0.read()),
            namespace,
        };
        let is_scalar = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let answer = |row: usize| {
            let values = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            let values = values.map(|value| value.map(|value| Value::of(&value)));
            asked.answer(&values.collect::<EngineResult<Vec<_>>>()?).map_err(to_datafusion)
        };
        if args.args.iter().all(is_scalar) {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(answer(0)?)));
        }
        let answers: BooleanArray =
            (0..args.number_rows).map(answer).collect::<EngineResult<_>>()?;
        Ok(ColumnarValue::Array(Arc::new(answers)))
    }
}

/// An argument.
#[derive(Debug)]
enum Value {
    Null,
    Number(i64),
    Text(String),
}

impl Value {
    fn of(value: &ScalarValue) -> Self {
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
struct Asked<'a> {
    object: Object,
    caller: &'a Caller,
    policy: Arc<Policy>,
    relations: Arc<Relations>,
    namespace: &'a str,
}

impl Asked<'_> {
    fn answer(&self, values: &[Value]) -> Result<Option<bool>> {
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
            None => self.caller.role(),
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
                check_database(object)?;
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
        let Some(table) = &relation.table else { return Ok(Some(is_superuser)) };
        let access = self.policy.access(role, &relation.namespace, table.uuid());
        let own = table.schema();
        let reads = match self.object {
            Object::Table => access.select == Columns::All,
            Object::AnyColumn => access.select != Columns::None,
            _ => {
                let Some(name) = column_name(relation, column)? else { return Ok(None) };
                let id = own.field_with_name(&name).ok().and_then(field_id);
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
                let mut all = self.relations.relations.iter();
                return Ok(all.find(|one| i64::from(one.oid) == *oid).map(Found::Table));
            }
            Value::Text(name) => name,
        };
        let parts = name_parts(name);
        let (namespace, table) = match parts.as_slice() {
            [table] => (self.namespace, table.as_str()),
            [.., namespace, table] => (namespace.as_str(), table.as_str()),
            [] => ("", ""),
        };
        if SYSTEM_SCHEMAS.contains(&namespace) || parts.len() == 1 && table.starts_with("pg_") {
            return Ok(Some(Found::System));
        }
        let mut all = self.relations.relations.iter();
        let found = all.find(|one| one.namespace == namespace && one.name == table);
        found.map(|relation| Some(Found::Table(relation))).ok_or_else(|| {
            Error::not_found(format!("relation \"{name}\" does not exist")).with_sqlstate("42P01")
        })
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
            Value::Text(name) if name == DATABASE && self.policy.role(name).is_none() => {
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

/// The name of a column that is given by its name or number; `None` for a number of none.
fn column_name(relation: &RelationInfo, column: Option<&Value>) -> Result<Option<String>> {
    let fields = relation.columns.fields();
    match column {
        Some(Value::Text(name)) if fields.iter().any(|field| field.name() == name) => {
            Ok(Some(name.clone()))
        }
        Some(Value::Text(name)) => {
            let message =
                format!("column \"{name}\" of relation \"{}\" does not exist", relation.name);
            Err(Error::not_found(message).with_sqlstate("42703"))
        }
        Some(Value::Number(number)) => {
            let place = number.checked_sub(1).and_then(|place| usize::try_from(place).ok());
            Ok(place.and_then(|place| fields.get(place)).map(|field| field.name().clone()))
        }
        Some(Value::Null) | None => Ok(None),
    }
}

fn check_database(object: &Value) -> Result<()> {
    match object {
        Value::Text(name) if name != DATABASE && name != "postgres" => {
            Err(Error::not_found(format!("database \"{name}\" does not exist"))
                .with_sqlstate("3D000"))
        }
        _ => Ok(()),
    }
}

/// The parts of a name: lower case unless quoted.
fn name_parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut chars = name.trim().chars().peekable();
    while let Some(next) = chars.next() {
        let part = match (next, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => {
                chars.next();
                "\"".to_owned()
            }
            ('"', _) => {
                quoted = !quoted;
                continue;
            }
            ('.', false) => {
                parts.push(String::new());
                continue;
            }
            (other, true) => other.to_string(),
            (other, false) => other.to_lowercase().collect(),
        };
        if let Some(last) = parts.last_mut() {
            last.push_str(&part);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_at_points_outside_of_quotes() {
        for (name, parts) in [
            ("visits", &["visits"][..]),
            ("Public.VISITS", &["public", "visits"][..]),
            ("\"My Schema\".\"A.b\"", &["My Schema", "A.b"][..]),
            ("\"say \"\"x\"\"\"", &["say \"x\""][..]),
        ] {
            assert_eq!(name_parts(name), parts, "{name}");
        }
    }

    #[test]
    fn texts_that_call_the_functions_are_found() {
        assert!(asks_for_rights("SELECT HAS_TABLE_PRIVILEGE('t', 'select')"));
        assert!(asks_for_rights("select pg_has_role('ann', 'usage')"));
        assert!(!asks_for_rights("SELECT privileges FROM t"));
    }
}
