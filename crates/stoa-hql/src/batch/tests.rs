use std::sync::Arc;

use arrow_array::RecordBatch;
use proptest::prelude::*;

use super::*;
use crate::cell::Cell;

fn build(cells: &[Cell]) -> CellBatch {
    let mut builder = CellBatchBuilder::new();
    for cell in cells {
        builder.push(cell.as_cell_ref()).unwrap();
    }
    builder.finish()
}

fn cells() -> impl Strategy<Value = Vec<Cell>> {
    let kind = prop_oneof![
        Just(CellKind::DeleteRow),
        Just(CellKind::DeleteFamily),
        Just(CellKind::DeleteCell),
        Just(CellKind::DeleteVersion),
        Just(CellKind::Insert)
    ];
    let cell = ("[a-c]{1,10}", 0_u8..3, "[xy]{0,2}", 0_i64..4, any::<Vec<u8>>(), kind);
    let cell = cell.prop_map(|(row, family, qualifier, timestamp, value, kind)| Cell {
        row: row.into_bytes(),
        family,
        qualifier: qualifier.into_bytes(),
        timestamp,
        value,
        kind,
    });
    prop::collection::vec(cell, 0..40)
}

proptest! {
    #[test]
    fn cells_come_out_as_they_went_in(cells in cells(), cut in 0_usize..40) {
        let batch = build(&cells);
        let out: Vec<Cell> = batch.iter().map(|c| c.to_cell()).collect();
        prop_assert_eq!(&out, &cells);

        let record = batch.to_record_batch().unwrap();
        let cut = cut.min(cells.len());
        let tail = CellBatch::try_new(&record.slice(cut, cells.len() - cut)).unwrap();
        let mut copied = CellBatchBuilder::new();
        copied.append(&tail, 0..tail.len(), false).unwrap();
        copied.append(&batch, 0..cut, false).unwrap();
        let copied: Vec<Cell> = copied.finish().iter().map(|c| c.to_cell()).collect();
        prop_assert_eq!(copied, [&cells[cut..], &cells[..cut]].concat());
    }

    #[test]
    fn sorting_orders_and_keeps_the_last_of_equals(cells in cells()) {
        let sorted = sort_cells(&build(&cells)).unwrap();
        prop_assert!(is_sorted(&sorted));
        for cell in sorted.iter() {
            let last = cells.iter().rev().find(|c| c.as_cell_ref().order(&cell).is_eq());
            prop_assert_eq!(last, Some(&cell.to_cell()));
        }
        for cell in &cells {
            prop_assert!(sorted.iter().any(|c| c.order(&cell.as_cell_ref()).is_eq()));
        }
    }
}

#[test]
fn keys_only_leaves_the_values_out() {
    let cell = CellRef::insert(b"r", 1, b"q", 5, b"value").to_cell();
    let batch = build(&[cell.clone(), cell]);
    let mut builder = CellBatchBuilder::new();
    builder.append(&batch, 0..2, true).unwrap();
    let keys = builder.finish();
    assert_eq!(keys.cell(1), CellRef::insert(b"r", 1, b"q", 5, b""));
    assert_eq!((keys.row_bytes(), keys.value_bytes(), keys.data_bytes()), (2, 0, 4));
}

#[test]
fn batches_that_are_not_cells_are_refused() {
    let batch = build(&[CellRef::insert(b"r", 1, b"", 5, b"").to_cell()]);
    let record = batch.to_record_batch().unwrap();

    let narrow = record.project(&[0, 1, 2]).unwrap();
    assert_eq!(
        CellBatch::try_new(&narrow).unwrap_err().message(),
        "cells have no column timestamp"
    );

    let mut columns = record.columns().to_vec();
    columns[5] = Arc::new(Int32Array::from(vec![77]));
    let strange = RecordBatch::try_new(cell_schema(), columns).unwrap();
    let error = CellBatch::try_new(&strange).unwrap_err();
    assert_eq!(error.message(), "cells hold the unknown kind 77");
}

#[test]
fn runs_are_sorted_across_batches() {
    let check = |batches: Vec<Vec<Cell>>| {
        let joined: Vec<Cell> = batches.iter().flatten().cloned().collect();
        let expected = sort_cells(&build(&joined)).unwrap();
        let batches = batches.iter().map(|cells| build(cells)).collect();
        let found: Vec<CellBatch> = SortedRun::new(batches).map(|batch| batch.unwrap()).collect();
        let found: Vec<Cell> = found.iter().flat_map(|b| b.iter().map(|c| c.to_cell())).collect();
        assert_eq!(found, expected.iter().map(|cell| cell.to_cell()).collect::<Vec<_>>());
    };
    let cell = |row: &str, family, qualifier: &str, timestamp, value: &str| {
        let (row, qualifier) = (row.as_bytes(), qualifier.as_bytes());
        CellRef::insert(row, family, qualifier, timestamp, value.as_bytes()).to_cell()
    };
    // Keys that say everything, and keys that do not.
    check(vec![
        vec![cell("b", 2, "", 5, "1"), cell("a", 1, "", 5, "2"), cell("b", 1, "", 7, "3")],
        vec![cell("b", 2, "", 5, "4"), cell("b", 1, "", 9, "5"), cell("ab", 1, "", 5, "6")],
    ]);
    check(vec![
        vec![cell("long row key b", 2, "x", 5, "1"), cell("long row key b", 2, "", 5, "2")],
        vec![cell("long row key a", 2, "x", i64::MIN, "3"), cell("long row", 1, "", 5, "4")],
        vec![cell("long row key b", 2, "x", 5, "5"), cell("a very long row key", 1, "", 1, "")],
    ]);
    check(vec![]);
}

#[test]
fn of_equal_cells_in_a_run_the_highest_revision_stays() {
    let batch = |revision, value: &str| {
        let cell = CellRef::insert(b"r", 1, b"", 5, value.as_bytes());
        build(&[cell.to_cell()]).with_revision(revision)
    };
    let mut run = SortedRun::new(vec![batch(9, "new"), batch(8, "old")]);
    let merged = run.next().unwrap().unwrap();
    assert_eq!((merged.len(), merged.cell(0).value, merged.revision(0)), (1, &b"new"[..], 9));
}
