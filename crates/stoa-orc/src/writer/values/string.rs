//! STRING: a dictionary per stripe, or the bytes themselves, whichever is smaller.
//!
//! Each stripe starts with a dictionary and keeps the ids of its rows. At the end of its first
//! row group both forms are compressed and the larger one is given up; later the dictionary goes
//! when it has grown too large or nearly every value is new. The dictionary is sorted when the
//! stripe ends, as the specification asks.

use arrow_array::Array;
use arrow_buffer::NullBuffer;

use super::binary::{
    ByteStrings, DirectStreams, Visitor, direct_streams, for_each_valid, push_direct, visit,
};
use super::{FinishedValues, ValueWriter, encoding};
use crate::encode::bit_pack::bits_of;
use crate::encode::dictionary::DictionaryBuilder;
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::collector::{Bounds, StringBounds};
use crate::writer::column::Seen;
use crate::writer::options::DictionaryChoice;
use crate::writer::stream::{ByteStream, Context, EncodedStream, IntStream};

/// A larger dictionary costs readers too much memory.
const DICTIONARY_BYTES_MAX: usize = 16 << 20;
/// Above this share of distinct values there is nothing to gain.
const DISTINCT_SHARE_MAX: f64 = 0.8;
/// Below this share of distinct values a dictionary is smaller without a doubt.
const DISTINCT_SHARE_CLEAR: f64 = 0.1;

pub(super) struct StringWriter {
    choice: DictionaryChoice,
    is_direct: bool,
    dictionary: DictionaryBuilder,
    /// With a dictionary: of all values of the stripe.
    ids: Vec<u32>,
    /// With a dictionary: where each row group starts in `ids`.
    starts: Vec<usize>,
    /// Per id: number of row groups started when it was last seen.
    last_seen: Vec<u32>,
    direct: DirectStreams,
    /// Without a dictionary: positions.
    marks: Vec<u64>,
}

impl StringWriter {
    pub(super) fn new(choice: DictionaryChoice) -> Self {
        Self {
            choice,
            is_direct: choice == DictionaryChoice::Never,
            dictionary: DictionaryBuilder::default(),
            ids: Vec::new(),
            starts: Vec::new(),
            last_seen: Vec::new(),
            direct: direct_streams(),
            marks: Vec::new(),
        }
    }

    fn push_ids(
        &mut self,
        strings: &impl ByteStrings,
        rows: usize,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
    ) {
        let group = self.starts.len() as u32;
        let mut unused = StringBounds::default();
        let bounds = match &mut seen.collector.bounds {
            Bounds::String(bounds) => bounds,
            _ => &mut unused,
        };
        let mut last: (u32, &[u8]) = (u32::MAX, &[]);
        let mut bytes = 0;
        for_each_valid(rows, nulls, |row| {
            let value = strings.get(row);
            bytes += value.len();
            if last.0 != u32::MAX && last.1 == value {
                self.ids.push(last.0);
                return;
            }
            let id = self.dictionary.id_of(value);
            last = (id, value);
            self.ids.push(id);
            if id as usize >= self.last_seen.len() {
                self.last_seen.push(0);
            }
            let last_seen = &mut self.last_seen[id as usize];
            if *last_seen != group {
                *last_seen = group;
                bounds.add_bounds(value);
                if let Some(bloom) = &mut seen.bloom {
                    bloom.add_bytes(value);
                }
            }
        });
        bounds.add_length(bytes);
    }

    fn push_direct(
        &mut self,
        strings: &impl ByteStrings,
        rows: usize,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        let bytes = push_direct(&mut self.direct, strings, rows, nulls, cx)?;
        if let Bounds::String(bounds) = &mut seen.collector.bounds {
            bounds.add_length(bytes);
            for_each_valid(rows, nulls, |row| bounds.add_bounds(strings.get(row)));
        }
        if let Some(bloom) = &mut seen.bloom {
            for_each_valid(rows, nulls, |row| bloom.add_bytes(strings.get(row)));
        }
        Ok(())
    }

    /// Whether the dictionary is still worth it, at the end of a row group.
    fn keeps_dictionary(&self, cx: &mut Context) -> Result<bool> {
        if self.choice == DictionaryChoice::Always {
            return Ok(true);
        }
        let share = self.dictionary.len() as f64 / self.ids.len().max(1) as f64;
        if share > DISTINCT_SHARE_MAX || self.dictionary.value_bytes() > DICTIONARY_BYTES_MAX {
            return Ok(self.ids.is_empty());
        }
        if share <= DISTINCT_SHARE_CLEAR || self.starts.len() > 1 {
            return Ok(true);
        }
        self.is_smaller_as_dictionary(cx)
    }

    /// Compresses both forms of the first row group.
    fn is_smaller_as_dictionary(&self, cx: &mut Context) -> Result<bool> {
        let (mut direct, mut lengths) = (Vec::new(), Vec::new());
        for id in &self.ids {
            let value = self.dictionary.get(*id);
            direct.extend_from_slice(value);
            lengths.push(value.len() as i64);
        }
        let mut direct_size = Vec::new();
        cx.compressor.write_section(&direct, &mut direct_size)?;
        let mut encoded = Vec::new();
        cx.integers.encode(&lengths, false, &mut encoded);
        cx.compressor.write_section(&encoded, &mut direct_size)?;

        let (mut values, mut lengths) = (Vec::new(), Vec::new());
        let rank = self.ranks(|value| {
            values.extend_from_slice(value);
            lengths.push(value.len() as i64);
        });
        let ids: Vec<i64> = self.ids.iter().map(|id| rank[*id as usize].into()).collect();
        let mut dictionary_size = Vec::new();
        cx.compressor.write_section(&values, &mut dictionary_size)?;
        for integers in [lengths, ids] {
            encoded.clear();
            cx.integers.encode(&integers, false, &mut encoded);
            cx.compressor.write_section(&encoded, &mut dictionary_size)?;
        }
        Ok(dictionary_size.len() <= direct_size.len())
    }

