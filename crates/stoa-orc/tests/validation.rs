//! A finished file, read again, is compared with what was written: nothing that is damaged passes.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use bytes::Bytes;
use stoa_error::{Error, ErrorKind, Result};
use stoa_orc::{
    Compression, DictionaryChoice, Validation, ValidationReport, Validator, Writer, WriterOptions,
};
use support::build;
use support::generate;

/// Writes a file to be validated.
fn write(batches: &[RecordBatch], options: WriterOptions) -> (Bytes, Writer) {
    let mut writer = Writer::new(&batches[0].schema(), options.with_validation(true)).unwrap();
    let mut file = Vec::new();
    for batch in batches {
        writer.write(batch).unwrap();
        file.extend_from_slice(&writer.take_output());
    }
    writer.finish().unwrap();
    file.extend_from_slice(&writer.take_output());
    (Bytes::from(file), writer)
}

fn run(file: &Bytes, mut validator: Validator) -> Result<ValidationReport> {
    loop {
        match validator.next()? {
            Validation::Finished(report) => return Ok(report),
            Validation::NeedsData(ranges) => {
                for range in ranges {
                    let end = (range.end as usize).min(file.len());
                    let bytes = file.slice((range.start as usize).min(end)..end);
                    if bytes.len() as u64 != range.end - range.start {
                        return Err(Error::corrupt("the file is shorter"));
                    }
                    validator.push(range.start, bytes);
                }
            }
        }
    }
}

fn error_of(file: &Bytes, writer: &Writer) -> Error {
    run(file, writer.validator().unwrap()).unwrap_err()
}

#[test]
fn what_was_written_is_there() {
    for (seed, compression) in [
        (1, Compression::None),
        (2, Compression::Zstd { level: 3 }),
        (3, Compression::Snappy),
        (4, Compression::Lz4),
        (5, Compression::Zlib { level: 1 }),
    ] {
        for (stride, dictionary) in [
            (100, DictionaryChoice::Auto),
            (333, DictionaryChoice::Always),
            (0, DictionaryChoice::Never),
        ] {
            let batches = [generate::batch(seed, 900), generate::batch(seed + 50, 450)];
            let mut options = WriterOptions::default()
                .with_compression(compression)
                .with_dictionary(dictionary)
                .with_row_index_stride(stride)
                .with_stripe_rows(600)
                .with_user_metadata("key", "value");
            if stride > 0 {
                for column in ["int", "double", "string", "date", "decimal", "timestamp"] {
                    options = options.with_bloom_column(column);
                }
            }
            let (file, writer) = write(&batches, options);
            let report = run(&file, writer.validator().unwrap()).unwrap();
            let groups = if stride == 0 {
                3
            } else {
                2 * 600u64.div_ceil(stride.into()) + 150u64.div_ceil(stride.into())
            };
            assert_eq!((report.stripes, report.row_groups), (3, groups));
            let columns = writer.types().len() as u64;
            // Children of lists have more or fewer values than there are rows.
            assert!(report.values > 1350 * 20, "{report:?}");
            let indexed = if stride == 0 { 0 } else { groups };
            assert_eq!(report.statistics, columns * (indexed + 3 + 1));
        }
    }
}

