//! Writes seeds for the fuzz targets: small files of our writer and of a corpus, streams of all
//! types in all codecs, messages of HiveServer2.
//!
//! `cargo run --example seeds -- DIRECTORY [CORPUS]` makes `DIRECTORY/TARGET/…`; `CORPUS` is a
//! folder with ORC files. Scripts call it: `scripts/fuzz.sh`.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use arrow_array::RecordBatch;
use bytes::Bytes;
use prost::Message;
use stoa_fuzz::build::{FileBuilder, compressed_chunk, original_chunk};
use stoa_fuzz::input::Input;
use stoa_fuzz::streams::{CODECS, ENCODINGS, KINDS, trees};
use stoa_fuzz::{batch, read};
use stoa_orc::proto::{StripeFooter, Type};
use stoa_orc::{
    ArrowOptions, Compression, CompressionKind, DictionaryChoice, FileMetadata, Writer,
    WriterOptions,
};
use stoa_thrift::{Kind, Writer as MessageWriter};

/// Larger files are cut by the fuzzer, which makes them worthless.
const FILE_BYTES_MAX: u64 = 8 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: seeds DIRECTORY [CORPUS]")?;
    let directory = Path::new(&directory);
    let mut files = ours()?;
    for corpus in arguments {
        collect(Path::new(&corpus), &mut files)?;
    }
    for (number, file) in files.iter().enumerate() {
        save(directory, "file", number, &[&[0, 0, 100, 0], file.as_ref()].concat())?;
        save(directory, "tail", number, &[&[0], file.as_ref()].concat())?;
    }
    let mut number = 0;
    for (tree, types) in trees().into_iter().enumerate() {
        for seed in streams(tree, types)? {
            save(directory, "streams", number, &seed)?;
            number += 1;
        }
    }
    for number in 0..300 {
        let bytes = noise(number as u64 + 1, 20 + number * 2);
        save(directory, "round_trip", number, &bytes)?;
        save(directory, "index", number, &bytes)?;
    }
    for (number, message) in messages().iter().enumerate() {
        save(directory, "thrift", number, message)?;
    }
    println!("{} files and {number} streams as seeds", files.len());
    Ok(())
}

/// Calls of HiveServer2 as its clients send them: a struct of a handle, a text, a map and numbers.
fn messages() -> Vec<Vec<u8>> {
    let names = ["OpenSession", "ExecuteStatement", "GetTables", "FetchResults", "GetLog"];
    let message = |name: &&str| {
        let mut out = MessageWriter::new();
        out.raw(&[0x80, 1, 0, 1]);
        out.bytes(name.as_bytes());
        out.i32(1);
        out.structure(1, |out| {
            out.structure(1, |out| {
                out.structure(1, |out| {
                    out.bytes_field(1, &[1; 16]);
                    out.bytes_field(2, &[2; 16]);
                });
            });
            out.text_field(2, "SELECT 1");
            out.map_field(4, Kind::Bytes, 1);
            out.bytes(b"use:database");
            out.bytes(b"default");
            out.i64_field(3, 1000);
            out.texts_field(5, &["TABLE", "VIEW"]);
        });
        out.stop();
        out.into_bytes()
    };
    let mut messages: Vec<_> = names.iter().map(message).collect();
    messages.push(b"\x01\x00\x00\x00\x05PLAIN".to_vec());
    messages.push(b"\x05\x00\x00\x00\x0a\0me\0secret".to_vec());
    messages
}

fn save(directory: &Path, target: &str, number: usize, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let directory = directory.join(target);
    std::fs::create_dir_all(&directory)?;
    Ok(std::fs::write(directory.join(format!("seed-{number:04}")), bytes)?)
}

/// Small files of a folder and those below it.
fn collect(folder: &Path, files: &mut Vec<Bytes>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "orc")
            && path.metadata()?.len() <= FILE_BYTES_MAX
        {
            files.push(Bytes::from(std::fs::read(path)?));
        }
    }
    Ok(())
}

/// Bytes without meaning (SplitMix64).
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Files of all types, codecs and layouts.
fn ours() -> Result<Vec<Bytes>, Box<dyn Error>> {
    let mut files = Vec::new();
    for seed in 0..40 {
        let bytes = noise(seed + 1000, 300);
        let batch = batch::batch(&mut Input::new(&bytes), 60 + seed as usize);
        let compression = match seed % 6 {
            0 => Compression::Zlib { level: 1 },
            1 => Compression::Snappy,
            2 => Compression::Lz4,
            3 => Compression::Zstd { level: 1 },
            _ => Compression::None,
        };
        let options = WriterOptions::default()
            .with_checksums(false)
            .with_compression(compression)
            .with_row_index_stride([0, 10, 30][seed as usize % 3])
            .with_compact_index(seed % 4 == 0)
            .with_stripe_rows(50);
        files.push(write(&batch, options)?);
    }
    Ok(files)
}

