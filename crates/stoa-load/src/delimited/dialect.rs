//! What separates fields and lines, and how fields are written.

use crate::{Format, LineEnding, LoadOptions};

/// The bytes that mean something, and where.
#[derive(Clone, Debug)]
pub(crate) struct Dialect {
    pub delimiter: u8,
    /// `None` where quotes are data.
    pub quote: Option<u8>,
    /// Inside quotes; equal to the quote where a quote is doubled.
    pub escape: Option<u8>,
    pub ending: LineEnding,
    /// PostgreSQL's text format: no quotes, backslash escapes everywhere.
    pub backslash: bool,
    /// Whether blanks before an opening quote are passed over.
    pub trim: bool,
}

impl Dialect {
    pub fn new(options: &LoadOptions, format: Format) -> Self {
        let backslash = format == Format::PgText;
        let quote = options.quote.filter(|_| !backslash);
        Self {
            delimiter: options.delimiter_of(format),
            quote,
            escape: options.escape.or(quote),
            ending: options.line_ending,
            backslash,
            trim: options.trim,
        }
    }

    /// Physical line ends inside `bytes`.
    pub fn line_ends(&self, bytes: &[u8]) -> u64 {
        let count = match self.ending {
            LineEnding::Lf => memchr::memchr_iter(b'\n', bytes).count(),
            LineEnding::Cr => memchr::memchr_iter(b'\r', bytes).count(),
            LineEnding::CrLf => memchr::memmem::find_iter(bytes, b"\r\n").count(),
            LineEnding::Auto => {
                memchr::memchr_iter(b'\n', bytes).count()
                    + memchr::memchr_iter(b'\r', bytes)
                        .filter(|&at| bytes.get(at + 1) != Some(&b'\n'))
                        .count()
            }
        };
        count as u64
    }

    /// What the byte at `at`, one of `\r` and `\n`, is. `at_end`: nothing follows `data`.
    pub fn line_end(&self, data: &[u8], at: usize, at_end: bool) -> LineEnd {
        let next = data.get(at + 1);
        match (self.ending, data.get(at)) {
            (LineEnding::Auto | LineEnding::Lf, Some(b'\n')) => LineEnd::Ends(1),
            (LineEnding::Cr, Some(b'\r')) => LineEnd::Ends(1),
            (LineEnding::Auto | LineEnding::CrLf, Some(b'\r')) => match next {
                Some(b'\n') => LineEnd::Ends(2),
                None if !at_end => LineEnd::Unknown,
                _ if self.ending == LineEnding::Auto => LineEnd::Ends(1),
                _ => LineEnd::Data,
            },
            _ => LineEnd::Data,
        }
    }

    /// The first physical line of `data`, whatever quotes say: (without, with) its line end.
    /// `None` if it does not end in `data` and more may come.
    pub fn physical_line(&self, data: &[u8], at_end: bool) -> Option<(usize, usize)> {
        for at in memchr::memchr2_iter(b'\n', b'\r', data) {
            match self.line_end(data, at, at_end) {
                LineEnd::Ends(bytes) => return Some((at, at + bytes)),
                LineEnd::Unknown => return None,
                LineEnd::Data => {}
            }
        }
        at_end.then_some((data.len(), data.len()))
    }
}

/// Whether a line ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// Yes, with so many bytes.
    Ends(usize),
    /// No, it is data.
    Data,
    /// The next byte decides, and it is not here yet.
    Unknown,
}
