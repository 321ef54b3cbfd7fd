//! What the user may say about the files.

use std::path::PathBuf;

use stoa_error::{Error, Result};

use crate::{FileCompression, Format, Spool};

/// How lines end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEnding {
    /// `\n`, `\r\n` or `\r`, each where it stands.
    #[default]
    Auto,
    /// `\n` only; `\r` is data.
    Lf,
    /// `\r\n` only; either alone is data.
    CrLf,
    /// `\r` only; `\n` is data.
    Cr,
}

/// What to do when file and table do not have the same columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnPolicy {
    /// Stop with an error.
    #[default]
    Error,
    /// Go on: columns missing in the file become NULL, columns missing in the table are skipped.
    Ignore,
}

/// How files are read. [`LoadOptions::set`] takes each field by name and text;
/// [`LoadOptions::describe`] lists names, defaults and meanings.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// The format; `None` = by the file's name or first bytes.
    pub format: Option<Format>,
    /// The compression; `None` = by the file's name or first bytes.
    pub compression: Option<FileCompression>,
    /// Whether the first line names the columns; `None` = yes for CSV and TSV, no for PgText.
    pub header: Option<bool>,
    /// Names of the file's columns in order, for files without a usable header; `None` inside
    /// skips that column. Overrides the names in the header.
    pub columns: Vec<Option<String>>,
    /// The byte between fields; `None` = comma for CSV, tab for TSV and PgText.
    pub delimiter: Option<u8>,
    /// The byte around quoted fields; `None` = quotes are data.
    pub quote: Option<u8>,
    /// The byte that makes a quote inside a quoted field data; `None` = the quote itself.
    pub escape: Option<u8>,
    /// Texts that mean NULL; empty = the empty text for CSV and TSV, `\N` for PgText.
    pub null_text: Vec<String>,
    /// How lines end.
    pub line_ending: LineEnding,
    /// Physical lines to pass over before the header or the first row.
    pub skip_lines: u64,
    /// Lines that start with this are passed over.
    pub comment: Option<String>,
    /// Whether rows whose fields are all empty are passed over (lines with nothing at all
    /// always are, where the file has more than one column).
    pub skip_empty_rows: bool,
    /// The character between groups of three digits.
    pub thousands_separator: Option<char>,
    /// The byte before the fraction of a number.
    pub decimal_point: u8,
    /// How dates look, as in chrono's strftime; `None` = ISO 8601.
    pub date_format: Option<String>,
    /// How timestamps look, as in chrono's strftime, or `epoch_s`, `epoch_ms`, `epoch_us`,
    /// `epoch_ns`; `None` = ISO 8601.
    pub timestamp_format: Option<String>,
    /// The zone of timestamps that name none, for columns with time zone (IANA name).
    pub time_zone: chrono_tz::Tz,
    /// Texts that mean true, compared without case.
    pub true_text: Vec<String>,
    /// Texts that mean false, compared without case.
    pub false_text: Vec<String>,
    /// Whether blanks around fields are dropped (around numbers, dates and booleans they always
    /// are).
    pub trim: bool,
    /// Whether the text is Latin-1 (really Windows-1252's common part) rather than UTF-8.
    pub latin1: bool,
    /// What to do with table columns that the file lacks.
    pub missing_columns: ColumnPolicy,
    /// What to do with file columns that the table lacks.
    pub extra_columns: ColumnPolicy,
    /// Bad lines to bear before giving up.
    pub max_errors: u64,
    /// Where bad lines are copied to.
    pub reject_file: Option<PathBuf>,
    /// Whether a reject file that is there already is an error, instead of being written anew. Not
    /// for users to say: [`LoadOptions::set`] does not know it.
    pub reject_file_is_new: bool,
    /// Where streams of formats that are read from their end (Parquet, ORC) become files first; they are
    /// refused if `None`. Not for users to say, either.
    pub spool: Option<Spool>,
    /// Rows per batch.
    pub batch_rows: usize,
    /// Longest line, in bytes; quoted line ends count as part of it.
    pub max_line_bytes: usize,
    /// Rows of each file that schema inference looks at.
    pub sample_rows: usize,
}

