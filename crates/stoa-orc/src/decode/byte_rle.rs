//! Byte and boolean run-length encoding.
//!
//! ```text
//! run = u8 (count − 3, 0 ..= 127) · byte      literal = i8 (−count) · count bytes
//! ```
//! Booleans are bytes of eight bits, the first one in the highest bit.

use super::context::Context;
use super::source::{Source, StreamStart};
use crate::error::Result;

/// Most bytes of a run or a list of literals.
const BYTES_MAX: usize = 1 + 128;

/// Decodes bytes.
pub(crate) struct ByteRle {
    source: Source,
    /// What is left of the run: its byte, or literals in the source.
    run: Option<u8>,
    left: usize,
}

impl ByteRle {
    /// Opens a stream at its start position.
    pub(crate) fn open(start: &StreamStart, cx: &mut Context) -> Result<Self> {
        let mut rle = Self { source: Source::open(start, cx)?, run: None, left: 0 };
        rle.skip(cx, start.skip_values)?;
        Ok(rle)
    }

    /// Decodes exactly `out.len()` bytes.
    pub(crate) fn decode(&mut self, cx: &mut Context, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            if self.left == 0 {
                self.read_header(cx)?;
            }
            let n = self.left.min(out.len() - done);
            let target = &mut out[done..done + n];
            match self.run {
                Some(byte) => target.fill(byte),
                None => self.source.read_exact(cx, target)?,
            }
            self.left -= n;
            done += n;
        }
        Ok(())
    }

    /// Skips bytes.
    pub(crate) fn skip(&mut self, cx: &mut Context, count: u64) -> Result<()> {
        let mut left = count;
        while left > 0 {
            if self.left == 0 {
                self.read_header(cx)?;
            }
            let n = (self.left as u64).min(left);
            if self.run.is_none() {
                self.source.skip(cx, n)?;
            }
            self.left -= n as usize;
            left -= n;
        }
        Ok(())
    }

    /// Gives memory back.
    pub(crate) fn recycle(&mut self, cx: &mut Context) {
        self.source.recycle(cx);
    }

    fn read_header(&mut self, cx: &mut Context) -> Result<()> {
        let window = self.source.window(cx, BYTES_MAX)?;
        match window {
            [control, byte, ..] if *control < 128 => {
                (self.run, self.left) = (Some(*byte), usize::from(*control) + 3);
                self.source.advance(2);
            }
            [control, ..] if *control >= 128 => {
                (self.run, self.left) = (None, 256 - usize::from(*control));
                self.source.advance(1);
            }
            _ => return Err(self.source.ended()),
        }
        Ok(())
    }
}

/// Decodes booleans into bit buffers.
pub(crate) struct BoolRle {
    bytes: ByteRle,
    /// The byte that was begun, its first unread bit in the lowest bit.
    pending: u8,
    pending_bits: usize,
    scratch: Vec<u8>,
}

impl BoolRle {
    /// Opens a stream at its start position.
    pub(crate) fn open(start: &StreamStart, cx: &mut Context) -> Result<Self> {
        let bytes = ByteRle::open(start, cx)?;
        let mut rle = Self { bytes, pending: 0, pending_bits: 0, scratch: Vec::new() };
        rle.skip(cx, start.skip_bits)?;
        Ok(rle)
    }

    /// Decodes `count` bits, the first one in the lowest bit of the first byte, and says how many
    /// are set. Bits behind the last one are 0.
    pub(crate) fn decode(&mut self, cx: &mut Context, count: usize) -> Result<(Vec<u8>, usize)> {
        let have = self.pending_bits;
        let fresh = count.saturating_sub(have).div_ceil(8);
        let mut out = vec![0u8; count.div_ceil(8) + 1];
        if have == 0 {
            self.bytes.decode(cx, &mut out[..fresh])?;
            out[..fresh].iter_mut().for_each(|byte| *byte = byte.reverse_bits());
            if !count.is_multiple_of(8) {
                self.keep(out[fresh - 1], count % 8);
            }
        } else {
            self.scratch.resize(fresh, 0);
            self.bytes.decode(cx, &mut self.scratch)?;
            let mut carry = u16::from(self.pending);
            for (target, byte) in out.iter_mut().zip(&self.scratch) {
                carry |= u16::from(byte.reverse_bits()) << have;
                *target = carry as u8;
                carry >>= 8;
            }
            // `carry` holds `have` bits now; those wanted complete the last byte.
            if let Some(target) = out.get_mut(fresh) {
                *target = carry as u8;
            }
            let total = have + fresh * 8;
            match self.scratch.last() {
                Some(last) => self.keep(last.reverse_bits(), 8 - (total - count)),
                None => self.keep_shifted(count),
            }
        }
        out.truncate(count.div_ceil(8));
        if !count.is_multiple_of(8)
            && let Some(last) = out.last_mut()
        {
            *last &= (1u8 << (count % 8)) - 1;
        }
        let set = count_ones(&out);
        Ok((out, set))
    }

    /// Skips bits.
    pub(crate) fn skip(&mut self, cx: &mut Context, count: u64) -> Result<()> {
        let from_pending = count.min(self.pending_bits as u64);
        self.keep_shifted(from_pending as usize);
        let left = count - from_pending;
        self.bytes.skip(cx, left / 8)?;
        if !left.is_multiple_of(8) {
            self.decode(cx, (left % 8) as usize)?;
        }
        Ok(())
    }

    /// Gives memory back.
    pub(crate) fn recycle(&mut self, cx: &mut Context) {
        self.bytes.recycle(cx);
    }

    /// Keeps what is left of a byte after its first `used` bits.
    fn keep(&mut self, byte: u8, used: usize) {
        self.pending = if used >= 8 { 0 } else { byte >> used };
        self.pending_bits = 8 - used.min(8);
    }

    /// Drops the first `used` bits of the pending ones.
    fn keep_shifted(&mut self, used: usize) {
        self.pending = if used >= 8 { 0 } else { self.pending >> used };
        self.pending_bits -= used.min(self.pending_bits);
    }
}

/// Number of bits set.
fn count_ones(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    let whole: u32 = words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum();
    whole as usize + tail.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
}
