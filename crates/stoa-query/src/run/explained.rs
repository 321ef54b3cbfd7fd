//! Answers of `EXPLAIN` as PostgreSQL gives them: one column, `QUERY PLAN`.
//!
//! In: the engine's two columns, kind and text of a plan. Out: the physical plan, one row per operator, or one document
//! (`FORMAT JSON`) with the members that tools of PostgreSQL look for: `Node Type`, `Relation Name`, `Actual Rows`,
//! `Plans`. Types and literals are SQL's; positions of columns (`a@0`) are left out.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;
use serde_json::{Map, Value, json};
use stoa_error::{Error, Result};
use stoa_semantics::errors::{from_datafusion, in_sql_words};
use stoa_sql::explain::ExplainFormat;

/// Kinds of plans that say how a statement is executed, the best first.
const KINDS: [&str; 2] = ["Plan with Metrics", "physical_plan"];

/// The column of every `EXPLAIN`.
pub(crate) fn columns(format: ExplainFormat) -> SchemaRef {
    let field = Field::new("QUERY PLAN", DataType::Utf8, false);
    Arc::new(Schema::new(vec![match format {
        ExplainFormat::Text => field,
        ExplainFormat::Json => stoa_semantics::as_json(field),
    }]))
}

/// The format that a statement asks for.
///
/// # Errors
/// See [`stoa_sql::explain::read`].
pub(crate) fn format_of(text: &str) -> Result<ExplainFormat> {
    let explain = stoa_sql::explain::read(text)?;
    Ok(explain.map_or(ExplainFormat::Text, |explain| explain.format))
}

/// The answer to a statement, if it is one of the engine's `EXPLAIN`.
///
/// # Errors
/// What executing the statement fails with.
pub(crate) async fn query_plan(
    answer: SendableRecordBatchStream,
    format: ExplainFormat,
) -> Result<SendableRecordBatchStream> {
    let batches: Vec<RecordBatch> = answer.try_collect().await.map_err(from_datafusion)?;
    let mut plans = Vec::new();
    for batch in &batches {
        let text =
            |column: usize| batch.columns().get(column).and_then(|c| c.as_string_opt::<i32>());
        let (Some(kinds), Some(texts)) = (text(0), text(1)) else {
            return Err(Error::internal("EXPLAIN has other columns"));
        };
        plans.extend(kinds.iter().flatten().zip(texts.iter().flatten()));
    }
    let of_kind = |kind: &&str| plans.iter().find(|(of, _)| of == kind).map(|(_, plan)| *plan);
    let plan = KINDS.iter().find_map(of_kind).or_else(|| plans.first().map(|(_, plan)| *plan));
    let operators = operators(plan.unwrap_or_default());
    let rows = match format {
        ExplainFormat::Text => operators.iter().map(Operator::line).collect(),
        ExplainFormat::Json => vec![document(&operators)?],
    };
    let batch = RecordBatch::try_new(columns(format), vec![Arc::new(StringArray::from(rows))])
        .map_err(|error| Error::internal("EXPLAIN has other columns").with_source(error));
    let rows = futures::stream::iter([batch.map_err(stoa_semantics::errors::to_datafusion)]);
    Ok(Box::pin(RecordBatchStreamAdapter::new(columns(format), rows)))
}

/// One operator of a plan.
#[derive(Debug, PartialEq)]
struct Operator {
    /// How many operators it feeds, one into the next.
    depth: usize,
    /// `HashJoinExec`.
    name: String,
    /// What is said of it.
    detail: String,
    /// Its figures, as `EXPLAIN ANALYZE` writes them.
    metrics: Vec<(String, String)>,
}

