//! `GET /v1/tables/{namespace}/{table}/files`: the data files of a table, and how well they are sorted.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, BinaryArray, Date32Array, Decimal128Array, TimestampMicrosecondArray};
use arrow_cast::display::array_value_to_string;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stoa_orc::{Literal, Predicate};
use stoa_table::{FIELD_ID_KEY, ScanFile, Table, TableIdent, Transform};

use crate::app::App;
use crate::asker::Asker;
use crate::layout::{Bounds, compare, depths};
use crate::parameters::{checked, checked_path};
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    /// Most files, and most table partitions, to list.
    #[serde(default = "most_default")]
    most: usize,
}

fn most_default() -> usize {
    500
}

/// A column with its field id.
type Column = (String, i32);

/// Files by table partition, and in it by what they hold.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    asker: Asker,
    path: Result<Path<(String, String)>, PathRejection>,
    parameters: Result<Query<ListParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let (namespace, name) = checked_path(path)?;
    let most = checked(parameters)?.most;
    let table = app.engine.warehouse().table(&TableIdent::new(namespace, name)).await?;
    // Files are shown with the bounds of their columns.
    asker.session(&app.engine).may_read_all(&table).await?;
    let plan = table.plan_scan(&Predicate::always()).await?;
    let sorted_by = sort_columns(&table);
    let shown = shown_columns(&table, &sorted_by);
    let partitions = partitions(&plan.files, &sorted_by);
    let listed: Vec<Value> = partitions
        .iter()
        .flat_map(|partition| &partition.files)
        .take(most)
        .map(|file| file_json(file, &shown))
        .collect();
    Ok(Json(json!({
        "snapshot_id": plan.snapshot_id.map(|id| id.to_string()),
        "files_total": plan.files.len(),
        "rows": plan.rows(),
        "bytes": plan.bytes(),
        "columns": shown.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        "sort": sort_json(&partitions, &sorted_by),
        "partitions_total": partitions.len(),
        "partitions": partitions.iter().take(most).map(partition_json).collect::<Vec<_>>(),
        "files": listed,
    })))
}

/// One table partition; its files in the order of their lower bounds.
struct Partition<'a> {
    text: &'a str,
    files: Vec<Sorted<'a>>,
}

/// A file and how many of its partition hold the same keys.
struct Sorted<'a> {
    file: &'a ScanFile,
    depth: Option<usize>,
}

fn partitions<'a>(files: &'a [Arc<ScanFile>], sorted_by: &[Column]) -> Vec<Partition<'a>> {
    let mut by_text: BTreeMap<&str, Vec<&ScanFile>> = BTreeMap::new();
    for file in files {
        by_text.entry(&file.partition_text).or_default().push(file);
    }
    by_text.into_iter().map(|(text, files)| partition(text, files, sorted_by)).collect()
}

fn partition<'a>(text: &'a str, files: Vec<&'a ScanFile>, sorted_by: &[Column]) -> Partition<'a> {
    let bounds: Vec<Bounds> = files
        .iter()
        .map(|file| sorted_by.iter().map(|(_, id)| bounds_of(file, *id)).collect())
        .collect();
    let depths = depths(&bounds);
    let sorted = files.into_iter().zip(depths).map(|(file, depth)| Sorted { file, depth });
    let mut files: Vec<Sorted> = sorted.collect();
    if let Some((_, id)) = sorted_by.first() {
        files.sort_by(|a, b| by_lower_bound(a.file, b.file, *id));
    }
    Partition { text, files }
}

