//! Writes a log's frames as JSON lines: behind `stoa log dump`.
//!
//! ```text
//! {"position":"3f9a0c1b22d4e5f6:7","segment":1,"offset":64,"bytes":12,"crc":"9a3b01ff","payload":"00ff…"}
//! {"damage":"CRC-32C does not match","segment":2,"offset":4711,"sequence":8,"torn":false}
//! ```

use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use stoa_error::{Error, Result};

use crate::LogId;
use crate::salvage::intact_behind;
use crate::storage::LogStorage;
use crate::walk::{Damage, Event, Walk};

/// Which frames to write, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// Only these sequences.
    pub sequences: RangeInclusive<u64>,
    /// Whether payloads are written, in hexadecimal.
    pub payloads: bool,
    /// Whether frames behind damage that are whole are written too, with `"behind_damage":true`.
    pub behind_damage: bool,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self { sequences: 0..=u64::MAX, payloads: false, behind_damage: false }
    }
}

/// Writes the frames of the log in `storage` to `out`, a line each, and the damage that ends them,
/// if there is any. Blocks. Returns how many frames.
///
/// # Errors
/// The storage's, and `out`'s.
pub fn dump(
    storage: &Arc<dyn LogStorage>,
    options: &DumpOptions,
    out: &mut dyn Write,
) -> Result<u64> {
    let mut walk = Walk::new(storage.clone())?;
    let (mut log, mut segment, mut frames) = (LogId::from_bits(0), 0, 0);
    while let Some(event) = walk.next()? {
        match event {
            Event::Segment(header) => (log, segment) = (header.log, header.number),
            Event::Frame(frame) => {
                let line = Line {
                    log,
                    segment,
                    offset: frame.offset,
                    sequence: frame.sequence,
                    crc: frame.crc,
                    payload: frame.payload,
                    behind_damage: false,
                };
                frames += line.write(options, out)?;
            }
            Event::Damage(damage) => {
                write_damage(&damage, out).map_err(unwritten)?;
                if options.behind_damage {
                    frames += dump_behind(storage, log, &damage, options, out)?;
                }
            }
            Event::Mark(_) | Event::SegmentEnd => {}
        }
    }
    out.flush().map_err(unwritten)?;
    Ok(frames)
}

fn dump_behind(
    storage: &Arc<dyn LogStorage>,
    log: LogId,
    damage: &Damage,
    options: &DumpOptions,
    out: &mut dyn Write,
) -> Result<u64> {
    let mut frames = 0;
    intact_behind(storage.as_ref(), damage, |segment, found| {
        let Some(payload) = found.payload else { return Ok(()) };
        let (offset, sequence, crc) = (found.offset, found.sequence, found.crc);
        let line = Line { log, segment, offset, sequence, crc, payload, behind_damage: true };
        frames += line.write(options, out)?;
        Ok(())
    })?;
    Ok(frames)
}

struct Line {
    log: LogId,
    segment: u64,
    offset: u64,
    sequence: u64,
    crc: u32,
    payload: Bytes,
    behind_damage: bool,
}

impl Line {
    /// Writes the line if it is asked for; how many were written.
    fn write(&self, options: &DumpOptions, out: &mut dyn Write) -> Result<u64> {
        if !options.sequences.contains(&self.sequence) {
            return Ok(0);
        }
        self.write_json(options.payloads, out).map_err(unwritten)?;
        Ok(1)
    }

    fn write_json(&self, payload: bool, out: &mut dyn Write) -> std::io::Result<()> {
        let (segment, offset, bytes) = (self.segment, self.offset, self.payload.len());
        let position = self.log.at(self.sequence);
        write!(out, r#"{{"position":"{position}","segment":{segment},"offset":{offset}"#)?;
        write!(out, r#","bytes":{bytes},"crc":"{:08x}""#, self.crc)?;
        if payload {
            write!(out, r#","payload":""#)?;
            self.payload.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
            write!(out, r#"""#)?;
        }
        if self.behind_damage {
            write!(out, r#","behind_damage":true"#)?;
        }
        writeln!(out, "}}")
    }
}

fn write_damage(damage: &Damage, out: &mut dyn Write) -> std::io::Result<()> {
    // The text is this crate's own: it needs no escapes.
    writeln!(
        out,
        r#"{{"damage":"{}","segment":{},"offset":{},"sequence":{},"torn":{}}}"#,
        damage.what, damage.segment, damage.offset, damage.sequence, damage.torn
    )
}

fn unwritten(source: std::io::Error) -> Error {
    Error::unavailable("cannot write the dump").with_source(source)
}