/// The operators of a plan in the engine's spelling: one per line, inputs two blanks further in.
fn operators(plan: &str) -> Vec<Operator> {
    let mut operators: Vec<Operator> = Vec::new();
    // Depths of operators that only give way to others: they are left out, and what is below moves up.
    let mut left_out: Vec<usize> = Vec::new();
    for line in plan.lines().filter(|line| !line.trim().is_empty()) {
        let text = line.trim_start();
        let written = (line.len() - text.len()) / 2;
        left_out.retain(|depth| *depth < written);
        let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if name == "CooperativeExec" {
            left_out.push(written);
            continue;
        }
        let (detail, metrics) = apart(rest.trim_start_matches([':', ',', ' ']));
        let detail = in_sql_words(&without_positions(detail));
        let depth = written - left_out.len();
        operators.push(Operator { depth, name: name.to_owned(), detail, metrics });
    }
    operators
}

/// What is said of an operator, and its figures.
fn apart(text: &str) -> (&str, Vec<(String, String)>) {
    let Some((detail, figures)) = text.rsplit_once("metrics=[") else { return (text, Vec::new()) };
    let mut metrics: Vec<(String, String)> = Vec::new();
    for part in figures.trim_end().trim_end_matches(']').split(", ") {
        match (part.split_once('='), metrics.last_mut()) {
            (Some((name, value)), _) => metrics.push((name.to_owned(), value.to_owned())),
            // A value with a comma in it.
            (None, Some((_, value))) => value.extend([", ", part]),
            (None, None) => {}
        }
    }
    (detail.trim_end_matches([',', ' ']), metrics)
}

/// A text without the positions of its columns: `a@0` is `a`. Literals stay as they are.
fn without_positions(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let (mut before, mut quote) = (' ', None);
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            ('@', None)
                if (before.is_alphanumeric() || matches!(before, '_' | ')' | ']' | '*'))
                    && letters.peek().is_some_and(char::is_ascii_digit) =>
            {
                while letters.next_if(char::is_ascii_digit).is_some() {}
                continue;
            }
            _ => {}
        }
        before = letter;
        out.push(letter);
    }
    out
}

impl Operator {
    fn line(&self) -> String {
        let mut line = format!("{}{}", "  ".repeat(self.depth), self.name);
        if !self.detail.is_empty() {
            line.push_str(": ");
            line.push_str(&self.detail);
        }
        if !self.metrics.is_empty() {
            let metrics: Vec<_> =
                self.metrics.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let comma = if self.detail.is_empty() { ": " } else { ", " };
            line.push_str(&format!("{comma}metrics=[{}]", metrics.join(", ")));
        }
        line
    }

    fn metric(&self, name: &str) -> Option<&str> {
        self.metrics.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// Its members in a document, but for its inputs.
    fn members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("Node Type".to_owned(), node_type(&self.name).into());
        if let Some((schema, name)) = self.table() {
            members.insert("Relation Name".to_owned(), name.into());
            members.insert("Schema".to_owned(), schema.into());
        }
        if !self.detail.is_empty() {
            members.insert("Details".to_owned(), self.detail.clone().into());
        }
        if let Some(rows) = self.metric("output_rows").and_then(count) {
            members.insert("Actual Rows".to_owned(), rows.into());
            members.insert("Actual Loops".to_owned(), 1.into());
        }
        if let Some(time) = self.metric("elapsed_compute").and_then(milliseconds) {
            members.insert("Actual Total Time".to_owned(), time.into());
        }
        let of_others = |name: &str| matches!(name, "output_rows" | "elapsed_compute");
        let rest = self.metrics.iter().filter(|(name, _)| !of_others(name));
        let rest: Map<String, Value> =
            rest.map(|(name, value)| (name.clone(), value.clone().into())).collect();
        if !rest.is_empty() {
            members.insert("Metrics".to_owned(), rest.into());
        }
        members
    }

    /// The table that is read, `table=schema.name`.
    fn table(&self) -> Option<(&str, &str)> {
        let (_, rest) = self.detail.split_once("table=")?;
        let name = rest.split([',', ' ']).next()?;
        name.split_once('.')
    }
}

