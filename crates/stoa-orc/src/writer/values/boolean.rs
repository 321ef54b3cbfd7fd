//! BOOLEAN: one boolean RLE stream.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::NullBuffer;

use super::direct::DirectValues;
use super::mismatch;
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::collector::Bounds;
use crate::writer::column::Seen;
use crate::writer::stream::{BooleanStream, Context};

pub(super) struct BooleanValues;

impl DirectValues for BooleanValues {
    type Streams = BooleanStream;
    const KINDS: &'static [StreamKind] = &[StreamKind::Data];
    const ENCODING: EncodingKind = EncodingKind::Direct;

    fn new_streams() -> BooleanStream {
        BooleanStream::default()
    }

    fn write(
        &mut self,
        data: &mut BooleanStream,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        _cx: &mut Context,
    ) -> Result<()> {
        let Some(array) = array.as_boolean_opt() else {
            return Err(mismatch(array, "a boolean"));
        };
        let bits = array.values();
        let mut more = 0;
        match nulls {
            None => {
                data.push_buffer(bits);
                more = bits.count_set_bits();
            }
            Some(nulls) => {
                for (from, to) in nulls.valid_slices() {
                    let part = bits.slice(from, to - from);
                    data.push_buffer(&part);
                    more += part.count_set_bits();
                }
            }
        }
        if let Bounds::Boolean { trues } = &mut seen.collector.bounds {
            *trues += more as u64;
        }
        Ok(())
    }
}
