//! `has_table_privilege` and its like, where clients must log in.
//!
//! In: calls (`call`). Out: what the policy says now; errors and NULLs are PostgreSQL's. What Stoa
//! grants nobody (`REFERENCES`, `TRIGGER`) owners have, what it grants everybody (`USAGE` on schemas and
//! types) all have, `CREATE` superusers.
//!
//! They know of tables what [`KnownTables`] does. Where nobody is asked who he is, all of them say yes
//! (`functions`).

mod call;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result as EngineResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use stoa_semantics::errors::to_datafusion;

use crate::known_tables::KnownTables;
use crate::roles::Roles;
use crate::server::Role;
use call::{Asked, Value};

/// Tells a session's functions who asks.
///
/// # Errors
/// The engine's, where it takes no functions.
pub fn set_rights(
    state: &mut SessionState,
    role: &Arc<dyn Role>,
    tables: &Arc<KnownTables>,
) -> EngineResult<()> {
    let database: Arc<str> = state.config_options().catalog.default_catalog.as_str().into();
    for object in ALL {
        let function = HasPrivilege {
            object,
            database: Arc::clone(&database),
            role: Arc::clone(role),
            tables: Arc::clone(tables),
            signature: Signature::one_of(
                vec![TypeSignature::VariadicAny, TypeSignature::Nullary],
                Volatility::Stable,
            ),
        };
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(function)))?;
    }
    let role = Arc::clone(role);
    let named = RoleName { database, role, signature: Signature::any(1, Volatility::Stable) };
    state.register_udf(Arc::new(ScalarUDF::new_from_impl(named)))?;
    Ok(())
}

/// `pg_get_userbyid(oid)`.
#[derive(Debug)]
struct RoleName {
    database: Arc<str>,
    role: Arc<dyn Role>,
    signature: Signature,
}

impl PartialEq for RoleName {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.role), Arc::as_ptr(&other.role))
    }
}

impl Eq for RoleName {}

impl Hash for RoleName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.database.hash(state);
    }
}

impl ScalarUDFImpl for RoleName {
    fn name(&self) -> &str {
        "pg_get_userbyid"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let roles = Roles::of(&self.database, &self.role.policy());
        let oids = ColumnarValue::values_to_arrays(&args.args)?;
        let oids = oids.first().map(|oids| arrow::compute::cast(oids, &DataType::Int64));
        let Some(oids) = oids.transpose()? else { return exec_err!("an OID is needed") };
        let name = |oid: Option<i64>| oid.map(|oid| roles.name(oid));
        let names: StringArray = oids.as_primitive::<Int64Type>().iter().map(name).collect();
        Ok(ColumnarValue::Array(Arc::new(names)))
    }
}

/// What a function asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Object {
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

pub(super) const ALL: [Object; 10] = [
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
    pub(super) fn function(self) -> &'static str {
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
    /// Name of the one database.
    database: Arc<str>,
    role: Arc<dyn Role>,
    tables: Arc<KnownTables>,
    signature: Signature,
}

impl PartialEq for HasPrivilege {
    fn eq(&self, other: &Self) -> bool {
        let same_role = std::ptr::addr_eq(Arc::as_ptr(&self.role), Arc::as_ptr(&other.role));
        self.object == other.object && same_role
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
            database: &self.database,
            role: self.role.name(),
            policy: self.role.policy(),
            relations: self.tables.all(),
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
