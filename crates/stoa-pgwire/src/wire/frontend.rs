//! Messages from the client.

use bytes::{Buf, Bytes, BytesMut};
use stoa_error::{Error, Result};

/// What follows the length of the first packet: `SSLRequest`.
const SSL_REQUEST: i32 = (1234 << 16) | 5679;
/// `GSSENCRequest`.
const GSS_REQUEST: i32 = (1234 << 16) | 5680;
/// `CancelRequest`.
const CANCEL_REQUEST: i32 = (1234 << 16) | 5678;
/// Longest start-up packet; PostgreSQL's own bound.
const STARTUP_BYTES_MAX: usize = 10_000;

/// The first packets of a connection, which have no type byte.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StartupPacket {
    SslRequest,
    GssRequest,
    Cancel { process_id: i32, secret: Bytes },
    Startup { major: u16, minor: u16, parameters: Vec<(String, String)> },
}

/// A message of an open connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Query(String),
    Parse { name: String, sql: String, types: Vec<u32> },
    Bind(Bind),
    DescribeStatement(String),
    DescribePortal(String),
    Execute { portal: String, rows_max: usize },
    CloseStatement(String),
    ClosePortal(String),
    Sync,
    Flush,
    CopyData(Bytes),
    CopyDone,
    CopyFail(String),
    Terminate,
}

/// Binds parameters to a statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) portal: String,
    pub(crate) statement: String,
    pub(crate) parameter_formats: Vec<i16>,
    pub(crate) parameters: Vec<Option<Bytes>>,
    pub(crate) result_formats: Vec<i16>,
}

impl Message {
    /// Whether an error in it is followed by silence until the next `Sync`.
    pub(crate) fn is_extended(&self) -> bool {
        matches!(
            self,
            Self::Parse { .. }
                | Self::Bind(_)
                | Self::DescribeStatement(_)
                | Self::DescribePortal(_)
                | Self::Execute { .. }
                | Self::CloseStatement(_)
                | Self::ClosePortal(_)
                | Self::Flush
        )
    }
}

/// Takes the first packet off `input`; `None` until it is complete.
pub(crate) fn take_startup(input: &mut BytesMut) -> Result<Option<StartupPacket>> {
    let Some(header) = input.first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(i32::from_be_bytes(*header)).unwrap_or(0);
    if !(8..=STARTUP_BYTES_MAX).contains(&length) {
        return Err(violation(format!("invalid length of start-up packet: {length}")).with_hint(
            "this port speaks the PostgreSQL protocol; TLS needs tls_cert on the server",
        ));
    }
    if input.len() < length {
        return Ok(None);
    }
    let mut body = Body(input.split_to(length).freeze().slice(4..));
    let code = body.i32()?;
    Ok(Some(match code {
        SSL_REQUEST => StartupPacket::SslRequest,
        GSS_REQUEST => StartupPacket::GssRequest,
        CANCEL_REQUEST => StartupPacket::Cancel { process_id: body.i32()?, secret: body.0 },
        version => StartupPacket::Startup {
            major: (version >> 16) as u16,
            minor: version as u16,
            parameters: startup_parameters(&mut body)?,
        },
    }))
}

fn startup_parameters(body: &mut Body) -> Result<Vec<(String, String)>> {
    let mut parameters = Vec::new();
    loop {
        let name = body.text()?;
        if name.is_empty() {
            return Ok(parameters);
        }
        parameters.push((name, body.text()?));
    }
}

/// Longest message of a login; PostgreSQL's own bound.
const LOGIN_BYTES_MAX: usize = 65_535;

/// Takes a client's word of a login off `input`; `None` until it is complete.
pub(crate) fn take_login(input: &mut BytesMut) -> Result<Option<Bytes>> {
    let Some(header) = input.first_chunk::<5>() else { return Ok(None) };
    let [kind, length @ ..] = *header;
    let length = usize::try_from(i32::from_be_bytes(length)).unwrap_or(0);
    if kind != b'p' {
        let found = char::from(kind);
        return Err(violation(format!("expected an answer to the login, got message {found:?}")));
    }
    if !(4..=LOGIN_BYTES_MAX).contains(&length) {
        return Err(violation(format!("invalid message length {length}")));
    }
    if input.len() < 1 + length {
        return Ok(None);
    }
    input.advance(5);
    Ok(Some(input.split_to(length - 4).freeze()))
}

/// The first word of SASL: the mechanism, and what the client says with it.
pub(crate) fn read_sasl_initial(message: Bytes) -> Result<(String, Bytes)> {
    let mut body = Body(message);
    let mechanism = body.text()?;
    match usize::try_from(body.i32()?) {
        Ok(length) if length == body.0.len() => Ok((mechanism, body.0)),
        // No initial response.
        Err(_) if body.0.is_empty() => Ok((mechanism, Bytes::new())),
        _ => Err(Body::short()),
    }
}

