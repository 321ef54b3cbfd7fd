//! Compressing chunks: one reused codec state per writer.
//!
//! In: the content of one chunk (at most the block size). Out: header and bytes, or the content
//! itself where compressing does not help. Not here: decompressing (`compression`).

use stoa_error::Error;

use crate::compression::{CHUNK_HEADER_BYTES, Compression, CompressionKind};
use crate::error::Result;

/// Frames and compresses chunks.
pub(crate) struct Compressor {
    codec: Codec,
    kind: CompressionKind,
    block_bytes: usize,
    scratch: Vec<u8>,
}

enum Codec {
    None,
    Zlib(flate2::Compress),
    Snappy(snap::raw::Encoder),
    Lz4,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    /// # Errors
    /// `Invalid` for a level the codec does not have.
    pub(crate) fn new(compression: Compression, block_bytes: usize) -> Result<Self> {
        let codec = match compression {
            Compression::None => Codec::None,
            Compression::Zlib { level } if level > 9 => {
                return Err(Error::invalid(format!("zlib level {level} does not exist"))
                    .with_hint("levels are 0 to 9"));
            }
            Compression::Zlib { level } => {
                Codec::Zlib(flate2::Compress::new(flate2::Compression::new(level), false))
            }
            Compression::Snappy => Codec::Snappy(snap::raw::Encoder::new()),
            Compression::Lz4 => Codec::Lz4,
            Compression::Zstd { level } if !zstd::compression_level_range().contains(&level) => {
                return Err(Error::invalid(format!("zstd level {level} does not exist"))
                    .with_hint("levels are 1 to 22"));
            }
            Compression::Zstd { level } => {
                Codec::Zstd(zstd::bulk::Compressor::new(level).map_err(failed)?)
            }
        };
        Ok(Self { codec, kind: compression.kind(), block_bytes, scratch: Vec::new() })
    }

    /// Whether streams are framed into chunks at all.
    pub(crate) fn is_framed(&self) -> bool {
        self.kind != CompressionKind::None
    }

    /// Most content of a chunk in bytes.
    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Bytes held besides the codec's own state.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.scratch.capacity()
    }

    /// Appends `content` as a sequence of chunks (plain if not framed).
    pub(crate) fn write_section(&mut self, content: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if !self.is_framed() {
            out.extend_from_slice(content);
            return Ok(());
        }
        content.chunks(self.block_bytes).try_for_each(|chunk| self.write_chunk(chunk, out))
    }

    /// Appends `content` (not empty, at most the block size) as one chunk.
    pub(crate) fn write_chunk(&mut self, content: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let length = self.compress(content)?;
        let compressed = self.scratch.get(..length).filter(|bytes| bytes.len() < content.len());
        let (bytes, is_original) = compressed.map_or((content, 1), |bytes| (bytes, 0));
        let header = (bytes.len() << 1 | is_original).to_le_bytes();
        out.reserve(CHUNK_HEADER_BYTES + bytes.len());
        out.extend_from_slice(&header[..CHUNK_HEADER_BYTES]);
        out.extend_from_slice(bytes);
        Ok(())
    }

    /// Compresses into the scratch space; returns the length, `usize::MAX` for "did not fit".
    fn compress(&mut self, content: &[u8]) -> Result<usize> {
        match &mut self.codec {
            Codec::None => Ok(usize::MAX),
            Codec::Zlib(state) => {
                // More than the worst case: zlib-rs panics where stored blocks do not fit.
                self.scratch.resize(content.len() + content.len() / 8 + 64, 0);
                state.reset();
                let status = state
                    .compress(content, &mut self.scratch, flate2::FlushCompress::Finish)
                    .map_err(failed)?;
                let done = status == flate2::Status::StreamEnd;
                Ok(if done { state.total_out() as usize } else { usize::MAX })
            }
            Codec::Snappy(encoder) => {
                self.scratch.resize(snap::raw::max_compress_len(content.len()), 0);
                encoder.compress(content, &mut self.scratch).map_err(failed)
            }
            Codec::Lz4 => {
                let most = lz4_flex::block::get_maximum_output_size(content.len());
                self.scratch.resize(most, 0);
                lz4_flex::block::compress_into(content, &mut self.scratch).map_err(failed)
            }
            Codec::Zstd(state) => {
                self.scratch.resize(zstd::zstd_safe::compress_bound(content.len()), 0);
                state.compress_to_buffer(content, self.scratch.as_mut_slice()).map_err(failed)
            }
        }
    }
}

fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::internal("compressing a chunk failed").with_source(source)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compression::{Decompressor, decompress_section};

    fn compression() -> impl Strategy<Value = Compression> {
        prop_oneof![
            (0u32..=9).prop_map(|level| Compression::Zlib { level }),
            Just(Compression::Snappy),
            Just(Compression::Lz4),
            (1i32..=9).prop_map(|level| Compression::Zstd { level }),
        ]
    }

    proptest! {
        /// Noise, too, which no codec makes smaller.
        #[test]
        fn sections_survive(
            compression in compression(),
            block_bytes in prop_oneof![1024usize..10_000, Just(256usize << 10)],
            parts in prop::collection::vec((any::<u64>(), 0usize..90_000, 1u64..300), 1..4),
        ) {
            let mut compressor = Compressor::new(compression, block_bytes).unwrap();
            let mut decompressor = Decompressor::new(compression.kind());
            for (seed, length, range) in parts {
                let noise = |at: u64| (seed ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                let content: Vec<u8> =
                    (0..length as u64).map(|at| (noise(at) % range) as u8).collect();
                let mut section = Vec::new();
                compressor.write_section(&content, &mut section).unwrap();
                let most = content.len() + CHUNK_HEADER_BYTES * content.len().div_ceil(block_bytes);
                prop_assert!(section.len() <= most);
                let back = decompress_section(&mut decompressor, block_bytes, &section, 1 << 20);
                prop_assert!(back.unwrap() == content);
            }
        }
    }
}
