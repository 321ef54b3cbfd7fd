//! The engine's errors as Stoa's: SQLSTATE, message, hint.
//!
//! Our own errors travel through DataFusion as `External` and come out unchanged. What DataFusion
//! says only in prose is told apart by the variant first, and by fixed phrases ([`Said`]) where one
//! variant stands for several codes. Nothing else in the crate looks into the engine's texts.

use arrow::error::ArrowError;
mod clauses;
mod names;
mod other_names;
mod words;

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use stoa_error::{Error, ErrorKind, Subject, is_disk_full};
use stoa_sql::syntax_error::{from_sql_parser, lower_first, strip_prefixes};

pub(crate) use names::missing_operator;
pub use words::in_sql_words;

/// How the engine says that a function does not take these arguments, after much else.
const NO_MATCH: &str = "o function matches";

/// The same where it is asked for the type only; what it tried comes after it.
const NO_SIGNATURE: &str = "failed to match any signature";

/// What the engine puts after its own errors, over some lines.
const REPORT_IT: &str = "This issue was likely caused by a bug in DataFusion's code";

/// What the engine puts before them, with a small letter.
const INTERNAL: &str = "internal error: ";

/// What the engine and Arrow say in words only.
#[derive(Clone, Copy)]
enum Said {
    DivisionByZero,
    OutOfRange,
    NullInNotNull,
    RootOfNegative,
    ManyRowsOfScalar,
    FailedCoercion,
    NoSignature,
    UnknownFunction,
    NoMatchingTypes,
    RepeatedNames,
    WrongPattern,
    NoSuchDate,
    NoSuchCast,
    NestedAggregate,
    NestedWindow,
    WhereAggregate,
    NoPhysicalForm,
    NotBoolean,
    NoSubqueryHere,
    NoOperation,
    NegativeLimit,
    NegativeOffset,
}

impl Said {
    /// The words, without a first letter that may be a capital.
    fn phrases(self) -> &'static [&'static str] {
        match self {
            Self::DivisionByZero => &["ivide by zero", "ivision by zero"],
            Self::OutOfRange => &[
                "verflow",
                "out of range",
                "Can't cast value",
                "is too large to store",
                "is too small to store",
            ],
            Self::NullInNotNull => &["declared as non-nullable but contains null values"],
            Self::RootOfNegative => &["square root of a negative"],
            Self::ManyRowsOfScalar => &["scalar subquery returned more than one row"],
            Self::FailedCoercion => &["ailed to coerce types"],
            Self::NoSignature => &[NO_SIGNATURE],
            Self::UnknownFunction => &["nvalid function"],
            Self::NoMatchingTypes => &[NO_MATCH, "oerce"],
            Self::RepeatedNames => &[
                "unique expression names",
                "which would be ambiguous",
                "contains duplicate unqualified field name",
            ],
            Self::WrongPattern => &["regex parse error", "egular expression did not compile"],
            Self::NoSuchDate => &["nable to parse date from"],
            Self::NoSuchCast => &["nsupported CAST from"],
            Self::NestedAggregate => &["ggregate function calls cannot"],
            Self::NestedWindow => &["indow function calls cannot be nested"],
            Self::WhereAggregate => &["ggregate functions are not allowed in the WHERE clause"],
            Self::NoOperation => &["annot get result type for temporal operation "],
            Self::NoSubqueryHere => &["subquery can only be used in", "undecorrelated Subquery"],
            Self::NegativeLimit => &["LIMIT must be >= 0"],
            Self::NegativeOffset => &["FFSET must be >=0"],
            Self::NoPhysicalForm => &["hysical plan does not support logical expression "],
            Self::NotBoolean => &[
                "with non-boolean predicate",
                "requires a boolean expression",
                "oin condition must be boolean",
                "for logical boolean operation",
                "IS DISTINCT FROM Boolean",
            ],
        }
    }

    fn is_in(self, text: &str) -> bool {
        self.phrases().iter().any(|phrase| text.contains(phrase))
    }
}

