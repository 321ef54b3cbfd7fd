//! The first words of both sides, above TLS: which protocols each speaks.
//!
//! ```text
//! magic 8 bytes | length u32 of what follows
//! protocol_min u16 | protocol_max u16 | frame_bytes_max u32 | verdict u8 | length u16 | build
//! ```
//!
//! What follows the build is from a later version, and ignored. Both sides choose the newest protocol that
//! both speak.

use std::fmt;
use std::io;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::options::PeerOptions;

const MAGIC: [u8; 8] = *b"stoapeer";

/// Bytes of the longest hello taken.
const BYTES_MAX: u32 = 4 << 10;

/// Bytes of a build that are sent.
const BUILD_BYTES_MAX: usize = 256;

/// What one side says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) protocol_min: u16,
    /// Inclusive.
    pub(crate) protocol_max: u16,
    /// The largest frame that it takes.
    pub(crate) frame_bytes_max: u32,
    pub(crate) verdict: Verdict,
    pub(crate) build: String,
}

/// What whoever was connected to thinks of whoever connected, who says `Welcome` itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Welcome,
    /// The certificate is not that of a living member.
    Stranger,
    /// There is no common protocol.
    Protocol,
    /// This daemon is about to end.
    ShuttingDown,
    /// A later version's reason.
    Other,
}

impl Verdict {
    const ALL: [Self; 4] = [Self::Welcome, Self::Stranger, Self::Protocol, Self::ShuttingDown];

    fn number(self) -> u8 {
        let number = Self::ALL.iter().position(|verdict| *verdict == self);
        number.and_then(|number| u8::try_from(number).ok()).unwrap_or(u8::MAX)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Welcome => "it lets this daemon in",
            Self::Stranger => "it does not know this daemon as a living member of the cluster",
            Self::Protocol => "it speaks no common protocol",
            Self::ShuttingDown => "it is shutting down",
            Self::Other => "it refused the connection",
        })
    }
}

impl Hello {
    pub(crate) fn of(options: &PeerOptions, verdict: Verdict) -> Self {
        let build = &options.build[..options.build.floor_char_boundary(BUILD_BYTES_MAX)];
        Self {
            protocol_min: options.protocol_min,
            protocol_max: options.protocol_max,
            frame_bytes_max: u32::try_from(options.frame_bytes_max).unwrap_or(u32::MAX),
            verdict,
            build: build.to_owned(),
        }
    }

    /// The newest protocol that both speak.
    ///
    /// # Errors
    /// There is none: names the ranges of both.
    pub(crate) fn common(&self, peer: &Self) -> Result<u16, String> {
        let newest = self.protocol_max.min(peer.protocol_max);
        if newest >= self.protocol_min.max(peer.protocol_min) {
            return Ok(newest);
        }
        Err(format!(
            "there is no common protocol: this daemon ({}) speaks {} to {}, the peer ({}) speaks {} to {}",
            self.build,
            self.protocol_min,
            self.protocol_max,
            peer.build,
            peer.protocol_min,
            peer.protocol_max,
        ))
    }

    pub(crate) async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        to.write_all(&self.encode()).await?;
        to.flush().await
    }

    fn encode(&self) -> BytesMut {
        let mut body = BytesMut::new();
        body.put_u16(self.protocol_min);
        body.put_u16(self.protocol_max);
        body.put_u32(self.frame_bytes_max);
        body.put_u8(self.verdict.number());
        body.put_u16(u16::try_from(self.build.len()).unwrap_or_default());
        body.put_slice(self.build.as_bytes());
        let mut bytes = BytesMut::new();
        bytes.put_slice(&MAGIC);
        bytes.put_u32(u32::try_from(body.len()).unwrap_or_default());
        bytes.unsplit(body);
        bytes
    }

    /// Reads exactly one hello.
    ///
    /// # Errors
    /// The peer went away, or does not speak this protocol at all.
    pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut head = [0; 12];
        from.read_exact(&mut head).await?;
        let length = match head.strip_prefix(&MAGIC).map(|mut rest| rest.try_get_u32()) {
            Some(Ok(length)) if length <= BYTES_MAX => length,
            _ => return Err(no_hello()),
        };
        let mut body = vec![0; usize::try_from(length).map_err(|_| no_hello())?];
        from.read_exact(&mut body).await?;
        Self::decode(&body).ok_or_else(no_hello)
    }

    fn decode(mut body: &[u8]) -> Option<Self> {
        let protocol_min = body.try_get_u16().ok()?;
        let protocol_max = body.try_get_u16().ok()?;
        let frame_bytes_max = body.try_get_u32().ok()?;
        let verdict = usize::from(body.try_get_u8().ok()?);
        let verdict = Verdict::ALL.get(verdict).copied().unwrap_or(Verdict::Other);
        let length = usize::from(body.try_get_u16().ok()?);
        let build = String::from_utf8_lossy(body.get(..length)?);
        // It comes into logs and errors.
        let build = build.chars().filter(|c| !c.is_control()).collect();
        Some(Self { protocol_min, protocol_max, frame_bytes_max, verdict, build })
    }
}

fn no_hello() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the peer does not speak the protocol of daemons")
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use proptest::prelude::*;

    use super::*;

    fn hello(protocol_min: u16, protocol_max: u16) -> Hello {
        let options = PeerOptions { protocol_min, protocol_max, ..PeerOptions::default() };
        Hello::of(&options, Verdict::Welcome)
    }

    fn read(mut bytes: &[u8]) -> io::Result<Hello> {
        block_on(Hello::read(&mut bytes))
    }

    #[test]
    fn a_hello_is_read_as_it_was_written() {
        for verdict in Verdict::ALL {
            let hello = Hello { verdict, ..hello(3, 7) };
            assert_eq!(read(&hello.encode()).unwrap(), hello);
        }
    }

    #[test]
    fn a_later_hello_is_understood() {
        let mut bytes = hello(1, 2).encode();
        bytes.put_slice(b"more");
        let length = u32::try_from(bytes.len() - 12).unwrap();
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[20] = 77;
        assert_eq!(read(&bytes).unwrap(), Hello { verdict: Verdict::Other, ..hello(1, 2) });
    }

    #[test]
    fn the_newest_common_protocol_is_chosen() {
        let check = |one: (u16, u16), other: (u16, u16), expected: Option<u16>| {
            let (one, other) = (hello(one.0, one.1), hello(other.0, other.1));
            assert_eq!(one.common(&other).ok(), expected);
            assert_eq!(other.common(&one).ok(), expected);
        };
        check((1, 1), (1, 1), Some(1));
        check((1, 3), (2, 5), Some(3));
        check((1, 1), (2, 2), None);
        check((1, 9), (4, 5), Some(5));
        // Nonsense.
        check((3, 1), (1, 3), None);
        let text = hello(1, 2).common(&hello(3, 4)).unwrap_err();
        assert!(text.contains("1 to 2") && text.contains("3 to 4"), "{text}");
    }

    #[test]
    fn damaged_hellos_are_refused() {
        let whole = hello(1, 2).encode();
        for end in 0..whole.len() {
            read(&whole[..end]).unwrap_err();
        }
        let mut other = whole.clone();
        other[0] ^= 1;
        read(&other).unwrap_err();
        let mut long = whole;
        long[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        read(&long).unwrap_err();
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut bytes = BytesMut::from(&MAGIC[..]);
            bytes.put_u32(u32::try_from(body.len()).unwrap());
            bytes.put_slice(&body);
            let _ = read(&bytes);
            let _ = read(&body);
        }
    }
}
