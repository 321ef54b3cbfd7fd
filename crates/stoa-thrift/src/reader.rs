//! Reads values of Thrift's binary protocol from bytes.

use stoa_error::{Error, Result};

use crate::type_id::Kind;

/// Structs, lists and maps within each other, at most.
pub const DEPTH_MAX: usize = 16;
/// Values of one message, at most.
pub const VALUES_MAX: usize = 1 << 17;

/// Why bytes were not read to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// There must be at least so many bytes in all.
    Short { at_least: usize },
    /// No further bytes make it a message.
    Malformed(&'static str),
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        malformed(match stop {
            Stop::Short { .. } => "it ends early",
            Stop::Malformed(what) => what,
        })
    }
}

/// The error of bytes that are no message.
pub(crate) fn malformed(what: &str) -> Error {
    Error::invalid(format!("malformed Thrift message: {what}"))
        .with_sqlstate("08P01")
        .with_hint("connect with a client of HiveServer2: JDBC, beeline, PyHive, impyla")
}

/// A place in the bytes of a message.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    values_left: usize,
}

impl<'a> Reader<'a> {
    /// At the begin of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, values_left: VALUES_MAX }
    }

    /// How many bytes were read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Stop> {
        let end = self.at.saturating_add(count);
        let taken = self.bytes.get(self.at..end).ok_or(Stop::Short { at_least: end })?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Stop> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, Stop> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Stop> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Stop> {
        self.array().map(i64::from_be_bytes)
    }

    /// A length or count, which is not negative.
    fn size(&mut self) -> Result<usize, Stop> {
        usize::try_from(self.i32()?).map_err(|_| Stop::Malformed("a length is negative"))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Stop> {
        let length = self.size()?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Stop> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Stop::Malformed("a text is not UTF-8"))
    }

    /// Counts values to be walked over.
    fn spend(&mut self, values: usize) -> Result<(), Stop> {
        self.values_left = self
            .values_left
            .checked_sub(values)
            .ok_or(Stop::Malformed("it has too many values"))?;
        Ok(())
    }

    /// The next field of a struct; `None` at its end.
    pub(crate) fn field(&mut self) -> Result<Option<(i16, Kind)>, Stop> {
        match self.byte()? {
            0 => Ok(None),
            code => {
                self.spend(1)?;
                let kind = Kind::of(code).ok_or(Stop::Malformed("a field has no known type"))?;
                Ok(Some((self.i16()?, kind)))
            }
        }
    }

    /// Reads a struct: `take` gets each field and says whether it has read it; others are skipped.
    pub(crate) fn fields(
        &mut self,
        mut take: impl FnMut(&mut Self, i16, Kind) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        while let Some((id, kind)) = self.field()? {
            if !take(self, id, kind)? {
                self.skip(kind, 1)?;
            }
        }
        Ok(())
    }

    /// The texts of a list, if it is one of texts.
    pub(crate) fn texts(&mut self) -> Result<Vec<String>, Stop> {
        let (kind, count) = self.list_head()?;
        let mut texts = Vec::new();
        for _ in 0..count {
            match kind {
                Kind::Bytes => texts.push(self.text()?.to_owned()),
                other => self.skip(other, 2)?,
            }
        }
        Ok(texts)
    }

    /// The pairs of a map of texts.
    pub(crate) fn pairs(&mut self) -> Result<Vec<(String, String)>, Stop> {
        let Some((key, value, count)) = self.map_head()? else { return Ok(Vec::new()) };
        let mut pairs = Vec::new();
        for _ in 0..count {
            if (key, value) == (Kind::Bytes, Kind::Bytes) {
                pairs.push((self.text()?.to_owned(), self.text()?.to_owned()));
            } else {
                self.skip(key, 2)?;
                self.skip(value, 2)?;
            }
        }
        Ok(pairs)
    }

    fn list_head(&mut self) -> Result<(Kind, usize), Stop> {
        let (code, count) = (self.byte()?, self.size()?);
        match Kind::of(code) {
            Some(kind) => {
                if kind.width().is_none() {
                    self.spend(count)?;
                }
                Ok((kind, count))
            }
            // Some writers give empty lists no type.
            None if count == 0 => Ok((Kind::Byte, 0)),
            None => Err(Stop::Malformed("a list has no known type")),
        }
    }

    fn map_head(&mut self) -> Result<Option<(Kind, Kind, usize)>, Stop> {
        let codes: [u8; 2] = self.array()?;
        let count = self.size()?;
        if count == 0 {
            return Ok(None);
        }
        let [key, value] = codes.map(Kind::of);
        let (Some(key), Some(value)) = (key, value) else {
            return Err(Stop::Malformed("a map has no known types"));
        };
        self.spend(count)?;
        Ok(Some((key, value, count)))
    }

    /// Walks over a value at a depth.
    pub(crate) fn skip(&mut self, kind: Kind, depth: usize) -> Result<(), Stop> {
        if depth > DEPTH_MAX {
            return Err(Stop::Malformed("its values are nested too deeply"));
        }
        match kind {
            Kind::Bytes => self.bytes().map(drop),
            Kind::Struct => {
                while let Some((_, kind)) = self.field()? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            Kind::Map => {
                let Some((key, value, count)) = self.map_head()? else { return Ok(()) };
                for _ in 0..count {
                    self.skip(key, depth + 1)?;
                    self.skip(value, depth + 1)?;
                }
                Ok(())
            }
            Kind::Set | Kind::List => {
                let (kind, count) = self.list_head()?;
                match kind.width() {
                    Some(width) => self.take(width.saturating_mul(count)).map(drop),
                    None => (0..count).try_for_each(|_| self.skip(kind, depth + 1)),
                }
            }
            Kind::Bool | Kind::Byte | Kind::I16 | Kind::I32 | Kind::I64 | Kind::Double => {
                self.take(kind.width().unwrap_or_default()).map(drop)
            }
        }
    }

    /// The begin of a call: its name and number.
    pub(crate) fn message_begin(&mut self) -> Result<(&'a str, i32), Stop> {
        let [high, low, _, kind]: [u8; 4] = self.array()?;
        if [high, low] != VERSION {
            return Err(Stop::Malformed(
                "it does not begin with the version of the binary protocol",
            ));
        }
        let length = self.size()?;
        if length > NAME_BYTES_MAX {
            return Err(Stop::Malformed("the name of the call is too long"));
        }
        let name = std::str::from_utf8(self.take(length)?);
        let name = name.map_err(|_| Stop::Malformed("the name of the call is not UTF-8"))?;
        match kind {
            CALL | ONE_WAY => Ok((name, self.i32()?)),
            _ => Err(Stop::Malformed("it is no call")),
        }
    }

    /// Walks over the arguments of a call.
    pub(crate) fn skip_arguments(&mut self) -> Result<(), Stop> {
        self.skip(Kind::Struct, 0)
    }
}

/// What a message begins with: version 1 of the strict binary protocol.
pub(crate) const VERSION: [u8; 2] = [0x80, 0x01];
/// A call that is answered.
const CALL: u8 = 1;
/// A call that is not answered; HiveServer2 has none.
const ONE_WAY: u8 = 4;
/// Bytes of a call's name.
const NAME_BYTES_MAX: usize = 256;
