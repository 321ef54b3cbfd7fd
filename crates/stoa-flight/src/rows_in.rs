//! Batches that a client sends.
//!
//! In: the messages of a DoPut. Out: the schema, and the batches as they come. **Invariants:** what a
//! message says about its body is checked before the body is read; whatever a client sends, the
//! outcome is a batch or an error. A stream that breaks off ends with an error, never as if it were
//! complete.

use std::panic::AssertUnwindSafe;

use arrow_array::RecordBatch;
use arrow_flight::FlightData;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_schema::{Schema, SchemaRef};
use futures::{Stream, StreamExt, stream};
use stoa_error::{Error, ErrorKind, Result};
use stoa_load::check_ipc_message;
use stoa_query::BatchesIn;
use tonic::{Code, Status};

/// The schema that a client sends first, and its batches. Without a schema there are no columns.
///
/// # Errors
/// Messages that are not Arrow's.
pub(crate) async fn read(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> Result<(SchemaRef, BatchesIn)> {
    let checked = messages.filter_map(|message| async {
        match message.map(|message| (check(&message), message)) {
            // A message that only carries the command.
            Ok((_, message)) if message.data_header.is_empty() => None,
            Ok((Ok(()), message)) => Some(Ok(message)),
            Ok((Err(error), _)) => Some(Err(FlightError::ExternalError(Box::new(error)))),
            Err(status) => Some(Err(FlightError::from(status))),
        }
    });
    let mut decoder = Decoder { inner: Some(FlightDataDecoder::new(checked.boxed())) };
    loop {
        match decoder.next().await {
            Some(Ok(DecodedPayload::Schema(schema))) => {
                let batches = stream::unfold(decoder, |mut decoder| async move {
                    decoder.batch().await.map(|batch| (batch, decoder))
                });
                return Ok((schema, batches.boxed()));
            }
            Some(Ok(DecodedPayload::None)) => {}
            Some(Ok(DecodedPayload::RecordBatch(_))) => {
                return Err(damaged("rows come before their schema"));
            }
            Some(Err(error)) => return Err(error),
            None => return Ok((SchemaRef::new(Schema::empty()), stream::empty().boxed())),
        }
    }
}

/// The decoder of Arrow's crate, which ends at its first error.
struct Decoder {
    inner: Option<FlightDataDecoder>,
}

impl Decoder {
    async fn next(&mut self) -> Option<Result<DecodedPayload>> {
        let next = self.inner.as_mut()?.next();
        // The checks leave nothing known to panic; what is not known ends the call, not its server.
        let decoded = futures::FutureExt::catch_unwind(AssertUnwindSafe(next)).await;
        let ended = match decoded {
            Ok(Some(Ok(data))) => return Some(Ok(data.payload)),
            Ok(Some(Err(error))) => Some(Err(from_flight(error))),
            Ok(None) => None,
            Err(_) => Some(Err(damaged("a batch cannot be decoded"))),
        };
        self.inner = None;
        ended
    }

    async fn batch(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            match self.next().await? {
                Ok(DecodedPayload::RecordBatch(batch)) => return Some(Ok(batch)),
                Ok(DecodedPayload::None) => {}
                Ok(DecodedPayload::Schema(_)) => {
                    self.inner = None;
                    return Some(Err(damaged("a second schema follows the first")));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Checks that the parts a message announces are in its body.
fn check(message: &FlightData) -> Result<()> {
    check_ipc_message(&message.data_header, &message.data_body)
}

fn damaged(what: &str) -> Error {
    Error::invalid(format!("the rows sent are not Arrow data: {}", what.trim_end()))
        .with_sqlstate("08P01")
}

fn from_flight(error: FlightError) -> Error {
    match error {
        FlightError::Tonic(status) => broken_off(&status),
        FlightError::ExternalError(source) => match source.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => damaged("it cannot be read").with_source(other),
        },
        FlightError::Arrow(source) => damaged(&source.to_string()),
        other => damaged(&other.to_string()),
    }
}

/// The client's stream ended before its end, or one of its messages is too large.
pub(crate) fn broken_off(status: &Status) -> Error {
    match status.code() {
        Code::OutOfRange | Code::ResourceExhausted => Error::invalid(status.message())
            .with_sqlstate("54000")
            .with_hint("send batches of fewer rows"),
        // Said by `message_bytes`.
        Code::Unavailable => {
            let message = status.message().lines().next().unwrap_or_default();
            Error::new(ErrorKind::Exhausted, message).with_hint("send the rows again later")
        }
        _ => Error::new(ErrorKind::Cancelled, "the client's stream of rows broke off")
            .with_detail(status.message())
            .with_sqlstate("57014"),
    }
}
