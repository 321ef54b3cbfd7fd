//! Booleans: eight to a byte, first value in the highest bit, bytes run-length encoded.
//!
//! A row group need not end on a whole byte. [`BooleanEncoder::flush`] writes all whole bytes and
//! keeps the rest; [`BooleanEncoder::pending_bits`] is then the "bits consumed" of a position.

use arrow_buffer::{BooleanBuffer, bit_util};

use super::byte_rle;

/// Collects bits and hands out whole bytes in byte RLE.
#[derive(Default)]
pub(crate) struct BooleanEncoder {
    bytes: Vec<u8>,
    /// Bits not yet in `bytes`, left-aligned in a byte.
    partial: u8,
    /// How many bits of `partial` count, 0..=7.
    partial_bits: usize,
}

impl BooleanEncoder {
    /// Bits waiting for the rest of their byte, 0..=7; exact after [`Self::flush`].
    pub(crate) fn pending_bits(&self) -> usize {
        self.partial_bits
    }

    /// Bytes held before encoding.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.bytes.len() + 1
    }

    /// Adds `count` times `value`.
    pub(crate) fn push_repeated(&mut self, value: bool, mut count: usize) {
        let byte = if value { 0xff } else { 0 };
        if self.partial_bits > 0 {
            let bits = count.min(8 - self.partial_bits);
            self.push_bits(byte, bits);
            count -= bits;
        }
        self.bytes.resize(self.bytes.len() + count / 8, byte);
        if !count.is_multiple_of(8) {
            self.push_bits(byte, count % 8);
        }
    }

    /// Adds the bits of `bits` in order.
    pub(crate) fn push_buffer(&mut self, bits: &BooleanBuffer) {
        let (values, offset, length) = (bits.values(), bits.offset(), bits.len());
        let mut at = 0;
        if self.partial_bits == 0 && offset.is_multiple_of(8) {
            let whole = length / 8;
            let from = offset / 8;
            self.bytes.extend(values[from..from + whole].iter().map(|byte| byte.reverse_bits()));
            at = whole * 8;
        }
        while at < length {
            let count = (length - at).min(8);
            let mut byte = 0u8;
            for bit in 0..count {
                byte |= u8::from(bit_util::get_bit(values, offset + at + bit)) << (7 - bit);
            }
            self.push_bits(byte, count);
            at += count;
        }
    }

    /// Adds the upper `count` (1..=8) bits of `byte`.
    fn push_bits(&mut self, byte: u8, count: usize) {
        let byte = byte & !(0xff_u16 >> count) as u8;
        self.partial |= byte >> self.partial_bits;
        let filled = self.partial_bits + count;
        if filled >= 8 {
            self.bytes.push(self.partial);
            self.partial = (u16::from(byte) << (8 - self.partial_bits)) as u8;
            self.partial_bits = filled - 8;
        } else {
            self.partial_bits = filled;
        }
    }

    /// Writes all whole bytes.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) {
        byte_rle::encode(&self.bytes, out);
        self.bytes.clear();
    }

    /// Writes everything, the last byte filled with zero bits, and starts over.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if self.partial_bits > 0 {
            self.bytes.push(self.partial);
        }
        self.partial = 0;
        self.partial_bits = 0;
        self.flush(out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8], count: usize) -> Vec<bool> {
        let bytes = byte_rle::tests::decode(bytes);
        (0..count).map(|at| bytes[at / 8] >> (7 - at % 8) & 1 == 1).collect()
    }

    proptest! {
        #[test]
        fn bits_survive(
            parts in prop::collection::vec(
                (prop::collection::vec(any::<bool>(), 0..70), 0usize..9, any::<bool>()), 0..8)
        ) {
            let mut encoder = BooleanEncoder::default();
            let mut expected = Vec::new();
            let mut out = Vec::new();
            for (values, skip, flush) in parts {
                let skip = skip.min(values.len());
                let buffer = BooleanBuffer::from(values.clone());
                encoder.push_buffer(&buffer.slice(skip, values.len() - skip));
                expected.extend_from_slice(&values[skip..]);
                encoder.push_repeated(flush, values.len() / 3);
                expected.extend(std::iter::repeat_n(flush, values.len() / 3));
                if flush {
                    encoder.flush(&mut out);
                    prop_assert_eq!(encoder.pending_bits(), expected.len() % 8);
                }
            }
            encoder.finish(&mut out);
            prop_assert_eq!(decode(&out, expected.len()), expected);
        }
    }
}