/// Bytes of room made at once for the rest of a message, so that a length alone takes no memory.
const RESERVE_BYTES_MAX: usize = 1 << 20;

/// Why a message could not be read.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) error: Error,
    /// The stream is out of step; the connection cannot go on.
    pub(crate) fatal: bool,
    /// The message is one of those that are followed by silence until the next `Sync`.
    pub(crate) extended: bool,
}

impl Damage {
    fn fatal(error: Error) -> Self {
        Self { error, fatal: true, extended: false }
    }
}

/// Takes one message off `input`; `None` until it is complete.
///
/// # Errors
/// The message is damaged, of an unknown type, or longer than `bytes_max`.
pub(crate) fn take_message(
    input: &mut BytesMut,
    bytes_max: usize,
) -> Result<Option<Message>, Damage> {
    let Some(header) = input.first_chunk::<5>() else { return Ok(None) };
    let [kind, length @ ..] = *header;
    let length = i32::from_be_bytes(length);
    let body_bytes = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_sub(4))
        .ok_or_else(|| Damage::fatal(violation(format!("invalid message length {length}"))))?;
    if !b"QPBDECSHdcfXF".contains(&kind) {
        return Err(Damage::fatal(violation(format!("invalid frontend message type {kind}"))));
    }
    if body_bytes > bytes_max {
        let message =
            format!("message of {body_bytes} bytes is larger than the {bytes_max} accepted");
        let error = violation(message).with_hint("send less at once, for example with COPY");
        return Err(Damage::fatal(error));
    }
    if input.len() < 5 + body_bytes {
        // Room for the rest, so that large messages are not copied again and again.
        input.reserve((5 + body_bytes - input.len()).min(RESERVE_BYTES_MAX));
        return Ok(None);
    }
    input.advance(5);
    let mut body = Body(input.split_to(body_bytes).freeze());
    let read = decode(kind, &mut body).and_then(|message| match body.0.len() {
        0 => Ok(message),
        rest => Err(violation(format!(
            "message of type {:?} has {rest} bytes too many",
            char::from(kind)
        ))),
    });
    read.map(Some).map_err(|error| Damage {
        error,
        fatal: false,
        extended: b"PBDECH".contains(&kind),
    })
}

fn decode(kind: u8, body: &mut Body) -> Result<Message> {
    Ok(match kind {
        b'Q' => Message::Query(body.text()?),
        b'P' => {
            let (name, sql) = (body.text()?, body.text()?);
            let count = body.u16()?;
            let types = (0..count).map(|_| body.i32().map(|oid| oid as u32));
            Message::Parse { name, sql, types: types.collect::<Result<_>>()? }
        }
        b'B' => Message::Bind(bind(body)?),
        b'D' => match body.u8()? {
            b'S' => Message::DescribeStatement(body.text()?),
            b'P' => Message::DescribePortal(body.text()?),
            other => return Err(target_error("Describe", other)),
        },
        b'E' => {
            let portal = body.text()?;
            // Zero and less mean all.
            let rows_max = match usize::try_from(body.i32()?) {
                Ok(rows) if rows > 0 => rows,
                _ => usize::MAX,
            };
            Message::Execute { portal, rows_max }
        }
        b'C' => match body.u8()? {
            b'S' => Message::CloseStatement(body.text()?),
            b'P' => Message::ClosePortal(body.text()?),
            other => return Err(target_error("Close", other)),
        },
        b'S' => Message::Sync,
        b'H' => Message::Flush,
        b'd' => Message::CopyData(std::mem::take(&mut body.0)),
        b'c' => Message::CopyDone,
        b'f' => Message::CopyFail(body.text()?),
        b'X' => Message::Terminate,
        b'F' => {
            body.0.clear();
            return Err(Error::unsupported("the function-call message is not supported")
                .with_hint("call the function with SELECT"));
        }
        other => return Err(violation(format!("invalid frontend message type {other}"))),
    })
}

fn bind(body: &mut Body) -> Result<Bind> {
    let (portal, statement) = (body.text()?, body.text()?);
    let parameter_formats = body.codes()?;
    let count = body.u16()?;
    let parameters = (0..count).map(|_| body.value()).collect::<Result<_>>()?;
    Ok(Bind { portal, statement, parameter_formats, parameters, result_formats: body.codes()? })
}

fn target_error(message: &str, target: u8) -> Error {
    violation(format!("invalid {message} message subtype {target}"))
}

/// A breach of the protocol.
pub(crate) fn violation(message: impl Into<String>) -> Error {
    Error::invalid(message).with_sqlstate("08P01")
}

/// The rest of a message's body.
struct Body(Bytes);

impl Body {
    fn short() -> Error {
        violation("insufficient data left in message")
    }

    fn u8(&mut self) -> Result<u8> {
        self.0.try_get_u8().map_err(|_| Self::short())
    }

