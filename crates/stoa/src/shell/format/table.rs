//! Rows in aligned columns.
//!
//! ```text
//!  account_id |    day     | sum
//! ------------+------------+------
//!           7 | 2025-01-01 | 1200
//! (1 row)
//! ```
//!
//! A value of many lines stays in its column; `+` marks that it goes on below.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use stoa_error::Result;
use unicode_width::UnicodeWidthStr;

use super::values::{Values, is_right_aligned};
use super::{RowWriter, output_error};

/// Column widths are those of the first rows; a wider value later pushes its own row out.
pub(super) const SAMPLE_ROWS: usize = 1000;

pub(super) struct Table {
    names: Vec<String>,
    right: Vec<bool>,
    widths: Vec<usize>,
    header: bool,
    /// Rows that wait for the widths; None once these are fixed.
    sample: Option<Vec<Vec<String>>>,
    rows: u64,
}

impl Table {
    pub(super) fn new(schema: &SchemaRef, header: bool) -> Self {
        let names: Vec<_> = schema.fields().iter().map(|f| one_line(f.name())).collect();
        Self {
            widths: names.iter().map(|name| if header { name.width() } else { 0 }).collect(),
            right: schema.fields().iter().map(|f| is_right_aligned(f.data_type())).collect(),
            names,
            header,
            sample: Some(Vec::new()),
            rows: 0,
        }
    }

    fn write_sample(&mut self, out: &mut dyn Write) -> Result<()> {
        let Some(sample) = self.sample.take() else { return Ok(()) };
        for row in &sample {
            for (width, value) in self.widths.iter_mut().zip(row) {
                *width = value.lines().map(UnicodeWidthStr::width).fold(*width, usize::max);
            }
        }
        if self.header {
            self.write_header(out)?;
        }
        sample.iter().try_for_each(|row| self.write_row(row, out))
    }

    fn write_header(&self, out: &mut dyn Write) -> Result<()> {
        let centred = |(name, width): (&String, &usize)| {
            let space = width.saturating_sub(name.width());
            format!(
                " {:left$}{name}{:right$} ",
                "",
                "",
                left = space / 2,
                right = space - space / 2
            )
        };
        let names: Vec<_> = self.names.iter().zip(&self.widths).map(centred).collect();
        let rules: Vec<_> = self.widths.iter().map(|width| "-".repeat(width + 2)).collect();
        let names = names.join("|");
        writeln!(out, "{}", names.trim_end()).map_err(output_error)?;
        writeln!(out, "{}", rules.join("+")).map_err(output_error)
    }

    fn write_row(&self, row: &[String], out: &mut dyn Write) -> Result<()> {
        let mut cells: Vec<_> = row.iter().map(|value| value.lines().peekable()).collect();
        loop {
            let mut line = String::new();
            let mut goes_on = false;
            for (column, cell) in cells.iter_mut().enumerate() {
                let text = cell.next().unwrap_or_default();
                let more = cell.peek().is_some();
                let space = self.widths[column].saturating_sub(text.width());
                let (left, right) = if self.right[column] { (space, 0) } else { (0, space) };
                let bar = if column == 0 { "" } else { "|" };
                let mark = if more { "+" } else { " " };
                line.push_str(&format!("{bar} {:left$}{text}{:right$}{mark}", "", ""));
                goes_on |= more;
            }
            writeln!(out, "{}", line.trim_end()).map_err(output_error)?;
            if !goes_on {
                return Ok(());
            }
        }
    }
}

impl RowWriter for Table {
    fn begin(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        let values = Values::new(batch)?;
        for row in 0..batch.num_rows() {
            let cells = (0..values.columns()).map(|column| {
                let mut text = String::new();
                values.append(column, row, &mut text)?;
                Ok(harmless(&text, |c| c == '\n'))
            });
            let cells = cells.collect::<Result<Vec<_>>>()?;
            self.rows += 1;
            match &mut self.sample {
                Some(sample) => sample.push(cells),
                None => self.write_row(&cells, out)?,
            }
            if self.sample.as_ref().is_some_and(|sample| sample.len() >= SAMPLE_ROWS) {
                self.write_sample(out)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        self.write_sample(out)?;
        if self.header {
            let noun = if self.rows == 1 { "row" } else { "rows" };
            writeln!(out, "({} {noun})", self.rows).map_err(output_error)?;
        }
        Ok(())
    }
}

/// A value on one line: line ends and other control characters are shown as escapes, so that a
/// stored value can neither break the table nor steer the terminal.
pub(super) fn one_line(text: &str) -> String {
    harmless(text, |_| false)
}

/// The text with control characters escaped, except those that `is_kept` lets through.
fn harmless(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let is_escaped = |c: char| c.is_control() && !is_kept(c);
    if !text.chars().any(is_escaped) {
        return text.to_owned();
    }
    let escape = |c: char| match c {
        c if is_escaped(c) => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}
