//! The names, defaults and meanings of the options: the one place that the command line's help,
//! `COPY … WITH (…)` and the documentation take them from.

use stoa_error::{Error, Result};

use crate::{ColumnPolicy, FileCompression, Format, LineEnding, LoadOptions};

/// One option as users meet it.
#[derive(Clone, Copy, Debug)]
pub struct SettingDescription {
    /// Its name in SQL; on the command line with `-` for `_`.
    pub name: &'static str,
    /// The default, as text.
    pub default: &'static str,
    /// What it does, in one sentence without a full stop.
    pub what: &'static str,
}

type Apply = fn(&mut LoadOptions, &str) -> Option<()>;

/// Name, default, meaning, what a value may be, and how it is applied (`None` = not such a value).
const SETTINGS: &[(&str, &str, &str, &str, Apply)] = &[
    (
        "format",
        "by name",
        "format of the file",
        "csv, tsv, ndjson, pgtext, parquet, orc, arrow or binary",
        |o, v| {
            o.format = Some(Format::from_name(v)?);
            Some(())
        },
    ),
    ("compression", "by content", "compression of a text file", "none, gzip or zstd", |o, v| {
        o.compression = Some(match v.to_ascii_lowercase().as_str() {
            "none" => FileCompression::None,
            "gzip" | "gz" => FileCompression::Gzip,
            "zstd" | "zst" => FileCompression::Zstd,
            _ => return None,
        });
        Some(())
    }),
    ("header", "true", "whether the first line names the columns", "true or false", |o, v| {
        o.header = Some(boolean(v)?);
        Some(())
    }),
    (
        "columns",
        "from the header",
        "the file's columns in order, by the table's names; an empty name or - skips a column",
        "a comma-separated list such as 'id,-,name'",
        |o, v| {
            o.columns = list(v)
                .into_iter()
                .map(|name| Some(name.trim().to_owned()).filter(|n| !n.is_empty() && n != "-"))
                .collect();
            Some(())
        },
    ),
    (
        "delimiter",
        ",",
        "character between fields (tab for tsv and pgtext)",
        "one ASCII character, or tab",
        |o, v| {
            o.delimiter = Some(byte(v)?);
            Some(())
        },
    ),
    ("quote", "\"", "character around quoted fields", "one ASCII character, or none", |o, v| {
        o.quote = if v.is_empty() || v == "none" { None } else { Some(byte(v)?) };
        Some(())
    }),
    (
        "escape",
        "the quote",
        "character that escapes a quote in a quoted field",
        "one ASCII character, or none",
        |o, v| {
            o.escape = if v.is_empty() || v == "none" { None } else { Some(byte(v)?) };
            Some(())
        },
    ),
    (
        "null_text",
        "the empty field",
        "texts that mean NULL (\\N for pgtext)",
        "a comma-separated list such as '-,NA,'",
        |o, v| {
            o.null_text = list(v);
            Some(())
        },
    ),
    ("line_ending", "auto", "how lines end", "auto, lf, crlf or cr", |o, v| {
        o.line_ending = match v.to_ascii_lowercase().as_str() {
            "auto" => LineEnding::Auto,
            "lf" => LineEnding::Lf,
            "crlf" => LineEnding::CrLf,
            "cr" => LineEnding::Cr,
            _ => return None,
        };
        Some(())
    }),
    ("skip_lines", "0", "lines to skip before the header or first row", "a number", |o, v| {
        o.skip_lines = v.parse().ok()?;
        Some(())
    }),
    ("comment", "none", "lines that start with this text are skipped", "a text", |o, v| {
        o.comment = Some(v.to_owned()).filter(|text| !text.is_empty());
        Some(())
    }),
    (
        "skip_empty_rows",
        "false",
        "whether rows with only empty fields are skipped",
        "true or false",
        |o, v| {
            o.skip_empty_rows = boolean(v)?;
            Some(())
        },
    ),
    (
        "thousands_separator",
        "none",
        "character between groups of three digits",
        "one character, or none",
        |o, v| {
            o.thousands_separator =
                if v.is_empty() || v == "none" { None } else { Some(one_char(v)?) };
            Some(())
        },
    ),
    (
        "decimal_point",
        ".",
        "character before the fraction of a number",
        "one ASCII character",
        |o, v| {
            o.decimal_point = byte(v)?;
            Some(())
        },
    ),
    (
        "date_format",
        "ISO 8601",
        "format of dates, such as '%d/%m/%Y'",
        "a strftime pattern",
        |o, v| {
            o.date_format = Some(v.to_owned());
            Some(())
        },
    ),
    (
        "timestamp_format",
        "ISO 8601",
        "format of timestamps, such as '%d/%m/%Y %H:%M'",
        "a strftime pattern, or epoch_s, epoch_ms, epoch_us, epoch_ns",
        |o, v| {
            o.timestamp_format = Some(v.to_owned());
            Some(())
        },
    ),
    (
        "time_zone",
        "UTC",
        "zone of timestamps without one, for columns with time zone",
        "a name such as Europe/Berlin",
        |o, v| {
            o.time_zone = v.parse().ok()?;
            Some(())
        },
    ),
    ("true_text", "true,t,yes,y,on,1", "texts that mean true", "a comma-separated list", |o, v| {
        o.true_text = list(v);
        Some(())
    }),
    (
        "false_text",
        "false,f,no,n,off,0",
        "texts that mean false",
        "a comma-separated list",
        |o, v| {
            o.false_text = list(v);
            Some(())
        },
    ),
    ("trim", "false", "whether spaces around text fields are removed", "true or false", |o, v| {
        o.trim = boolean(v)?;
        Some(())
    }),
    ("encoding", "utf8", "encoding of the text", "utf8 or latin1", |o, v| {
        o.latin1 = match v.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "utf8" => false,
            "latin1" | "iso88591" => true,
            _ => return None,
        };
        Some(())
    }),
    (
        "missing_columns",
        "error",
        "what to do with table columns that the file lacks",
        "error or null",
        |o, v| {
            o.missing_columns = match v {
                "error" => ColumnPolicy::Error,
                "null" | "ignore" => ColumnPolicy::Ignore,
                _ => return None,
            };
            Some(())
        },
    ),
    (
        "extra_columns",
        "error",
        "what to do with file columns that the table lacks",
        "error or ignore",
        |o, v| {
            o.extra_columns = match v {
                "error" => ColumnPolicy::Error,
                "ignore" => ColumnPolicy::Ignore,
                _ => return None,
            };
            Some(())
        },
    ),
    ("max_errors", "0", "bad lines allowed before the load fails", "a number", |o, v| {
        o.max_errors = v.parse().ok()?;
        Some(())
    }),
    (
        "reject_file",
        "none",
        "file that bad lines are copied to, each after a line with the reason",
        "a path",
        |o, v| {
            o.reject_file = Some(v.into()).filter(|_| !v.is_empty());
            Some(())
        },
    ),
    ("batch_rows", "8192", "rows per batch", "a number from 1 to 1048576", |o, v| {
        o.batch_rows = v.parse().ok().filter(|rows| (1..=1 << 20).contains(rows))?;
        Some(())
    }),
    (
        "max_line_bytes",
        "67108864",
        "longest line in bytes; at most 64 MiB for rows that a client sends",
        "a number from 1024 to 1073741824",
        |o, v| {
            o.max_line_bytes =
                v.parse().ok().filter(|bytes| (1 << 10..=1 << 30).contains(bytes))?;
            Some(())
        },
    ),
    (
        "sample_rows",
        "10000",
        "rows of each file that schema inference reads",
        "a number, at least 1",
        |o, v| {
            o.sample_rows = v.parse().ok().filter(|rows| *rows > 0)?;
            Some(())
        },
    ),
];

