//! SASL as HiveServer2 has it: frames around messages, and the mechanism PLAIN (RFC 4616).
//!
//! ```text
//!  client  01 len "PLAIN"    02|05 len \0user\0password    then each message  len bytes
//!  server                                      05 0        then each answer   len bytes
//! ```
//!
//! Java's clients send the second frame as complete (05), Python's as one step (02): both are taken.

use stoa_error::{Error, Result};

use crate::reader::malformed;

/// A client's first frame: the mechanism.
pub const START: u8 = 1;
/// A step of the login.
pub const OK: u8 = 2;
/// The login failed; the payload says why.
pub const BAD: u8 = 3;
/// The last step of the login.
pub const COMPLETE: u8 = 5;

/// Bytes of a frame of the login, at most.
const LOGIN_BYTES_MAX: usize = 16 << 10;
/// Bytes before a payload of the login.
const LOGIN_HEAD_BYTES: usize = 5;
/// Bytes before the payload of a frame.
pub const FRAME_HEAD_BYTES: usize = 4;

/// A frame of the login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginFrame<'a> {
    /// [`START`] and so on.
    pub status: u8,
    /// What it carries.
    pub payload: &'a [u8],
}

impl<'a> LoginFrame<'a> {
    /// The first frame of `bytes`, and how many bytes it takes; `None` where there must come more.
    ///
    /// # Errors
    /// 08P01: it is too long.
    pub fn read(bytes: &'a [u8]) -> Result<Option<(Self, usize)>> {
        let Some((head, rest)) = bytes.split_first_chunk::<LOGIN_HEAD_BYTES>() else {
            return Ok(None);
        };
        let [status, length @ ..] = *head;
        let length = length_of(length, LOGIN_BYTES_MAX)?;
        let payload = rest.get(..length);
        Ok(payload.map(|payload| (Self { status, payload }, LOGIN_HEAD_BYTES + length)))
    }

    /// The bytes of a frame.
    pub fn write(status: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        [&[status][..], &length.to_be_bytes(), payload].concat()
    }
}

/// The length that the head of a frame gives.
///
/// # Errors
/// 08P01: it is negative or larger than `max`.
pub fn length_of(head: [u8; FRAME_HEAD_BYTES], max: usize) -> Result<usize> {
    let length = usize::try_from(i32::from_be_bytes(head)).ok().filter(|length| *length <= max);
    length.ok_or_else(|| malformed(&format!("a frame is longer than {max} bytes")))
}

/// What a client says of itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Plain {
    /// The role.
    pub user: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plain").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Plain {
    /// Reads the message of the mechanism: whom to act as (not used), user and password, with a zero byte
    /// before the last two.
    ///
    /// # Errors
    /// 08P01.
    pub fn read(payload: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(payload).map_err(|_| no_plain("it is not UTF-8"))?;
        let mut parts = text.splitn(3, '\0').skip(1);
        let (Some(user), Some(password)) = (parts.next(), parts.next()) else {
            return Err(no_plain("it has no user and password"));
        };
        if password.contains('\0') {
            return Err(no_plain("its password has a zero byte"));
        }
        Ok(Self { user: user.to_owned(), password: password.to_owned() })
    }
}

fn no_plain(what: &str) -> Error {
    Error::invalid(format!("malformed SASL PLAIN message: {what}")).with_sqlstate("08P01")
}
