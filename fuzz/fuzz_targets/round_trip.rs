//! What is written is read back, whatever the types, values and options: validated, whole, by row
//! groups, and with a predicate.
#![no_main]

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::DataType;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use stoa_fuzz::input::Input;
use stoa_fuzz::{batch, read};
use stoa_orc::{
    ColumnRef, CompareOp, Compression, DictionaryChoice, FileMetadata, Literal, Predicate,
    Projection, ReadOptions, Validation, Validator, Writer, WriterOptions,
};

fuzz_target!(init: stoa_fuzz::start(), |bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let mut options = options(&mut input);
    let rows = usize::from(input.word() & 0x1ff);
    let cut = usize::from(input.byte()) + 1;
    let choice = input.word();
    let batch = batch::batch(&mut input, rows);
    let kinds: Vec<_> = batch.schema().fields().iter().map(|f| f.data_type().clone()).collect();
    // Bloom filters need a row index.
    if choice & 1 == 1 && options.row_index_stride > 0 {
        let can = |kind: &DataType| {
            !kind.is_nested()
                && !matches!(
                    kind,
                    DataType::Boolean | DataType::Binary | DataType::FixedSizeBinary(_)
                )
        };
        for (column, _) in kinds.iter().enumerate().filter(|(_, kind)| can(kind)) {
            options = options.with_bloom_column(column.to_string());
        }
    }
    let stride = options.row_index_stride as usize;
    let (file, validator) = write(&batch, options, cut);
    validate(&file, validator);
    let metadata = read::tail(&file).expect("the tail is ours");
    assert_eq!(metadata.rows, rows as u64);
    let read_options = ReadOptions::default()
        .with_projection(Projection::Fields(batch.schema()))
        .with_batch_rows(rows.div_ceil(8).max(1));
    let whole = rows_of(&file, &metadata, read_options.clone());
    assert_eq!(whole.as_ref().map_or(0, RecordBatch::num_rows), rows);
    assert!(whole.is_none_or(|whole| whole == batch));
    if rows == 0 {
        return;
    }
    if stride > 0 {
        by_groups(&file, &metadata, &batch, stride, usize::from(choice >> 1));
    }
    if let Some(column) = kinds.iter().position(|kind| *kind == DataType::Int64) {
        by_value(&file, &metadata, &batch, column, usize::from(choice >> 4) % rows);
    }
});

fn options(input: &mut Input) -> WriterOptions {
    let compression = match input.below(5) {
        0 => Compression::Zlib { level: 1 },
        1 => Compression::Snappy,
        2 => Compression::Lz4,
        3 => Compression::Zstd { level: 1 },
        _ => Compression::None,
    };
    let dictionary = match input.below(3) {
        0 => DictionaryChoice::Always,
        1 => DictionaryChoice::Never,
        _ => DictionaryChoice::Auto,
    };
    let stride = [0, 3, 8, 50, 64, 100, 256, 10_000][input.below(8)];
    let stripe_rows = [u64::MAX, 90, 200, 300][input.below(4)];
    WriterOptions::default()
        .with_compression(compression)
        .with_dictionary(dictionary)
        .with_compression_block_bytes([1024, 2000, 65_536, 256 << 10][input.below(4)])
        .with_row_index_stride(stride)
        .with_stripe_rows(stripe_rows)
        .with_compact_index(input.flag())
}

/// Writes the batch in pieces of `cut` rows.
fn write(batch: &RecordBatch, options: WriterOptions, cut: usize) -> (Bytes, Validator) {
    let options = options.with_validation(true);
    let mut writer = Writer::new(&batch.schema(), options).expect("types and options are allowed");
    let mut file = Vec::new();
    for from in (0..batch.num_rows()).step_by(cut) {
        let part = batch.slice(from, cut.min(batch.num_rows() - from));
        writer.write(&part).expect("all values can be written");
        file.extend_from_slice(&writer.take_output());
    }
    let summary = writer.finish().expect("the file can be finished");
    file.extend_from_slice(&writer.take_output());
    assert_eq!(summary.file_bytes, file.len() as u64);
    (Bytes::from(file), writer.validator().expect("it is finished"))
}

/// The file holds what was written, its statistics and filters are right.
fn validate(file: &Bytes, mut validator: Validator) {
    while let Validation::NeedsData(ranges) = validator.next().expect("the file is right") {
        for range in ranges {
            let bytes = file.slice(range.start as usize..range.end as usize);
            validator.push(range.start, bytes);
        }
    }
}

fn rows_of(
    file: &Bytes,
    metadata: &Arc<FileMetadata>,
    options: ReadOptions,
) -> Option<RecordBatch> {
    let (batches, done) = read::rows(file, metadata, options, usize::MAX);
    done.expect("what was written can be read");
    read::concat(&batches)
}

/// Some row groups of one stripe are a slice of all rows.
fn by_groups(
    file: &Bytes,
    metadata: &Arc<FileMetadata>,
    batch: &RecordBatch,
    stride: usize,
    choice: usize,
) {
    let stripe = choice % metadata.stripes.len();
    let info = metadata.stripes[stripe];
    let count = (info.rows as usize).div_ceil(stride);
    let (first, length) = (choice % count, 1 + choice % 3);
    let groups: BTreeSet<usize> = (first..(first + length).min(count)).collect();
    let from = first * stride;
    let to = ((first + groups.len()) * stride).min(info.rows as usize);
    let options = ReadOptions::default()
        .with_projection(Projection::Fields(batch.schema()))
        .with_batch_rows(to - from)
        .with_stripes(stripe..stripe + 1)
        .with_row_groups(stripe, groups);
    let expected = batch.slice(info.first_row as usize + from, to - from);
    assert_eq!(rows_of(file, metadata, options), Some(expected));
}

/// A predicate keeps every row with the value.
fn by_value(
    file: &Bytes,
    metadata: &Arc<FileMetadata>,
    batch: &RecordBatch,
    column: usize,
    row: usize,
) {
    let values = batch.column(column).as_primitive::<Int64Type>();
    if values.is_null(row) {
        return;
    }
    let value = values.value(row);
    let id = metadata.types.types()[0].children[column];
    let predicate = Predicate::Compare {
        column: ColumnRef::Id(id),
        op: CompareOp::Eq,
        value: Literal::Int(value),
    };
    let options = ReadOptions::default()
        .with_projection(Projection::Fields(batch.schema()))
        .with_batch_rows(batch.num_rows().div_ceil(8))
        .with_predicate(predicate);
    let matching = |batch: &RecordBatch| {
        let values = batch.column(column).as_primitive::<Int64Type>();
        let mask: BooleanArray = values.iter().map(|v| Some(v == Some(value))).collect();
        arrow_select::filter::filter_record_batch(batch, &mask).expect("all types can be filtered")
    };
    let kept = rows_of(file, metadata, options).expect("the row is there");
    assert_eq!(matching(&kept), matching(batch));
}
