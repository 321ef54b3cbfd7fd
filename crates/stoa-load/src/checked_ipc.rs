//! The bytes of an Arrow IPC stream, each message checked before Arrow's reader sees it.
//!
//! In: any reader. Out: the same bytes, until a message says what is not so or is too large: then an
//! I/O error that carries ours ([`error_of`]). Memory grows with the bytes that are there, not with
//! what is said of them.

use std::io::{self, Read, Seek, SeekFrom};

use arrow_ipc::{Block, root_as_footer};
use arrow_schema::ArrowError;
use stoa_error::{Error, Result};

use crate::ipc_message::{self, METADATA_BYTES_MAX, damaged};

/// What stands before the length of a message, since version 0.15 of the format.
const CONTINUATION: [u8; 4] = [0xFF; 4];
/// At the end of a file: the footer's length and the magic.
const FILE_END_BYTES: u64 = 10;
/// Bytes of a message before its metadata.
const PREFIX_BYTES: u64 = 8;

/// A reader of checked messages.
pub(crate) struct CheckedIpc<R> {
    inner: R,
    /// Bytes that were checked, and how many of them were read.
    checked: Vec<u8>,
    read: usize,
    /// Bytes of a body that go through as they come.
    body_left: u64,
    /// Bytes of the whole stream, where that is known.
    total: Option<u64>,
    /// Bytes taken from `inner`.
    taken: u64,
}

impl<R: Read> CheckedIpc<R> {
    /// Reads a stream whose length is `total`, if that is known.
    pub(crate) fn new(inner: R, total: Option<u64>) -> Self {
        Self { inner, checked: Vec::new(), read: 0, body_left: 0, total, taken: 0 }
    }

    /// How many bytes were taken.
    pub(crate) fn position(&self) -> u64 {
        self.taken
    }

    /// Adds up to `count` bytes to those that were checked; returns how many there were.
    fn take_in(&mut self, count: u64) -> io::Result<usize> {
        let before = self.checked.len();
        (&mut self.inner).take(count).read_to_end(&mut self.checked)?;
        let taken = self.checked.len() - before;
        self.taken += taken as u64;
        Ok(taken)
    }

    /// Reads what stands before the next body, and checks it. What is cut short goes on as it is, for
    /// Arrow's reader to complain about.
    fn next_message(&mut self) -> io::Result<()> {
        self.checked.clear();
        self.read = 0;
        if self.take_in(4)? < 4 || (self.checked == CONTINUATION && self.take_in(4)? < 4) {
            return Ok(());
        }
        let Some(length) = self.checked.last_chunk::<4>() else { return Ok(()) };
        let Some(length) = u64::try_from(i32::from_le_bytes(*length)).ok().filter(|n| *n > 0)
        else {
            return Ok(());
        };
        if length > METADATA_BYTES_MAX {
            let what = format!("a message's header of {length} bytes is too long");
            return Err(io_error(ipc_message::too_large(what)));
        }
        let start = self.checked.len();
        if (self.take_in(length)? as u64) < length {
            return Ok(());
        }
        let metadata = self.checked.split_off(start);
        let (body, is_compressed) = self.announced(&metadata).map_err(io_error)?;
        self.checked.extend_from_slice(&metadata);
        if !is_compressed {
            self.body_left = body;
            return Ok(());
        }
        let start = self.checked.len();
        if self.take_in(body)? as u64 == body {
            let bytes = self.checked.get(start..).unwrap_or_default();
            let message = ipc_message::parse(&metadata).map_err(io_error)?;
            ipc_message::check_compressed(&message, bytes).map_err(io_error)?;
        }
        Ok(())
    }

    /// Length of the body that a message announces, and whether it is compressed.
    fn announced(&self, metadata: &[u8]) -> Result<(u64, bool)> {
        let message = ipc_message::parse(metadata)?;
        let body = ipc_message::body_bytes(&message)?;
        let is_compressed = ipc_message::is_compressed(&message);
        match self.total {
            Some(total) if body > total.saturating_sub(self.taken) => {
                return Err(damaged(&format!("a body of {body} bytes goes beyond the file's end")));
            }
            Some(_) if !is_compressed => {}
            _ => ipc_message::check_body_bytes(body)?,
        }
        ipc_message::check_layout(&message, body)?;
        Ok((body, is_compressed))
    }
}

