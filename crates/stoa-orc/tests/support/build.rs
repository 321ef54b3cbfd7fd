//! Files put together by hand from streams and messages, as other writers (or an attacker) would,
//! and the tail of a file taken apart and put together again. Also used by the fuzz targets.
#![allow(dead_code)]

use bytes::Bytes;
use prost::Message;
use stoa_orc::proto::{
    ColumnEncoding, EncodingKind, Footer, Metadata, PostScript, Stream, StreamKind, StripeFooter,
    StripeInformation, Type, TypeKind,
};
use stoa_orc::{CompressionKind, TypeTree};

/// A type without children.
pub fn leaf(kind: TypeKind) -> Type {
    Type { kind: Some(kind as i32), ..Type::default() }
}

/// A DECIMAL.
pub fn decimal(precision: u32, scale: u32) -> Type {
    Type { precision: Some(precision), scale: Some(scale), ..leaf(TypeKind::Decimal) }
}

/// A type with children; a STRUCT's are named `a`, `b`, ….
pub fn parent(kind: TypeKind, children: &[u32]) -> Type {
    let named = if kind == TypeKind::Struct { children.len() } else { 0 };
    let field_names = (0..named).map(|at| ((b'a' + (at % 26) as u8) as char).to_string());
    let subtypes = children.to_vec();
    Type { subtypes, field_names: field_names.collect(), ..leaf(kind) }
}

/// How a column is encoded.
pub fn encoding(kind: EncodingKind, dictionary_size: u32) -> ColumnEncoding {
    let dictionary_size = Some(dictionary_size).filter(|size| *size > 0);
    ColumnEncoding { kind: Some(kind as i32), dictionary_size, bloom_encoding: None }
}

/// A chunk that is stored as it is.
pub fn original_chunk(content: &[u8]) -> Vec<u8> {
    let header = (content.len() << 1 | 1) as u32;
    let mut chunk = header.to_le_bytes()[..3].to_vec();
    chunk.extend_from_slice(content);
    chunk
}

/// A chunk whose bytes are compressed.
pub fn compressed_chunk(compressed: &[u8]) -> Vec<u8> {
    let mut chunk = ((compressed.len() << 1) as u32).to_le_bytes()[..3].to_vec();
    chunk.extend_from_slice(compressed);
    chunk
}

/// A file being put together.
pub struct FileBuilder {
    pub footer: Footer,
    pub metadata: Metadata,
    pub postscript: PostScript,
    /// What stripe footers have besides streams and encodings.
    pub stripe_footer: StripeFooter,
    body: Vec<u8>,
}

impl FileBuilder {
    /// A file of these types, in pre-order, without stripes, of ORC Java's latest version.
    pub fn new(types: Vec<Type>, compression: CompressionKind) -> Self {
        Self {
            footer: Footer { types, number_of_rows: Some(0), ..Footer::default() },
            metadata: Metadata::default(),
            postscript: PostScript {
                compression: Some(compression.number()),
                compression_block_size: Some(256 << 10),
                version: vec![0, 12],
                writer_version: Some(9),
                magic: Some("ORC".to_owned()),
                ..PostScript::default()
            },
            stripe_footer: StripeFooter {
                writer_timezone: Some("UTC".to_owned()),
                ..StripeFooter::default()
            },
            body: b"ORC".to_vec(),
        }
    }

    /// Adds a stripe of these streams, indexes first, as they are in the file (framed, if the
    /// file is compressed).
    pub fn stripe(
        &mut self,
        rows: u64,
        encodings: Vec<ColumnEncoding>,
        streams: &[(u32, StreamKind, &[u8])],
    ) {
        let offset = self.body.len() as u64;
        let is_index = |kind| {
            use StreamKind::{BloomFilter, BloomFilterUtf8, RowIndex};
            matches!(kind, RowIndex | BloomFilter | BloomFilterUtf8)
        };
        let (mut index_bytes, mut data_bytes) = (0, 0);
        let mut footer = StripeFooter { columns: encodings, ..self.stripe_footer.clone() };
        for (column, kind, bytes) in streams {
            self.body.extend_from_slice(bytes);
            let length = bytes.len() as u64;
            *if is_index(*kind) { &mut index_bytes } else { &mut data_bytes } += length;
            footer.streams.push(Stream {
                kind: Some(*kind as i32),
                column: Some(*column),
                length: Some(length),
            });
        }
        let footer = self.section(&footer);
        self.body.extend_from_slice(&footer);
        self.footer.stripes.push(StripeInformation {
            offset: Some(offset),
            index_length: Some(index_bytes),
            data_length: Some(data_bytes),
            footer_length: Some(footer.len() as u64),
            number_of_rows: Some(rows),
        });
        let before = self.footer.number_of_rows();
        self.footer.number_of_rows = Some(before.saturating_add(rows));
    }

