//! The reader against a slow one that says the rules again in another way.

use proptest::prelude::*;

use super::*;
use crate::batch::{CellBatch, CellBatchBuilder, sort_cells};
use crate::cell::{Cell, CellKind};
use crate::pattern::Pattern;
use crate::scan::{
    CellKey, ColumnPredicate, ColumnSelector, Combine, KeyRange, QualifierFilter, ScanSpec,
    TimeRange, ValueFilter,
};
use crate::schema::{
    AlterAction, FamilyDefinition, FamilyOptions, TableDefinitions, TableOptions, TableSchema,
    TimeOrder,
};

/// Six families: plain, two versions, two seconds, counter, oldest first (two versions), dropped.
fn schema() -> TableSchema {
    let none = FamilyOptions::default();
    let two = Some(2);
    let options = [
        ("plain", none.clone()),
        ("versions", FamilyOptions { max_versions: two, ..none.clone() }),
        ("ttl", FamilyOptions { ttl_s: Some(2), ..none.clone() }),
        ("counter", FamilyOptions { counter: Some(true), ..none.clone() }),
        (
            "oldest",
            FamilyOptions {
                time_order: Some(TimeOrder::OldestFirst),
                max_versions: two,
                ..none.clone()
            },
        ),
        ("dropped", none),
    ];
    let families = options
        .into_iter()
        .map(|(name, options)| FamilyDefinition { name: name.into(), options })
        .collect();
    let definitions = TableDefinitions { families, ..TableDefinitions::default() };
    let schema = TableSchema::create(&definitions, TableOptions::default()).unwrap();
    schema.alter(&[AlterAction::DropFamilies(vec!["dropped".into()])]).unwrap()
}

fn plain_schema() -> TableSchema {
    let family = |name: &str| FamilyDefinition { name: name.into(), options: Default::default() };
    let families = ["a", "b", "c", "d", "e", "f"].map(family).to_vec();
    let definitions = TableDefinitions { families, ..TableDefinitions::default() };
    TableSchema::create(&definitions, TableOptions::default()).unwrap()
}

const NOW: i64 = 6_000_000_000;

/// What the reader should answer, marker by marker and cell by cell.
fn expected(schema: &TableSchema, inputs: &[Vec<Cell>], spec: &ScanSpec) -> Vec<Cell> {
    let seen = visible(schema, inputs);
    let mut columns: Vec<Vec<Cell>> = Vec::new();
    for cell in seen {
        match columns.last_mut() {
            Some(column) if column[0].as_cell_ref().column() == cell.as_cell_ref().column() => {
                column.push(cell);
            }
            _ => columns.push(vec![cell]),
        }
    }
    let mut cells: Vec<Cell> = Vec::new();
    for column in columns {
        cells.extend(versions(schema, column, spec));
    }
    let rows: Vec<Vec<u8>> = cells.iter().map(|c| c.row.clone()).collect();
    let wanted = |cell: &Cell| {
        let in_range =
            spec.ranges.is_empty() || spec.ranges.iter().any(|r| r.contains(&cell.as_cell_ref()));
        let selects =
            |c: &ColumnSelector| c.family == cell.family && c.qualifier.accepts(&cell.qualifier);
        let column = spec.columns.is_empty() || spec.columns.iter().any(selects);
        let row = spec.row_pattern.as_ref().is_none_or(|p| p.is_match(&cell.row));
        in_range && column && row
    };
    let meets = |cell: &Cell, predicate: &ColumnPredicate| {
        predicate.column.family == cell.family
            && predicate.column.qualifier.accepts(&cell.qualifier)
            && predicate.value.accepts(&cell.value)
    };
    let row_ok = |row: &[u8]| {
        let met = |p: &ColumnPredicate| cells.iter().any(|c| c.row == row && meets(c, p));
        spec.predicates.is_empty()
            || match spec.combine {
                Combine::All => spec.predicates.iter().all(met),
                Combine::Any => spec.predicates.iter().any(met),
            }
    };
    let ok: Vec<bool> = rows.iter().map(|row| row_ok(row)).collect();
    let matching = |cell: &Cell| {
        spec.predicates.is_empty()
            || !spec.matching_cells_only
            || spec.predicates.iter().any(|p| meets(cell, p))
    };
    let kept: Vec<Cell> = cells
        .iter()
        .zip(ok)
        .filter(|(cell, ok)| *ok && wanted(cell) && matching(cell))
        .map(|(cell, _)| cell.clone())
        .filter(|cell| spec.value_pattern.as_ref().is_none_or(|p| p.is_match(&cell.value)))
        .collect();
    limited(kept, spec)
}