/// Whether a query cannot be planned because two of its columns have one name.
pub fn repeats_names(error: &DataFusionError) -> bool {
    Said::RepeatedNames.is_in(&error.to_string())
}

/// Turns an error of the engine into Stoa's.
pub fn from_datafusion(error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(source) => from_external(source),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_datafusion(*inner)
        }
        DataFusionError::Shared(inner) => from_shared(&inner),
        DataFusionError::Collection(mut errors) if !errors.is_empty() => {
            from_datafusion(errors.swap_remove(0))
        }
        DataFusionError::ArrowError(inner, _) => from_arrow(*inner),
        other => from_variant(&other),
    }
}

/// The name without a table of the column that is missing, where that is the error.
pub fn missing_name(error: &DataFusionError) -> Option<String> {
    let DataFusionError::SchemaError(schema, _) = error.find_root() else { return None };
    let SchemaError::FieldNotFound { field, .. } = schema.as_ref() else { return None };
    field.relation.is_none().then(|| field.name.clone())
}

/// Turns an error of the engine into Stoa's, from behind the point at which all names were found: a column that is not
/// there was lost with a subquery that the engine could not join.
pub fn from_planned(error: DataFusionError) -> Error {
    match error.find_root() {
        DataFusionError::SchemaError(schema, _)
            if matches!(schema.as_ref(), SchemaError::FieldNotFound { .. }) =>
        {
            no_subquery_here()
        }
        _ => from_datafusion(error),
    }
}

/// Wraps an error of ours so that it passes through DataFusion unchanged.
pub fn to_datafusion(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn from_external(source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    match source.downcast::<Error>() {
        Ok(ours) => *ours,
        Err(source) => match source.downcast::<DataFusionError>() {
            Ok(inner) => from_datafusion(*inner),
            Err(other) if Said::WrongPattern.is_in(&other.to_string()) => {
                wrong_pattern(&other.to_string())
            }
            Err(other) => Error::internal(other.to_string()).with_source(other),
        },
    }
}

/// A regular expression that cannot be read; the last line says why.
fn wrong_pattern(text: &str) -> Error {
    let why = text.lines().last().unwrap_or(text);
    let why = why.strip_prefix("error: ").unwrap_or(why);
    Error::invalid(format!("invalid regular expression: {why}")).with_sqlstate("2201B")
}

/// A shared error cannot be taken apart; its parts are copied.
fn from_shared(error: &DataFusionError) -> Error {
    if let DataFusionError::External(source) = error
        && let Some(ours) = source.downcast_ref::<Error>()
    {
        return ours.copied();
    }
    match error {
        DataFusionError::Shared(inner) => from_shared(inner),
        DataFusionError::Context(_, inner) => from_shared(inner),
        DataFusionError::ArrowError(inner, _) => from_arrow_text(&inner.to_string()),
        other => from_variant(other),
    }
}

fn from_arrow(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(source) => from_external(source),
        other if is_disk_full(&other) => no_room_to_spill(lower_first(&other.to_string())),
        other => from_arrow_text(&other.to_string()),
    }
}

fn from_arrow_text(text: &str) -> Error {
    let message = in_sql_words(&lower_first(strip_prefixes(text)));
    if Said::DivisionByZero.is_in(text) {
        return Error::invalid("division by zero").with_sqlstate("22012");
    }
    if Said::OutOfRange.is_in(text) {
        return Error::invalid(message).with_sqlstate("22003");
    }
    if Said::NullInNotNull.is_in(text) {
        return null_in_not_null(&message);
    }
    if Said::RootOfNegative.is_in(text) {
        return Error::invalid(message).with_sqlstate("2201F");
    }
    if Said::WrongPattern.is_in(text) {
        return wrong_pattern(text);
    }
    if let Some(told) = uncastable(text) {
        return told;
    }
    if ["Cast error", "Parser error"].iter().any(|kind| text.starts_with(kind)) {
        return Error::invalid(message).with_sqlstate("22P02");
    }
    Error::invalid(message).with_sqlstate("22000")
}

