//! Bytes of messages on their way in, bounded for all calls together.
//!
//! gRPC says how long a message is before it sends it, and tonic makes room for so much at once: one
//! connection may have hundreds of calls, each with a message of the largest size. So each message
//! takes its length from a budget while it comes; where that is used up, its call ends, to be made
//! again later.

use std::sync::Arc;

use stoa_error::{Error, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::status::status;

/// What the budget counts in; a semaphore has no more permits than an `u32` can ask for.
const UNIT: usize = 1 << 10;
/// Whether the message is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// The budget of a server.
#[derive(Clone, Debug)]
pub(crate) struct MessageBytes {
    free: Arc<Semaphore>,
    /// Longer messages are refused when tonic sees them.
    message_max: usize,
}

impl MessageBytes {
    /// At least one message of the largest size has room.
    pub(crate) fn new(bytes: usize, message_max: usize) -> Self {
        let units = bytes.max(message_max).div_ceil(UNIT).min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(units)), message_max }
    }

    /// Meters the messages of one call.
    pub(crate) fn meter(&self) -> Meter {
        Meter { bytes: self.clone(), prefix: [0; PREFIX_BYTES], filled: 0, rest: 0, held: None }
    }

    fn hold(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, Status> {
        if bytes == 0 || bytes > self.message_max {
            return Ok(None);
        }
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        Arc::clone(&self.free).try_acquire_many_owned(units).map(Some).map_err(|_| {
            let message = "the messages of all clients together take more memory than they may";
            let error = Error::new(ErrorKind::Exhausted, message)
                .with_hint("call again later, with smaller batches");
            Status::unavailable(status(&error).message())
        })
    }
}

/// Follows the bytes of a call's messages; holds its part of the budget until it is dropped.
#[derive(Debug)]
pub(crate) struct Meter {
    bytes: MessageBytes,
    prefix: [u8; PREFIX_BYTES],
    /// Bytes of the prefix that are there.
    filled: usize,
    /// Bytes of the message that are still to come.
    rest: usize,
    held: Option<OwnedSemaphorePermit>,
}

impl Meter {
    /// More bytes have come.
    ///
    /// # Errors
    /// Unavailable: a message begins that the budget has no room for.
    pub(crate) fn take(&mut self, mut data: &[u8]) -> Result<(), Status> {
        while !data.is_empty() {
            let of_message = self.rest.min(data.len());
            self.rest -= of_message;
            data = data.get(of_message..).unwrap_or_default();
            while let ([byte, more @ ..], 0) = (data, self.rest) {
                data = more;
                self.begin_with(*byte)?;
            }
        }
        Ok(())
    }

    /// A byte of a prefix; the last one begins a message.
    fn begin_with(&mut self, byte: u8) -> Result<(), Status> {
        if let Some(place) = self.prefix.get_mut(self.filled) {
            *place = byte;
        }
        self.filled += 1;
        if self.filled < PREFIX_BYTES {
            return Ok(());
        }
        let [_, length @ ..] = self.prefix;
        self.filled = 0;
        self.rest = u32::from_be_bytes(length) as usize;
        // The message before this one was handed on.
        self.held = None;
        self.held = self.bytes.hold(self.rest)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend((length as u32).to_be_bytes());
        bytes.resize(PREFIX_BYTES + length, 7);
        bytes
    }

    #[test]
    fn a_message_holds_its_length_until_the_next_one() {
        let budget = MessageBytes::new(100 << 10, 60 << 10);
        let free = || budget.free.available_permits();
        let all = [message(50 << 10), message(0), message(3), message(10 << 10)].concat();
        for size in [1, 4, 5, 6, 1000, all.len()] {
            let mut meter = budget.meter();
            all.chunks(size).for_each(|part| meter.take(part).unwrap());
            assert_eq!((free(), meter.rest), (90, 0), "parts of {size}");
            drop(meter);
            assert_eq!(free(), 100);
        }
    }

    #[test]
    fn a_length_alone_is_held_and_refused_where_there_is_no_room() {
        let budget = MessageBytes::new(100 << 10, 60 << 10);
        let (mut one, mut two) = (budget.meter(), budget.meter());
        let long = message(60 << 10);
        one.take(&long[..PREFIX_BYTES]).unwrap();
        assert_eq!(two.take(&long[..PREFIX_BYTES]).unwrap_err().code(), tonic::Code::Unavailable);
        drop(one);
        budget.meter().take(&long).unwrap();
        // What tonic refuses by itself needs no room.
        budget.meter().take(&message(70 << 10)).unwrap();
        assert_eq!(budget.free.available_permits(), 100);
    }
}
