//! A reader over streams.

use futures::future::join_all;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
use stoa_error::Result;

use super::reader::{CellReader, ReadStep};
use crate::batch::CellBatch;

/// Batches of cells, one after the other.
pub type CellStream = BoxStream<'static, Result<CellBatch>>;

/// The answer of `reader` from these inputs, whose number it was made with, from the oldest to the
/// newest. A merge needs the first batch of each input before it has its first cell, so all inputs begin
/// at the same time; later batches are read when they are needed. Dropping the answer drops the inputs.
pub fn read_stream(reader: CellReader, inputs: Vec<CellStream>) -> CellStream {
    let cells = |reading: Reading| {
        try_unfold(reading, |mut reading| async move {
            Ok(reading.next().await?.map(|batch| (batch, reading)))
        })
    };
    futures::stream::once(Reading::begin(reader, inputs)).flat_map(cells).boxed()
}

struct Reading {
    reader: CellReader,
    inputs: Vec<Input>,
}

struct Input {
    stream: CellStream,
    /// What came first, until it is asked for.
    first: Option<Result<Option<CellBatch>>>,
}

impl Input {
    async fn begin(mut stream: CellStream) -> Self {
        let first = Some(stream.try_next().await);
        Self { stream, first }
    }

    async fn next(&mut self) -> Result<Option<CellBatch>> {
        match self.first.take() {
            Some(first) => first,
            None => self.stream.try_next().await,
        }
    }
}

impl Reading {
    async fn begin(reader: CellReader, inputs: Vec<CellStream>) -> Self {
        Self { reader, inputs: join_all(inputs.into_iter().map(Input::begin)).await }
    }

    async fn next(&mut self) -> Result<Option<CellBatch>> {
        loop {
            match self.reader.step()? {
                ReadStep::Finished => return Ok(None),
                ReadStep::Batch(batch) => return Ok(Some(batch)),
                ReadStep::NeedsInput(nth) => {
                    let batch = match self.inputs.get_mut(nth) {
                        Some(input) => input.next().await?,
                        None => None,
                    };
                    self.reader.push(nth, batch);
                }
            }
        }
    }
}
