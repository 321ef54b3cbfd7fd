//! What daemons say to each other, as bytes.
//!
//! All integers are little-endian; a text or a record is its length in 32 bits, then its bytes. A reader ignores
//! what follows the fields that it knows.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_error::{Error, Result};
use stoa_ingest::{CopyStatus, LogPart, ShippedTable};
use stoa_table::TableIdent;
use uuid::Uuid;

/// Kinds of requests.
pub(crate) mod kind {
    /// Are you alive, and am I a member? Answer: 1 or 0.
    pub(crate) const PROBE: u16 = 1;
    /// Part of the sender's log. Answer: how far the copy has come.
    pub(crate) const PUSH: u16 = 2;
    /// The sender wants to hear of the receiver's log.
    pub(crate) const HELLO: u16 = 3;
    /// Flush a table and hold it. Answer: a [`super::Held`].
    pub(crate) const HOLD: u16 = 4;
    /// Flush a held table again.
    pub(crate) const FLUSH: u16 = 5;
    /// Keep a hold.
    pub(crate) const KEEP: u16 = 6;
    /// Give a hold up.
    pub(crate) const RELEASE: u16 = 7;
}

/// Records that may be in one part.
const RECORDS_MAX: usize = 1 << 20;

/// A part of a log, for one life of a daemon.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Push {
    pub(crate) to: Holder,
    pub(crate) part: LogPart,
}

/// The table that is to be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HoldTable {
    pub(crate) uuid: Uuid,
    pub(crate) ident: TableIdent,
}

/// A table is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// The number of the hold.
    pub(crate) number: u64,
    /// Until when all that was written with a time is in files. Older builds do not tell.
    pub(crate) settled: Option<i64>,
}

impl Held {
    pub(crate) fn encode(self) -> Bytes {
        let mut out = BytesMut::with_capacity(16);
        out.put_u64_le(self.number);
        if let Some(settled) = self.settled {
            out.put_i64_le(settled);
        }
        out.freeze()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Self> {
        let mut reader = Reader(bytes);
        let number = reader.number()?;
        Ok(Self { number, settled: reader.0.try_get_i64_le().ok() })
    }
}

pub(crate) fn encode_status(status: CopyStatus) -> Bytes {
    let mut out = BytesMut::with_capacity(16);
    out.put_u64_le(status.shown);
    out.put_u64_le(status.has);
    out.freeze()
}

pub(crate) fn decode_status(bytes: Bytes) -> Result<CopyStatus> {
    let mut reader = Reader(bytes);
    Ok(CopyStatus { shown: reader.number()?, has: reader.number()? })
}

impl Push {
    pub(crate) fn encode(&self) -> Bytes {
        let part = &self.part;
        let records: usize = part.records.iter().map(|record| record.len() + 4).sum();
        let mut out = BytesMut::with_capacity(records + 128 * (1 + part.tables.len()));
        out.put_u64_le(self.to.daemon.bits());
        out.put_u64_le(self.to.incarnation);
        put_text(&mut out, &part.log);
        out.put_u64_le(part.base);
        out.put_u64_le(part.from);
        out.put_u64_le(part.durable);
        put_count(&mut out, part.tables.len());
        for table in &part.tables {
            put_table(&mut out, table.uuid, &table.ident);
            out.put_u64_le(table.in_files_before);
        }
        put_count(&mut out, part.records.len());
        for record in &part.records {
            put_count(&mut out, record.len());
            out.put_slice(record);
        }
        out.freeze()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Self> {
        let mut reader = Reader(bytes);
        let daemon = DaemonId::from_bits(reader.number()?);
        let to = Holder { daemon, incarnation: reader.number()? };
        let log = reader.text()?;
        let (base, from, durable) = (reader.number()?, reader.number()?, reader.number()?);
        let mut part = LogPart { log, base, from, durable, ..LogPart::default() };
        for _ in 0..reader.count()? {
            let (uuid, ident) = reader.table()?;
            let in_files_before = reader.number()?;
            part.tables.push(ShippedTable { uuid, ident, in_files_before });
        }
        for _ in 0..reader.count()? {
            part.records.push(reader.bytes()?);
        }
        Ok(Self { to, part })
    }
}

impl HoldTable {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        put_table(&mut out, self.uuid, &self.ident);
        out.freeze()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Self> {
        let (uuid, ident) = Reader(bytes).table()?;
        Ok(Self { uuid, ident })
    }
}

/// A single number.
pub(crate) fn number(value: u64) -> Bytes {
    Bytes::copy_from_slice(&value.to_le_bytes())
}

/// The number that [`number`] wrote.
pub(crate) fn read_number(bytes: &Bytes) -> Result<u64> {
    Reader(bytes.clone()).number()
}

fn put_count(out: &mut BytesMut, count: usize) {
    // Larger ones do not fit into a frame.
    out.put_u32_le(u32::try_from(count).unwrap_or(u32::MAX));
}

fn put_text(out: &mut BytesMut, text: &str) {
    put_count(out, text.len());
    out.put_slice(text.as_bytes());
}

fn put_table(out: &mut BytesMut, uuid: Uuid, ident: &TableIdent) {
    out.put_slice(uuid.as_bytes());
    put_text(out, &ident.namespace);
    put_text(out, &ident.name);
}

struct Reader(Bytes);

impl Reader {
    fn number(&mut self) -> Result<u64> {
        self.0.try_get_u64_le().map_err(|_| broken())
    }