/// Other names people know an option by.
const ALIASES: &[(&str, &str)] = &[
    ("null", "null_text"),
    ("nullstr", "null_text"),
    ("sep", "delimiter"),
    ("delim", "delimiter"),
    ("skip", "skip_lines"),
    ("dateformat", "date_format"),
    ("timestampformat", "timestamp_format"),
    ("thousands", "thousands_separator"),
    ("decimal_separator", "decimal_point"),
    ("timezone", "time_zone"),
];

impl LoadOptions {
    /// Sets the option `name` (any case, `-` or `_`) from its text.
    ///
    /// # Errors
    /// `Invalid` if there is no such option (the nearest is named) or the value does not fit it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let key = name.to_ascii_lowercase().replace('-', "_");
        let key =
            ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key.as_str(), |(_, name)| name);
        let Some((_, _, _, may_be, apply)) = SETTINGS.iter().find(|(name, ..)| *name == key) else {
            return Err(unknown(name, key));
        };
        apply(self, value).ok_or_else(|| {
            Error::invalid(format!("load option {key}: \"{value}\" is not a value for it"))
                .with_hint(format!("expected {may_be}"))
        })
    }

    /// All options, in the order that help should show them.
    pub fn describe() -> Vec<SettingDescription> {
        SETTINGS
            .iter()
            .map(|&(name, default, what, ..)| SettingDescription { name, default, what })
            .collect()
    }
}

