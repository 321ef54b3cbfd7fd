//! `meta`: what a file says about itself.
//!
//! In: a file. Out: the text of `orc-tools meta`, or its JSON. **Invariant:** what is printed is what
//! is written in the file, also where a reader would not trust it; but for the tail, which must make
//! sense to be read at all.

mod bloom;
mod facts;
mod json;
mod names;
mod raw;
mod text;

use std::io::Write;
use std::path::Path;

use stoa_error::{Error, Result};
use stoa_orc::TypeTree;

use crate::file::OrcFile;
use crate::output::Output;
use crate::text::json::JsonWriter;
use raw::RawTail;

/// What to print.
#[derive(Clone, Debug, Default)]
pub struct MetaOptions {
    /// JSON instead of text.
    pub json: bool,
    /// JSON with a line for each member.
    pub pretty: bool,
    /// Columns whose row index and bloom filters to print: column ids, names (`a.b` for nested
    /// ones), or `*` for all.
    pub row_index: Vec<String>,
    /// The writer's time zone in the text; JSON always has it.
    pub timezone: bool,
}

/// Prints metadata of a file.
///
/// # Errors
/// `NotFound`, `Forbidden` or `Unavailable` if the file cannot be read; `Corrupt` if its tail, a stripe
/// footer or an index asked for is damaged; `Invalid` for a column that does not exist;
/// `Unavailable` with the sink's error as source if the output cannot be written.
pub fn meta(path: &Path, options: &MetaOptions, sink: &mut dyn Write) -> Result<()> {
    let file = OrcFile::open(path)?;
    let raw = RawTail::read(&file).map_err(|e| file.place(e))?;
    let columns = columns(&file.metadata.types, &options.row_index).map_err(|e| file.place(e))?;
    let subject = Subject { file: &file, raw: &raw, columns: &columns };
    let mut output = Output::new(sink);
    if options.json {
        // A document that fails half way is not printed at all.
        let mut json = JsonWriter::new(&mut output.buffer, options.pretty);
        json::write(&subject, &mut json)?;
        output.buffer.push(b'\n');
    } else {
        let result = text::write(&subject, options.timezone, &mut output);
        output.finish()?;
        return result;
    }
    output.finish()
}

/// What [`meta`] would print as JSON of a file whose metadata cannot be read.
pub fn failed_json(path: &Path, error: &Error, pretty: bool) -> String {
    let mut out = Vec::new();
    let mut json = JsonWriter::new(&mut out, pretty);
    let Ok(()) = json.object(|json| {
        json.name("fileName").text(&path.display().to_string());
        json.name("error").text(&error.message_with_sources());
        json.name("status").text("FAILED");
        Ok::<_, std::convert::Infallible>(())
    });
    out.push(b'\n');
    String::from_utf8_lossy(&out).into_owned()
}

/// What is printed about.
struct Subject<'a> {
    file: &'a OrcFile,
    raw: &'a RawTail,
    /// Columns whose indexes are wanted.
    columns: &'a [u32],
}

impl Subject<'_> {
    /// Bytes between stripes.
    fn padding_bytes(&self) -> u64 {
        let pairs = self.file.metadata.stripes.windows(2);
        pairs.map(|pair| pair[1].offset.saturating_sub(pair[0].range().end)).sum()
    }

    /// Bytes between stripes in percent of the file.
    fn padding_percent(&self) -> f64 {
        match self.file.metadata.file_bytes {
            0 => 0.0,
            bytes => 100.0 * self.padding_bytes() as f64 / bytes as f64,
        }
    }
}

/// The columns that `names` mean.
fn columns(types: &TypeTree, names: &[String]) -> Result<Vec<u32>> {
    let all = 0..u32::try_from(types.len()).unwrap_or(u32::MAX);
    let mut columns = Vec::new();
    for name in names {
        if name == "*" {
            columns.extend(all.clone());
            continue;
        }
        let by_id = name.parse().ok().filter(|column| all.contains(column));
        let found = by_id.or_else(|| all.clone().find(|column| types.path(*column) == *name));
        columns.push(found.ok_or_else(|| {
            Error::invalid(format!("no column {name:?}"))
                .with_sqlstate("42703")
                .with_hint(format!("column ids go from 0 to {}, or name a column", types.len() - 1))
        })?);
    }
    Ok(columns)
}