/// `HashJoinExec` in words: `Hash Join`.
fn node_type(name: &str) -> String {
    let mut words = String::new();
    for letter in name.strip_suffix("Exec").unwrap_or(name).chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter);
    }
    words
}

/// A count as the engine writes it: `12`, `1.20 K`.
fn count(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_once(' ').unwrap_or((text, ""));
    let factor = match unit {
        "" => 1.0,
        "K" => 1e3,
        "M" => 1e6,
        "B" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|value| (value * factor).round() as u64)
}

/// A duration as the engine writes it, in milliseconds.
fn milliseconds(text: &str) -> Option<f64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let value: f64 = text[..text.len() - unit.len()].parse().ok()?;
    Some(match unit.trim() {
        "ns" => value / 1e6,
        "µs" | "μs" | "us" => value / 1e3,
        "ms" => value,
        "s" => value * 1e3,
        _ => return None,
    })
}

/// The plan as a tree.
fn document(operators: &[Operator]) -> Result<String> {
    // Inputs of the operators that are still open, the root's first.
    let mut open: Vec<(usize, Map<String, Value>)> = Vec::new();
    let close = |open: &mut Vec<(usize, Map<String, Value>)>| {
        let Some((_, ended)) = open.pop() else { return };
        if let Some((_, parent)) = open.last_mut() {
            let plans = parent.entry("Plans").or_insert_with(|| json!([]));
            plans.as_array_mut().into_iter().for_each(|plans| plans.push(ended.clone().into()));
        }
    };
    for operator in operators {
        while open.len() > 1 && open.last().is_some_and(|(depth, _)| *depth >= operator.depth) {
            close(&mut open);
        }
        open.push((operator.depth, operator.members()));
    }
    while open.len() > 1 {
        close(&mut open);
    }
    let plan = open.pop().map(|(_, root)| root).unwrap_or_default();
    serde_json::to_string_pretty(&json!([{ "Plan": plan }]))
        .map_err(|error| Error::internal("a plan is not written as JSON").with_source(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "\
ProjectionExec: expr=[count(Int64(1))@1 as n, CAST(b@0 AS Utf8) as 'x@1'], metrics=[output_rows=1.20 K, elapsed_compute=2.5ms, files=1, 2]
  HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a@0, b@1)]
    CooperativeExec
      OrcScanExec: table=public.r, columns=[a]
    CooperativeExec
      OrcScanExec: table=public.s, columns=[b]
";

    #[test]
    fn operators_are_written_line_by_line() {
        let lines: Vec<_> = operators(PLAN).iter().map(Operator::line).collect();
        assert_eq!(
            lines,
            [
                "ProjectionExec: expr=[count(1) as n, CAST(b AS text) as 'x@1'], metrics=[output_rows=1.20 K, elapsed_compute=2.5ms, files=1, 2]",
                "  HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a, b)]",
                "    OrcScanExec: table=public.r, columns=[a]",
                "    OrcScanExec: table=public.s, columns=[b]",
            ]
        );
    }

    #[test]
    fn operators_are_a_tree() {
        let text = document(&operators(PLAN)).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let root = &document[0]["Plan"];
        assert_eq!(root["Node Type"], "Projection");
        assert_eq!((&root["Actual Rows"], &root["Actual Total Time"]), (&json!(1200), &json!(2.5)));
        assert_eq!(root["Metrics"], json!({ "files": "1, 2" }));
        let join = &root["Plans"][0];
        assert_eq!(join["Node Type"], "Hash Join");
        let scans = join["Plans"].as_array().unwrap();
        let names: Vec<_> = scans.iter().map(|scan| scan["Relation Name"].clone()).collect();
        assert_eq!(names, ["r", "s"]);
        assert_eq!(scans[0]["Schema"], "public");
    }

    #[test]
    fn a_plan_of_nothing_is_an_empty_document() {
        let document: Value = serde_json::from_str(&document(&operators("")).unwrap()).unwrap();
        assert_eq!(document, json!([{ "Plan": {} }]));
    }
}
