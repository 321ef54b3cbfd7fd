//! Which format a request asks for.

use stoa_error::{Error, Result};

/// A representation of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON document: columns, rows as arrays, summary.
    Json,
    /// One JSON object per line and row.
    Ndjson,
    /// RFC 4180 with a header line.
    Csv,
    /// Arrow IPC stream.
    Arrow,
}

const ALL: [Format; 4] = [Format::Json, Format::Ndjson, Format::Csv, Format::Arrow];

impl Format {
    /// Chooses by `?format=` if given, else by the `Accept` header; JSON where both are silent.
    ///
    /// # Errors
    /// Invalid: a format that does not exist, or no acceptable one.
    pub(crate) fn choose(parameter: Option<&str>, accept: Option<&str>) -> Result<Self> {
        match (parameter, accept) {
            (Some(name), _) => Self::named(name),
            (None, Some(accept)) => Self::accepted(accept),
            (None, None) => Ok(Self::Json),
        }
    }

    /// The `Content-Type` of responses.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }

    fn named(name: &str) -> Result<Self> {
        match name.to_ascii_lowercase().as_str() {
            "json" => Ok(Self::Json),
            "ndjson" | "jsonl" => Ok(Self::Ndjson),
            "csv" => Ok(Self::Csv),
            "arrow" => Ok(Self::Arrow),
            _ => Err(Error::invalid(format!("unknown format \"{name}\""))
                .with_hint("use format=json, ndjson, csv or arrow")),
        }
    }

    fn accepted(accept: &str) -> Result<Self> {
        let mut best: Option<(Self, f32)> = None;
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality =
                parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
            let Some(format) = Self::matching(&media) else { continue };
            if quality > 0.0 && best.is_none_or(|(_, other)| quality > other) {
                best = Some((format, quality));
            }
        }
        best.map(|(format, _)| format).ok_or_else(|| {
            Error::invalid(format!("no acceptable format in \"Accept: {accept}\"")).with_hint(
                "accept application/json, application/x-ndjson, text/csv or \
                 application/vnd.apache.arrow.stream, or add ?format=",
            )
        })
    }

    fn matching(media: &str) -> Option<Self> {
        match media {
            "*/*" | "application/*" | "" => Some(Self::Json),
            "text/*" => Some(Self::Csv),
            "application/jsonl" | "application/ndjson" => Some(Self::Ndjson),
            _ => ALL.into_iter().find(|f| f.content_type().split(';').next() == Some(media)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_wins_then_the_best_accepted_one() {
        let check = |parameter, accept, expected| {
            assert_eq!(
                Format::choose(parameter, accept).ok(),
                expected,
                "{parameter:?} {accept:?}"
            );
        };
        check(None, None, Some(Format::Json));
        check(None, Some("*/*"), Some(Format::Json));
        check(Some("CSV"), Some("application/json"), Some(Format::Csv));
        check(None, Some("text/html, text/csv;q=0.5"), Some(Format::Csv));
        check(None, Some("application/json;q=0.1,application/x-ndjson"), Some(Format::Ndjson));
        check(None, Some("application/vnd.apache.arrow.stream"), Some(Format::Arrow));
        check(None, Some("text/html"), None);
        check(Some("xml"), None, None);
    }
}
