//! Values of Hadoop's SequenceFiles, version 6: lines of text, as Hive writes them.
//!
//! ```text
//! "SEQ" 6, class of keys, class of values, is compressed, is in blocks, [codec], metadata, sync (16 bytes)
//! records: [-1, sync] length, length of key, key, value
//! blocks:  -1, sync, count, 4 × (bytes, compressed): lengths of keys, keys, lengths of values, values
//! ```
//! Source: `org.apache.hadoop.io.SequenceFile`, `Text`, `BytesWritable`, `WritableUtils`.

use std::io::Read;

use bytes::Bytes;
use stoa_error::{Error, Place, Result};

use super::lines::Block;
use super::source::Source;

const CHUNK_BYTES: u64 = 2 << 20;
/// Largest record or block, encoded.
const RECORD_BYTES_MAX: usize = 256 << 20;
/// Largest block, decoded.
const BLOCK_BYTES_MAX: u64 = 256 << 20;
/// Text from which a block of lines is made, where there is more.
const LINES_BYTES: usize = 1 << 20;
const SYNC_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Text,
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Zlib,
    Gzip,
    Zstd,
}

pub(super) struct SequenceReader {
    source: Source,
    next: u64,
    buffer: Bytes,
    value: Value,
    records: Option<Codec>,
    blocks: Option<Codec>,
    sync: [u8; SYNC_BYTES],
    skip: u64,
}

impl SequenceReader {
    /// Reads the header; the first `skip` values are left out.
    pub(super) async fn open(source: Source, skip: u64) -> Result<Self> {
        let mut reader = Self {
            source,
            next: 0,
            buffer: Bytes::new(),
            value: Value::Text,
            records: None,
            blocks: None,
            sync: [0; SYNC_BYTES],
            skip,
        };
        let magic = reader.take(4).await?;
        if !magic.starts_with(b"SEQ") {
            return Err(Error::corrupt("this is no SequenceFile: it does not begin with SEQ")
                .with_hint("define the table with the format of its files"));
        }
        if magic.get(3) != Some(&6) {
            return Err(Error::unsupported(format!(
                "SequenceFiles of version {} are not supported",
                magic[3]
            ))
            .with_hint("version 6 is"));
        }
        let _key = reader.string().await?;
        let value = reader.string().await?;
        reader.value = match value.as_str() {
            "org.apache.hadoop.io.Text" => Value::Text,
            "org.apache.hadoop.io.BytesWritable" => Value::Bytes,
            other => {
                return Err(Error::unsupported(format!(
                    "a SequenceFile of {other} is not supported"
                ))
                .with_hint("values must be Text or BytesWritable"));
            }
        };
        let flags = reader.take(2).await?;
        let (is_compressed, in_blocks) = (flags[0] != 0, flags[1] != 0);
        if is_compressed {
            let codec = Some(codec(&reader.string().await?)?);
            match in_blocks {
                true => reader.blocks = codec,
                false => reader.records = codec,
            }
        }
        let pairs = reader.int().await?;
        for _ in 0..2 * pairs.max(0) {
            reader.string().await?;
        }
        let sync = reader.take(SYNC_BYTES).await?;
        reader.sync.copy_from_slice(&sync);
        Ok(reader)
    }

    /// The next values as lines; `None` after the last.
    pub(super) async fn next_block(&mut self) -> Result<Option<Block>> {
        let mut block = Block::default();
        while block.text.len() < LINES_BYTES {
            if self.is_at_end() {
                break;
            }
            match self.blocks {
                Some(codec) => self.take_block(codec, &mut block).await?,
                None => self.take_record(&mut block).await?,
            }
        }
        match block.lines.is_empty() && self.is_at_end() {
            true => Ok(None),
            false => Ok(Some(block)),
        }
    }

    fn is_at_end(&self) -> bool {
        self.buffer.is_empty() && self.next >= self.source.bytes
    }

    async fn take_record(&mut self, block: &mut Block) -> Result<()> {
        let mut length = self.int().await?;
        if length == -1 {
            self.take_sync().await?;
            if self.is_at_end() {
                return Ok(());
            }
            length = self.int().await?;
        }
        let (length, key) = (size(length)?, size(self.int().await?)?);
        let Some(value) = length.checked_sub(key) else {
            return Err(damaged("a record's key is longer than it"));
        };
        self.take(key).await?;
        let value = self.take(value).await?;
        match self.records {
            None => self.add(&value, block).map(drop),
            Some(codec) => self.add(&inflated(&value, codec)?, block).map(drop),
        }
    }

    async fn take_block(&mut self, codec: Codec, block: &mut Block) -> Result<()> {
        if self.int().await? != -1 {
            return Err(damaged("a block does not begin with its mark"));
        }
        self.take_sync().await?;
        let count = self.vint().await?;
        for _ in 0..3 {
            let length = size(self.vint().await?)?;
            // Lengths of keys, keys, and lengths of values, which values tell themselves.
            self.take(length).await?;
        }
        let length = size(self.vint().await?)?;
        let values = inflated(&self.take(length).await?, codec)?;
        let mut rest = values.as_slice();
        for _ in 0..count {
            let used = self.add(rest, block)?;
            rest = rest.get(used..).unwrap_or_default();
        }
        Ok(())
    }

    async fn take_sync(&mut self) -> Result<()> {
        let sync = self.take(SYNC_BYTES).await?;
        match *sync == self.sync {
            true => Ok(()),
            false => Err(damaged("a sync mark is not that of the file")),
        }
    }