/// `Cannot cast string 'x' to value of Int64 type`, as PostgreSQL says it.
fn uncastable(text: &str) -> Option<Error> {
    let behind = text.split_once("annot cast string '")?.1;
    let (value, behind) = behind.split_once("' to value of ")?;
    let name = in_sql_words(behind.strip_suffix(" type")?);
    let said = format!("invalid input syntax for type {name}: \"{value}\"");
    Some(Error::invalid(said).with_sqlstate("22P02"))
}

/// NULL in a column that must not have it; the columns of VALUES have no names of their own.
fn null_in_not_null(message: &str) -> Error {
    let name = message.split('\'').nth(1).unwrap_or_default();
    let is_numbered = name.strip_prefix("column").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let said = match is_numbered || name.is_empty() {
        true => "null value in a column of VALUES violates not-null constraint".to_owned(),
        false => format!("null value in column \"{name}\" violates not-null constraint"),
    };
    Error::invalid(said).with_sqlstate("23502")
}

/// The engine itself writes nothing but what does not fit into memory.
fn no_room_to_spill(message: String) -> Error {
    Error::new(ErrorKind::Exhausted, "the disk that queries spill to is full")
        .with_sqlstate("53100")
        .with_detail(message)
        .with_hint("make room there, set spill_dir to another disk, or raise memory_limit")
}

fn from_variant(error: &DataFusionError) -> Error {
    let text = error.strip_backtrace();
    let raw = lower_first(strip_prefixes(without_report(&text)));
    if let DataFusionError::Plan(_) | DataFusionError::Internal(_) = error
        && let Some(told) = about_names(&raw)
    {
        return told;
    }
    let message = in_sql_words(&raw);
    if is_disk_full(error) {
        return no_room_to_spill(message);
    }
    match error {
        DataFusionError::SQL(parser, _) => from_sql_parser(parser, ""),
        DataFusionError::SchemaError(schema, _) => names::from_schema(schema),
        DataFusionError::NotImplemented(_) if Said::NoSuchCast.is_in(&message) => {
            Error::invalid(message).with_sqlstate("42846")
        }
        DataFusionError::NotImplemented(_) if Said::NoPhysicalForm.is_in(&raw) => {
            no_physical_form(&raw)
        }
        DataFusionError::NotImplemented(_) => clauses::unsupported(&message),
        DataFusionError::ResourcesExhausted(_) => {
            Error::new(ErrorKind::Exhausted, "the query needs more memory than it may have")
                .with_detail(message)
                .with_sqlstate("53200")
                .with_hint("ask for fewer groups or columns, or raise memory_limit")
        }
        DataFusionError::Plan(_) => from_plan(&message),
        DataFusionError::Configuration(_) => Error::invalid(message).with_sqlstate("42704"),
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => {
            Error::unavailable(message).with_sqlstate("58030")
        }
        // Types that cannot be compared are the statement's fault.
        DataFusionError::Internal(_) if Said::FailedCoercion.is_in(&message) => {
            Error::invalid(refusal(&message)).with_sqlstate("42883")
        }
        DataFusionError::Internal(_) if Said::NoSignature.is_in(&message) => no_signature(&message),
        DataFusionError::Internal(_) => Error::internal(message)
            .with_hint("this is a bug in Stoa; please report it with the statement"),
        _ if Said::ManyRowsOfScalar.is_in(&message) => {
            Error::invalid("more than one row returned by a subquery used as an expression")
                .with_sqlstate("21000")
        }
        _ if Said::DivisionByZero.is_in(&message) => {
            Error::invalid("division by zero").with_sqlstate("22012")
        }
        _ if Said::WrongPattern.is_in(&message) => wrong_pattern(&message),
        _ if Said::NoSuchDate.is_in(&message) => Error::invalid(message).with_sqlstate("22008"),
        DataFusionError::Execution(_) if clauses::wrong_unit(&message).is_some() => {
            clauses::wrong_unit(&message).unwrap_or_else(|| Error::invalid(message))
        }
        _ => Error::invalid(message).with_sqlstate("22000"),
    }
}

