//! A schema for files whose table does not exist yet.

mod guess;

use std::io::{Cursor, Read};
use std::path::PathBuf;

use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use serde_json::value::RawValue;
use stoa_error::{Error, Result};

use crate::adapt;
use crate::batch_reader::as_sent;
use crate::convert::Conversions;
use crate::delimited::Records;
use crate::header::{clean_names, no_names, schema_of};
use crate::input::{Input, cannot_read};
use crate::json_object::for_each_member;
use crate::ndjson::{line_options, not_an_object};
use crate::progress::Progress;
use crate::{FileCompression, Format, LoadOptions, arrow_ipc, format, orc_file, parquet_file};
use guess::Guess;

/// Decompressed bytes of a sample that are looked at.
const SAMPLE_BYTES_MAX: u64 = 16 << 20;

/// Columns in the order they were met, each with the narrowest type that holds what was seen.
type Guesses = Vec<(String, Guess)>;

/// Proposes a schema for a table that `inputs` can be loaded into.
///
/// Text files are sampled ([`LoadOptions::sample_rows`] rows of each); the others say what they
/// hold. Types are boolean, bigint, double, date, timestamp, timestamptz and text; numbers with
/// leading zeros are text, as are columns without any value. All columns are nullable. A later
/// line that does not fit is an error of the load.
///
/// # Errors
/// A file cannot be read; a sampled line is damaged (unless `max_errors` bears it); the files'
/// own schemas contradict each other.
pub fn infer_schema(inputs: &[PathBuf], options: &LoadOptions) -> Result<SchemaRef> {
    options.check()?;
    if inputs.is_empty() {
        return Err(Error::invalid("no file to take a schema from"));
    }
    let mut guesses: Guesses = Vec::new();
    let mut declared: Option<SchemaRef> = None;
    for path in inputs {
        let input = Input::Path(path.clone());
        let name = input.name();
        input.total_bytes()?;
        let (format, compression) =
            format::detect(&name, Some(path), options.format, options.compression)?;
        let schema = match format {
            Format::Parquet => parquet_file::schema(path)?,
            Format::Arrow => arrow_ipc::schema(path)?,
            Format::Orc => orc_file::schema(path)?,
            Format::Binary => {
                return Err(Error::invalid(format!("{name}: the binary format has no columns"))
                    .with_hint("create the table first"));
            }
            Format::Ndjson | Format::Csv | Format::Tsv | Format::PgText => {
                let reader = input.into_reader(compression, Progress::default().into())?;
                merge(&mut guesses, text(name, reader, format, options)?);
                continue;
            }
        };
        let schema = adapt::table_schema(&schema);
        match &declared {
            None => declared = Some(schema),
            Some(first) if *first == schema => {}
            Some(_) => {
                return Err(Error::invalid(format!(
                    "{name} has other columns or types than {}",
                    inputs.first().map(|path| path.display().to_string()).unwrap_or_default()
                ))
                .with_sqlstate("42804")
                .with_hint("create the table with the columns wanted, then load into it"));
            }
        }
    }
    match (declared, guesses.is_empty()) {
        (Some(schema), true) => Ok(schema),
        (Some(_), false) => Err(Error::invalid("text files and files with a schema of their own cannot be mixed when the table is created from them")
            .with_hint("create the table with the columns wanted, then load into it")),
        (None, _) => guessed(guesses),
    }
}

/// As [`infer_schema`], of one file of which only a part is there: the first bytes of a text file, the last ones of
/// a Parquet file, with its footer. `is_cut` says that more follows: the last line counts as cut off then.
///
/// # Errors
/// As [`infer_schema`]; `Unsupported` (0A000) for other formats.
pub fn infer_sample(
    name: &str,
    sample: Bytes,
    is_cut: bool,
    options: &LoadOptions,
) -> Result<(Format, FileCompression, SchemaRef)> {
    options.check()?;
    let (format, compression) = format::detect(name, None, options.format, options.compression)?;
    let schema = if format == Format::Parquet {
        adapt::table_schema(&*parquet_file::schema_of_tail(name, sample).map_err(as_sent)?)
    } else if format.is_text() {
        let (lines, is_cut) = whole_lines(name, sample, compression, is_cut)?;
        // A line within quotes may have been cut in two.
        let max_errors = options.max_errors.max(u64::from(is_cut));
        let options = LoadOptions { max_errors, ..options.clone() };
        guessed(text(name.to_owned(), Box::new(Cursor::new(lines)), format, &options)?)?
    } else {
        return Err(Error::unsupported(format!(
            "{name}: columns of {} from a part",
            format.name()
        ))
        .with_hint("create the table with the columns wanted, then load into it"));
    };
    Ok((format, compression, schema))
}

