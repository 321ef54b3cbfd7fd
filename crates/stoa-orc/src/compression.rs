//! Compression codecs and the chunk framing of streams: reading.
//!
//! ```text
//! chunk = header: u24 LE (length << 1 | is_original) · length bytes
//! ```
//!
//! In: the bytes of one chunk. Out: its content. **Invariant:** a chunk never inflates beyond the
//! file's compression block size. Not here: walking a stream's chunks (`decode::source`),
//! compressing (`writer`).

mod lzo;

use std::io::Read;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use stoa_error::{Error, Place};

use crate::error::{Result, corrupt, unsupported};

/// Bytes of a chunk header.
pub(crate) const CHUNK_HEADER_BYTES: usize = 3;

/// Largest length a chunk header can say; also the largest block size.
pub(crate) const CHUNK_BYTES_MAX: usize = (1 << 23) - 1;

/// Block size of files that do not say.
pub(crate) const BLOCK_BYTES_DEFAULT: usize = 256 << 10;

/// The codec of a file, as its postscript names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompressionKind {
    /// Streams are not framed.
    None,
    /// Raw deflate.
    Zlib,
    /// Raw Snappy.
    Snappy,
    /// LZO1X (read only).
    Lzo,
    /// Raw LZ4 block.
    Lz4,
    /// A Zstandard frame.
    Zstd,
    /// Brotli (read only).
    Brotli,
}

impl CompressionKind {
    /// From the number in a postscript.
    ///
    /// # Errors
    /// `Unsupported` for a codec that does not exist yet.
    pub fn from_number(number: i32) -> Result<Self> {
        Ok(match number {
            0 => Self::None,
            1 => Self::Zlib,
            2 => Self::Snappy,
            3 => Self::Lzo,
            4 => Self::Lz4,
            5 => Self::Zstd,
            6 => Self::Brotli,
            other => return Err(unsupported(format!("unknown compression codec {other}"))),
        })
    }

    /// The number in a postscript.
    pub fn number(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Zlib => 1,
            Self::Snappy => 2,
            Self::Lzo => 3,
            Self::Lz4 => 4,
            Self::Zstd => 5,
            Self::Brotli => 6,
        }
    }

    /// Name as ORC tools print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Zlib => "ZLIB",
            Self::Snappy => "SNAPPY",
            Self::Lzo => "LZO",
            Self::Lz4 => "LZ4",
            Self::Zstd => "ZSTD",
            Self::Brotli => "BROTLI",
        }
    }
}

/// The codec and level to write with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed, not framed.
    None,
    /// Raw deflate; level 0 ..= 9.
    Zlib {
        /// 0 = store, 9 = smallest.
        level: u32,
    },
    /// Raw Snappy.
    Snappy,
    /// Raw LZ4 block.
    Lz4,
    /// Zstandard; level 1 ..= 22.
    Zstd {
        /// 1 = fastest, 22 = smallest.
        level: i32,
    },
}

impl Default for Compression {
    fn default() -> Self {
        Self::Zstd { level: 3 }
    }
}

impl Compression {
    /// The codec without the level.
    pub fn kind(self) -> CompressionKind {
        match self {
            Self::None => CompressionKind::None,
            Self::Zlib { .. } => CompressionKind::Zlib,
            Self::Snappy => CompressionKind::Snappy,
            Self::Lz4 => CompressionKind::Lz4,
            Self::Zstd { .. } => CompressionKind::Zstd,
        }
    }
}

/// Decompresses chunks, reusing the codec's state.
pub(crate) struct Decompressor {
    kind: CompressionKind,
    zstd: Option<ZstdState>,
    deflate: Option<flate2::Decompress>,
}

type ZstdState = zstd::bulk::Decompressor<'static>;

/// States of Zstandard that wait for the next file: to make one takes as long as to decompress some tens of kilobytes, and
/// whoever looks for a few rows in many files reads little more of each.
static SPARE_ZSTD: Mutex<Vec<ZstdState>> = Mutex::new(Vec::new());

/// A state takes a tenth of a megabyte.
const SPARE_ZSTD_MAX: usize = 32;

impl Drop for Decompressor {
    fn drop(&mut self) {
        let Some(state) = self.zstd.take() else { return };
        let mut spare = spare_zstd();
        if spare.len() < SPARE_ZSTD_MAX {
            spare.push(state);
        }
    }
}

fn spare_zstd() -> MutexGuard<'static, Vec<ZstdState>> {
    SPARE_ZSTD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A state that was used before, or a new one.
fn zstd_state() -> Result<ZstdState> {
    let spare = spare_zstd().pop();
    spare
        .map_or_else(ZstdState::new, Ok)
        .map_err(|e| Error::internal("zstd context").with_source(e))
}

impl Decompressor {
    pub(crate) fn new(kind: CompressionKind) -> Self {
        Self { kind, zstd: None, deflate: None }
    }

    /// The codec.
    pub(crate) fn kind(&self) -> CompressionKind {
        self.kind
    }