impl<R: Read> Read for CheckedIpc<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read == self.checked.len() && self.body_left == 0 {
            self.next_message()?;
        }
        if let Some(checked) = self.checked.get(self.read..).filter(|bytes| !bytes.is_empty()) {
            let count = checked.len().min(out.len());
            let (Some(from), Some(to)) = (checked.get(..count), out.get_mut(..count)) else {
                return Ok(0);
            };
            to.copy_from_slice(from);
            self.read += count;
            return Ok(count);
        }
        let most = usize::try_from(self.body_left).unwrap_or(usize::MAX).min(out.len());
        let count = self.inner.read(out.get_mut(..most).unwrap_or_default())?;
        self.taken += count as u64;
        self.body_left -= count as u64;
        Ok(count)
    }
}

/// Checks what the footer of a file says of its batches, and leaves the file at its start.
///
/// # Errors
/// Invalid (08P01) where a batch is not where it should be; those of reading.
pub(crate) fn check_file<R: Read + Seek>(file: &mut R) -> Result<()> {
    let checked = check_blocks(file);
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    checked
}

fn check_blocks<R: Read + Seek>(file: &mut R) -> Result<()> {
    let total = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
    let Some(end) = total.checked_sub(FILE_END_BYTES) else { return Ok(()) };
    let length = bytes_at(file, end, 4)?;
    let length = length.first_chunk::<4>().map_or(0, |length| i32::from_le_bytes(*length));
    let start = u64::try_from(length).ok().and_then(|length| end.checked_sub(length));
    let start = start.ok_or_else(|| damaged("the file's footer is longer than the file"))?;
    let footer = bytes_at(file, start, end - start)?;
    // One that cannot be read is Arrow's to complain about.
    let Ok(footer) = root_as_footer(&footer) else { return Ok(()) };
    if footer.schema().is_none() {
        return Err(damaged("the file's footer has no schema"));
    }
    let blocks = footer.dictionaries().into_iter().chain(footer.recordBatches());
    for block in blocks.flat_map(|blocks| blocks.iter()) {
        check_block(file, block, start)?;
    }
    Ok(())
}

fn check_block<R: Read + Seek>(file: &mut R, block: &Block, end: u64) -> Result<()> {
    let outside = || damaged("a batch lies outside of the file");
    let part = |value: i64| u64::try_from(value).map_err(|_| outside());
    let offset = part(block.offset())?;
    let metadata = part(block.metaDataLength().into())?;
    let body = part(block.bodyLength())?;
    let ends = offset.checked_add(metadata).and_then(|start| start.checked_add(body));
    if !(PREFIX_BYTES..=METADATA_BYTES_MAX).contains(&metadata) || ends.is_none_or(|at| at > end) {
        return Err(outside());
    }
    let bytes = bytes_at(file, offset, metadata)?;
    let skipped = if bytes.starts_with(&CONTINUATION) { 8 } else { 4 };
    let message = ipc_message::parse(bytes.get(skipped..).unwrap_or_default())?;
    ipc_message::check_layout(&message, body)?;
    if ipc_message::is_compressed(&message) {
        ipc_message::check_body_bytes(body)?;
        let body = bytes_at(file, offset + metadata, body)?;
        ipc_message::check_compressed(&message, &body)?;
    }
    Ok(())
}

fn bytes_at<R: Read + Seek>(file: &mut R, offset: u64, count: u64) -> Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn unreadable(error: io::Error) -> Error {
    Error::unavailable("the Arrow file cannot be read").with_source(error)
}

