//! The mark on the fields of texts that hold JSON: `json` or `jsonb`.

use std::collections::HashMap;

use arrow::datatypes::Field;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, ExprSchemable};

/// Arrow's name for a text that holds JSON.
const EXTENSION_KEY: &str = "ARROW:extension:name";
const EXTENSION: &str = "arrow.json";
/// Metadata: the value is in normal form.
const BINARY_KEY: &str = "stoa.jsonb";

/// Which of PostgreSQL's two types a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum JsonKind {
    Json,
    Jsonb,
}

impl JsonKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonb => "jsonb",
        }
    }

    /// The metadata of a field with such values.
    pub(super) fn metadata(self) -> HashMap<String, String> {
        let mut metadata = HashMap::from([(EXTENSION_KEY.to_owned(), EXTENSION.to_owned())]);
        if self == Self::Jsonb {
            metadata.insert(BINARY_KEY.to_owned(), String::new());
        }
        metadata
    }

    /// The kind of values of a field.
    pub(super) fn of_field(field: &Field) -> Option<Self> {
        if field.metadata().get(EXTENSION_KEY).map(String::as_str) != Some(EXTENSION) {
            return None;
        }
        Some(match field.metadata().contains_key(BINARY_KEY) {
            true => Self::Jsonb,
            false => Self::Json,
        })
    }

    /// The kind of an expression's values; of CASE and COALESCE that of their branches.
    pub(super) fn of(expr: &Expr, schema: &DFSchema) -> Option<Self> {
        match expr {
            Expr::Alias(alias) => Self::of(&alias.expr, schema),
            Expr::Case(case) => {
                let thens = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
                thens.chain(case.else_expr.as_deref()).find_map(|branch| Self::of(branch, schema))
            }
            Expr::ScalarFunction(call)
                if matches!(call.func.name(), "coalesce" | "greatest" | "least" | "nullif") =>
            {
                call.args.iter().find_map(|branch| Self::of(branch, schema))
            }
            other => Self::of_field(other.to_field(schema).ok()?.1.as_ref()),
        }
    }
}
