//! Columns of a file whose table does not exist yet, told from a part of it.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use stoa_error::{Error, Result};
use stoa_load::{FileCompression, LoadOptions, infer_sample};

use crate::statements::columns::storable_schema;
use crate::statements::show::sql_type;

/// What a part of a file tells of all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileColumns {
    /// The format, as the load option of that name takes it.
    pub format: &'static str,
    /// The compression, as the load option of that name takes it.
    pub compression: &'static str,
    /// Names, and types as SQL writes them.
    pub columns: Vec<(String, String)>,
}

/// The columns of a table for the rows of a file, as `stoa load --create` would make it.
///
/// `sample` holds the first bytes of a text file, or the last ones of a Parquet file with its footer; `is_cut` says
/// that a text file goes on; `options` are load options. Takes as long as reading the sample: not for threads that
/// serve connections.
///
/// # Errors
/// Unknown options, formats and types, lines that are damaged (22P04), files without columns.
pub fn file_columns(
    name: &str,
    sample: Bytes,
    is_cut: bool,
    options: &BTreeMap<String, String>,
) -> Result<FileColumns> {
    let mut load = LoadOptions::default();
    for (option, value) in options {
        load.set(option, value)?;
    }
    // Libraries that read formats may panic over bytes that mean harm.
    let inferred = AssertUnwindSafe(|| infer_sample(name, sample, is_cut, &load));
    let (format, compression, schema) =
        std::panic::catch_unwind(inferred).unwrap_or_else(|_| {
            Err(Error::invalid(format!("{name} is damaged")).with_sqlstate("22P04"))
        })?;
    let schema = storable_schema(&schema)?;
    let columns = schema.fields().iter();
    Ok(FileColumns {
        format: format.name(),
        compression: match compression {
            FileCompression::None => "none",
            FileCompression::Gzip => "gzip",
            FileCompression::Zstd => "zstd",
        },
        columns: columns.map(|field| (field.name().clone(), sql_type(field.data_type()))).collect(),
    })
}