/// Values that no marker, no newer input and no age hides, in the order of cells.
fn visible(schema: &TableSchema, inputs: &[Vec<Cell>]) -> Vec<Cell> {
    let mut all: Vec<(usize, usize, &Cell)> = Vec::new();
    for (input, cells) in inputs.iter().enumerate() {
        all.extend(cells.iter().enumerate().map(|(at, cell)| (input, at, cell)));
    }
    all.sort_by(|a, b| {
        a.2.as_cell_ref().order(&b.2.as_cell_ref()).then((b.0, b.1).cmp(&(a.0, a.1)))
    });
    all.dedup_by(|b, a| a.2.as_cell_ref().order(&b.2.as_cell_ref()).is_eq());
    let hides = |marker: &Cell, cell: &Cell| {
        marker.row == cell.row
            && match marker.kind {
                CellKind::DeleteRow => cell.timestamp <= marker.timestamp,
                CellKind::DeleteFamily => {
                    marker.family == cell.family && cell.timestamp <= marker.timestamp
                }
                CellKind::DeleteCell => {
                    (marker.family, &marker.qualifier) == (cell.family, &cell.qualifier)
                        && cell.timestamp <= marker.timestamp
                }
                CellKind::DeleteVersion => {
                    (marker.family, &marker.qualifier) == (cell.family, &cell.qualifier)
                        && cell.timestamp == marker.timestamp
                }
                CellKind::Insert => false,
            }
    };
    let young = |cell: &Cell| {
        let family = schema.family_by_id(cell.family);
        family.is_some_and(|f| {
            f.options.ttl_s.is_none_or(|s| cell.timestamp >= NOW - s as i64 * 1_000_000_000)
        })
    };
    all.iter()
        .filter(|(_, _, cell)| cell.kind == CellKind::Insert && young(cell))
        .filter(|(_, _, cell)| !all.iter().any(|(_, _, marker)| hides(marker, cell)))
        .map(|(_, _, cell)| (*cell).clone())
        .collect()
}

/// What is seen of one column's versions, which come newest first.
fn versions(schema: &TableSchema, mut column: Vec<Cell>, spec: &ScanSpec) -> Vec<Cell> {
    let options = &schema.family_by_id(column[0].family).unwrap().options;
    if options.is_counter() {
        column.retain(|cell| spec.time.contains(cell.timestamp));
        let restart = column.iter().position(|cell| cell.value.starts_with(b"="));
        let counted = &column[..restart.map_or(column.len(), |at| at + 1)];
        let number = |cell: &Cell| {
            let text = String::from_utf8(cell.value.clone()).unwrap();
            text.trim_start_matches('=').parse::<i64>().unwrap_or(0)
        };
        let sum: i64 = counted.iter().map(number).sum();
        let first = column.first().cloned();
        return first
            .map(|c| Cell { value: sum.to_string().into_bytes(), ..c })
            .into_iter()
            .collect();
    }
    if options.is_oldest_first() {
        column.reverse();
    }
    column.truncate(options.version_limit().map_or(usize::MAX, |n| n as usize));
    column.retain(|cell| spec.time.contains(cell.timestamp));
    column.truncate(spec.max_versions.map_or(usize::MAX, |n| n as usize));
    column
}

fn limited(cells: Vec<Cell>, spec: &ScanSpec) -> Vec<Cell> {
    let rows_of = |cells: &[Cell]| {
        let mut rows: Vec<Vec<u8>> = cells.iter().map(|c| c.row.clone()).collect();
        rows.dedup();
        rows
    };
    let skipped: Vec<Vec<u8>> =
        rows_of(&cells).into_iter().take(spec.row_offset as usize).collect();
    let mut few: Vec<Cell> = Vec::new();
    for cell in cells.iter().filter(|c| !skipped.contains(&c.row)) {
        let of_family = few.iter().filter(|c| (&c.row, c.family) == (&cell.row, cell.family));
        if (of_family.count() as u64) < spec.cell_limit_per_family.unwrap_or(u64::MAX) {
            few.push(cell.clone());
        }
    }
    let left: Vec<Cell> = few.into_iter().skip(spec.cell_offset as usize).collect();
    let limit = |limit: Option<u64>| limit.map_or(usize::MAX, |limit| limit as usize);
    let rows: Vec<Vec<u8>> = rows_of(&left).into_iter().take(limit(spec.row_limit)).collect();
    let left = left.into_iter().filter(|c| rows.contains(&c.row));
    left.take(limit(spec.cell_limit)).collect()
}

