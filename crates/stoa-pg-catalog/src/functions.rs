//! Functions that clients call on the system catalog.
//!
//! Many of them answer the same for all relations: there are no indexes, triggers or sequences to ask
//! for. Those take any arguments. Functions about privileges say yes here, and the truth in sessions of
//! clients that had to log in (`rights`).

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int32Array, StringArray};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use stoa_error::{Error, Subject};
use stoa_semantics::errors::to_datafusion;

use crate::server::{Server, SessionSettings};
use crate::type_info::type_named;

/// Adds the functions to a context.
pub(super) fn register(ctx: &SessionContext, database: &str, server: &Arc<dyn Server>) {
    for function in all(database, &**server) {
        ctx.register_udf(ScalarUDF::new_from_impl(function));
    }
    ctx.register_udf(ScalarUDF::new_from_impl(CurrentSchema::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(CurrentSchemas::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(ToRegtype::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(ExpressionText::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(MustExist::new()));
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

/// Lets `pg_my_temp_schema()` tell the schema of a session's temporary tables.
///
/// # Errors
/// The engine's, where it takes no functions.
pub fn set_temporary_schema(state: &mut SessionState, schema: &str) -> Result<()> {
    let oid = ScalarValue::Int32(Some(crate::relations::namespace_oid(schema)));
    let function = Constant::new("pg_my_temp_schema", oid);
    state.register_udf(Arc::new(ScalarUDF::new_from_impl(function))).map(drop)
}

/// Lets the functions of a session tell and change its settings.
///
/// # Errors
/// The engine's, where it takes no functions.
pub fn set_settings(state: &mut SessionState, settings: &Arc<dyn SessionSettings>) -> Result<()> {
    for does in [SettingCall::Tells, SettingCall::Sets] {
        let function = SettingFunction::new(does, Arc::clone(settings));
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(function)))?;
    }
    Ok(())
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
        // The number of UTF8, the one encoding.
        Constant::new("getdatabaseencoding", text("UTF8")),
        Constant::new("pg_client_encoding", text("UTF8")),
        Constant::new("pg_char_to_encoding", ScalarValue::Int32(Some(6))),
        Constant::new("pg_is_other_temp_schema", no()),
        Constant::new("pg_my_temp_schema", ScalarValue::Int32(Some(0))),
        Constant::new("pg_tablespace_location", text("")),
        Constant::new("pg_tablespace_size", ScalarValue::Int64(None)),
        Constant::new("inet_server_port", ScalarValue::Int32(None)),
        Constant::new("inet_client_port", ScalarValue::Int32(None)),
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
        "pg_ts_dict_is_visible",
        "pg_ts_parser_is_visible",
        "pg_ts_template_is_visible",
        "pg_conversion_is_visible",
        "pg_opfamily_is_visible",
        "pg_statistics_obj_is_visible",
    ];
    functions.extend(names.map(|name| Constant::new(name, yes())));
    let names = [
        "shobj_description",
        "pg_get_triggerdef",
        "pg_get_ruledef",
        "pg_describe_object",
        "pg_get_partkeydef",
        "pg_get_functiondef",
        "pg_get_function_sqlbody",
        "pg_get_function_result",
        "pg_get_function_arguments",
        "pg_get_function_identity_arguments",
        "pg_get_serial_sequence",
        "pg_get_statisticsobjdef_columns",
        "inet_server_addr",
        "inet_client_addr",
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

/// `pg_get_expr(expression, relation [, pretty])`: expressions are kept as texts.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExpressionText {
    signature: Signature,
}

impl ExpressionText {
    fn new() -> Self {
        let any = vec![TypeSignature::Any(2), TypeSignature::Any(3)];
        Self { signature: Signature::one_of(any, Volatility::Stable) }
    }
}

impl ScalarUDFImpl for ExpressionText {
    fn name(&self) -> &str {
        "pg_get_expr"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.first() {
            Some(text) => text.cast_to(&DataType::Utf8, None),
            None => exec_err!("pg_get_expr takes an expression"),
        }
    }
}

/// The error about a name that is none of `kind`.
pub(super) fn must_exist(kind: &str, name: &str) -> Error {
    let (what, sqlstate) = match kind {
        "regtype" => ("type", "42704"),
        "regnamespace" => ("schema", "3F000"),
        "regrole" => ("role", "42704"),
        "regproc" => ("function", "42883"),
        _ => ("relation", "42P01"),
    };
    Error::not_found(format!("{what} \"{name}\" does not exist"))
        .with_sqlstate(sqlstate)
        .about(Subject::Literal(name.to_owned()))
}

/// `name_must_exist(found, kind, name)`: what was found, which must not be NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MustExist {
    signature: Signature,
}

impl MustExist {
    fn new() -> Self {
        Self { signature: Signature::any(3, Volatility::Stable) }
    }
}

impl ScalarUDFImpl for MustExist {
    fn name(&self) -> &str {
        "name_must_exist"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [found, kind, name] = args.args.as_slice() else {
            return exec_err!("name_must_exist takes three arguments");
        };
        let text = |value: &ColumnarValue| match value {
            ColumnarValue::Scalar(text) => text.try_as_str().flatten().map(str::to_owned),
            ColumnarValue::Array(_) => None,
        };
        let is_missing = match found {
            ColumnarValue::Scalar(value) => value.is_null(),
            ColumnarValue::Array(values) => values.logical_null_count() > 0,
        };
        match is_missing {
            true => {
                let (kind, name) = (text(kind).unwrap_or_default(), text(name).unwrap_or_default());
                Err(to_datafusion(must_exist(&kind, &name)))
            }
            false => Ok(found.clone()),
        }
    }
}

/// What a function does with settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SettingCall {
    /// `current_setting(name [, missing_ok])`
    Tells,
    /// `set_config(name, value, is_local)`, which gives the new value back
    Sets,
}

/// A function on the settings of one session.
#[derive(Debug)]
struct SettingFunction {
    does: SettingCall,
    settings: Arc<dyn SessionSettings>,
    signature: Signature,
}

impl PartialEq for SettingFunction {
    fn eq(&self, other: &Self) -> bool {
        self.does == other.does
            && std::ptr::addr_eq(Arc::as_ptr(&self.settings), Arc::as_ptr(&other.settings))
    }
}

impl Eq for SettingFunction {}

impl Hash for SettingFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.does.hash(state);
    }
}