/// The decompressed lines of the first bytes of a file, and whether more follow.
fn whole_lines(
    name: &str,
    sample: Bytes,
    compression: FileCompression,
    is_cut: bool,
) -> Result<(Vec<u8>, bool)> {
    let reader = Box::new(Cursor::new(sample));
    let input = Input::Stream { name: name.to_owned(), reader, total_bytes: None };
    let mut lines = Vec::new();
    let reader = input.into_reader(compression, Progress::default().into())?;
    let read = reader.take(SAMPLE_BYTES_MAX).read_to_end(&mut lines);
    match read {
        // What is compressed ends in the middle where the file was cut.
        Err(error) if !is_cut || lines.is_empty() => return Err(cannot_read(name, error)),
        _ => {}
    }
    let is_cut = is_cut || lines.len() as u64 == SAMPLE_BYTES_MAX;
    if is_cut {
        let end = lines.iter().rposition(|byte| matches!(byte, b'\n' | b'\r'));
        let Some(end) = end else {
            return Err(Error::invalid(format!("{name}: the first line does not end"))
                .with_detail(format!("it has more than {} bytes", lines.len()))
                .with_hint("create the table with the columns wanted, then load into it"));
        };
        lines.truncate(end + 1);
    }
    Ok((lines, is_cut))
}

fn text(
    name: String,
    reader: Box<dyn Read + Send>,
    format: Format,
    options: &LoadOptions,
) -> Result<Guesses> {
    if format == Format::Ndjson {
        let records = Records::new(name, reader, &line_options(options), Format::Csv)?;
        return ndjson(records, options);
    }
    delimited(Records::new(name, reader, options, format)?, format, options)
}

fn guessed(guesses: Guesses) -> Result<SchemaRef> {
    if guesses.is_empty() {
        return Err(Error::invalid("the files have no columns")
            .with_hint("they are empty; create the table with the columns wanted"));
    }
    Ok(schema_of(guesses.into_iter().map(|(n, guess)| (n, guess.data_type())).collect()))
}

fn merge(all: &mut Guesses, one: Guesses) {
    for (name, guess) in one {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = std::mem::take(known).merge(guess),
            None => all.push((name, guess)),
        }
    }
}

fn delimited(mut records: Records, format: Format, options: &LoadOptions) -> Result<Guesses> {
    let conversions = Conversions::new(options, format)?;
    let mut names: Option<Vec<Option<String>>> = None;
    if options.header_of(format) {
        let name = records.name.clone();
        let Some(mut row) = records.next()? else {
            return Err(Error::invalid(format!("{name} is empty"))
                .with_hint("there is no header in it to name columns by"));
        };
        let place = row.place();
        if let Some(defect) = row.defect.take() {
            return Err(defect.into_error(place));
        }
        let texts = row.texts();
        if texts.iter().all(String::is_empty) && options.columns.is_empty() {
            return Err(no_names(place));
        }
        names = Some(clean_names(&texts).into_iter().map(Some).collect());
    }
    if !options.columns.is_empty() {
        names = Some(options.columns.clone());
    }
    let mut guesses: Vec<Guess> = Vec::new();
    let mut seen = 0;
    let mut errors = 0;
    while seen < options.sample_rows {
        let Some(mut row) = records.next()? else {
            break;
        };
        let expected = names.as_ref().map_or(row.len(), Vec::len);
        if expected > 1 && row.is_blank() {
            continue;
        }
        let names = names.get_or_insert_with(|| {
            clean_names(&vec![String::new(); expected]).into_iter().map(Some).collect()
        });
        let bad = row
            .defect
            .take()
            .or_else(|| (row.len() != names.len()).then(|| row.wrong_count(names.len())));
        if let Some(bad) = bad {
            errors += 1;
            if errors > options.max_errors {
                return Err(bad.into_error(row.place()));
            }
            continue;
        }
        guesses.resize(names.len(), Guess::Unknown);
        for (at, guess) in guesses.iter_mut().enumerate() {
            let (text, quoted) = row.field(at);
            *guess = std::mem::take(guess).merge(Guess::of_field(text, quoted, &conversions));
        }
        seen += 1;
    }
    let names = names.unwrap_or_default();
    guesses.resize(names.len(), Guess::Unknown);
    Ok(names.into_iter().zip(guesses).filter_map(|(name, guess)| Some((name?, guess))).collect())
}

fn ndjson(mut records: Records, options: &LoadOptions) -> Result<Guesses> {
    let conversions = Conversions::new(options, Format::Ndjson)?;
    let mut guesses: Guesses = Vec::new();
    let mut errors = 0;
    for _ in 0..options.sample_rows {
        let Some(row) = records.next()? else {
            break;
        };
        let text = String::from_utf8_lossy(row.raw.trim_ascii()).into_owned();
        let mut line: Vec<(String, Guess)> = Vec::new();
        let parsed = for_each_member(&text, |key, raw: &RawValue| {
            line.push((key.into_owned(), Guess::of_json(raw.get(), &conversions)));
        });
        match parsed {
            Ok(()) => merge(&mut guesses, line),
            Err(e) => {
                errors += 1;
                if errors > options.max_errors {
                    return Err(not_an_object(&text, &e).into_error(row.place()));
                }
            }
        }
    }
    Ok(guesses)
}

/// The type of a column nobody could say more about.
pub(crate) const FALLBACK: DataType = DataType::Utf8;