/// What the reader answers; inputs are cut into batches of `batch` cells.
fn answer(mut reader: CellReader, inputs: &[Vec<Cell>], batch: usize) -> Vec<Cell> {
    let mut batches: Vec<std::vec::IntoIter<CellBatch>> = Vec::new();
    for cells in inputs {
        let mut builder = CellBatchBuilder::new();
        cells.iter().for_each(|cell| builder.push(cell.as_cell_ref()).unwrap());
        let sorted = sort_cells(&builder.finish()).unwrap();
        let cuts: Vec<CellBatch> = (0..sorted.len())
            .step_by(batch)
            .map(|at| sorted.slice(at..(at + batch).min(sorted.len())))
            .collect();
        batches.push(cuts.into_iter());
    }
    let mut out = Vec::new();
    loop {
        match reader.step().unwrap() {
            ReadStep::NeedsInput(input) => reader.push(input, batches[input].next()),
            ReadStep::Batch(batch) => out.extend(batch.iter().map(|c| c.to_cell())),
            ReadStep::Finished => return out,
        }
    }
}

fn any_cell(markers: bool) -> impl Strategy<Value = Cell> {
    let kind = (0_u8..14).prop_map(move |n| match n {
        0 if markers => CellKind::DeleteRow,
        1 if markers => CellKind::DeleteFamily,
        2 if markers => CellKind::DeleteCell,
        3 if markers => CellKind::DeleteVersion,
        _ => CellKind::Insert,
    });
    let value = prop_oneof!["[0-9]{1,2}", "=[0-9]", "-[0-9]", "[a-b]{0,2}"];
    let place = ("[rst]{1,2}", 1_u8..7, "[xy]{0,1}");
    (place, 0_i64..8, value, kind).prop_map(|((row, family, qualifier), second, value, kind)| {
        let (family, qualifier) = match kind {
            CellKind::DeleteRow => (0, String::new()),
            CellKind::DeleteFamily => (family, String::new()),
            _ => (family, qualifier),
        };
        let value = if kind.is_delete() { String::new() } else { value };
        Cell {
            row: row.into_bytes(),
            family,
            qualifier: qualifier.into_bytes(),
            timestamp: second * 1_000_000_000,
            value: value.into_bytes(),
            kind,
        }
    })
}

fn any_inputs(markers: bool) -> impl Strategy<Value = Vec<Vec<Cell>>> {
    prop::collection::vec(prop::collection::vec(any_cell(markers), 0..30), 1..5)
}

fn any_qualifier() -> impl Strategy<Value = QualifierFilter> {
    prop_oneof![
        Just(QualifierFilter::Any),
        "[xy]{0,1}".prop_map(|q| QualifierFilter::Exact(q.into_bytes())),
        "[xy]{0,1}".prop_map(|q| QualifierFilter::Prefix(q.into_bytes())),
        Just(QualifierFilter::Matches(Pattern::new("^y?$").unwrap()))
    ]
}

fn any_column() -> impl Strategy<Value = ColumnSelector> {
    (1_u8..6, any_qualifier()).prop_map(|(family, qualifier)| ColumnSelector { family, qualifier })
}

fn any_predicate() -> impl Strategy<Value = ColumnPredicate> {
    let value = prop_oneof![
        Just(ValueFilter::Exists),
        "[0-9ab]".prop_map(|v| ValueFilter::Equals(v.into_bytes())),
        "[0-9ab]".prop_map(|v| ValueFilter::Prefix(v.into_bytes())),
        Just(ValueFilter::Matches(Pattern::new("[1-3]$").unwrap()))
    ];
    (any_column(), value).prop_map(|(column, value)| ColumnPredicate { column, value })
}