fn io_error(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Our error, where one of Arrow's carries it.
///
/// # Errors
/// The error as it is, where it carries none.
pub(crate) fn error_of(error: ArrowError) -> Result<Error, ArrowError> {
    match error {
        ArrowError::IoError(text, source) => match source.downcast::<Error>() {
            Ok(ours) => Ok(ours),
            Err(source) => Err(ArrowError::IoError(text, source)),
        },
        other => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatch, StringArray};
    use arrow_ipc::reader::StreamReader;
    use arrow_ipc::writer::{FileWriter, StreamWriter};
    use arrow_ipc::{CompressionType, writer::IpcWriteOptions};

    use super::*;

    fn batch() -> RecordBatch {
        let ids = Int64Array::from_iter_values(0..1000);
        let names = StringArray::from_iter_values((0..1000).map(|id| format!("name {}", id % 7)));
        RecordBatch::try_from_iter([
            ("id", Arc::new(ids) as arrow_array::ArrayRef),
            ("name", Arc::new(names)),
        ])
        .unwrap()
    }

    fn options(compression: Option<CompressionType>) -> IpcWriteOptions {
        IpcWriteOptions::default().try_with_compression(compression).unwrap()
    }

    fn stream(compression: Option<CompressionType>) -> Vec<u8> {
        let batch = batch();
        let mut writer =
            StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options(compression))
                .unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    /// Rows, or the error's SQLSTATE; "arrow" for those of Arrow's reader.
    fn read(bytes: &[u8], total: Option<u64>) -> Result<usize, &'static str> {
        let code = |error| error_of(error).map_or("arrow", |error| error.sqlstate());
        let reader = StreamReader::try_new(CheckedIpc::new(bytes, total), None).map_err(code)?;
        let mut rows = 0;
        for batch in reader {
            rows += batch.map_err(code)?.num_rows();
        }
        Ok(rows)
    }

    const KINDS: [Option<CompressionType>; 3] =
        [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];

    #[test]
    fn honest_streams_pass_as_they_are() {
        for kind in KINDS {
            let bytes = stream(kind);
            assert_eq!(read(&bytes, None), Ok(2000));
            assert_eq!(read(&bytes, Some(bytes.len() as u64)), Ok(2000));
            let mut same = Vec::new();
            CheckedIpc::new(bytes.as_slice(), None).read_to_end(&mut same).unwrap();
            assert_eq!(same, bytes);
        }
    }

    /// The stream with the 8 bytes that are `from` made `to`, wherever they are.
    fn changed(bytes: &[u8], from: i64, to: i64) -> Vec<u8> {
        let (from, to) = (from.to_le_bytes(), to.to_le_bytes());
        let mut bytes = bytes.to_vec();
        let places: Vec<usize> =
            (0..bytes.len() - 8).filter(|at| bytes[*at..at + 8] == from).collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at..at + 8].copy_from_slice(&to);
        }
        bytes
    }

    fn body_length(bytes: &[u8]) -> i64 {
        // The second message is the first batch.
        let length = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let second = 8 + length(4);
        let metadata = &bytes[second + 8..second + 8 + length(second + 4)];
        ipc_message::parse(metadata).unwrap().bodyLength()
    }

    #[test]
    fn absurd_lengths_are_refused_before_they_are_believed() {
        let bytes = stream(None);
        let length = body_length(&bytes);
        for (absurd, code) in
            [(1 << 60, "54000"), (i64::MAX, "54000"), (1 << 30, "54000"), (-1, "08P01")]
        {
            assert_eq!(read(&changed(&bytes, length, absurd), None), Err(code), "{absurd}");
        }
        // Of a file it is known what is there.
        let bytes = changed(&bytes, length, length + (1 << 20));
        assert_eq!(read(&bytes, Some(bytes.len() as u64)), Err("08P01"));
        // Metadata, too.
        let mut bytes = stream(None);
        bytes[4..8].copy_from_slice(&i32::MAX.to_le_bytes());
        assert_eq!(read(&bytes, None), Err("54000"));
    }

    #[test]
    fn rows_that_no_body_can_hold_are_refused() {
        assert_eq!(read(&changed(&stream(None), 1000, 1 << 50), None), Err("08P01"));
    }

    #[test]
    fn what_a_buffer_decompresses_to_is_bounded() {
        for kind in KINDS.into_iter().flatten() {
            for absurd in [1 << 60, 1 << 40] {
                // 8,000 bytes of ids, and the prefix of their buffer says so.
                let bytes = changed(&stream(Some(kind)), 8000, absurd);
                assert_eq!(read(&bytes, None), Err("54000"), "{kind:?}");
            }
        }
    }

    #[test]
    fn batches_of_a_file_must_be_in_it() {
        let batch = batch();
        for kind in KINDS {
            let mut writer =
                FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options(kind))
                    .unwrap();
            writer.write(&batch).unwrap();
            let bytes = writer.into_inner().unwrap();
            check_file(&mut io::Cursor::new(&bytes)).unwrap();
            let mut cut = bytes.clone();
            cut.drain(8..72);
            assert!(check_file(&mut io::Cursor::new(&cut)).is_err(), "{kind:?}");
            let mut long = bytes.clone();
            let end = long.len() - 10;
            long[end..end + 4].copy_from_slice(&i32::MAX.to_le_bytes());
            assert!(check_file(&mut io::Cursor::new(&long)).is_err());
        }
    }
}
