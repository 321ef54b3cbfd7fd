//! Where a frame stands: which log, which sequence.

use std::fmt;
use std::str::FromStr;

use stoa_env::Env;
use stoa_error::{Error, Result};

/// Names a log for as long as it exists: random, made with its first segment.
///
/// A log that is wiped and made anew has another id, so that positions of the old one cannot be
/// mistaken for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogId(u64);

impl LogId {
    /// A new id.
    pub(crate) fn random(env: &Env) -> Self {
        Self(env.random_u64())
    }

    /// The id with the given bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The id's bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The position `sequence` of this log.
    pub const fn at(self, sequence: u64) -> LogPosition {
        LogPosition { log: self, sequence }
    }
}

/// Everything of a log up to and including one frame. Sequence 0 is before the first frame.
///
/// Prints and parses as `log:sequence`, 16 hexadecimal digits and a decimal number:
/// `3f9a0c1b22d4e5f6:1042`. That is what goes into a snapshot's summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogPosition {
    /// The log.
    pub log: LogId,
    /// The last frame's sequence; the first frame of a log has 1.
    pub sequence: u64,
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for LogId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(bits) if digits => Ok(Self(bits)),
            _ => Err(Error::invalid(format!("{text:?} is no log id"))
                .with_hint("a log id has 16 hexadecimal digits, such as 3f9a0c1b22d4e5f6")),
        }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.log, self.sequence)
    }
}

impl FromStr for LogPosition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!("{text:?} is no log position"))
                .with_hint("a position is log:sequence, such as 3f9a0c1b22d4e5f6:1042")
        };
        let (log, sequence) = text.split_once(':').ok_or_else(wrong)?;
        if sequence.is_empty() || !sequence.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        let sequence = sequence.parse().map_err(|_| wrong())?;
        Ok(Self { log: log.parse()?, sequence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_printing() {
        for position in [LogId::from_bits(0).at(0), LogId::from_bits(u64::MAX).at(u64::MAX)] {
            assert_eq!(position.to_string().parse::<LogPosition>().unwrap(), position);
        }
        assert_eq!(LogId::from_bits(0x2a).at(7).to_string(), "000000000000002a:7");
    }

    #[test]
    fn other_text_is_refused() {
        for text in
            ["", ":", "2a:7", "000000000000002a", "000000000000002a:", "000000000000002a:+7"]
        {
            assert!(text.parse::<LogPosition>().is_err(), "{text:?}");
        }
        assert!("000000000000002a:18446744073709551616".parse::<LogPosition>().is_err());
        assert!("+00000000000002a:1".parse::<LogPosition>().is_err());
    }
}