    /// The file. Lengths in the postscript that are set stay as they are.
    pub fn finish(mut self) -> Bytes {
        let metadata = if self.metadata.stripe_stats.is_empty() {
            Vec::new()
        } else {
            self.section(&self.metadata)
        };
        let footer = self.section(&self.footer);
        self.postscript.footer_length.get_or_insert(footer.len() as u64);
        self.postscript.metadata_length.get_or_insert(metadata.len() as u64);
        let postscript = self.postscript.encode_to_vec();
        for section in [&metadata, &footer, &postscript] {
            self.body.extend_from_slice(section);
        }
        self.body.push(postscript.len() as u8);
        Bytes::from(self.body)
    }

    fn section(&self, message: &impl Message) -> Vec<u8> {
        let content = message.encode_to_vec();
        match self.postscript.compression() {
            0 => content,
            _ => {
                let block = self.postscript.compression_block_size() as usize;
                content.chunks(block).flat_map(original_chunk).collect()
            }
        }
    }
}

/// The tail of a file that is not compressed, taken apart.
pub struct Tail {
    pub footer: Footer,
    pub metadata: Metadata,
    pub postscript: PostScript,
}

/// Changes the tail of a file that is not compressed.
pub fn edit_tail(file: &[u8], change: impl FnOnce(&mut Tail)) -> Bytes {
    let (length, rest) = file.split_last().unwrap();
    let (rest, postscript) = rest.split_at(rest.len() - usize::from(*length));
    let postscript = PostScript::decode(postscript).unwrap();
    assert_eq!(postscript.compression(), 0);
    let (rest, footer) = rest.split_at(rest.len() - postscript.footer_length() as usize);
    let (body, metadata) = rest.split_at(rest.len() - postscript.metadata_length() as usize);
    let mut tail = Tail {
        footer: Footer::decode(footer).unwrap(),
        metadata: Metadata::decode(metadata).unwrap(),
        postscript: PostScript { footer_length: None, metadata_length: None, ..postscript },
    };
    // Checksums would no longer be right.
    tail.footer.metadata.retain(|item| item.name() != "stoa.checksums");
    tail.postscript.tail_checksum = None;
    change(&mut tail);
    let (footer, metadata) = (tail.footer.encode_to_vec(), tail.metadata.encode_to_vec());
    tail.postscript.footer_length.get_or_insert(footer.len() as u64);
    tail.postscript.metadata_length.get_or_insert(metadata.len() as u64);
    let postscript = tail.postscript.encode_to_vec();
    let mut file = body.to_vec();
    for section in [&metadata, &footer, &postscript] {
        file.extend_from_slice(section);
    }
    file.push(postscript.len() as u8);
    Bytes::from(file)
}

/// The types of an Arrow schema as a footer holds them.
pub fn types_of(schema: &arrow_schema::Schema) -> Vec<Type> {
    TypeTree::from_arrow(schema).unwrap().to_proto()
}

/// Bytes in byte RLE, all literal.
pub fn byte_literals(values: &[u8]) -> Vec<u8> {
    let group = |part: &[u8]| [&[(256 - part.len()) as u8], part].concat();
    values.chunks(128).flat_map(group).collect()
}

/// Booleans as a PRESENT stream has them.
pub fn bits(values: &[bool]) -> Vec<u8> {
    let byte = |part: &[bool]| {
        let bit = |(at, value): (usize, &bool)| u8::from(*value) << (7 - at);
        part.iter().enumerate().map(bit).fold(0, |byte, bit| byte | bit)
    };
    byte_literals(&values.chunks(8).map(byte).collect::<Vec<_>>())
}

/// Unsigned integers in RLE version 1, all literal.
pub fn unsigned_v1(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in values.chunks(128) {
        out.push((256 - part.len()) as u8);
        part.iter().for_each(|value| prost::encoding::encode_varint(*value, &mut out));
    }
    out
}

/// Signed integers in RLE version 1, all literal.
pub fn signed_v1(values: &[i64]) -> Vec<u8> {
    let zigzag = |value: &i64| (value << 1 ^ value >> 63) as u64;
    unsigned_v1(&values.iter().map(zigzag).collect::<Vec<_>>())
}

/// Unscaled decimals as a DATA stream has them.
pub fn decimal_varints(values: &[i128]) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        let mut zigzag = (value << 1 ^ value >> 127) as u128;
        while zigzag >= 0x80 {
            out.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        out.push(zigzag as u8);
    }
    out
}
