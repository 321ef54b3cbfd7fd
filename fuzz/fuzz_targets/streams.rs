//! Streams of every type, encoding and codec: what is read must not depend on the size of batches,
//! nor on whether rows are skipped.
#![no_main]

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{BooleanArray, RecordBatch};
use libfuzzer_sys::fuzz_target;
use stoa_error::ErrorKind;
use stoa_fuzz::input::Input;
use stoa_fuzz::{read, streams};
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate, ReadOptions, StringOutput};

fuzz_target!(init: stoa_fuzz::start(), |bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let built = streams::build(&mut input);
    let metadata = read::tail(&built.file).expect("the tail is not damaged");
    let strings =
        if built.batch_rows & 1 == 1 { StringOutput::Utf8 } else { StringOutput::Utf8View };
    let options = ReadOptions::default().with_limits(read::limits()).with_strings(strings);
    let whole = options.clone().with_batch_rows(built.rows);
    let (whole, result) = read::rows(&built.file, &metadata, whole, read::BATCHES_MAX);
    let few = options.clone().with_batch_rows(built.batch_rows);
    let is_short = built.rows.div_ceil(built.batch_rows) < read::BATCHES_MAX;
    let (parts, of_parts) = read::rows(&built.file, &metadata, few.clone(), read::BATCHES_MAX);
    match result {
        Ok(_) if is_short => {
            assert!(of_parts.is_ok_and(|done| done));
            assert_eq!(read::concat(&whole), read::concat(&parts));
        }
        // A damaged value is found, whatever the batch it is in.
        Err(error) if error.kind() == ErrorKind::Corrupt && is_short => {
            assert!(of_parts.is_err(), "{error:?}");
            return;
        }
        _ => return,
    }
    let Some(whole) = read::concat(&whole).filter(|_| built.has_b) else { return };
    // The least value: a filter that keeps few rows, and skips the others.
    let b = whole.column(whole.num_columns() - 1).as_primitive::<Int32Type>();
    let value = b.iter().flatten().min().unwrap_or(0);
    let column = ColumnRef::Id(metadata.types.len() as u32 - 1);
    let (op, value64) = (CompareOp::Eq, Literal::Int(i64::from(value)));
    let filtered = few.with_predicate(Predicate::Compare { column, op, value: value64 });
    let (parts, result) = read::rows(&built.file, &metadata, filtered, read::BATCHES_MAX);
    assert!(result.is_ok_and(|done| done));
    let kept = read::concat(&parts).map(|rows| matching(&rows, value));
    let expected = matching(&whole, value);
    assert_eq!(kept.as_ref().map_or(0, RecordBatch::num_rows), expected.num_rows());
    assert!(kept.is_none_or(|kept| kept.num_rows() == 0 || kept == expected));
});

/// Rows whose last column is `value`.
fn matching(batch: &RecordBatch, value: i32) -> RecordBatch {
    let b = batch.column(batch.num_columns() - 1).as_primitive::<Int32Type>();
    let mask: BooleanArray = b.iter().map(|b| Some(b == Some(value))).collect();
    arrow_select::filter::filter_record_batch(batch, &mask).expect("all types can be filtered")
}