fn write(batch: &RecordBatch, options: WriterOptions) -> Result<Bytes, Box<dyn Error>> {
    let mut writer = Writer::new(&batch.schema(), options)?;
    writer.write(batch)?;
    writer.finish()?;
    Ok(writer.take_output())
}

/// Inputs of the target `streams`: valid streams of a type tree in every codec.
fn streams(number: usize, types: Vec<Type>) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let empty = FileBuilder::new(types, CompressionKind::None).finish();
    let schema = read::tail(&empty)?.types.to_arrow(&ArrowOptions::default())?;
    let rows = 300;
    let bytes = noise(number as u64, 4000);
    let mut input = Input::new(&bytes);
    let arrays = schema.fields().iter();
    let arrays = arrays.map(|field| batch::array(&mut input, field.data_type(), rows)).collect();
    let batch = RecordBatch::try_new(schema, arrays)?;
    let mut seeds = Vec::new();
    for dictionary in [DictionaryChoice::Always, DictionaryChoice::Never] {
        let options = WriterOptions::default()
            .with_checksums(false)
            .with_compression(Compression::None)
            .with_dictionary(dictionary)
            .with_compact_index(false);
        let Ok(file) = write(&batch, options) else { continue };
        let metadata = read::tail(&file)?;
        // A root that is not a struct is one column of a struct in our file.
        let is_wrapped = !schema_is_struct(&empty)?;
        for codec in 0..CODECS.len() {
            seeds.push(input_of(number, codec, rows, &file, &metadata, is_wrapped)?);
        }
    }
    Ok(seeds)
}

fn schema_is_struct(file: &Bytes) -> Result<bool, Box<dyn Error>> {
    Ok(read::tail(file)?.types.types()[0].kind == stoa_orc::TypeKind::Struct)
}

/// The input that makes `streams::build` put the streams of `file` together again.
fn input_of(
    tree: usize,
    codec: usize,
    rows: usize,
    file: &Bytes,
    metadata: &FileMetadata,
    is_wrapped: bool,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let stripe = metadata.stripes[0];
    let footer = stripe.footer_range();
    let footer = StripeFooter::decode(&file[footer.start as usize..footer.end as usize])?;
    let mut input = vec![tree as u8, codec as u8, 4];
    input.extend_from_slice(&(rows as u16).to_le_bytes());
    input.extend_from_slice(&31u16.to_le_bytes());
    for column in usize::from(is_wrapped)..metadata.types.len() {
        let encoding = &footer.columns[column];
        let number = ENCODINGS.iter().position(|kind| *kind == encoding.kind()).unwrap_or(0);
        input.push(number as u8);
        input.extend_from_slice(&(encoding.dictionary_size() as u16).to_le_bytes());
        let (mut mask, mut blocks) = (0u8, Vec::new());
        for (bit, kind) in KINDS.iter().enumerate() {
            let mut offset = stripe.offset as usize;
            for stream in &footer.streams {
                let end = offset + stream.length() as usize;
                if stream.column() as usize == column && stream.kind() == *kind {
                    mask |= 1 << bit;
                    let block = frame(CODECS[codec], &file[offset..end])?;
                    blocks.extend_from_slice(&(block.len() as u16).to_le_bytes());
                    blocks.extend_from_slice(&block);
                }
                offset = end;
            }
        }
        input.push(mask);
        input.extend_from_slice(&blocks);
    }
    Ok(input)
}

/// The content of a stream as chunks of a codec.
fn frame(codec: CompressionKind, content: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut out = Vec::new();
    for part in content.chunks(700) {
        let compressed = match codec {
            CompressionKind::None => {
                out.extend_from_slice(part);
                continue;
            }
            CompressionKind::Zlib => {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
                encoder.write_all(part)?;
                encoder.finish()?
            }
            CompressionKind::Snappy => snap::raw::Encoder::new().compress_vec(part)?,
            CompressionKind::Lzo => lzokay_native::compress(part).map_err(|e| format!("{e:?}"))?,
            CompressionKind::Lz4 => lz4_flex::block::compress(part),
            CompressionKind::Zstd => zstd::bulk::compress(part, 1)?,
            CompressionKind::Brotli => {
                let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 3, 16);
                encoder.write_all(part)?;
                encoder.into_inner()
            }
        };
        if part.len() < 20 {
            out.extend_from_slice(&original_chunk(part));
        } else {
            out.extend_from_slice(&compressed_chunk(&compressed));
        }
    }
    Ok(out)
}
