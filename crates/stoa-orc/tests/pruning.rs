//! Reading with a predicate never loses a row that a full read and a filter keep.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod support;

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use stoa_orc::{
    ColumnRef, CompareOp, Compression, DictionaryChoice, Literal, Predicate, Projection,
    ReadOptions, StringOutput, WriterOptions,
};
use support::generate::{self, Random};

const OPS: [CompareOp; 6] = [
    CompareOp::Eq,
    CompareOp::NotEq,
    CompareOp::Lt,
    CompareOp::LtEq,
    CompareOp::Gt,
    CompareOp::GtEq,
];

/// The value of a row as a literal.
fn literal(array: &dyn Array, row: usize) -> Option<Literal> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Boolean => Literal::Boolean(array.as_boolean().value(row)),
        DataType::Int8 => Literal::Int(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Literal::Int(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Literal::Int(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Literal::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => Literal::Float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Literal::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Date32 => Literal::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Decimal128(_, scale) => {
            Literal::Decimal(array.as_primitive::<Decimal128Type>().value(row), *scale)
        }
        DataType::Timestamp(..) => {
            let nanos = array.as_primitive::<TimestampNanosecondType>().value(row);
            Literal::TimestampMicros(nanos.div_euclid(1000))
        }
        DataType::Utf8 => Literal::String(array.as_string::<i32>().value(row).to_owned()),
        DataType::Binary => Literal::Binary(array.as_binary::<i32>().value(row).to_vec()),
        _ => return None,
    })
}

/// How the value of a row compares with a literal; nanoseconds compare exactly.
fn order_of(array: &dyn Array, row: usize, wanted: &Literal) -> Option<Ordering> {
    match (array.data_type(), wanted) {
        (DataType::Timestamp(..), Literal::TimestampMicros(micros)) if array.is_valid(row) => {
            let nanos = array.as_primitive::<TimestampNanosecondType>().value(row);
            Some(i128::from(nanos).cmp(&(i128::from(*micros) * 1000)))
        }
        _ => order(&literal(array, row)?, wanted),
    }
}