impl SettingFunction {
    fn new(does: SettingCall, settings: Arc<dyn SessionSettings>) -> Self {
        let (text, flag) = (DataType::Utf8, DataType::Boolean);
        let signature = match does {
            SettingCall::Tells => {
                let forms = vec![
                    TypeSignature::Exact(vec![text.clone()]),
                    TypeSignature::Exact(vec![text, flag]),
                ];
                Signature::one_of(forms, Volatility::Stable)
            }
            SettingCall::Sets => {
                Signature::exact(vec![text.clone(), text, flag], Volatility::Volatile)
            }
        };
        Self { does, settings, signature }
    }

    fn tell(&self, name: &str, missing_ok: bool) -> Result<Option<String>> {
        match self.settings.get(name) {
            Ok(value) => Ok(Some(value)),
            Err(_) if missing_ok => Ok(None),
            Err(error) => Err(to_datafusion(error)),
        }
    }

    fn set(&self, name: &str, value: Option<&str>, is_local: bool) -> Result<Option<String>> {
        self.settings.set(name, value, is_local).map(Some).map_err(to_datafusion)
    }
}

impl ScalarUDFImpl for SettingFunction {
    fn name(&self) -> &str {
        match self.does {
            SettingCall::Tells => "current_setting",
            SettingCall::Sets => "set_config",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let missing_ok = matches!(
            args.args.get(1),
            Some(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
        );
        // Of a constant call, one row stands for all.
        let arrays = match is_constant {
            true => args.args.iter().map(|arg| arg.to_array(1)).collect::<Result<Vec<_>>>()?,
            false => ColumnarValue::values_to_arrays(&args.args)?,
        };
        let Some(names) = arrays.first().and_then(text_array) else {
            return exec_err!("{} needs the name of a setting", self.name());
        };
        let given = arrays.get(1).and_then(text_array);
        let flags = arrays.get(2).map(|array| array.as_any()).and_then(<dyn Any>::downcast_ref);
        let flags: Option<&BooleanArray> = flags;
        let value_at = |(row, name): (usize, Option<&str>)| match (name, self.does) {
            (None, SettingCall::Tells) => Ok(None),
            (None, SettingCall::Sets) => exec_err!("set_config needs the name of a setting"),
            (Some(name), SettingCall::Tells) => self.tell(name, missing_ok),
            (Some(name), SettingCall::Sets) => {
                let value = given.filter(|given| given.is_valid(row)).map(|given| given.value(row));
                let is_local = flags.is_some_and(|flags| flags.is_valid(row) && flags.value(row));
                self.set(name, value, is_local)
            }
        };
        let values: StringArray = names.iter().enumerate().map(value_at).collect::<Result<_>>()?;
        match is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)),
            false => Ok(ColumnarValue::Array(Arc::new(values))),
        }
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

/// `current_schemas(with_implicit)`: where names without a schema are looked up, `pg_catalog` first.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentSchemas {
    signature: Signature,
}

impl CurrentSchemas {
    fn new() -> Self {
        Self { signature: Signature::exact(vec![DataType::Boolean], Volatility::Stable) }
    }
}

impl ScalarUDFImpl for CurrentSchemas {
    fn name(&self) -> &str {
        "current_schemas"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let with_implicit = match args.args.first() {
            Some(ColumnarValue::Scalar(ScalarValue::Boolean(Some(with_implicit)))) => {
                *with_implicit
            }
            Some(ColumnarValue::Scalar(_)) => {
                return ScalarValue::try_from(args.return_type()).map(ColumnarValue::Scalar);
            }
            _ => return exec_err!("current_schemas takes a constant"),
        };
        let text = |name: &str| ScalarValue::Utf8(Some(name.to_owned()));
        let mut names = vec![text(&args.config_options.catalog.default_schema)];
        if with_implicit {
            names.insert(0, text(crate::PG_CATALOG));
        }
        let list = ScalarValue::new_list_nullable(&names, &DataType::Utf8);
        Ok(ColumnarValue::Scalar(ScalarValue::List(list)))
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
