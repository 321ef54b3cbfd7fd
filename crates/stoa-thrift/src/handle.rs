//! Handles of sessions and operations.

use crate::reader::{Reader, Stop};
use crate::type_id::Kind;
use crate::writer::Writer;

/// Bytes of each part of a handle.
pub const HANDLE_PART_BYTES: usize = 16;

/// A `THandleIdentifier`: a name, and what only its owner knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    /// The name.
    pub guid: [u8; HANDLE_PART_BYTES],
    /// The secret.
    pub secret: [u8; HANDLE_PART_BYTES],
}

impl Handle {
    /// Reads a `TSessionHandle` or `TOperationHandle`, whose first field it is; `None` where a part has another
    /// length than those that a server gives out.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Stop> {
        let mut handle = None;
        reader.fields(|reader, id, kind| {
            if (id, kind) != (1, Kind::Struct) {
                return Ok(false);
            }
            handle = Self::read_identifier(reader)?;
            Ok(true)
        })?;
        Ok(handle)
    }

    fn read_identifier(reader: &mut Reader<'_>) -> Result<Option<Self>, Stop> {
        let (mut guid, mut secret) = (None, None);
        reader.fields(|reader, id, kind| {
            match (id, kind) {
                (1, Kind::Bytes) => guid = reader.bytes()?.try_into().ok(),
                (2, Kind::Bytes) => secret = reader.bytes()?.try_into().ok(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(guid.zip(secret).map(|(guid, secret)| Self { guid, secret }))
    }

    /// Writes the identifier as a field.
    pub(crate) fn write(&self, id: i16, out: &mut Writer) {
        out.structure(id, |out| {
            out.bytes_field(1, &self.guid);
            out.bytes_field(2, &self.secret);
        });
    }

    /// The name as Hive's tools print it: a UUID.
    pub fn name(&self) -> String {
        let hex: String = self.guid.iter().map(|byte| format!("{byte:02x}")).collect();
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        parts.join("-")
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Handle").field(&self.name()).finish()
    }
}