fn any_ranges() -> impl Strategy<Value = Vec<KeyRange>> {
    prop_oneof![
        Just(Vec::new()),
        "[rst]{1,2}".prop_map(|row| vec![KeyRange::at(CellKey::row(row))]),
        ("[rst]", 1_u8..6, "[xy]{0,1}")
            .prop_map(|(r, f, q)| vec![KeyRange::prefix(CellKey::cell(r, f, q))]),
        ("[rst]", 1_u8..6).prop_map(|(row, family)| {
            let start = std::ops::Bound::Excluded(CellKey::cell(row, family, "x"));
            vec![KeyRange { start, end: std::ops::Bound::Unbounded }]
        }),
        Just(vec![
            KeyRange::at(CellKey::cell("r", 1, "")),
            KeyRange::at(CellKey::cell("r", 3, "x")),
            KeyRange::prefix(CellKey::row("s")),
        ])
    ]
}

fn any_spec() -> impl Strategy<Value = ScanSpec> {
    let time = (-1_i64..8, prop::option::of(0_i64..9)).prop_map(|(start, end)| TimeRange {
        start: start * 1_000_000_000,
        end: end.map(|end| end * 1_000_000_000),
    });
    let time = prop_oneof![2 => Just(TimeRange::default()), 1 => time];
    let number = |max: u64| prop::option::weighted(0.2, 0..max);
    let columns = prop_oneof![Just(Vec::new()), prop::collection::vec(any_column(), 1..4)];
    let predicates =
        prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(any_predicate(), 1..3)];
    let pattern = |text: &'static str| {
        prop::option::weighted(0.2, Just(text).prop_map(|text| Pattern::new(text).unwrap()))
    };
    (
        (any_ranges(), columns, time, pattern("^[rs]"), pattern("[0-5a]")),
        (predicates, any::<bool>(), any::<bool>(), prop::option::weighted(0.3, 1_u32..3)),
        (number(3), number(4), number(5), number(9), number(3)),
    )
        .prop_map(|(what, conditions, limits)| ScanSpec {
            ranges: what.0,
            columns: what.1,
            time: what.2,
            row_pattern: what.3,
            value_pattern: what.4,
            predicates: conditions.0,
            combine: if conditions.1 { Combine::Any } else { Combine::All },
            matching_cells_only: conditions.2,
            max_versions: conditions.3,
            row_offset: limits.0.unwrap_or(0),
            row_limit: limits.1,
            cell_offset: limits.2.unwrap_or(0),
            cell_limit: limits.3,
            cell_limit_per_family: limits.4,
            keys_only: false,
            return_deletes: false,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_query_is_answered_as_the_rules_say(
        inputs in any_inputs(true), spec in any_spec(), batch in 1_usize..9,
    ) {
        let schema = schema();
        let reader = CellReader::new(&schema, &spec, NOW, inputs.len());
        prop_assert_eq!(answer(reader, &inputs, batch), expected(&schema, &inputs, &spec));
    }

    #[test]
    fn a_plain_table_is_read_whole(
        inputs in any_inputs(false), marked in any_inputs(true), batch in 1_usize..9,
    ) {
        let schema = plain_schema();
        let spec = ScanSpec::default();
        for inputs in [inputs, marked] {
            let reader = CellReader::new(&schema, &spec, NOW, inputs.len());
            prop_assert_eq!(answer(reader, &inputs, batch), expected(&schema, &inputs, &spec));
        }
    }

    #[test]
    fn a_compaction_changes_no_answer(
        inputs in any_inputs(true), newer in any_inputs(false), spec in any_spec(),
    ) {
        let schema = schema();
        let before = expected(&schema, &inputs, &spec);
        for kind in [Compaction::Full, Compaction::Partial] {
            let reader = CellReader::compaction(&schema, kind, NOW, inputs.len());
            let merged = vec![answer(reader, &inputs, 4)];
            let reader = CellReader::new(&schema, &spec, NOW, 1);
            let after = answer(reader, &merged, 3);
            // A counter that was added up has one timestamp for all that it counted.
            if kind == Compaction::Partial || spec.time.is_all() {
                prop_assert_eq!(&after, &before);
            }
        }
        let plain = plain_schema();
        for kind in [Compaction::Full, Compaction::Partial] {
            let reader = CellReader::compaction(&plain, kind, NOW, inputs.len());
            let merged = vec![answer(reader, &inputs, 4)];
            let reader = CellReader::new(&plain, &spec, NOW, 1);
            prop_assert_eq!(answer(reader, &merged, 3), expected(&plain, &inputs, &spec));
        }
        // Cells that come later meet the same markers.
        let all: Vec<Vec<Cell>> = inputs.iter().chain(&newer).cloned().collect();
        let reader = CellReader::compaction(&schema, Compaction::Partial, NOW, inputs.len());
        let mut merged = vec![answer(reader, &inputs, 4)];
        merged.extend(newer);
        let reader = CellReader::new(&schema, &spec, NOW, merged.len());
        prop_assert_eq!(answer(reader, &merged, 3), expected(&schema, &all, &spec));
    }
}

proptest! {
    /// Cells that are in none of the files that are merged, but in the logs of others, which may hold what is later than
    /// some of these files.
    #[test]
    fn a_compaction_of_what_is_settled_changes_no_answer(
        inputs in any_inputs(true),
        elsewhere in any_inputs(false),
        marked_elsewhere in any_inputs(true),
        spec in any_spec(),
        until in 0_i64..12,
    ) {
        let later = |inputs: Vec<Vec<Cell>>| -> Vec<Vec<Cell>> {
            let is_later = |cell: &Cell| cell.timestamp > until;
            inputs.into_iter().map(|cells| cells.into_iter().filter(is_later).collect()).collect()
        };
        for (schema, elsewhere) in
            [(schema(), later(elsewhere)), (plain_schema(), later(marked_elsewhere))]
        {
            let all: Vec<Vec<Cell>> = inputs.iter().chain(&elsewhere).cloned().collect();
            let kind = Compaction::FullUntil(until);
            let reader = CellReader::compaction(&schema, kind, NOW, inputs.len());
            let merged = answer(reader, &inputs, 4);
            let dropped = |cell: &Cell| cell.kind.is_delete() && cell.timestamp <= until;
            prop_assert!(!merged.iter().any(dropped), "a marker stays that nothing needs");
            let merged: Vec<Vec<Cell>> = std::iter::once(merged).chain(elsewhere).collect();
            if spec.time.is_all() {
                let reader = CellReader::new(&schema, &spec, NOW, merged.len());
                prop_assert_eq!(answer(reader, &merged, 3), expected(&schema, &all, &spec));
            }
        }
    }
}

#[test]
fn markers_are_returned_on_request() {
    let cell = |qualifier: &str, timestamp, kind| Cell {
        row: b"r1".to_vec(),
        family: 1,
        qualifier: qualifier.as_bytes().to_vec(),
        timestamp,
        value: Vec::new(),
        kind,
    };
    let row = Cell { family: 0, ..cell("", 2, CellKind::DeleteRow) };
    let inputs = vec![vec![
        cell("q1", 5, CellKind::Insert),
        cell("q1", 3, CellKind::Insert),
        cell("q1", 1, CellKind::Insert),
        cell("q1", 3, CellKind::DeleteVersion),
        cell("q1", 2, CellKind::DeleteCell),
        row,
    ]];
    let spec = ScanSpec { return_deletes: true, ..ScanSpec::default() };
    let reader = CellReader::new(&plain_schema(), &spec, NOW, 1);
    let seen: Vec<_> = answer(reader, &inputs, 2).iter().map(|c| (c.timestamp, c.kind)).collect();
    assert_eq!(
        seen,
        [
            (2, CellKind::DeleteRow),
            (5, CellKind::Insert),
            (3, CellKind::DeleteVersion),
            (2, CellKind::DeleteCell),
        ]
    );
}

/// A merge needs all of them: where each is a request to a store, one after the other would take long.
#[tokio::test]
async fn inputs_begin_at_the_same_time() {
    use futures::{StreamExt, TryStreamExt, stream};

    let all = std::sync::Arc::new(tokio::sync::Barrier::new(3));
    let input = |row: &'static [u8]| -> CellStream {
        let all = all.clone();
        let batch = async move {
            all.wait().await;
            let mut builder = CellBatchBuilder::new();
            builder.push_insert(row, 1, b"", 5, b"value")?;
            Ok(builder.finish())
        };
        stream::once(batch).boxed()
    };
    let inputs = [b"c".as_slice(), b"a", b"b"].map(input).into();
    let reader = CellReader::new(&plain_schema(), &ScanSpec::default(), NOW, 3);
    let read: Vec<CellBatch> = read_stream(reader, inputs).try_collect().await.unwrap();
    let rows: Vec<&[u8]> = read.iter().flat_map(CellBatch::iter).map(|cell| cell.row).collect();
    assert_eq!(rows, [b"a", b"b", b"c"]);
}
