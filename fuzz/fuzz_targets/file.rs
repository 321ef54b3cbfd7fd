//! A whole file: tail, stripes, indexes, rows. What is read must not depend on how.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use stoa_fuzz::input::Input;
use stoa_fuzz::read;
use stoa_orc::{
    ColumnRef, CompareOp, Literal, Predicate, ReadOptions, StringOutput, TimestampOutput,
};

fuzz_target!(init: stoa_fuzz::start(), |bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let (choice, column, batch_rows) = (input.byte(), input.byte(), input.word());
    let file = Bytes::copy_from_slice(input.rest());
    let Ok(metadata) = read::tail(&file) else { return };
    let mut options = ReadOptions::default()
        .with_limits(read::limits())
        .with_batch_rows(usize::from(batch_rows))
        .with_align_to_row_groups(choice & 1 == 1)
        .with_timestamps(
            [TimestampOutput::Micros, TimestampOutput::Nanos][usize::from(choice >> 1 & 1)],
        )
        .with_strings(match choice >> 2 & 3 {
            0 => StringOutput::Utf8View,
            1 => StringOutput::Dictionary,
            _ => StringOutput::Utf8,
        });
    if choice >> 4 & 3 == 0 {
        let column = ColumnRef::Id(u32::from(column));
        let value = match choice >> 6 {
            0 => Literal::Int(100),
            1 => Literal::String("5".to_owned()),
            2 => Literal::TimestampMicros(0),
            _ => Literal::Float(0.5),
        };
        options = options.with_predicate(Predicate::Compare { column, op: CompareOp::Eq, value });
    }
    let _ = read::rows(&file, &metadata, options, read::BATCHES_MAX);
});
