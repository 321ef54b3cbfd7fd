//! COPY in both directions.

use std::time::Instant;

use stoa_error::{Error, Result};
use stoa_query::CopyIn;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::Connection;
use crate::encode::{CopyOutFormat, CopyTextEncoder, Format, uniform};
use crate::portal::Rows;
use crate::wire::frontend::{Message, violation};
use crate::wire::stream::{Incoming, Stop};

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    /// Takes rows in until the client says it is done or gives up.
    pub(crate) async fn copy_in(&mut self, mut copy: CopyIn) -> Result<(), Stop> {
        self.wire.output.copy_in_response(copy.columns().fields().len());
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

    /// Sends all rows as lines.
    pub(crate) async fn copy_out(
        &mut self,
        mut rows: Rows,
        options: &[(String, String)],
        deadline: Option<Instant>,
    ) -> Result<(), Stop> {
        let format = out_format(options)?;
        let schema = rows.schema();
        self.wire.output.copy_out_response(schema.fields().len());
        let encoder = uniform(schema, Format::Text, self.settings.style);
        let mut encoder = CopyTextEncoder::new(encoder, format);
        let sent = rows.copy_out(&mut self.wire, &mut encoder, deadline).await?;
        self.wire.output.copy_done();
        self.wire.output.command_complete(&format!("COPY {sent}"));
        Ok(())
    }
}

/// Reads the options of `COPY … TO STDOUT`.
fn out_format(options: &[(String, String)]) -> Result<CopyOutFormat> {
    let value = |name: &str| {
        options.iter().rev().find(|(option, _)| option == name).map(|(_, value)| value.as_str())
    };
    let mut format = match value("format").map(str::to_ascii_lowercase).as_deref() {
        None | Some("text") => CopyOutFormat::text(),
        Some("csv") => CopyOutFormat::csv(),
        Some("tsv") => CopyOutFormat { delimiter: b'\t', ..CopyOutFormat::csv() },
        Some(other) => {
            return Err(Error::unsupported(format!("COPY format \"{other}\" is not supported"))
                .with_hint("use text, csv or tsv"));
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
            "encoding" if ["utf8", "utf-8"].iter().any(|utf8| value.eq_ignore_ascii_case(utf8)) => {
            }
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
        assert!(read(&[("format", "binary")]).is_err());
    }
}
