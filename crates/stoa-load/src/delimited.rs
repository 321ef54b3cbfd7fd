//! CSV, TSV and PostgreSQL's COPY text to batches.

mod dialect;
mod reader;
mod records;
mod scan;

pub(crate) use reader::DelimitedReader;
pub(crate) use records::{Records, Row};
