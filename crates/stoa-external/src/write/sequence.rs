//! A SequenceFile as Hive writes one: empty keys of BytesWritable, values of Text, not compressed.

use bytes::Bytes;
use stoa_env::random;
use stoa_error::{Error, Result};

/// Bytes after which the sync mark comes again, as in Hadoop 3.
const SYNC_INTERVAL: usize = 100 << 10;

/// The bytes of a file.
pub(super) struct SequenceEncoder {
    output: Vec<u8>,
    sync: [u8; 16],
    /// Bytes since the last sync mark.
    since_sync: usize,
}

impl SequenceEncoder {
    pub(super) fn new() -> Self {
        let sync = random::bytes();
        let mut output = b"SEQ\x06".to_vec();
        for class in ["org.apache.hadoop.io.BytesWritable", "org.apache.hadoop.io.Text"] {
            push_vint(&mut output, class.len());
            output.extend_from_slice(class.as_bytes());
        }
        // Neither compressed nor in blocks; no metadata.
        output.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
        output.extend_from_slice(&sync);
        Self { output, sync, since_sync: 0 }
    }

    pub(super) fn write(&mut self, line: &[u8]) -> Result<()> {
        if self.since_sync >= SYNC_INTERVAL {
            self.output.extend_from_slice(&(-1_i32).to_be_bytes());
            self.output.extend_from_slice(&self.sync);
            self.since_sync = 0;
        }
        let mut value = Vec::with_capacity(line.len() + 5);
        push_vint(&mut value, line.len());
        value.extend_from_slice(line);
        // The key is a BytesWritable without bytes: its length.
        let length = i32::try_from(value.len() + 4).map_err(|_| {
            Error::unsupported("a row of more than 2 GiB cannot be written to a SequenceFile")
        })?;
        self.output.extend_from_slice(&length.to_be_bytes());
        self.output.extend_from_slice(&4_i32.to_be_bytes());
        self.output.extend_from_slice(&0_i32.to_be_bytes());
        self.output.extend_from_slice(&value);
        self.since_sync += value.len() + 12;
        Ok(())
    }

    pub(super) fn take_output(&mut self) -> Bytes {
        std::mem::take(&mut self.output).into()
    }
}

/// `WritableUtils.writeVInt`.
fn push_vint(output: &mut Vec<u8>, value: usize) {
    if value <= 127 {
        output.push(u8::try_from(value).unwrap_or(127));
        return;
    }
    let bytes = (value as u64).to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let count = bytes.len() - zeros;
    let first = -112_i8 - i8::try_from(count).unwrap_or(8);
    output.push(first.to_ne_bytes()[0]);
    output.extend_from_slice(&bytes[zeros..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_hadoops() {
        let check = |value: usize, expected: &[u8]| {
            let mut output = Vec::new();
            push_vint(&mut output, value);
            assert_eq!(output, expected);
        };
        check(0, &[0]);
        check(127, &[127]);
        check(128, &[0x8f, 0x80]);
        check(256, &[0x8e, 0x01, 0x00]);
    }
}