    /// Calls `each` with the sorted values; returns the place of each id among them.
    fn ranks(&self, mut each: impl FnMut(&[u8])) -> Vec<u32> {
        let mut rank = vec![0; self.dictionary.len()];
        for (place, id) in self.dictionary.sorted().into_iter().enumerate() {
            rank[id as usize] = place as u32;
            each(self.dictionary.get(id));
        }
        rank
    }

    /// Gives the dictionary up: writes the rows so far directly.
    fn turn_direct(&mut self, cx: &mut Context) -> Result<()> {
        self.is_direct = true;
        for (at, from) in self.starts.iter().enumerate() {
            let to = self.starts.get(at + 1).copied().unwrap_or(self.ids.len());
            self.direct.mark(cx, &mut self.marks);
            for id in &self.ids[*from..to] {
                let value = self.dictionary.get(*id);
                let (data, lengths) = &mut self.direct;
                lengths.pending().push(value.len() as i64);
                lengths.cut(cx)?;
                data.extend(value, cx)?;
            }
            self.direct.end_row_group(cx)?;
        }
        self.forget_dictionary();
        Ok(())
    }

    fn forget_dictionary(&mut self) {
        self.dictionary.clear();
        self.last_seen.clear();
        self.ids.clear();
        self.starts.clear();
    }

    fn finish_dictionary(&mut self, cx: &mut Context) -> Result<FinishedValues> {
        let (mut values, mut lengths) = (ByteStream::default(), IntStream::unsigned());
        let rank = self.ranks(|value| {
            values.open().extend_from_slice(value);
            lengths.pending().push(value.len() as i64);
        });
        values.cut(cx)?;
        let (mut data, mut marks) = (IntStream::unsigned(), Vec::new());
        for (at, from) in self.starts.iter().enumerate() {
            let to = self.starts.get(at + 1).copied().unwrap_or(self.ids.len());
            data.mark(cx, &mut marks);
            let ids = self.ids[*from..to].iter().map(|id| i64::from(rank[*id as usize]));
            data.pending().extend(ids);
            data.end_row_group(cx)?;
        }
        let mut encoding = encoding(EncodingKind::DictionaryV2);
        encoding.dictionary_size = Some(rank.len() as u32);
        self.forget_dictionary();
        let ([data], [lengths], [values]) = (data.take(cx)?, lengths.take(cx)?, values.take(cx)?);
        Ok(FinishedValues {
            streams: vec![
                (StreamKind::Data, data),
                (StreamKind::Length, lengths),
                (StreamKind::DictionaryData, values),
            ],
            encoding,
            marks,
        })
    }
}

impl ValueWriter for StringWriter {
    fn write(
        &mut self,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        visit(array, Push { writer: self, rows: array.len(), nulls, seen, cx })
    }

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        if self.is_direct {
            return self.direct.end_row_group(cx);
        }
        if self.keeps_dictionary(cx)? { Ok(()) } else { self.turn_direct(cx) }
    }

    fn mark(&mut self, cx: &Context) {
        if self.is_direct {
            self.direct.mark(cx, &mut self.marks);
        } else {
            self.starts.push(self.ids.len());
        }
    }

    fn finish_stripe(&mut self, cx: &mut Context) -> Result<FinishedValues> {
        if !self.is_direct {
            return self.finish_dictionary(cx);
        }
        self.is_direct = self.choice == DictionaryChoice::Never;
        let [data, lengths] = self.direct.take(cx)?;
        Ok(FinishedValues {
            streams: vec![(StreamKind::Data, data), (StreamKind::Length, lengths)],
            encoding: encoding(EncodingKind::DirectV2),
            marks: std::mem::take(&mut self.marks),
        })
    }

    fn len(&self) -> usize {
        let id_bits = bits_of(self.dictionary.len() as u64) as usize;
        let ids = self.ids.len() * id_bits / 8;
        self.direct.len() + ids + self.dictionary.value_bytes() + self.dictionary.len()
    }

    fn memory_bytes(&self) -> usize {
        let rows = (self.ids.capacity() + self.last_seen.capacity()) * 4;
        self.direct.memory_bytes() + rows + self.dictionary.memory_bytes()
    }
}

/// A batch for a [`StringWriter`].
struct Push<'a> {
    writer: &'a mut StringWriter,
    rows: usize,
    nulls: Option<&'a NullBuffer>,
    seen: &'a mut Seen,
    cx: &'a mut Context,
}

impl Visitor for Push<'_> {
    fn visit(self, strings: &impl ByteStrings) -> Result<()> {
        if self.writer.is_direct {
            return self.writer.push_direct(strings, self.rows, self.nulls, self.seen, self.cx);
        }
        self.writer.push_ids(strings, self.rows, self.nulls, self.seen);
        Ok(())
    }
}
