//! A reader over streams.

use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
use stoa_error::Result;

use super::reader::{CellReader, ReadStep};
use crate::batch::CellBatch;

/// Batches of cells, one after the other.
pub type CellStream = BoxStream<'static, Result<CellBatch>>;

/// The answer of `reader` from these inputs, whose number it was made with, from the oldest to the
/// newest. Inputs are read when they are needed; dropping the answer drops them.
pub fn read_stream(reader: CellReader, inputs: Vec<CellStream>) -> CellStream {
    let step = |(mut reader, mut inputs): (CellReader, Vec<CellStream>)| async move {
        loop {
            match reader.step()? {
                ReadStep::Finished => return Ok(None),
                ReadStep::Batch(batch) => return Ok(Some((batch, (reader, inputs)))),
                ReadStep::NeedsInput(input) => {
                    let batch = match inputs.get_mut(input) {
                        Some(stream) => stream.try_next().await?,
                        None => None,
                    };
                    reader.push(input, batch);
                }
            }
        }
    };
    try_unfold((reader, inputs), step).boxed()
}