/// A message without the engine's plea to report it.
fn without_report(text: &str) -> &str {
    match text.split_once(REPORT_IT) {
        // What counts comes after it.
        Some((_, rest)) if rest.contains(NO_MATCH) => text,
        Some((said, _)) => said.trim_end(),
        None => text,
    }
}

/// What an internal error says that is the statement's fault.
fn refusal(message: &str) -> String {
    lower_first(message.strip_prefix(INTERNAL).unwrap_or(message))
}

/// A call of a function that does not take these arguments.
fn no_signature(message: &str) -> Error {
    let said = message.split_once(NO_SIGNATURE).map_or(message, |(said, _)| said);
    let said = format!("{}does not take arguments of these types", refusal(said));
    Error::invalid(said).with_sqlstate("42883")
}

/// An expression that is planned and cannot be computed where it stands; the engine shows all of its insides.
fn no_physical_form(message: &str) -> Error {
    let rest = message.split_once("logical expression ").map_or("", |(_, rest)| rest);
    match rest.split_once('(').map_or(rest, |(kind, _)| kind) {
        "InSubquery" | "Exists" | "ScalarSubquery" | "SetComparison" | "OuterReferenceColumn" => {
            no_subquery_here()
        }
        kind => Error::unsupported(format!("an expression of kind {kind} is not supported here")),
    }
}

fn no_subquery_here() -> Error {
    Error::unsupported("a subquery of this kind is not supported here")
        .with_hint("write it as a join, or compute it in a subquery in FROM")
}

/// What the engine says of names and operators, which stand somewhere in the statement.
fn about_names(message: &str) -> Option<Error> {
    if let Some(name) = message.strip_prefix("table function '") {
        let name = name.trim_end_matches("' not found");
        return Some(names::no_such_call(name, name.to_owned()));
    }
    if message.starts_with("table ") && message.ends_with("not found") {
        let name = message.trim_start_matches("table ").trim_end_matches(" not found");
        return Some(names::missing_table(name.trim_matches('\'').trim_start_matches("stoa.")));
    }
    if let Some(name) = message.strip_prefix("invalid qualifier ") {
        return Some(names::missing_qualifier(name));
    }
    if Said::UnknownFunction.is_in(message) {
        return names::missing_function(message);
    }
    if message.contains(NO_MATCH) {
        return names::wrong_arguments(message);
    }
    if let Some(operation) = words::operation(message)
        .filter(|_| !Said::NoOperation.is_in(message) && !Said::NotBoolean.is_in(message))
    {
        return Some(names::missing_operator(operation));
    }
    names::ungrouped(message).or_else(|| clauses::explain(message))
}

