//! The tail of a file of any length: postscript, footer, statistics, the copy of the indexes.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use stoa_fuzz::input::Input;
use stoa_fuzz::read::limits;
use stoa_orc::{ArrowOptions, StringOutput, TailDecoder, TailStep};

fuzz_target!(init: stoa_fuzz::start(), |bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let before = input.number();
    let tail = Bytes::copy_from_slice(input.rest());
    let length = (tail.len() as u64).saturating_add(before);
    let mut decoder = TailDecoder::new(length).with_limits(limits());
    let Ok(TailStep::Done(metadata)) = decoder.decode(tail) else { return };
    for column in 0..metadata.types.len() as u32 + 1 {
        metadata.file_statistics(column);
        metadata.is_encrypted(column);
        metadata.types.path(column);
    }
    for stripe in 0..metadata.stripes.len() + 1 {
        metadata.stripe_statistics(stripe);
    }
    for stripe in &metadata.stripes {
        assert!(stripe.range().end <= length && stripe.footer_range().end <= length);
    }
    let options = ArrowOptions { strings: StringOutput::Dictionary, ..ArrowOptions::default() };
    let _ = metadata.types.to_arrow(&options);
    assert!(metadata.memory_bytes() > 0);
});
