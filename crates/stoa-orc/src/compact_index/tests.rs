//! Copies of stripes as the writer makes them, and damaged ones.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use prost::Message;

use super::*;
use crate::compression::{CompressionKind, Decompressor, decompress_section};
use crate::metadata::FileMetadata;
use crate::tail::{TailDecoder, TailStep};
use crate::writer::{Writer, WriterOptions};

/// A file of three stripes, and the value of its key.
fn file(stride: u32) -> (FileMetadata, Vec<u8>) {
    let numbers = Int64Array::from_iter((0..5000).map(|n| (n % 7 != 0).then_some(n)));
    let texts = StringArray::from_iter_values((0..5000).map(|n| format!("text {}", n % 50)));
    let columns =
        [("number", Arc::new(numbers) as arrow_array::ArrayRef), ("text", Arc::new(texts))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let options = WriterOptions::default().with_row_index_stride(stride).with_stripe_rows(2000);
    let mut writer = Writer::new(&batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let bytes = writer.take_output();
    let value = value(&bytes);
    match TailDecoder::new(bytes.len() as u64).decode(bytes).unwrap() {
        TailStep::Done(metadata) => (metadata, value),
        TailStep::NeedsTail(more) => panic!("{more} bytes of a whole file are missing"),
    }
}

fn value(file: &[u8]) -> Vec<u8> {
    let (length, rest) = file.split_last().unwrap();
    let (rest, postscript) = rest.split_at(rest.len() - usize::from(*length));
    let postscript = proto::PostScript::decode(postscript).unwrap();
    let footer = &rest[rest.len() - postscript.footer_length() as usize..];
    let mut decompressor = Decompressor::new(CompressionKind::Zstd);
    let footer = decompress_section(&mut decompressor, 256 << 10, footer, 1 << 20).unwrap();
    let footer = proto::Footer::decode(footer.as_slice()).unwrap();
    footer
        .metadata
        .into_iter()
        .find(|item| item.name() == COMPACT_INDEX_KEY)
        .unwrap()
        .value()
        .into()
}

#[test]
fn copies_describe_the_stripes() {
    let (file, _) = file(500);
    let stripes = &file.copied_stripes;
    assert_eq!(stripes.len(), 3);
    let groups: Vec<usize> = stripes.iter().map(|s| s.row_index(1).unwrap().len()).collect();
    assert_eq!(groups, [4, 4, 2]);
    assert_eq!(stripes[0].timezone(), Some("UTC"));
    assert!(stripes[1].row_index(2).unwrap().statistics(3).is_some());
    assert!(file.user_metadata.is_empty());
}

#[test]
fn without_row_indexes_footers_are_copied() {
    let (file, _) = file(0);
    assert_eq!(file.copied_stripes.len(), 3);
    assert!(file.copied_stripes[0].row_index(1).is_none());
}

#[test]
fn what_does_not_fit_is_passed_over() {
    let (file, value) = file(500);
    assert!(stripe_metadata(&value, &file.stripes, 3).is_some());
    let mut merged = file.stripes.clone();
    merged.extend_from_within(0..1);
    assert!(stripe_metadata(&value, &merged, 3).is_none());
    let mut moved = file.stripes.clone();
    moved[1].offset += 1;
    assert!(stripe_metadata(&value, &moved, 3).is_none());
    for at in 0..value.len() {
        assert!(stripe_metadata(&value[..at], &file.stripes, 3).is_none());
        let mut damaged = value.clone();
        damaged[at] ^= 0x55;
        // Other bits of a frame's header may be of no meaning; what comes out is then the same.
        let _ = stripe_metadata(&damaged, &file.stripes, 3);
    }
}
