//! Chunks as bytes, for keeping on disk.
//!
//! ```text
//! kind u8 │ flags u8 (2 has NULLs) │ rows u32 │ valid rows as bits │ values
//! ```
//! Little endian. Values are as in memory: packed ones are the least value and the distances, texts
//! are the ends of the values and the bytes of all; codes follow the number of texts and the texts. What is read may be damaged: that is no chunk.

use arrow_array::{Array, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::{CODES_MAX, Chunk, Codes, Ints, Uses, Values};

const HAS_NULLS: u8 = 2;

mod kind {
    pub(super) const PACKED8: u8 = 0;
    pub(super) const PACKED16: u8 = 1;
    pub(super) const PACKED32: u8 = 2;
    pub(super) const BITS: u8 = 3;
    pub(super) const INT32: u8 = 4;
    pub(super) const INT64: u8 = 5;
    pub(super) const WIDE: u8 = 6;
    pub(super) const TEXT: u8 = 7;
    pub(super) const FLOATS: u8 = 8;
    pub(super) const CODES: u8 = 9;
}

/// Values of one width.
trait Fixed: Copy {
    const BYTES: usize;
    fn push(self, out: &mut Vec<u8>);
    /// `bytes` has [`Self::BYTES`].
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! fixed {
    ($($of:ty),*) => {$(
        impl Fixed for $of {
            const BYTES: usize = size_of::<$of>();
            fn push(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn of(bytes: &[u8]) -> Self {
                bytes.try_into().map(<$of>::from_le_bytes).unwrap_or_default()
            }
        }
    )*};
}
fixed!(u8, u16, u32, i32, i64, i128, f64);

impl Chunk {
    /// Adds the chunk to `out`.
    pub(crate) fn push_bytes(&self, out: &mut Vec<u8>) {
        let flags = if self.nulls.is_some() { HAS_NULLS } else { 0 };
        out.extend([kind_of(&self.values), flags]);
        (self.rows as u32).push(out);
        if let Some(nulls) = &self.nulls {
            push_bits(nulls.inner(), out);
        }
        match &self.values {
            Values::Ints(Ints::Packed8 { base, distances }) => push_packed(*base, distances, out),
            Values::Ints(Ints::Packed16 { base, distances }) => push_packed(*base, distances, out),
            Values::Ints(Ints::Packed32 { base, distances }) => push_packed(*base, distances, out),
            Values::Ints(Ints::Bits(bits)) => push_bits(bits, out),
            Values::Ints(Ints::Int32(values)) => push_all(values, out),
            Values::Ints(Ints::Int64(values)) => push_all(values, out),
            Values::Wide(values) => push_all(values, out),
            Values::Floats(values) => push_all(values, out),
            Values::Text(texts) => push_texts(texts, out),
            Values::Codes(Codes { codes, texts }) => {
                (texts.len() as u32).push(out);
                push_texts(texts, out);
                push_all(codes, out);
            }
        }
    }

    /// What [`Self::push_bytes`] wrote; `None` for other bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let (kind, flags) = (rest.one::<u8>()?, rest.one::<u8>()?);
        let rows = rest.one::<u32>()? as usize;
        let nulls = match flags & HAS_NULLS {
            0 => None,
            _ => Some(NullBuffer::new(rest.bits(rows)?)),
        };
        let values = match kind {
            kind::PACKED8 => Values::Ints(Ints::Packed8 {
                base: rest.one()?,
                distances: rest.all(rows)?.collect(),
            }),
            kind::PACKED16 => Values::Ints(Ints::Packed16 {
                base: rest.one()?,
                distances: rest.all(rows)?.collect(),
            }),
            kind::PACKED32 => Values::Ints(Ints::Packed32 {
                base: rest.one()?,
                distances: rest.all(rows)?.collect(),
            }),
            kind::BITS => Values::Ints(Ints::Bits(rest.bits(rows)?)),
            kind::INT32 => Values::Ints(Ints::Int32(rest.all(rows)?.collect())),
            kind::INT64 => Values::Ints(Ints::Int64(rest.all(rows)?.collect())),
            kind::WIDE => Values::Wide(rest.all(rows)?.collect()),
            kind::FLOATS => Values::Floats(rest.all(rows)?.collect()),
            kind::TEXT => Values::Text(rest.texts(rows)?),
            kind::CODES => Values::Codes(rest.codes(rows)?),
            _ => return None,
        };
        let (order, totals, ends, uses) = (None, None, None, Uses::default());
        let chunk = Self { values, nulls, rows, order, totals, ends, uses };
        rest.0.is_empty().then(|| chunk.indexed())
    }
}

fn kind_of(values: &Values) -> u8 {
    match values {
        Values::Ints(Ints::Packed8 { .. }) => kind::PACKED8,
        Values::Ints(Ints::Packed16 { .. }) => kind::PACKED16,
        Values::Ints(Ints::Packed32 { .. }) => kind::PACKED32,
        Values::Ints(Ints::Bits(_)) => kind::BITS,
        Values::Ints(Ints::Int32(_)) => kind::INT32,
        Values::Ints(Ints::Int64(_)) => kind::INT64,
        Values::Wide(_) => kind::WIDE,
        Values::Text(_) => kind::TEXT,
        Values::Codes(_) => kind::CODES,
        Values::Floats(_) => kind::FLOATS,
    }
}

fn push_all<T: Fixed>(values: &[T], out: &mut Vec<u8>) {
    values.iter().for_each(|value| value.push(out));
}

fn push_packed<T: Fixed>(base: i64, distances: &[T], out: &mut Vec<u8>) {
    base.push(out);
    push_all(distances, out);
}

fn push_texts(texts: &StringArray, out: &mut Vec<u8>) {
    let offsets = texts.value_offsets();
    let (first, last) = (offsets[0], offsets[texts.len()]);
    offsets.iter().for_each(|end| (end - first).push(out));
    out.extend_from_slice(&texts.value_data()[first as usize..last as usize]);
}

fn push_bits(bits: &BooleanBuffer, out: &mut Vec<u8>) {
    // The bits of a slice may begin within a byte.
    out.extend_from_slice(&bits.sliced().as_slice()[..bits.len().div_ceil(8)]);
}

/// What is left to read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn one<T: Fixed>(&mut self) -> Option<T> {
        self.take(T::BYTES).map(T::of)
    }

    fn all<T: Fixed>(&mut self, rows: usize) -> Option<impl Iterator<Item = T>> {
        let bytes = self.take(rows.checked_mul(T::BYTES)?)?;
        Some(bytes.chunks_exact(T::BYTES).map(T::of))
    }

    fn bits(&mut self, rows: usize) -> Option<BooleanBuffer> {
        let bytes = self.take(rows.div_ceil(8))?;
        Some(BooleanBuffer::new(Buffer::from(bytes), 0, rows))
    }

    fn texts(&mut self, count: usize) -> Option<StringArray> {
        let ends: ScalarBuffer<i32> = self.all(count.checked_add(1)?)?.collect();
        let is_sound = ends.first() == Some(&0) && ends.is_sorted();
        let bytes = usize::try_from(*ends.last()?).ok().filter(|_| is_sound)?;
        let values = Buffer::from(self.take(bytes)?);
        StringArray::try_new(OffsetBuffer::new(ends), values, None).ok()
    }

    fn codes(&mut self, rows: usize) -> Option<Codes> {
        let count = self.one::<u32>()? as usize;
        let texts = self.texts(Some(count).filter(|count| (1..=CODES_MAX).contains(count))?)?;
        let codes: Vec<u8> = self.all(rows)?.collect();
        codes.iter().all(|code| usize::from(*code) < count).then_some(Codes { codes, texts })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array};
    use proptest::prelude::*;

    use super::super::chunk;
    use super::*;

    fn same(one: &Chunk, other: &Chunk) -> bool {
        let row = |chunk: &Chunk, row: usize| {
            let float = chunk.float(row).to_bits();
            (!chunk.is_null(row)).then(|| (chunk.number(row), chunk.text(row).to_owned(), float))
        };
        one.rows() == other.rows() && (0..one.rows()).all(|at| row(one, at) == row(other, at))
    }

    fn some_chunk() -> impl Strategy<Value = Chunk> {
        fn rows<T: std::fmt::Debug>(
            value: impl Strategy<Value = T> + 'static,
        ) -> impl Strategy<Value = Vec<Option<T>>> {
            (0.0..0.5).prop_flat_map({
                let value = value.boxed();
                move |nulls| {
                    prop::collection::vec(prop::option::weighted(1.0 - nulls, value.clone()), 0..40)
                }
            })
        }
        let of = |compact: bool, chunk: Chunk| if compact { chunk.compact() } else { chunk };
        let chunks = prop_oneof![
            rows(-100_i64..100).prop_map(|rows| chunk(Int64Array::from(rows))),
            rows(0_i64..60_000).prop_map(|rows| chunk(Int64Array::from(rows))),
            rows(0_i64..1 << 31).prop_map(|rows| chunk(Int64Array::from(rows))),
            rows(any::<i64>()).prop_map(|rows| chunk(Int64Array::from(rows))),
            rows(any::<i32>()).prop_map(|rows| chunk(Int32Array::from(rows))),
            rows(any::<i128>()).prop_map(|rows| chunk(Decimal128Array::from(rows))),
            rows(any::<f64>()).prop_map(|rows| chunk(Float64Array::from(rows))),
            rows(any::<bool>()).prop_map(|rows| chunk(BooleanArray::from(rows))),
            rows("[a-zäöü]{0,5}").prop_map(|rows| chunk(StringArray::from(rows))),
            rows("[a-z]{0,5}").prop_map(|rows| {
                let cut = rows.len() / 2;
                let whole = StringArray::from(rows);
                chunk(whole.slice(cut, whole.len() - cut))
            }),
            rows(any::<bool>()).prop_map(|rows| {
                let cut = rows.len() / 3;
                let whole = BooleanArray::from(rows);
                chunk(whole.slice(cut, whole.len() - cut))
            }),
        ];
        (any::<bool>(), chunks).prop_map(move |(compact, chunk)| of(compact, chunk))
    }

    proptest! {
        #[test]
        fn chunks_come_back(chunk in some_chunk()) {
            let mut bytes = Vec::new();
            chunk.push_bytes(&mut bytes);
            let back = Chunk::from_bytes(&bytes).unwrap();
            prop_assert!(same(&chunk, &back), "{chunk:?} {back:?}");
            for cut in 0..bytes.len() {
                prop_assert!(Chunk::from_bytes(&bytes[..cut]).is_none());
            }
        }

        #[test]
        fn damaged_bytes_are_no_chunk_or_a_sound_one(
            chunk in some_chunk(), at in any::<prop::sample::Index>(), flip in 1_u8..,
        ) {
            let mut bytes = Vec::new();
            chunk.push_bytes(&mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            if let Some(chunk) = Chunk::from_bytes(&bytes) {
                prop_assert!(same(&chunk, &chunk.clone()));
            }
        }
    }
}