fn order(a: &Literal, b: &Literal) -> Option<Ordering> {
    match (a, b) {
        (Literal::Boolean(a), Literal::Boolean(b)) => Some(a.cmp(b)),
        (Literal::Int(a), Literal::Int(b)) => Some(a.cmp(b)),
        (Literal::Float(a), Literal::Float(b)) => a.partial_cmp(b),
        (Literal::Decimal(a, _), Literal::Decimal(b, _)) => Some(a.cmp(b)),
        (Literal::String(a), Literal::String(b)) => Some(a.cmp(b)),
        (Literal::Binary(a), Literal::Binary(b)) => Some(a.cmp(b)),
        (Literal::Date(a), Literal::Date(b)) => Some(a.cmp(b)),
        (Literal::TimestampMicros(a), Literal::TimestampMicros(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn holds(op: CompareOp, ordering: Option<Ordering>) -> bool {
    ordering.is_some_and(|o| match op {
        CompareOp::Eq => o.is_eq(),
        CompareOp::NotEq => o.is_ne(),
        CompareOp::Lt => o.is_lt(),
        CompareOp::LtEq => o.is_le(),
        CompareOp::Gt => o.is_gt(),
        CompareOp::GtEq => o.is_ge(),
    })
}

/// Whether a row meets the predicate; columns are found by their position, ids of leaves.
fn keeps(predicate: &Predicate, batch: &RecordBatch, ids: &[u32], row: usize) -> bool {
    let array = |column: &ColumnRef| {
        let ColumnRef::Id(id) = column else { panic!("by id") };
        batch.column(ids.iter().position(|i| i == id).unwrap())
    };
    match predicate {
        Predicate::And(parts) => parts.iter().all(|part| keeps(part, batch, ids, row)),
        Predicate::Or(parts) => parts.iter().any(|part| keeps(part, batch, ids, row)),
        Predicate::Compare { column, op, value } => holds(*op, order_of(array(column), row, value)),
        Predicate::In { column, values } => {
            values.iter().any(|v| order_of(array(column), row, v) == Some(Ordering::Equal))
        }
        Predicate::IsNull(column) => array(column).is_null(row),
        Predicate::IsNotNull(column) => array(column).is_valid(row),
    }
}

fn filter(batch: &RecordBatch, predicate: &Predicate, ids: &[u32]) -> RecordBatch {
    let mask: BooleanArray =
        (0..batch.num_rows()).map(|row| Some(keeps(predicate, batch, ids, row))).collect();
    arrow_select::filter::filter_record_batch(batch, &mask).unwrap()
}

/// A predicate over flat columns whose literals are values of the batch, or near them.
fn predicate(random: &mut Random, batch: &RecordBatch, ids: &[u32], depth: usize) -> Predicate {
    if depth > 0 && random.below(3) > 0 {
        let parts = (0..1 + random.below(3)).map(|_| predicate(random, batch, ids, depth - 1));
        let parts = parts.collect();
        return if random.below(3) == 0 { Predicate::Or(parts) } else { Predicate::And(parts) };
    }
    let index = random.below(ids.len() as u64) as usize;
    let column = ColumnRef::Id(ids[index]);
    let mut value = || {
        let row = random.below(batch.num_rows() as u64) as usize;
        let value = literal(batch.column(index), row)?;
        Some(match value {
            Literal::Int(v) if random.below(3) == 0 => Literal::Int(v.wrapping_add(1)),
            Literal::String(text) if random.below(3) == 0 => Literal::String(format!("{text}!")),
            other => other,
        })
    };
    let (first, second) = (value(), value());
    match (random.below(10), first, second) {
        (0, ..) => Predicate::IsNull(column),
        (1, ..) => Predicate::IsNotNull(column),
        (2, Some(a), Some(b)) => Predicate::In { column, values: vec![a, b] },
        (_, Some(value), _) => {
            Predicate::Compare { column, op: OPS[random.below(6) as usize], value }
        }
        _ => Predicate::IsNull(column),
    }
}

fn check(name: &str, file: &Bytes, random: &mut Random, tries: usize) -> u64 {
    let metadata = support::metadata(file).unwrap();
    let whole = support::read(file, ReadOptions::default()).unwrap();
    let Some(whole) = whole.concat().filter(|whole| whole.num_rows() > 0) else { return 0 };
    let ids = metadata.types.types()[0].children.clone();
    let flat: Vec<usize> = (0..ids.len())
        .filter(|i| {
            (0..whole.num_rows().min(3000)).any(|row| literal(whole.column(*i), row).is_some())
        })
        .collect();
    if flat.is_empty() {
        return 0;
    }
    let flat_ids: Vec<u32> = flat.iter().map(|i| ids[*i]).collect();
    let flat_batch = whole.project(&flat).unwrap();
    let mut pruned = 0;
    for _ in 0..tries {
        let predicate = predicate(random, &flat_batch, &flat_ids, 2);
        let expected = filter(&flat_batch, &predicate, &flat_ids);
        let options = ReadOptions::default()
            .with_predicate(predicate.clone())
            .with_projection(Projection::Columns(flat_ids.clone()))
            .with_align_to_row_groups(random.below(4) == 0)
            .with_batch_rows(1 + random.below(2000) as usize);
        let read = support::read(file, options).unwrap();
        pruned += read.metrics.row_groups_pruned + read.metrics.stripes_pruned;
        let rows: usize = match read.concat() {
            Some(found) => {
                let found = filter(&found, &predicate, &flat_ids);
                assert!(found == expected, "{name}: {predicate:?}");
                found.num_rows()
            }
            None => 0,
        };
        assert_eq!(rows, expected.num_rows(), "{name}: {predicate:?}");
    }
    pruned
}

#[test]
fn pruning_of_the_corpus_loses_no_row() {
    let mut random = Random(3);
    let mut pruned = 0;
    for (name, file, _) in support::corpus() {
        let is_large = name.starts_with("demo") || file.len() > 300_000;
        pruned += check(&name, &file, &mut random, if is_large { 1 } else { 15 });
    }
    assert!(pruned > 0 || support::corpus().is_empty());
}

#[test]
fn pruning_of_our_files_loses_no_row() {
    let mut random = Random(4);
    let mut pruned = 0;
    for seed in 200..206 {
        let batch = generate::batch(seed, 4000);
        let mut options = WriterOptions::default()
            .with_row_index_stride(200)
            .with_stripe_rows(1500)
            .with_compact_index(seed % 2 == 0);
        for column in ["byte", "short", "int", "long", "double", "string", "date", "timestamp"] {
            options = options.with_bloom_column(column);
        }
        if seed % 3 == 0 {
            options = options.with_compression(Compression::None);
        }
        let file = support::write(&[batch], options);
        pruned += check(&format!("seed {seed}"), &file, &mut random, 60);
    }
    assert!(pruned > 1000, "{pruned} row groups pruned");
}

/// Rows sorted by account, as reports are.
fn report() -> RecordBatch {
    let rows = 100_000i64;
    let schema = Schema::new(vec![
        Field::new("account", DataType::Int64, true),
        Field::new("device", DataType::Utf8, true),
        Field::new("cost", DataType::Int64, true),
    ]);
    let account = Int64Array::from_iter_values((0..rows).map(|i| i / 700));
    let device: StringArray = (0..rows).map(|i| Some(["PC", "TABLET"][i as usize % 2])).collect();
    let cost = Int64Array::from_iter_values((0..rows).map(noise));
    RecordBatch::try_new(
        Arc::new(schema),
        vec![Arc::new(account), Arc::new(device), Arc::new(cost)],
    )
    .unwrap()
}

/// Twenty bits that do not compress.
fn noise(row: i64) -> i64 {
    ((row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as i64
}

fn one_account() -> ReadOptions {
    ReadOptions::default().with_predicate(Predicate::Compare {
        column: ColumnRef::Id(1),
        op: CompareOp::Eq,
        value: Literal::Int(70),
    })
}

#[test]
fn one_account_reads_one_row_group_and_decodes_its_rows() {
    let options = WriterOptions::default().with_stripe_rows(50_000).with_row_index_stride(5000);
    let file = support::write(&[report()], options.clone().with_compact_index(false));
    let read = support::read(&file, one_account()).unwrap();
    let metrics = &read.metrics;
    assert_eq!(read.rows(), 700);
    assert_eq!((metrics.stripes_total, metrics.stripes_pruned), (2, 1));
    assert_eq!((metrics.row_groups_total, metrics.row_groups_pruned), (10, 9));
    assert_eq!(metrics.rows_skipped, 4300);
    assert_eq!(metrics.rounds, 2, "footers and indexes, then data");
    assert!(metrics.bytes_needed < file.len() as u64 / 4, "{metrics:?}");

    let file = support::write(&[report()], options);
    let read = support::read(&file, one_account()).unwrap();
    assert_eq!(read.rows(), 700);
    assert_eq!(read.metrics.rounds, 1, "the tail has the indexes");
}

/// Whoever filters again has less to do: rows come one by one where few are kept, in spans where many are.
#[test]
fn rows_that_do_not_match_are_left_out_in_between() {
    let whole = report();
    let column = |id: u32| ColumnRef::Id(id);
    let is = |id, op, value| Predicate::Compare { column: column(id), op, value };
    let text = |text: &str| Literal::String(text.into());
    let few = is(3, CompareOp::Lt, Literal::Int(10_000));
    let half = is(2, CompareOp::Eq, text("PC"));
    let most = is(3, CompareOp::GtEq, Literal::Int(10_000));
    let listed = Predicate::In { column: column(2), values: vec![text("TABLET"), text("TV")] };
    let both = Predicate::And(vec![half.clone(), few.clone()]);
    let either = Predicate::Or(vec![both.clone(), is(1, CompareOp::Eq, Literal::Int(7))]);
    let none = Predicate::And(vec![is(2, CompareOp::Gt, text("TV")), few.clone()]);
    for compact in [false, true] {
        // Texts by a dictionary, then one after the other.
        for dictionary in [DictionaryChoice::Always, DictionaryChoice::Never] {
            let options = WriterOptions::default()
                .with_row_index_stride(5000)
                .with_dictionary(dictionary)
                .with_compact_index(compact);
            let file = support::write(std::slice::from_ref(&whole), options);
            for (predicate, exact) in [
                (&few, true),
                (&half, true),
                (&most, false),
                (&listed, true),
                (&both, true),
                (&either, true),
                (&none, true),
            ] {
                let options = ReadOptions::default().with_predicate(predicate.clone());
                let read = support::read(&file, options).unwrap();
                let found = read.concat().unwrap_or_else(|| whole.slice(0, 0));
                let expected = filter(&whole, predicate, &[1, 2, 3]);
                match exact {
                    true => assert_eq!(found.num_rows(), expected.num_rows(), "{predicate:?}"),
                    false => assert!(found.num_rows() >= expected.num_rows(), "{predicate:?}"),
                }
                assert_eq!(filter(&found, predicate, &[1, 2, 3]), expected, "{predicate:?}");
            }
        }
    }
}

#[test]
fn known_stripe_metadata_saves_a_round() {
    let file = support::write(&[report()], WriterOptions::default().with_compact_index(false));
    let metadata = Arc::new(support::metadata(&file).unwrap());
    let mut first = stoa_orc::Decoder::new(metadata.clone(), one_account()).unwrap();
    let expected = support::drain(&file, &mut first).unwrap();
    let known = first.stripe_metadata(0).unwrap();
    let options = one_account().with_stripe_metadata(0, known);
    let mut second = stoa_orc::Decoder::new(metadata, options).unwrap();
    let read = support::drain(&file, &mut second).unwrap();
    assert_eq!(read.concat(), expected.concat());
    assert_eq!((expected.metrics.rounds, read.metrics.rounds), (2, 1));
}

#[test]
fn wrong_bloom_filters_of_old_writers_are_not_asked() {
    // ORC C++ 1.6.11 hashed numbers wrongly: values that are there must be found.
    let files = support::corpus();
    let Some((_, file, _)) = files.iter().find(|(name, ..)| name == "bad_bloom_filter_1.6.11")
    else {
        return;
    };
    let whole = support::read(file, ReadOptions::default()).unwrap().concat().unwrap();
    for column in 0..whole.num_columns() {
        for row in 0..whole.num_rows() {
            let Some(value) = literal(whole.column(column), row) else { continue };
            let predicate = Predicate::Compare {
                column: ColumnRef::Id(column as u32 + 1),
                op: CompareOp::Eq,
                value,
            };
            let options = ReadOptions::default().with_predicate(predicate.clone());
            assert!(support::read(file, options).unwrap().rows() > 0, "{predicate:?}");
        }
    }
}

#[test]
fn strings_of_all_output_types_are_filtered_alike() {
    let file = support::write(&[report()], WriterOptions::default());
    for strings in [StringOutput::Utf8, StringOutput::Utf8View, StringOutput::Dictionary] {
        for (device, rows) in [("TABLET", true), ("PHONE", false)] {
            let predicate = Predicate::Compare {
                column: ColumnRef::Id(2),
                op: CompareOp::Eq,
                value: Literal::String(device.to_owned()),
            };
            let options = ReadOptions::default().with_strings(strings).with_predicate(predicate);
            assert_eq!(support::read(&file, options).unwrap().rows() > 0, rows);
        }
    }
}
