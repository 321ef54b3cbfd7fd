//! Which format a file has: by its name, else by its first bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use stoa_error::{Error, Result};

/// How rows are laid out in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with quotes (RFC 4180 and its many cousins).
    Csv,
    /// The same, separated by tabs.
    Tsv,
    /// One JSON object per line.
    Ndjson,
    /// The text format of PostgreSQL's COPY: tabs, backslash escapes, `\N`.
    PgText,
    /// Apache Parquet.
    Parquet,
    /// Apache ORC.
    Orc,
    /// Arrow IPC, the file or the stream format (told apart by their first bytes).
    Arrow,
    /// The binary format of PostgreSQL's COPY.
    Binary,
}

impl Format {
    /// All formats with their names.
    pub const ALL: [(Format, &'static str); 8] = [
        (Format::Csv, "csv"),
        (Format::Tsv, "tsv"),
        (Format::Ndjson, "ndjson"),
        (Format::PgText, "pgtext"),
        (Format::Parquet, "parquet"),
        (Format::Orc, "orc"),
        (Format::Arrow, "arrow"),
        (Format::Binary, "binary"),
    ];

    /// The name as used in options.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(format, _)| *format == self).map_or("", |(_, name)| name)
    }

    /// The format that options call `name`, in any case; `text` is PostgreSQL's word for its own.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "text" => Some(Self::PgText),
            "json" | "jsonl" => Some(Self::Ndjson),
            "ipc" | "feather" => Some(Self::Arrow),
            _ => Self::ALL.iter().find(|(_, known)| *known == name).map(|(format, _)| *format),
        }
    }

    /// Whether the format is made of lines.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv | Self::Ndjson | Self::PgText)
    }

    fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "csv" => Self::Csv,
            "tsv" | "tab" => Self::Tsv,
            "ndjson" | "jsonl" | "json" => Self::Ndjson,
            "parquet" | "pq" | "parq" => Self::Parquet,
            "orc" => Self::Orc,
            "arrow" | "arrows" | "ipc" | "feather" => Self::Arrow,
            "pgtext" | "copy" => Self::PgText,
            _ => return None,
        })
    }

    fn from_magic(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"PAR1") {
            Some(Self::Parquet)
        } else if head.starts_with(b"ORC") {
            Some(Self::Orc)
        } else if head.starts_with(b"ARROW1") || head.starts_with(&[0xff; 4]) {
            Some(Self::Arrow)
        } else if head.starts_with(b"PGCOPY\n\xff") {
            Some(Self::Binary)
        } else {
            None
        }
    }
}

/// How the bytes of a text file are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileCompression {
    /// Not at all.
    None,
    /// gzip, any number of members.
    Gzip,
    /// Zstandard, any number of frames.
    Zstd,
}

impl FileCompression {
    fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "gz" | "gzip" => Self::Gzip,
            "zst" | "zstd" => Self::Zstd,
            _ => return None,
        })
    }

    fn from_magic(head: &[u8]) -> Option<Self> {
        if head.starts_with(&[0x1f, 0x8b]) {
            Some(Self::Gzip)
        } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Some(Self::Zstd)
        } else {
            None
        }
    }
}

/// Finds format and compression of `name`; what the caller already knows wins.
///
/// `path` is looked into where the name does not tell.
///
/// # Errors
/// `Invalid` if neither the name nor the first bytes tell.
pub(crate) fn detect(
    name: &str,
    path: Option<&Path>,
    format: Option<Format>,
    compression: Option<FileCompression>,
) -> Result<(Format, FileCompression)> {
    let lower = name.to_ascii_lowercase();
    let mut extensions = lower.rsplit('.').take(lower.matches('.').count());
    let mut last = extensions.next().unwrap_or("");
    let named = FileCompression::from_extension(last);
    if named.is_some() {
        last = extensions.next().unwrap_or("");
    }
    let mut head = Vec::new();
    if let Some(path) = path
        && (format.is_none() || compression.is_none())
    {
        let file = File::open(path).map_err(|e| crate::input::cannot_read(name, e))?;
        file.take(8).read_to_end(&mut head).map_err(|e| crate::input::cannot_read(name, e))?;
    }
    let format = format
        .or_else(|| Format::from_magic(&head))
        .or_else(|| Format::from_extension(last))
        .ok_or_else(|| unknown_format(name))?;
    let compression = match (compression, format.is_text()) {
        (Some(compression), _) => compression,
        (None, false) => FileCompression::None,
        // The bytes know better than the name: "data.csv.gz" that a download unpacked already.
        (None, true) if head.len() >= 4 => {
            FileCompression::from_magic(&head).unwrap_or(FileCompression::None)
        }
        (None, true) => named.unwrap_or(FileCompression::None),
    };
    if !format.is_text() && compression != FileCompression::None {
        return Err(Error::unsupported(format!("{name}: a compressed {} file", format.name()))
            .with_hint("decompress it first; only text files are read compressed"));
    }
    Ok((format, compression))
}

fn unknown_format(name: &str) -> Error {
    let names: Vec<&str> = Format::ALL.iter().map(|(_, name)| *name).collect();
    Error::invalid(format!("cannot tell the format of {name} from its name or first bytes"))
        .with_hint(format!("set the option format to one of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_format_and_compression() {
        let check = |name: &str, format, compression| {
            assert_eq!(detect(name, None, None, None).unwrap(), (format, compression), "{name}");
        };
        check("a.csv", Format::Csv, FileCompression::None);
        check("A.CSV.GZ", Format::Csv, FileCompression::Gzip);
        check("a.b.tsv.zst", Format::Tsv, FileCompression::Zstd);
        check("a.jsonl", Format::Ndjson, FileCompression::None);
        check("a.parquet", Format::Parquet, FileCompression::None);
        assert!(detect("csv", None, None, None).is_err());
        assert!(detect("a.gz", None, None, None).is_err());
        assert!(detect("a.gz", None, Some(Format::Csv), None).is_ok());
    }
}