    /// Decompresses one chunk into the front of `out` (whose length is the block size) and returns
    /// how many bytes it holds.
    pub(crate) fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let limit = out.len();
        let fail = |what: String| {
            corrupt(format!("{} chunk of {} bytes: {what}", self.kind.name(), input.len()))
        };
        match self.kind {
            CompressionKind::None => Err(fail("the file is not compressed".to_owned())),
            CompressionKind::Zlib => {
                let state = self.deflate.get_or_insert_with(|| flate2::Decompress::new(false));
                state.reset(false);
                let done = state
                    .decompress(input, out, flate2::FlushDecompress::Finish)
                    .map_err(|e| fail(e.to_string()))?;
                if done != flate2::Status::StreamEnd {
                    return Err(fail(format!(
                        "does not end within the block size of {limit} bytes"
                    )));
                }
                Ok(state.total_out() as usize)
            }
            CompressionKind::Snappy => {
                let length = snap::raw::decompress_len(input).map_err(|e| fail(e.to_string()))?;
                if length > limit {
                    return Err(fail(format!("{length} bytes exceed the block size of {limit}")));
                }
                snap::raw::Decoder::new().decompress(input, out).map_err(|e| fail(e.to_string()))
            }
            CompressionKind::Lz4 => {
                lz4_flex::block::decompress_into(input, out).map_err(|e| fail(e.to_string()))
            }
            CompressionKind::Zstd => {
                let state = match &mut self.zstd {
                    Some(state) => state,
                    empty => empty.insert(zstd_state()?),
                };
                state.decompress_to_buffer(input, out).map_err(|e| fail(e.to_string()))
            }
            CompressionKind::Lzo => lzo::decompress(input, out).map_err(|e| fail(e.to_owned())),
            CompressionKind::Brotli => {
                let mut reader = brotli_decompressor::Decompressor::new(input, 4096);
                let mut length = 0;
                while length < limit {
                    match reader.read(&mut out[length..]).map_err(|e| fail(e.to_string()))? {
                        0 => return Ok(length),
                        n => length += n,
                    }
                }
                match reader.read(&mut [0]).map_err(|e| fail(e.to_string()))? {
                    0 => Ok(length),
                    _ => Err(fail(format!("exceeds the block size of {limit} bytes"))),
                }
            }
        }
    }
}

/// Takes a whole framed section apart (a footer, an index) into one buffer.
///
/// # Errors
/// `Corrupt` where the framing or a chunk is damaged; `Exhausted` beyond `limit` bytes.
pub(crate) fn decompress_section(
    decompressor: &mut Decompressor,
    block_bytes: usize,
    input: &[u8],
    limit: usize,
) -> Result<Vec<u8>> {
    let (mut out, mut scratch) = (Vec::new(), Vec::new());
    let mut rest = input;
    while !rest.is_empty() {
        let at = input.len() - rest.len();
        let (is_original, chunk, after) =
            split_chunk(rest).map_err(|e| e.at(Place::Offset(at as u64)))?;
        rest = after;
        check_chunk(chunk, block_bytes).map_err(|e| e.at(Place::Offset(at as u64)))?;
        if is_original {
            out.extend_from_slice(chunk);
        } else {
            scratch.resize(block_bytes, 0);
            let length = decompressor
                .decompress(chunk, &mut scratch)
                .map_err(|e| e.at(Place::Offset(at as u64)))?;
            out.extend_from_slice(&scratch[..length]);
        }
        if out.len() > limit {
            return Err(crate::error::exhausted(format!("inflates beyond {limit} bytes")));
        }
    }
    Ok(out)
}

/// Takes a section of a file apart: a footer, statistics, an index. For those who look into files;
/// the decoders do it themselves.
///
/// # Errors
/// `Corrupt` where a chunk is damaged; `Exhausted` if there are more than `limit` bytes.
pub fn inflate_section(
    compression: CompressionKind,
    block_bytes: usize,
    section: &Bytes,
    limit: usize,
) -> Result<Bytes> {
    if compression == CompressionKind::None {
        return Ok(section.clone());
    }
    let mut decompressor = Decompressor::new(compression);
    decompress_section(&mut decompressor, block_bytes, section, limit).map(Bytes::from)
}

/// No writer makes a chunk longer than its content: that is stored as it is.
pub(crate) fn check_chunk(chunk: &[u8], block_bytes: usize) -> Result<()> {
    let length = chunk.len();
    if length > block_bytes {
        return Err(corrupt(format!("chunk of {length} bytes, block size is {block_bytes} bytes")));
    }
    Ok(())
}

/// Splits the first chunk off: whether it is original, its bytes, what follows.
pub(crate) fn split_chunk(input: &[u8]) -> Result<(bool, &[u8], &[u8])> {
    let [a, b, c, rest @ ..] = input else {
        return Err(corrupt(format!("chunk header cut off: {} of 3 bytes", input.len())));
    };
    let header = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
    let length = header >> 1;
    match rest.split_at_checked(length) {
        Some((chunk, after)) => Ok((header & 1 == 1, chunk, after)),
        None => {
            let have = rest.len();
            Err(corrupt(format!("chunk of {length} bytes cut off after {have}")))
        }
    }
}