    fn u16(&mut self) -> Result<u16> {
        self.0.try_get_u16().map_err(|_| Self::short())
    }

    fn i32(&mut self) -> Result<i32> {
        self.0.try_get_i32().map_err(|_| Self::short())
    }

    fn codes(&mut self) -> Result<Vec<i16>> {
        let count = self.u16()?;
        (0..count).map(|_| self.u16().map(|code| code as i16)).collect()
    }

    /// A text that ends with a zero byte.
    fn text(&mut self) -> Result<String> {
        let end = self
            .0
            .iter()
            .position(|byte| *byte == 0)
            .ok_or_else(|| violation("invalid string in message"))?;
        let text = self.0.split_to(end);
        self.0.advance(1);
        match std::str::from_utf8(&text) {
            Ok(text) => Ok(text.to_owned()),
            Err(source) => Err(Error::invalid("invalid byte sequence for encoding \"UTF8\"")
                .with_sqlstate("22021")
                .with_source(source)),
        }
    }

    /// A length and as many bytes; length -1 for NULL.
    fn value(&mut self) -> Result<Option<Bytes>> {
        let length = self.i32()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Self::short())?;
        if self.0.len() < length {
            return Err(Self::short());
        }
        Ok(Some(self.0.split_to(length)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u8, body: &[u8]) -> BytesMut {
        let mut bytes = BytesMut::from(&[kind][..]);
        bytes.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn messages_wait_until_they_are_complete() {
        let whole = message(b'Q', b"SELECT 1\0");
        for cut in 0..whole.len() {
            let mut part = BytesMut::from(&whole[..cut]);
            assert_eq!(take_message(&mut part, 100).unwrap(), None);
            assert_eq!(part.len(), cut);
        }
        let mut input = whole;
        input.extend_from_slice(b"S");
        let read = take_message(&mut input, 100).unwrap();
        assert_eq!(read, Some(Message::Query("SELECT 1".to_owned())));
        assert_eq!(&input[..], b"S");
    }

    #[test]
    fn a_bind_is_read() {
        let body = b"p\0s\0\x00\x01\x00\x01\x00\x02\x00\x00\x00\x01x\xff\xff\xff\xff\x00\x00";
        let read = take_message(&mut message(b'B', body), 100).unwrap();
        let expected = Bind {
            portal: "p".to_owned(),
            statement: "s".to_owned(),
            parameter_formats: vec![1],
            parameters: vec![Some(Bytes::from_static(b"x")), None],
            result_formats: vec![],
        };
        assert_eq!(read, Some(Message::Bind(expected)));
    }

    #[test]
    fn damage_stays_within_its_message() {
        let mut input = message(b'B', b"p\0s\0\x00");
        input.extend_from_slice(&message(b'S', b""));
        let damage = take_message(&mut input, 100).unwrap_err();
        assert_eq!(damage.error.sqlstate(), "08P01");
        assert!(damage.extended && !damage.fatal);
        assert_eq!(take_message(&mut input, 100).unwrap(), Some(Message::Sync));
        assert!(take_message(&mut message(b'Q', &[0; 101]), 100).unwrap_err().fatal);
        assert!(take_message(&mut message(b'?', b""), 100).unwrap_err().fatal);
    }

    #[test]
    fn startup_packets_are_told_apart() {
        let packet = |code: i32, rest: &[u8]| {
            let mut bytes = BytesMut::new();
            bytes.extend_from_slice(&(rest.len() as i32 + 8).to_be_bytes());
            bytes.extend_from_slice(&code.to_be_bytes());
            bytes.extend_from_slice(rest);
            take_startup(&mut bytes).unwrap()
        };
        assert_eq!(packet(SSL_REQUEST, b""), Some(StartupPacket::SslRequest));
        let cancel = StartupPacket::Cancel { process_id: 7, secret: Bytes::from_static(b"abcd") };
        assert_eq!(packet(CANCEL_REQUEST, b"\0\0\0\x07abcd"), Some(cancel));
        let startup = StartupPacket::Startup {
            major: 3,
            minor: 0,
            parameters: vec![("user".to_owned(), "me".to_owned())],
        };
        assert_eq!(packet(3 << 16, b"user\0me\0\0"), Some(startup));
        assert!(take_startup(&mut BytesMut::from(&b"\x16\x03\x01\x02\x00\x01"[..])).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes: Vec<u8>) {
            let _ = take_message(&mut BytesMut::from(&bytes[..]), 1 << 16);
            let _ = take_startup(&mut BytesMut::from(&bytes[..]));
        }

        #[test]
        fn no_body_breaks_the_reader(kind in prop::sample::select(b"QPBDECSHdcfX".to_vec()), body: Vec<u8>) {
            let mut input = message(kind, &body);
            let _ = take_message(&mut input, 1 << 16);
            prop_assert!(input.is_empty());
        }
    }
}
