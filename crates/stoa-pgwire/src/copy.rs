//! COPY in both directions.

use std::time::Instant;

use stoa_error::{Error, Result};
use stoa_query::CopyIn;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::Connection;
use crate::encode::{CopyBinaryEncoder, CopyEncoder, CopyOutFormat, CopyTextEncoder, uniform};
use crate::format::Format;
use crate::unsent::UnsentRows;
use crate::wire::frontend::{Message, violation};
use crate::wire::stream::{Incoming, Stop};

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    /// Takes rows in until the client says it is done or gives up.
    pub(crate) async fn copy_in(&mut self, mut copy: CopyIn) -> Result<(), Stop> {
        let format = if copy.is_binary() { Format::Binary } else { Format::Text };
        self.wire.output.copy_in_response(copy.columns().fields().len(), format);
        self.wire.flush().await?;
        loop {
            let incoming = tokio::select! {
                biased;
                incoming = self.wire.next() => incoming,
                // Told at once: the client may wait for a word before it sends on.
                error = copy.failed() => return Err(error.into()),
            };
            match incoming {
                Incoming::Message(Message::CopyData(chunk)) => copy.send(chunk).await?,
                Incoming::Message(Message::CopyDone) => break,
                Incoming::Message(Message::CopyFail(reason)) => {
                    return Err(copy.abort(&reason).await.into());
                }
                // Drivers may send these right behind the Execute that starts the copy.
                Incoming::Message(Message::Flush | Message::Sync) => {}
                Incoming::Message(Message::Terminate) | Incoming::End => {
                    let _ = copy.abort("the client went away").await;
                    return Err(Stop::Gone);
                }
                Incoming::Message(_) => {
                    let _ = copy.abort("unexpected message").await;
                    return Err(violation("unexpected message type during COPY from stdin").into());
                }
                Incoming::Damaged(damage) => {
                    let _ = copy.abort("damaged message").await;
                    return Err(damage.error.into());
                }
            }
        }
        let completion = self.wire.watch(self.deadline(), copy.finish()).await??;
        let tag = self.completed(completion);
        self.wire.output.command_complete(&tag);
        Ok(())
    }

    /// Sends all rows, in the format that the options say.
    pub(crate) async fn copy_out(
        &mut self,
        mut rows: UnsentRows,
        options: &[(String, String)],
        deadline: Option<Instant>,
    ) -> Result<(), Stop> {
        let (schema, style) = (rows.schema(), self.settings.style);
        let columns = schema.fields().len();
        let (format, mut encoder) = match is_binary(options) {
            true => {
                refuse_text_options(options)?;
                let rows = uniform(schema, Format::Binary, style);
                (Format::Binary, CopyEncoder::Binary(CopyBinaryEncoder::new(rows)))
            }
            false => {
                let rows = uniform(schema, Format::Text, style);
                let lines = CopyTextEncoder::new(rows, out_format(options)?);
                (Format::Text, CopyEncoder::Text(lines))
            }
        };
        self.wire.output.copy_out_response(columns, format);
        let sent = rows.copy_out(&mut self.wire, &mut encoder, deadline).await?;
        self.wire.output.copy_done();
        self.wire.output.command_complete(&format!("COPY {sent}"));
        Ok(())
    }
}

/// The value of an option; the last one counts.
fn value<'a>(options: &'a [(String, String)], name: &str) -> Option<&'a str> {
    options.iter().rev().find(|(option, _)| option == name).map(|(_, value)| value.as_str())
}

fn is_binary(options: &[(String, String)]) -> bool {
    value(options, "format").is_some_and(|format| format.eq_ignore_ascii_case("binary"))
}

/// The binary format has no options.
fn refuse_text_options(options: &[(String, String)]) -> Result<()> {
    let is_known = |(name, value): &&(String, String)| match name.as_str() {
        "format" => true,
        "encoding" => is_utf8(value),
        _ => false,
    };
    match options.iter().find(|option| !is_known(option)) {
        None => Ok(()),
        Some((name, _)) => {
            Err(Error::invalid(format!("option {name} is not for the binary format of COPY"))
                .with_sqlstate("42601"))
        }
    }
}

/// Reads the options of `COPY … TO STDOUT` as text.
fn out_format(options: &[(String, String)]) -> Result<CopyOutFormat> {
    let mut format = match value(options, "format").map(str::to_ascii_lowercase).as_deref() {
        None | Some("text") => CopyOutFormat::text(),
        Some("csv") => CopyOutFormat::csv(),
        Some("tsv") => CopyOutFormat { delimiter: b'\t', ..CopyOutFormat::csv() },
        Some(other) => {
            return Err(Error::unsupported(format!("COPY format \"{other}\" is not supported"))
                .with_hint("use text, csv, tsv or binary"));
        }
    };
    for (name, value) in options {
        match name.as_str() {
            "format" => {}
            "delimiter" => format.delimiter = one_byte(name, value)?,
            "quote" => {
                format.quote = one_byte(name, value)?;
                if !options.iter().any(|(name, _)| name == "escape") {
                    format.escape = format.quote;
                }
            }
            "escape" => format.escape = one_byte(name, value)?,
            "null" | "null_text" => format.null_text.clone_from(value),
            "header" => {
                format.header =
                    !["false", "off", "0"].iter().any(|off| value.eq_ignore_ascii_case(off));
            }
            "force_quote" if value == "*" => format.force_quote = true,
            "encoding" if is_utf8(value) => {}
            _ => {
                return Err(Error::invalid(format!(
                    "option {name} = \"{value}\" is not known for COPY TO STDOUT"
                ))
                .with_sqlstate("42601")
                .with_hint(
                    "known are format, delimiter, null, header, quote, escape, force_quote *",
                ));
            }
        }
    }
    Ok(format)
}

fn is_utf8(encoding: &str) -> bool {
    ["utf8", "utf-8"].iter().any(|utf8| encoding.eq_ignore_ascii_case(utf8))
}

fn one_byte(name: &str, value: &str) -> Result<u8> {
    match value.as_bytes() {
        [byte] if !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ if value == "\\t" => Ok(b'\t'),
        _ => Err(Error::invalid(format!("COPY {name} must be a single one-byte character"))
            .with_sqlstate("0A000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[(&str, &str)]) -> Result<CopyOutFormat> {
        let owned = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        out_format(&owned.collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        assert_eq!(read(&[]).unwrap(), CopyOutFormat::text());
        let format = read(&[("header", "true"), ("format", "csv"), ("quote", "'")]).unwrap();
        assert!(format.csv && format.header);
        assert_eq!((format.delimiter, format.escape), (b',', b'\''));
        assert!(read(&[("delimiter", "ab")]).is_err());
        assert!(read(&[("wrong", "x")]).is_err());
        assert!(read(&[("format", "parquet")]).is_err());
    }

    #[test]
    fn the_binary_format_has_no_options() {
        let owned = |options: &[(&str, &str)]| -> Vec<(String, String)> {
            options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        assert!(is_binary(&owned(&[("format", "BINARY")])));
        assert!(!is_binary(&owned(&[])) && !is_binary(&owned(&[("format", "csv")])));
        let refused = |options: &[(&str, &str)]| refuse_text_options(&owned(options)).is_err();
        assert!(!refused(&[("format", "binary"), ("encoding", "utf8")]));
        assert!(refused(&[("format", "binary"), ("delimiter", ";")]));
        assert!(refused(&[("format", "binary"), ("encoding", "latin1")]));
        assert!(refused(&[("header", "true"), ("format", "binary")]));
    }
}
