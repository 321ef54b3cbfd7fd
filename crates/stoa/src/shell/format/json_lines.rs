//! Rows as one JSON object per line; NULL is `null`.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_json::writer::{LineDelimited, WriterBuilder};
use stoa_error::Result;

use super::values::cannot_show;
use super::{RowWriter, output_error};

pub(super) struct JsonLines;

impl RowWriter for JsonLines {
    fn begin(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        let mut writer = builder.build::<_, LineDelimited>(Vec::new());
        writer.write(batch).map_err(cannot_show)?;
        writer.finish().map_err(cannot_show)?;
        out.write_all(&writer.into_inner()).map_err(output_error)
    }

    fn end(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}
