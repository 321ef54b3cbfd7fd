//! Messages to the client, appended to a buffer.

use stoa_error::{Error, ErrorKind};

use crate::encode::RowEncoder;
use crate::format::Format;
use crate::types::type_modifier;

/// How bad an error is for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Error,
    /// The connection ends with it.
    Fatal,
    Warning,
    Notice,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
            Self::Warning => "WARNING",
            Self::Notice => "NOTICE",
        }
    }
}

/// What `ReadyForQuery` says about the transaction block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TransactionStatus {
    #[default]
    Idle,
    InBlock,
    Failed,
}

impl TransactionStatus {
    fn code(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::InBlock => b'T',
            Self::Failed => b'E',
        }
    }
}

/// Messages not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
}

impl Output {
    /// The bytes not sent yet.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The buffer, for encoders that append whole messages.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Forgets what was sent; gives memory back where a burst made the buffer large.
    pub(crate) fn clear(&mut self, keep_bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(keep_bytes);
    }

    fn message(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.push(kind);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        body(&mut self.bytes);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// The one byte that says that TLS begins.
    pub(crate) fn accept_encryption(&mut self) {
        self.bytes.push(b'S');
    }

    /// The one byte that refuses encryption.
    pub(crate) fn refuse_encryption(&mut self) {
        self.bytes.push(b'N');
    }

    pub(crate) fn authentication_ok(&mut self) {
        self.message(b'R', |body| body.extend_from_slice(&0_i32.to_be_bytes()));
    }

    /// Asks the client to log in by one of these mechanisms of SASL.
    pub(crate) fn authentication_sasl(&mut self, mechanisms: &[&str]) {
        self.message(b'R', |body| {
            body.extend_from_slice(&10_i32.to_be_bytes());
            mechanisms.iter().for_each(|mechanism| put_text(body, mechanism));
            body.push(0);
        });
    }

    /// The server's next word of the exchange; `is_last` for what proves the server to the client.
    pub(crate) fn authentication_sasl_data(&mut self, data: &str, is_last: bool) {
        let code: i32 = if is_last { 12 } else { 11 };
        self.message(b'R', |body| {
            body.extend_from_slice(&code.to_be_bytes());
            body.extend_from_slice(data.as_bytes());
        });
    }

    /// Protocol 3.0 is spoken, and these start-up options are not known.
    pub(crate) fn negotiate_version(&mut self, unknown: &[String]) {
        self.message(b'v', |body| {
            body.extend_from_slice(&(3_i32 << 16).to_be_bytes());
            body.extend_from_slice(&(unknown.len() as i32).to_be_bytes());
            unknown.iter().for_each(|option| put_text(body, option));
        });
    }

    pub(crate) fn parameter_status(&mut self, name: &str, value: &str) {
        self.message(b'S', |body| {
            put_text(body, name);
            put_text(body, value);
        });
    }

    pub(crate) fn backend_key_data(&mut self, process_id: i32, secret: u32) {
        self.message(b'K', |body| {
            body.extend_from_slice(&process_id.to_be_bytes());
            body.extend_from_slice(&secret.to_be_bytes());
        });
    }

    pub(crate) fn ready_for_query(&mut self, status: TransactionStatus) {
        self.message(b'Z', |body| body.push(status.code()));
    }

    pub(crate) fn parse_complete(&mut self) {
        self.message(b'1', |_| ());
    }

    pub(crate) fn bind_complete(&mut self) {
        self.message(b'2', |_| ());
    }

    pub(crate) fn close_complete(&mut self) {
        self.message(b'3', |_| ());
    }

    pub(crate) fn no_data(&mut self) {
        self.message(b'n', |_| ());
    }

    pub(crate) fn portal_suspended(&mut self) {
        self.message(b's', |_| ());
    }

    pub(crate) fn empty_query(&mut self) {
        self.message(b'I', |_| ());
    }

    pub(crate) fn command_complete(&mut self, tag: &str) {
        self.message(b'C', |body| put_text(body, tag));
    }

    pub(crate) fn parameter_description(&mut self, types: &[u32]) {
        self.message(b't', |body| {
            body.extend_from_slice(&(types.len() as u16).to_be_bytes());
            types.iter().for_each(|oid| body.extend_from_slice(&oid.to_be_bytes()));
        });
    }

    pub(crate) fn row_description(&mut self, rows: &RowEncoder) {
        let fields = rows.schema().fields().iter().zip(rows.types()).zip(rows.formats());
        self.message(b'T', |body| {
            body.extend_from_slice(&(rows.types().len() as u16).to_be_bytes());
            for ((field, of), format) in fields {
                put_text(body, field.name());
                body.extend_from_slice(&[0; 6]); // no table, no column of it
                body.extend_from_slice(&of.oid().to_be_bytes());
                body.extend_from_slice(&of.length().to_be_bytes());
                body.extend_from_slice(&type_modifier(field).to_be_bytes());
                body.extend_from_slice(&format.code().to_be_bytes());
            }
        });
    }

    pub(crate) fn copy_in_response(&mut self, columns: usize, format: Format) {
        self.copy_response(b'G', columns, format);
    }

    pub(crate) fn copy_out_response(&mut self, columns: usize, format: Format) {
        self.copy_response(b'H', columns, format);
    }

    /// The format stands there as a whole and for each column.
    fn copy_response(&mut self, kind: u8, columns: usize, format: Format) {
        self.message(kind, |body| {
            body.push(format.code() as u8);
            body.extend_from_slice(&(columns as u16).to_be_bytes());
            (0..columns).for_each(|_| body.extend_from_slice(&format.code().to_be_bytes()));
        });
    }

    pub(crate) fn copy_done(&mut self) {
        self.message(b'c', |_| ());
    }

    /// An error, with `position_offset` characters before the statement it points into.
    pub(crate) fn error(&mut self, severity: Severity, error: &Error, position_offset: usize) {
        let detail = match error.detail() {
            Some(detail) => Some(detail.to_owned()),
            None => sources(error),
        };
        let hint = match (error.hint(), error.kind()) {
            (Some(hint), _) => Some(hint),
            (None, ErrorKind::Internal) => Some("this is a bug in Stoa; please report it"),
            (None, _) => None,
        };
        self.message(b'E', |body| {
            put_fields(body, severity, error.sqlstate(), error.message());
            if let Some(detail) = detail {
                put_field(body, b'D', &detail);
            }
            if let Some(hint) = hint {
                put_field(body, b'H', hint);
            }
            if let Some(position) = error.position() {
                put_field(body, b'P', &(position + position_offset).to_string());
            }
            body.push(0);
        });
    }

    /// Something the user should know although nothing failed.
    pub(crate) fn notice(&mut self, severity: Severity, sqlstate: &str, message: &str, hint: &str) {
        self.message(b'N', |body| {
            put_fields(body, severity, sqlstate, message);
            if !hint.is_empty() {
                put_field(body, b'H', hint);
            }
            body.push(0);
        });
    }
}

fn sources(error: &Error) -> Option<String> {
    let all = error.message_with_sources();
    let causes = all.strip_prefix(error.message())?.trim_start_matches([':', ' ']);
    (!causes.is_empty()).then(|| causes.to_owned())
}

fn put_fields(body: &mut Vec<u8>, severity: Severity, sqlstate: &str, message: &str) {
    put_field(body, b'S', severity.name());
    put_field(body, b'V', severity.name());
    put_field(body, b'C', sqlstate);
    put_field(body, b'M', message);
}

fn put_field(body: &mut Vec<u8>, code: u8, text: &str) {
    body.push(code);
    put_text(body, text);
}

/// Text up to its end or its first zero byte, which the protocol cannot carry.
fn put_text(body: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    body.extend_from_slice(&bytes[..end]);
    body.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_carries_all_it_knows() {
        let mut output = Output::default();
        let error = Error::invalid("no")
            .with_sqlstate("42601")
            .with_hint("try")
            .with_position(3)
            .with_source(std::io::Error::other("why"));
        output.error(Severity::Error, &error, 10);
        assert_eq!(&output.bytes()[5..], b"SERROR\0VERROR\0C42601\0Mno\0Dwhy\0Htry\0P13\0\0");
        let length = u32::from_be_bytes(output.bytes()[1..5].try_into().unwrap());
        assert_eq!(length as usize, output.bytes().len() - 1);
    }

    #[test]
    fn texts_end_at_their_first_zero() {
        let mut output = Output::default();
        output.command_complete("a\0b");
        assert_eq!(output.bytes(), b"C\0\0\0\x06a\0");
    }
}