    /// Adds the value that `bytes` begin with as a line; says how many bytes it has.
    fn add(&mut self, bytes: &[u8], block: &mut Block) -> Result<usize> {
        let short = || damaged("a value is cut off");
        let (length, begin) = match self.value {
            Value::Text => {
                let (length, used) = vint_of(bytes).ok_or_else(short)?;
                (size(length)?, used)
            }
            Value::Bytes => {
                let length = bytes.first_chunk::<4>().ok_or_else(short)?;
                (size(i32::from_be_bytes(*length))?, 4)
            }
        };
        let end = begin.checked_add(length).ok_or_else(short)?;
        let text = bytes.get(begin..end).ok_or_else(short)?;
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(end);
        }
        let at = block.text.len();
        block.text.extend_from_slice(text);
        block.lines.push(at..block.text.len());
        Ok(end)
    }

    /// The next `count` bytes.
    async fn take(&mut self, count: usize) -> Result<Bytes> {
        if count > RECORD_BYTES_MAX {
            return Err(damaged("a length is too large"));
        }
        if self.buffer.len() < count {
            let missing = (count - self.buffer.len()) as u64;
            let bytes = self.source.one(self.next..self.next + missing.max(CHUNK_BYTES)).await?;
            self.next += bytes.len() as u64;
            let mut all = Vec::with_capacity(self.buffer.len() + bytes.len());
            all.extend_from_slice(&self.buffer);
            all.extend_from_slice(&bytes);
            self.buffer = all.into();
        }
        if self.buffer.len() < count {
            return Err(damaged("the file is cut off"));
        }
        Ok(self.buffer.split_to(count))
    }

    async fn int(&mut self) -> Result<i32> {
        let bytes = self.take(4).await?;
        Ok(bytes.first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes)))
    }

    async fn vint(&mut self) -> Result<i32> {
        let first = self.take(1).await?;
        let mut bytes = first.to_vec();
        bytes.extend_from_slice(&self.take(vint_bytes(first[0]) - 1).await?);
        vint_of(&bytes).map(|(value, _)| value).ok_or_else(|| damaged("a number is too large"))
    }

    async fn string(&mut self) -> Result<String> {
        let length = size(self.vint().await?)?;
        let bytes = self.take(length).await?;
        String::from_utf8(bytes.to_vec()).map_err(|e| damaged("a name is no text").with_source(e))
    }
}

fn codec(class: &str) -> Result<Codec> {
    match class {
        "org.apache.hadoop.io.compress.DefaultCodec"
        | "org.apache.hadoop.io.compress.DeflateCodec" => Ok(Codec::Zlib),
        "org.apache.hadoop.io.compress.GzipCodec" => Ok(Codec::Gzip),
        "org.apache.hadoop.io.compress.ZStandardCodec" => Ok(Codec::Zstd),
        other => Err(Error::unsupported(format!(
            "a SequenceFile compressed by {other} is not supported"
        ))
        .with_hint("DefaultCodec, GzipCodec and ZStandardCodec are")),
    }
}

fn inflated(bytes: &[u8], codec: Codec) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    let read = match codec {
        Codec::Zlib => {
            flate2::bufread::ZlibDecoder::new(bytes).take(BLOCK_BYTES_MAX + 1).read_to_end(&mut all)
        }
        Codec::Gzip => flate2::bufread::MultiGzDecoder::new(bytes)
            .take(BLOCK_BYTES_MAX + 1)
            .read_to_end(&mut all),
        Codec::Zstd => zstd::stream::read::Decoder::with_buffer(bytes)
            .and_then(|decoder| decoder.take(BLOCK_BYTES_MAX + 1).read_to_end(&mut all)),
    };
    read.map_err(|e| damaged("compressed bytes are damaged").with_source(e))?;
    match all.len() as u64 > BLOCK_BYTES_MAX {
        true => Err(Error::unsupported(format!("a block is larger than {BLOCK_BYTES_MAX} bytes"))),
        false => Ok(all),
    }
}

/// Bytes of a number that begins with this one (`WritableUtils.decodeVIntSize`).
fn vint_bytes(first: u8) -> usize {
    let first = i8::from_ne_bytes([first]);
    match first {
        -112..=127 => 1,
        -120..=-113 => usize::from((-111_i16 - i16::from(first)).unsigned_abs()),
        _ => usize::from((-119_i16 - i16::from(first)).unsigned_abs()),
    }
}

/// The number that `bytes` begin with, and its bytes (`WritableUtils.readVInt`).
fn vint_of(bytes: &[u8]) -> Option<(i32, usize)> {
    let first = *bytes.first()?;
    let count = vint_bytes(first);
    let signed = i8::from_ne_bytes([first]);
    if count == 1 {
        return Some((i32::from(signed), 1));
    }
    let value = bytes.get(1..count)?.iter().try_fold(0_i64, |value, byte| {
        value.checked_mul(256).map(|value| value | i64::from(*byte))
    })?;
    let value = if signed < -120 { !value } else { value };
    Some((i32::try_from(value).ok()?, count))
}

fn size(length: i32) -> Result<usize> {
    usize::try_from(length).map_err(|_| damaged("a length is negative"))
}

fn damaged(what: &str) -> Error {
    Error::corrupt(what.to_owned()).at(Place::Part("SequenceFile".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_hadoops() {
        let check = |bytes: &[u8], expected: i32| {
            assert_eq!(vint_of(bytes), Some((expected, bytes.len())));
            assert_eq!(vint_bytes(bytes[0]), bytes.len());
        };
        check(&[0], 0);
        check(&[127], 127);
        check(&[0x90], -112);
        check(&[0x8f, 0x80], 128);
        check(&[0x8e, 0x01, 0x00], 256);
        check(&[0x87, 0x70], -113);
        assert_eq!(vint_of(&[0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