fn from_plan(message: &str) -> Error {
    if Said::NoOperation.is_in(message) {
        let said = "operator does not exist for dates and times of these types";
        return Error::invalid(said).with_sqlstate("42883");
    }
    if Said::WhereAggregate.is_in(message) {
        return Error::invalid("aggregate functions are not allowed in WHERE")
            .with_sqlstate("42803")
            .with_hint("conditions on groups are written in HAVING")
            .about(Subject::Behind("WHERE"));
    }
    if Said::NegativeLimit.is_in(message) {
        return Error::invalid("LIMIT must not be negative").with_sqlstate("2201W");
    }
    if Said::NegativeOffset.is_in(message) {
        return Error::invalid("OFFSET must not be negative").with_sqlstate("2201X");
    }
    if Said::NoSubqueryHere.is_in(message) {
        return no_subquery_here();
    }
    if Said::NestedAggregate.is_in(message) {
        return nested(message, "42803");
    }
    if Said::NestedWindow.is_in(message) {
        return nested(message, "42P20");
    }
    if let Some(name) = undefined_window(message) {
        return Error::not_found(format!("window \"{name}\" does not exist"))
            .with_sqlstate("42704")
            .about(Subject::Name(name.to_owned()));
    }
    if Said::NotBoolean.is_in(message) {
        return clauses::not_boolean(message);
    }
    if Said::NoMatchingTypes.is_in(message) {
        return Error::invalid(message).with_sqlstate("42883");
    }
    if Said::RepeatedNames.is_in(message) {
        return Error::invalid(message)
            .with_sqlstate("42701")
            .with_hint("name the columns of the query with AS");
    }
    Error::invalid(message).with_sqlstate("42601")
}

/// Calls within calls, `… cannot be nested: 'sum(a)' is nested inside 'max(sum(a))'`: the inner one is meant.
fn nested(message: &str, sqlstate: &'static str) -> Error {
    let (said, calls) = message.split_once(": ").unwrap_or((message, ""));
    let mut calls = calls.split('\'').skip(1).step_by(2).map(|call| call.split('(').next());
    let error = Error::invalid(said)
        .with_sqlstate(sqlstate)
        .with_hint("compute the inner one in a subquery in FROM");
    match (calls.next().flatten(), calls.next().flatten()) {
        (Some(inner), Some(outer)) if inner != outer => {
            error.about(Subject::Function(inner.to_owned()))
        }
        _ => error,
    }
}