fn unknown(name: &str, key: &str) -> Error {
    let nearest = SETTINGS
        .iter()
        .map(|(name, ..)| *name)
        .max_by(|a, b| strsim::jaro_winkler(a, key).total_cmp(&strsim::jaro_winkler(b, key)))
        .unwrap_or("format");
    Error::invalid(format!("there is no load option \"{name}\""))
        .with_sqlstate("42601")
        .with_hint(format!("did you mean \"{nearest}\"?"))
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" | "" => Some(true),
        "false" | "off" | "no" | "0" => Some(false),
        _ => None,
    }
}

fn byte(text: &str) -> Option<u8> {
    match text {
        "tab" | "\\t" => Some(b'\t'),
        "space" => Some(b' '),
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Some(*byte),
            _ => None,
        },
    }
}

fn one_char(text: &str) -> Option<char> {
    let text = if text == "space" { " " } else { text };
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// Splits at commas; `"a,b"` in quotes is one text.
fn list(text: &str) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        match (c, texts.last_mut()) {
            ('"', _) => quoted = !quoted,
            (',', _) if !quoted => texts.push(String::new()),
            (c, Some(last)) => last.push(c),
            (_, None) => {}
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_takes_a_value_and_refuses_nonsense() {
        for (name, value) in [
            ("format", "text"),
            ("compression", "gzip"),
            ("header", "off"),
            ("columns", "a,-,b"),
            ("delimiter", "tab"),
            ("quote", "'"),
            ("escape", "\\"),
            ("null_text", "-,NA,"),
            ("line-ending", "cr"),
            ("skip_lines", "5"),
            ("comment", "#"),
            ("skip_empty_rows", "true"),
            ("thousands_separator", ","),
            ("decimal_point", ","),
            ("date_format", "%d.%m.%Y"),
            ("timestamp_format", "epoch_ms"),
            ("time_zone", "Asia/Tokyo"),
            ("true_text", "ja"),
            ("false_text", "nein"),
            ("trim", "true"),
            ("encoding", "latin1"),
            ("missing_columns", "null"),
            ("extra_columns", "ignore"),
            ("max_errors", "7"),
            ("reject_file", "bad.csv"),
            ("batch_rows", "100"),
            ("max_line_bytes", "4096"),
            ("sample_rows", "10"),
        ] {
            let mut options = LoadOptions::default();
            options.set(name, value).unwrap();
            assert_ne!(options, LoadOptions::default(), "{name} had no effect");
        }
        for name in ["format", "header", "delimiter", "skip_lines", "batch_rows", "time_zone"] {
            assert!(LoadOptions::default().set(name, "nonsense!").is_err(), "{name}");
        }
    }

    #[test]
    fn an_unknown_option_names_the_nearest() {
        let error = LoadOptions::default().set("thousand_seperator", ",").unwrap_err();
        assert_eq!(error.message(), "there is no load option \"thousand_seperator\"");
        assert_eq!(error.hint(), Some("did you mean \"thousands_separator\"?"));
    }

    #[test]
    fn lists_keep_empty_and_quoted_texts() {
        assert_eq!(list("-,NA,"), ["-", "NA", ""]);
        assert_eq!(list("\"a,b\",c"), ["a,b", "c"]);
        assert_eq!(list(""), [""]);
    }
}
