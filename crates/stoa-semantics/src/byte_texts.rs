//! Functions on bytes that the engine has for texts only: it would take bytes for letters, or refuse them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::{core, string, unicode};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ExprSchemable, ScalarUDF};

use super::also::{self, Also};
use super::call::{failure, function};
use super::declared::{self, Call, Declared, Row, Type};
use crate::scope::Scope;
use Type::{Bytes, Integer};

const fn declared(
    name: &'static str,
    called: &'static str,
    takes: &'static [Type],
    makes: Type,
    compute: fn(&Row<'_>) -> Result<ArrayRef>,
) -> Declared {
    Declared { name, called, takes, needed: takes.len(), makes, json: None, compute }
}

const TWO: &[Type] = &[Bytes, Bytes];

pub(super) const FUNCTIONS: &[Declared] = &[
    declared("bytes_btrim", "btrim", TWO, Bytes, |row| trimmed(row, true, true)),
    declared("bytes_ltrim", "ltrim", TWO, Bytes, |row| trimmed(row, true, false)),
    declared("bytes_rtrim", "rtrim", TWO, Bytes, |row| trimmed(row, false, true)),
    declared("bytes_strpos", "position", TWO, Integer, position),
    Declared {
        needed: 3,
        ..declared("bytes_overlay", "overlay", &[Bytes, Bytes, Integer, Integer], Bytes, overlay)
    },
    Declared {
        needed: 2,
        ..declared("bytes_substr", "substr", &[Bytes, Integer, Integer], Bytes, substring)
    },
];

/// The functions that PostgreSQL has for bytes, too.
pub(super) static ALSO: [Also; 6] = [
    also("btrim", &["trim"], string::btrim, bytes_of),
    also("ltrim", &[], string::ltrim, bytes_of),
    also("rtrim", &[], string::rtrim, bytes_of),
    also("strpos", &["instr", "position"], unicode::strpos, place_of),
    also("overlay", &[], core::overlay, bytes_of),
    also("substr", &["substring"], unicode::substr, part_of),
];

const fn also(
    name: &'static str,
    other_names: &'static [&'static str],
    engine: fn() -> Arc<ScalarUDF>,
    makes: fn(&[DataType]) -> Option<DataType>,
) -> Also {
    Also { name, other_names, engine, makes }
}

fn bytes_of(types: &[DataType]) -> Option<DataType> {
    types.iter().any(DataType::is_binary).then_some(DataType::Binary)
}

fn place_of(types: &[DataType]) -> Option<DataType> {
    types.iter().any(DataType::is_binary).then_some(DataType::Int32)
}

fn part_of(types: &[DataType]) -> Option<DataType> {
    // With a pattern, it is another function.
    let has_pattern = types.get(1).is_some_and(DataType::is_string);
    bytes_of(types).or_else(|| has_pattern.then_some(DataType::Utf8))
}

/// The call with the function for its operands' types.
pub(super) fn rewrite(
    call: ScalarFunction,
    scope: &Scope<'_>,
) -> Result<Transformed<ScalarFunction>> {
    let name = format!("bytes_{}", call.func.name());
    let mut are_bytes = false;
    for arg in &call.args {
        are_bytes |= arg.get_type(&scope.schema)?.is_binary();
    }
    match declared::named(&name).filter(|_| are_bytes) {
        Some(declared) => {
            let func = Arc::new(function(Call(declared)));
            Ok(Transformed::yes(ScalarFunction { func, args: call.args }))
        }
        None => Ok(also::engine(call)),
    }
}

fn trimmed(row: &Row<'_>, in_front: bool, behind: bool) -> Result<ArrayRef> {
    row.each_bytes(|at| {
        let (Some(mut bytes), Some(set)) = (row.bytes(0, at), row.bytes(1, at)) else {
            return Ok(None);
        };
        while in_front
            && let Some((first, rest)) = bytes.split_first()
            && set.contains(first)
        {
            bytes = rest;
        }
        while behind
            && let Some((last, rest)) = bytes.split_last()
            && set.contains(last)
        {
            bytes = rest;
        }
        Ok(Some(bytes.to_vec()))
    })
}

fn position(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<i32, Int32Array>(|at| {
        let (Some(bytes), Some(part)) = (row.bytes(0, at), row.bytes(1, at)) else {
            return Ok(None);
        };
        if part.is_empty() {
            return Ok(Some(1));
        }
        let place = bytes.windows(part.len()).position(|window| window == part);
        Ok(Some(place.map_or(0, |place| i32::try_from(place + 1).unwrap_or(i32::MAX))))
    })
}

/// The bytes from a place on, counted from 1, up to another.
fn between(bytes: &[u8], from: i64, end: i64) -> &[u8] {
    let within =
        |place: i64| usize::try_from(place.saturating_sub(1)).unwrap_or(0).min(bytes.len());
    let (from, end) = (within(from), within(end));
    bytes.get(from..end.max(from)).unwrap_or_default()
}

fn substring(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_bytes(|at| {
        let (Some(bytes), Some(from)) = (row.bytes(0, at), row.integer(1, at)) else {
            return Ok(None);
        };
        let end = match row.integer(2, at) {
            Some(..0) => return Err(negative_length()),
            Some(length) => from.saturating_add(length),
            None => i64::MAX,
        };
        Ok(Some(between(bytes, from, end).to_vec()))
    })
}

fn negative_length() -> DataFusionError {
    failure("22011", "negative substring length not allowed")
}

fn overlay(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_bytes(|at| {
        let (Some(bytes), Some(part), Some(from)) =
            (row.bytes(0, at), row.bytes(1, at), row.integer(2, at))
        else {
            return Ok(None);
        };
        if from <= 0 {
            return Err(negative_length());
        }
        let length = row.integer(3, at).unwrap_or(part.len() as i64);
        let end = from.checked_add(length).filter(|end| i32::try_from(*end).is_ok());
        let end = end.ok_or_else(|| failure("22003", "integer out of range"))?;
        Ok(Some([between(bytes, 1, from), part, between(bytes, end, i64::MAX)].concat()))
    })
}