/// The name in the engine's words for a window that there is not.
fn undefined_window(message: &str) -> Option<&str> {
    message.strip_prefix("the window ")?.strip_suffix(" is not defined!")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_errors_pass_through_unchanged() {
        let ours = Error::not_found("no table t").with_sqlstate("42P01").with_hint("look");
        let error = from_datafusion(to_datafusion(ours).context("scan"));
        assert_eq!((error.sqlstate(), error.hint()), ("42P01", Some("look")));
    }

    #[test]
    fn what_is_said_in_words_has_its_code() {
        let plan = |text: &str| DataFusionError::Plan(text.to_owned());
        let arrow = |error: ArrowError| DataFusionError::from(error);
        let compute = |text: &str| arrow(ArrowError::ComputeError(text.to_owned()));
        let internal = |text: &str| DataFusionError::Internal(text.to_owned());
        let many_rows = "Scalar subquery returned more than one row".to_owned();
        for (error, code) in [
            (arrow(ArrowError::DivideByZero), "22012"),
            (compute("Overflow happened on: 1 + 2"), "22003"),
            (compute("Column 'a' is declared as non-nullable but contains null values"), "23502"),
            (compute("cannot take square root of a negative number"), "2201F"),
            (arrow(ArrowError::CastError("cannot cast 'x' to Int32".to_owned())), "22P02"),
            (DataFusionError::Execution(many_rows), "21000"),
            (DataFusionError::Execution("Unable to parse date from 2025, 2, 30".into()), "22008"),
            (compute("Regular expression did not compile: unclosed group"), "2201B"),
            (
                DataFusionError::NotImplemented("Unsupported CAST from Date32 to Utf8".into()),
                "42846",
            ),
            (plan("The window w is not defined!"), "42704"),
            (internal("Failed to coerce types Int32 and Utf8"), "42883"),
            (internal("Function 'f' failed to match any signature, errors: a,b"), "42883"),
            (internal("the plan is odd"), "XX000"),
            (plan("Invalid function 'nope'"), "42883"),
            (plan("Failed to coerce arguments"), "42883"),
            (plan("Projections require unique expression names but"), "42701"),
            (plan("Aggregate function calls cannot be nested: 'sum(a)' is nested"), "42803"),
            (plan("Window function calls cannot be nested: 'sum(a)' is nested"), "42P20"),
            (plan("Aggregate functions are not allowed in the WHERE clause."), "42803"),
            (
                plan("Cannot create filter with non-boolean predicate 't.a' returning Int64"),
                "42804",
            ),
            (plan("Unary operator 'NOT' requires a boolean expression, got Int64"), "42804"),
            (plan("Join condition must be boolean type, but got Int64"), "42804"),
            (plan("In/Exist subquery can only be used in Projection but was used in"), "0A000"),
            (plan("LIMIT must be >= 0, '-1' was provided"), "2201W"),
            (plan("OFFSET must be >=0, '-1' was provided"), "2201X"),
            (plan("Cannot get result type for temporal operation Date32 * Int64: x"), "42883"),
            (plan("something else"), "42601"),
        ] {
            let text = error.to_string();
            assert_eq!(from_datafusion(error).sqlstate(), code, "{text}");
        }
    }

    #[test]
    fn wrong_arguments_are_told_without_what_the_engine_tried() {
        let tried = "Internal error: Function 'sum' failed to match any signature. \
            This issue was likely caused by a bug in DataFusion's code. \
            No function matches the given name and argument types 'sum(Utf8)'.";
        let error = from_datafusion(DataFusionError::Plan(tried.to_owned()));
        let said = "function sum(text) does not exist";
        assert_eq!((error.sqlstate(), error.message()), ("42883", said));
    }

    #[test]
    fn refusals_are_told_without_the_engines_own_words() {
        for (text, said) in [
            (
                "Failed to coerce types Boolean and Int64 in BETWEEN expression",
                "failed to coerce types boolean and bigint in BETWEEN expression",
            ),
            (
                "Function 'substr' failed to match any signature, errors: one,other.",
                "function 'substr' does not take arguments of these types",
            ),
        ] {
            let error = from_datafusion(DataFusionError::Internal(text.to_owned()));
            assert_eq!((error.sqlstate(), error.message()), ("42883", said));
        }
        let odd = from_datafusion(DataFusionError::Internal("the plan is odd".to_owned()));
        assert!(!odd.message().contains("DataFusion"), "{}", odd.message());
    }

    #[test]
    fn what_cannot_be_computed_is_told_without_its_insides() {
        for (text, said) in [
            (
                "InSubquery(InSubquery { expr: Column(…) })",
                "a subquery of this kind is not supported here",
            ),
            ("Wildcard(…)", "an expression of kind Wildcard is not supported here"),
        ] {
            let text = format!("Physical plan does not support logical expression {text}");
            let error = from_datafusion(DataFusionError::NotImplemented(text));
            assert_eq!((error.sqlstate(), error.message()), ("0A000", said));
        }
    }

    #[test]
    fn a_wrong_pattern_is_told_in_its_last_line() {
        let read = std::io::Error::other("regex parse error:\n    (\n    ^\nerror: unclosed group");
        let error = from_datafusion(DataFusionError::External(Box::new(read)));
        let said = "invalid regular expression: unclosed group";
        assert_eq!((error.sqlstate(), error.message()), ("2201B", said));
    }

    #[tokio::test]
    async fn the_engine_says_that_names_repeat() {
        let context = datafusion::prelude::SessionContext::new();
        let planned = context.state().create_logical_plan("SELECT 1 AS a, 2 AS a").await;
        assert!(repeats_names(&planned.unwrap_err()));
        let planned = context.state().create_logical_plan("SELECT 1 AS a, b").await;
        assert!(!repeats_names(&planned.unwrap_err()));
    }

    #[test]
    fn a_missing_table_has_its_code() {
        let error = DataFusionError::Plan("table 'stoa.public.t' not found".into());
        let error = from_datafusion(error);
        assert_eq!(error.sqlstate(), "42P01");
        assert_eq!(error.message(), "relation \"public.t\" does not exist");
    }
}