impl Default for LoadOptions {
    fn default() -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            format: None,
            compression: None,
            header: None,
            columns: Vec::new(),
            delimiter: None,
            quote: Some(b'"'),
            escape: None,
            null_text: Vec::new(),
            line_ending: LineEnding::Auto,
            skip_lines: 0,
            comment: None,
            skip_empty_rows: false,
            thousands_separator: None,
            decimal_point: b'.',
            date_format: None,
            timestamp_format: None,
            time_zone: chrono_tz::UTC,
            true_text: texts(&["true", "t", "yes", "y", "on", "1"]),
            false_text: texts(&["false", "f", "no", "n", "off", "0"]),
            trim: false,
            latin1: false,
            missing_columns: ColumnPolicy::Error,
            extra_columns: ColumnPolicy::Error,
            max_errors: 0,
            reject_file: None,
            reject_file_is_new: false,
            spool: None,
            batch_rows: 8192,
            max_line_bytes: 64 << 20,
            sample_rows: 10_000,
        }
    }
}

impl LoadOptions {
    /// The defaults of PostgreSQL's `COPY … FROM STDIN`: its text format, and no header in any
    /// format unless asked for.
    pub fn pg_copy() -> Self {
        Self { format: Some(Format::PgText), header: Some(false), ..Self::default() }
    }

    /// Finds options that contradict each other.
    ///
    /// # Errors
    /// `Invalid`, naming both.
    pub(crate) fn check(&self) -> Result<()> {
        let clash = |what: String| Err(Error::invalid(format!("load options {what}")));
        let is_line_end = |byte: Option<u8>| matches!(byte, Some(b'\n' | b'\r'));
        if is_line_end(self.delimiter) || is_line_end(self.quote) || is_line_end(self.escape) {
            return clash("delimiter, quote and escape cannot be line ends".to_owned());
        }
        if self.quote.is_some() && self.quote == self.delimiter {
            return clash("delimiter and quote are the same".to_owned());
        }
        if self.escape.is_some() && self.escape == self.delimiter {
            return clash("delimiter and escape are the same".to_owned());
        }
        if self.thousands_separator == Some(char::from(self.decimal_point)) {
            return clash("thousands_separator and decimal_point are the same".to_owned());
        }
        if let Some(text) = self
            .true_text
            .iter()
            .find(|text| self.false_text.iter().any(|other| other.eq_ignore_ascii_case(text)))
        {
            return clash(format!("true_text and false_text both have \"{text}\""));
        }
        if self.batch_rows == 0 || self.sample_rows == 0 || self.max_line_bytes == 0 {
            return clash("batch_rows, sample_rows and max_line_bytes cannot be 0".to_owned());
        }
        Ok(())
    }

    /// Finds options of text formats where the format is binary.
    ///
    /// # Errors
    /// `Invalid` (42601), naming the option.
    pub(crate) fn check_binary(&self) -> Result<()> {
        let given = [
            ("delimiter", self.delimiter.is_some()),
            ("escape", self.escape.is_some()),
            ("null_text", !self.null_text.is_empty()),
            ("columns", !self.columns.is_empty()),
            ("skip_lines", self.skip_lines > 0),
            ("comment", self.comment.is_some()),
            ("encoding", self.latin1),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => {
                let message = format!("load option {name} is not for the binary format");
                Err(Error::invalid(message).with_sqlstate("42601"))
            }
        }
    }

    /// The delimiter in effect for `format`.
    pub(crate) fn delimiter_of(&self, format: Format) -> u8 {
        self.delimiter.unwrap_or(if format == Format::Csv { b',' } else { b'\t' })
    }

    /// Whether a file of `format` starts with a header.
    pub(crate) fn header_of(&self, format: Format) -> bool {
        self.header.unwrap_or(format != Format::PgText)
    }

    /// The texts that mean NULL in `format`.
    pub(crate) fn null_text_of(&self, format: Format) -> Vec<Vec<u8>> {
        if !self.null_text.is_empty() {
            return self.null_text.iter().map(|text| text.clone().into_bytes()).collect();
        }
        vec![if format == Format::PgText { b"\\N".to_vec() } else { Vec::new() }]
    }
}