/// Arrays that hold the same values in other layouts give the same checksums as what is read.
#[test]
fn layouts_of_arrow_do_not_matter() {
    let texts = || (0..500).map(|row| (row % 7 != 0).then(|| format!("text {}", row % 40)));
    let text: StringArray = texts().collect();
    let dictionary: DictionaryArray<types::Int8Type> = text.iter().collect();
    let no_values: DictionaryArray<types::Int32Type> =
        std::iter::repeat_n(None::<&str>, 500).collect();
    let cast = |array: &dyn Array, to: &DataType| arrow_cast::cast(array, to).unwrap();
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let ints: Int32Array = (0..500).map(|row| (row % 5 != 0).then_some(row)).collect();
    let lists = ListArray::from_iter_primitive::<types::Int32Type, _, _>(
        (0..500).map(|row| (row % 11 != 0).then(|| (0..row % 4).map(Some).collect::<Vec<_>>())),
    );
    let seconds: Int64Array = (0..500).map(|row| Some(row * 86_400 + 1)).collect();
    let stamps = |unit| DataType::Timestamp(unit, None);
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(dictionary),
        Arc::new(no_values),
        Arc::new(Decimal32Array::from_iter(ints.iter()).with_precision_and_scale(9, 3).unwrap()),
        Arc::new(FixedSizeBinaryArray::try_from_iter((0..500u16).map(u16::to_be_bytes)).unwrap()),
        cast(&ints, &DataType::FixedSizeList(item(DataType::Int32), 1)),
        Arc::new(Time64MicrosecondArray::from_iter(seconds.iter())),
    ];
    for to in [DataType::LargeUtf8, DataType::Utf8View, DataType::LargeBinary, DataType::BinaryView]
    {
        columns.push(cast(&text, &to));
    }
    for to in [
        DataType::LargeList(item(DataType::Int64)),
        DataType::ListView(item(DataType::Int32)),
        DataType::LargeListView(item(DataType::Int32)),
    ] {
        columns.push(cast(&lists, &to));
    }
    for unit in
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
    {
        columns.push(cast(&cast(&seconds, &stamps(TimeUnit::Second)), &stamps(unit)));
    }
    let fields = columns.iter().enumerate();
    let fields = fields.map(|(at, c)| Field::new(at.to_string(), c.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let (file, writer) = write(&[batch], WriterOptions::default().with_row_index_stride(99));
    run(&file, writer.validator().unwrap()).unwrap();
}

/// Years that nanoseconds do not reach, and nanoseconds, each in its own column.
#[test]
fn timestamps_are_compared_in_their_unit() {
    let micros =
        TimestampMicrosecondArray::from(vec![-62_135_596_800_000_000, 253_402_300_799_999_999]);
    let nanos = TimestampNanosecondArray::from(vec![1, i64::MAX]);
    let batch = RecordBatch::try_from_iter([
        ("micros", Arc::new(micros) as ArrayRef),
        ("nanos", Arc::new(nanos) as ArrayRef),
    ]);
    let (file, writer) = write(&[batch.unwrap()], WriterOptions::default());
    run(&file, writer.validator().unwrap()).unwrap();
}

/// One bit of every byte of a small file, and of some bytes of a file of all types.
#[test]
fn a_damaged_byte_is_found_wherever_it_is() {
    let all = generate::batch(9, 60);
    let few = all.project(&[0, 3, 7, 14]).unwrap();
    for compression in [Compression::None, Compression::Zstd { level: 1 }] {
        for (batch, positions) in [(&few, usize::MAX), (&all, 150)] {
            let options = WriterOptions::default()
                .with_compression(compression)
                .with_row_index_stride(25)
                .with_stripe_rows(40)
                .with_bloom_column("int");
            let (file, writer) = write(std::slice::from_ref(batch), options);
            run(&file, writer.validator().unwrap()).unwrap();
            for at in (0..file.len()).step_by(file.len() / positions + 1) {
                let mut damaged = file.to_vec();
                damaged[at] ^= 1 << (at % 8);
                error_of(&Bytes::from(damaged), &writer);
            }
            for length in [0, 1, file.len() / 2, file.len() - 1] {
                error_of(&file.slice(..length), &writer);
            }
        }
    }
}

/// Two files of the same layout and length, but for one value.
fn two(change: i64) -> (Bytes, Bytes, Writer) {
    let file = |value: i64| {
        let a: Int64Array = (0..100).map(|row| row * 7919 % 1000).collect();
        let b: Int64Array = (0..100).map(|row| if row == 57 { value } else { row * 31 }).collect();
        let batch = RecordBatch::try_from_iter([
            ("a", Arc::new(a) as ArrayRef),
            ("b", Arc::new(b) as ArrayRef),
        ]);
        let options = WriterOptions::default()
            .with_compression(Compression::None)
            .with_row_index_stride(25)
            .with_stripe_rows(50)
            .with_checksums(false)
            .with_compact_index(false);
        write(&[batch.unwrap()], options)
    };
    let ((written, writer), (other, _)) = (file(1000), file(1000 + change));
    assert_eq!(written.len(), other.len());
    (written, other, writer)
}

#[test]
fn an_error_names_stripe_column_and_row_group() {
    let (written, other, writer) = two(1);
    run(&written, writer.validator().unwrap()).unwrap();
    // The tail of the right file behind the stripes of the wrong one: values and statistics differ.
    let tail = support::metadata(&written).unwrap().stripes[1].range().end as usize;
    let mixed = Bytes::from([&other[..tail], &written[tail..]].concat());
    let error = error_of(&mixed, &writer);
    let message = error.message();
    assert!(
        message.starts_with("validation: stripe 1: column 2 (b): row group 0: 25 values are not"),
        "{message}"
    );
}

#[test]
fn statistics_are_compared() {
    let (written, _, writer) = two(1);
    let change =
        |change: fn(&mut build::Tail)| error_of(&build::edit_tail(&written, change), &writer);
    for (error, place) in [
        (
            // As long as the right one: 3,069.
            change(|tail| {
                tail.footer.statistics[2].int_statistics.as_mut().unwrap().maximum = Some(3068)
            }),
            "file: column 2 (b): statistics",
        ),
        (
            change(|tail| tail.footer.statistics[1].has_null = Some(true)),
            "file: column 1 (a): statistics",
        ),
        (
            change(|tail| tail.metadata.stripe_stats[1].col_stats[2].number_of_values = Some(49)),
            "stripe 1: column 2 (b): statistics",
        ),
        (
            // Nobody's business, but not what was written.
            change(|tail| tail.footer.software_version = Some("stoa-9.9.9".to_owned())),
            "file tail: its bytes",
        ),
    ] {
        let message = error.message();
        assert!(message.starts_with(&format!("validation: {place}")), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn a_file_without_rows_is_validated() {
    let batch = generate::batch(1, 0);
    let (file, writer) = write(&[batch], WriterOptions::default());
    let report = run(&file, writer.validator().unwrap()).unwrap();
    assert_eq!((report.stripes, report.values), (0, 0));
}

#[test]
fn only_a_finished_file_that_was_to_be_validated_has_a_validator() {
    let batch = generate::batch(1, 10);
    let mut writer = Writer::new(&batch.schema(), WriterOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    assert_eq!(writer.validator().unwrap_err().kind(), ErrorKind::Invalid);
    let options = WriterOptions::default().with_validation(true);
    let mut writer = Writer::new(&batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    assert_eq!(writer.validator().unwrap_err().kind(), ErrorKind::Invalid);
    writer.finish().unwrap();
    assert!(writer.validator().is_ok());
}