/// Files without bounds come first.
fn by_lower_bound(a: &ScanFile, b: &ScanFile, id: i32) -> Ordering {
    match (a.lower_bounds.get(&id), b.lower_bounds.get(&id)) {
        (Some(a), Some(b)) => compare(a, b).unwrap_or(Ordering::Equal),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

fn bounds_of(file: &ScanFile, id: i32) -> Option<(&Literal, &Literal)> {
    Some((file.lower_bounds.get(&id)?, file.upper_bounds.get(&id)?))
}

/// The columns by whose values rows are sorted; terms behind one with a transform say nothing of
/// the bounds of files.
fn sort_columns(table: &Table) -> Vec<Column> {
    let terms = table.sort_terms();
    let plain = terms.iter().take_while(|term| term.transform == Transform::Identity);
    plain.filter_map(|term| column(table, &term.column)).collect()
}

/// Columns whose bounds are shown: those of the order and of the partitioning, else the first one.
fn shown_columns(table: &Table, sorted_by: &[Column]) -> Vec<Column> {
    let mut shown = sorted_by.to_vec();
    for term in table.partition_terms() {
        shown.extend(column(table, &term.column).filter(|found| !sorted_by.contains(found)));
    }
    if shown.is_empty() {
        let first = table.schema().fields().first().map(|field| field.name().clone());
        shown.extend(first.and_then(|name| column(table, &name)));
    }
    shown
}

fn column(table: &Table, name: &str) -> Option<Column> {
    let schema = table.schema();
    let field = schema.field_with_name(name).ok()?;
    Some((name.to_owned(), field.metadata().get(FIELD_ID_KEY)?.parse().ok()?))
}

/// Over all partitions; `null` where the table has no order, or no file could be compared.
fn sort_json(partitions: &[Partition], sorted_by: &[Column]) -> Value {
    let depths: Vec<usize> =
        partitions.iter().flat_map(|p| &p.files).filter_map(|file| file.depth).collect();
    if depths.is_empty() {
        return Value::Null;
    }
    json!({
        "columns": sorted_by.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        "compared": depths.len(),
        "overlapping": depths.iter().filter(|depth| **depth > 1).count(),
        "depth_max": depths.iter().max(),
        "depth_mean": depths.iter().sum::<usize>() as f64 / depths.len() as f64,
    })
}

fn partition_json(partition: &Partition) -> Value {
    let files = || partition.files.iter();
    let overlapping = files().filter(|file| file.depth.is_some_and(|depth| depth > 1)).count();
    json!({
        "partition": partition.text,
        "files": partition.files.len(),
        "rows": files().map(|file| file.file.rows).sum::<u64>(),
        "bytes": files().map(|file| file.file.file_bytes).sum::<u64>(),
        "overlapping": overlapping,
        "depth_max": files().filter_map(|file| file.depth).max(),
    })
}

fn file_json(sorted: &Sorted, shown: &[Column]) -> Value {
    let file = sorted.file;
    let mut bounds = Map::new();
    for (name, id) in shown {
        let pair = bounds_of(file, *id).map(|(lower, upper)| json!([text(lower), text(upper)]));
        bounds.insert(name.clone(), pair.unwrap_or(Value::Null));
    }
    let stripes = Some(file.split_offsets.len()).filter(|stripes| *stripes > 0);
    json!({
        "path": file.location,
        "partition": file.partition_text,
        "rows": file.rows,
        "bytes": file.file_bytes,
        "stripes": stripes,
        "sorted": file.sort_order_id.is_some_and(|id| id != 0),
        "depth": sorted.depth,
        "snapshot_id": file.snapshot_id.map(|id| id.to_string()),
        "bounds": bounds,
    })
}

/// A bound as SQL writes the value.
fn text(literal: &Literal) -> String {
    match literal {
        Literal::Boolean(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Float(value) => value.to_string(),
        Literal::String(value) => value.clone(),
        Literal::Date(days) => first_of(&Date32Array::from(vec![*days])),
        Literal::TimestampMicros(micros) => {
            first_of(&TimestampMicrosecondArray::from(vec![*micros]))
        }
        Literal::Binary(bytes) => first_of(&BinaryArray::from_vec(vec![bytes.as_slice()])),
        Literal::Decimal(value, scale) => {
            let array = Decimal128Array::from(vec![*value]).with_precision_and_scale(38, *scale);
            array.map_or_else(|_| value.to_string(), |array| first_of(&array))
        }
    }
}

fn first_of(array: &dyn Array) -> String {
    array_value_to_string(array, 0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_read_as_sql_writes_them() {
        let check = |literal: Literal, expected: &str| assert_eq!(text(&literal), expected);
        check(Literal::Int(-7), "-7");
        check(Literal::Date(20_454), "2026-01-01");
        check(Literal::TimestampMicros(1_500_000), "1970-01-01T00:00:01.500");
        check(Literal::Decimal(-1250, 3), "-1.250");
        check(Literal::Binary(vec![1, 0xAB]), "01ab");
        check(Literal::String("Ōsaka".into()), "Ōsaka");
    }
}
