//! The tail of the file: statistics of stripes, footer, postscript.

use prost::Message;
use stoa_error::Error;

use super::{CHECKSUMS_KEY, COMPACT_INDEX_KEY, MAGIC, Writer};
use crate::block_checksums::seal_tail;
use crate::error::Result;
use crate::proto;

/// `Footer.writer`: the code of ORC C++. Codes that are not registered make readers fail (pyarrow
/// raises, others apply no rule); of the registered ones this one promises what holds here:
/// correct statistics, timestamps in UTC, UTF-8 bloom filters.
const WRITER: u32 = 1;

/// `PostScript.writer_version`: the first of every writer but Java's.
const WRITER_VERSION: u32 = 6;

/// `PostScript.version`: the format of Hive 0.12, that is ORC v1.
const FORMAT_VERSION: [u32; 2] = [0, 12];

impl Writer {
    /// Appends everything after the stripes to the output.
    pub(super) fn write_tail(&mut self) -> Result<()> {
        let content_end = self.bytes_written();
        let stripe_stats = std::mem::take(&mut self.stripe_statistics);
        let metadata = proto::Metadata { stripe_stats }.encode_to_vec();
        self.cx.compressor.write_section(&metadata, &mut self.output)?;
        let metadata_end = self.bytes_written();

        if let Some(copy) = self.compact_index.finish()? {
            self.options.user_metadata.insert(COMPACT_INDEX_KEY.to_owned(), copy);
        }
        if self.options.checksums {
            let checksums = self.checksums.finish();
            self.options.user_metadata.insert(CHECKSUMS_KEY.to_owned(), checksums);
        }
        let footer = self.footer(content_end).encode_to_vec();
        self.cx.compressor.write_section(&footer, &mut self.output)?;
        let postscript = proto::PostScript {
            footer_length: Some(self.bytes_written() - metadata_end),
            compression: Some(self.options.compression.kind().number()),
            compression_block_size: Some(self.options.compression_block_bytes as u64),
            version: FORMAT_VERSION.to_vec(),
            metadata_length: Some(metadata_end - content_end),
            writer_version: Some(WRITER_VERSION),
            stripe_statistics_length: None,
            // Its place; the value comes last.
            tail_checksum: self.options.checksums.then_some(0),
            magic: Some(String::from_utf8_lossy(MAGIC).into_owned()),
        };
        let postscript = postscript.encode_to_vec();
        let Ok(length) = u8::try_from(postscript.len()) else {
            return Err(Error::internal(format!("postscript of {} bytes", postscript.len())));
        };
        self.output.extend_from_slice(&postscript);
        self.output.push(length);
        if self.options.checksums {
            let tail_from = (content_end - self.taken_bytes) as usize;
            seal_tail(&mut self.output[tail_from..])?;
        }
        Ok(())
    }

    fn footer(&self, content_end: u64) -> proto::Footer {
        let metadata = self.options.user_metadata.iter().map(|(name, value)| {
            proto::UserMetadataItem { name: Some(name.clone()), value: Some(value.clone().into()) }
        });
        let mut statistics = Vec::with_capacity(self.types.len());
        self.root.file_statistics(&mut statistics);
        proto::Footer {
            header_length: Some(MAGIC.len() as u64),
            content_length: Some(content_end),
            stripes: self.stripes.clone(),
            types: self.types.to_proto(),
            metadata: metadata.collect(),
            number_of_rows: Some(self.rows),
            statistics,
            row_index_stride: Some(self.options.row_index_stride),
            writer: Some(WRITER),
            encryption: None,
            calendar: self
                .options
                .names_calendar
                .then_some(proto::CalendarKind::ProlepticGregorian as i32),
            software_version: Some(concat!("stoa-", env!("CARGO_PKG_VERSION")).to_owned()),
        }
    }
}
