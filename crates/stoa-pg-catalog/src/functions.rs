//! Functions that clients call on the system catalog.
//!
//! Many of them answer the same for all relations: there are no indexes, triggers or sequences to ask
//! for. Those take any arguments. Functions about privileges say yes here, and the truth in sessions of
//! clients that had to log in (`rights`).

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use stoa_semantics::errors::to_datafusion;

use crate::server::Server;
use crate::type_info::type_named;

/// Adds the functions to a context.
pub(super) fn register(ctx: &SessionContext, database: &str, server: &Arc<dyn Server>) {
    for function in all(database, &**server) {
        ctx.register_udf(ScalarUDF::new_from_impl(function));
    }
    ctx.register_udf(ScalarUDF::new_from_impl(CurrentSetting::new(Arc::clone(server))));
    ctx.register_udf(ScalarUDF::new_from_impl(CurrentSchema::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(ToRegtype::new()));
}

/// Tells a session who its user is.
///
/// # Errors
/// The engine's, where it takes no functions.
pub fn set_user(state: &mut SessionState, user: &str) -> Result<()> {
    let user = Constant::new("session_user", ScalarValue::Utf8(Some(user.to_owned())));
    let user = Arc::new(ScalarUDF::new_from_impl(user));
    state.register_udf(user).map(drop)
}

fn all(database: &str, server: &dyn Server) -> Vec<Constant> {
    let yes = || ScalarValue::Boolean(Some(true));
    let no = || ScalarValue::Boolean(Some(false));
    let text = |value: &str| ScalarValue::Utf8(Some(value.to_owned()));
    let no_text = || ScalarValue::Utf8(None);
    let number = |value| ScalarValue::Int64(Some(value));
    let version = server.setting("server_version").unwrap_or_default();
    let version = format!("PostgreSQL {version}");
    let mut functions = vec![
        Constant::new("version", text(&version)),
        Constant::new("current_database", text(database)),
        Constant::new("pg_get_userbyid", text(database)),
        Constant::new("pg_is_in_recovery", no()),
        Constant::new("pg_is_other_temp_schema", no()),
        Constant::new("pg_my_temp_schema", ScalarValue::Int32(Some(0))),
        Constant::new("pg_conf_load_time", ScalarValue::TimestampMicrosecond(None, None)),
        Constant::new("pg_relation_size", number(0)),
        Constant::new("pg_table_size", number(0)),
        Constant::new("pg_indexes_size", number(0)),
        Constant::new("pg_total_relation_size", number(0)),
        Constant::new("pg_database_size", number(0)),
        Constant::new("pg_tablespace_location", text("")),
        Constant::new("inet_server_port", ScalarValue::Int32(None)),
        Constant::new("txid_current", number(0)),
    ];
    let names = [
        "has_table_privilege",
        "has_schema_privilege",
        "has_database_privilege",
        "has_any_column_privilege",
        "has_column_privilege",
        "has_function_privilege",
        "has_sequence_privilege",
        "has_tablespace_privilege",
        "has_type_privilege",
        "pg_has_role",
        "pg_table_is_visible",
        "pg_type_is_visible",
        "pg_function_is_visible",
        "pg_operator_is_visible",
        "pg_opclass_is_visible",
        "pg_collation_is_visible",
        "pg_ts_config_is_visible",
    ];
    functions.extend(names.map(|name| Constant::new(name, yes())));
    let names = [
        "obj_description",
        "col_description",
        "shobj_description",
        "pg_get_viewdef",
        "pg_get_indexdef",
        "pg_get_triggerdef",
        "pg_get_ruledef",
        "pg_get_constraintdef",
        "pg_get_expr",
        "pg_get_partkeydef",
        "pg_get_functiondef",
        "pg_get_function_result",
        "pg_get_function_arguments",
        "pg_get_function_identity_arguments",
        "pg_get_serial_sequence",
        "pg_get_statisticsobjdef_columns",
        "inet_server_addr",
    ];
    functions.extend(names.map(|name| Constant::new(name, no_text())));
    functions
}

/// A function whose answer does not depend on its arguments.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Constant {
    name: &'static str,
    value: ScalarValue,
    signature: Signature,
}

impl Constant {
    fn new(name: &'static str, value: ScalarValue) -> Self {
        let any = vec![TypeSignature::VariadicAny, TypeSignature::Nullary];
        Self { name, value, signature: Signature::one_of(any, Volatility::Stable) }
    }
}

impl ScalarUDFImpl for Constant {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.value.data_type())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }
}

/// `current_setting(name [, missing_ok])`
#[derive(Debug)]
struct CurrentSetting {
    server: Arc<dyn Server>,
    signature: Signature,
}

impl PartialEq for CurrentSetting {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.server), Arc::as_ptr(&other.server))
    }
}

impl Eq for CurrentSetting {}

impl Hash for CurrentSetting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.signature.hash(state);
    }
}

impl CurrentSetting {
    fn new(server: Arc<dyn Server>) -> Self {
        let forms = vec![
            TypeSignature::Exact(vec![DataType::Utf8]),
            TypeSignature::Exact(vec![DataType::Utf8, DataType::Boolean]),
        ];
        Self { server, signature: Signature::one_of(forms, Volatility::Stable) }
    }

    /// A setting's value: the session's where the engine keeps it, else the default.
    fn setting(
        &self,
        name: &str,
        missing_ok: bool,
        options: &ConfigOptions,
    ) -> Result<Option<String>> {
        match name.to_ascii_lowercase().as_str() {
            "search_path" => Ok(Some(options.catalog.default_schema.clone())),
            "timezone" => Ok(options.execution.time_zone.clone()),
            known => match self.server.setting(known) {
                Ok(value) => Ok(Some(value)),
                Err(_) if missing_ok => Ok(None),
                Err(error) => Err(to_datafusion(error)),
            },
        }
    }
}

impl ScalarUDFImpl for CurrentSetting {
    fn name(&self) -> &str {
        "current_setting"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let missing_ok = matches!(
            args.args.get(1),
            Some(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
        );
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(names) = arrays.first().and_then(text_array) else {
            return exec_err!("current_setting needs the name of a setting");
        };
        let values: StringArray = names
            .iter()
            .map(|name| name.map(|name| self.setting(name, missing_ok, &args.config_options)))
            .map(|value| value.transpose().map(Option::flatten))
            .collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}

fn text_array(array: &ArrayRef) -> Option<&StringArray> {
    let any: &dyn Any = array.as_any();
    any.downcast_ref()
}

/// `current_schema()`: the namespace of names without one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentSchema {
    signature: Signature,
}

impl CurrentSchema {
    fn new() -> Self {
        Self { signature: Signature::nullary(Volatility::Stable) }
    }
}

impl ScalarUDFImpl for CurrentSchema {
    fn name(&self) -> &str {
        "current_schema"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let schema = args.config_options.catalog.default_schema.clone();
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(schema))))
    }
}

/// `to_regtype(name)`: the OID of a type; NULL for an unknown one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ToRegtype {
    signature: Signature,
}

impl ToRegtype {
    fn new() -> Self {
        Self { signature: Signature::exact(vec![DataType::Utf8], Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ToRegtype {
    fn name(&self) -> &str {
        "to_regtype"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(names) = arrays.first().and_then(text_array) else {
            return exec_err!("to_regtype needs the name of a type");
        };
        let oids: Int32Array = names.iter().map(|name| name.and_then(type_named)).collect();
        Ok(ColumnarValue::Array(Arc::new(oids)))
    }
}