    fn bytes(&mut self) -> Result<Bytes> {
        let length = self.0.try_get_u32_le().map_err(|_| broken())? as usize;
        if length > self.0.len() {
            return Err(broken());
        }
        Ok(self.0.split_to(length))
    }

    fn count(&mut self) -> Result<usize> {
        let count = self.0.try_get_u32_le().map_err(|_| broken())? as usize;
        if count > RECORDS_MAX { Err(broken()) } else { Ok(count) }
    }

    fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| broken())
    }

    fn table(&mut self) -> Result<(Uuid, TableIdent)> {
        let mut uuid = [0; 16];
        if self.0.len() < uuid.len() {
            return Err(broken());
        }
        self.0.copy_to_slice(&mut uuid);
        Ok((Uuid::from_bytes(uuid), TableIdent::new(self.text()?, self.text()?)))
    }
}

fn broken() -> Error {
    Error::invalid("a message of another daemon cannot be read").with_sqlstate("08P01")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push() -> Push {
        let table = ShippedTable {
            uuid: Uuid::from_u128(7),
            ident: TableIdent::new("public", "ä"),
            in_files_before: 3,
        };
        let part = LogPart {
            log: "00ff".to_owned(),
            base: 1,
            from: 2,
            records: vec![Bytes::from_static(b"one"), Bytes::new()],
            durable: 9,
            tables: vec![table],
        };
        Push { to: Holder { daemon: DaemonId::from_bits(5), incarnation: 6 }, part }
    }

    #[test]
    fn messages_come_back() {
        assert_eq!(Push::decode(push().encode()).unwrap(), push());
        let status = CopyStatus { shown: 1, has: 2 };
        assert_eq!(decode_status(encode_status(status)).unwrap(), status);
        let table = HoldTable { uuid: Uuid::from_u128(1), ident: TableIdent::new("a", "b") };
        assert_eq!(HoldTable::decode(table.encode()).unwrap(), table);
        assert_eq!(read_number(&number(77)).unwrap(), 77);
    }

    #[test]
    fn what_is_cut_or_damaged_is_an_error_or_another_message() {
        let whole = push().encode();
        for length in 0..whole.len() {
            let error = Push::decode(whole.slice(..length)).unwrap_err();
            assert_eq!(error.sqlstate(), "08P01");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 0xff;
            let _ = Push::decode(damaged.into());
        }
    }
}
