//! Deletion vectors: the blob `deletion-vector-v1` of a Puffin file.
//!
//! ```text
//! length of magic and bitmap (4 bytes, big endian)
//! magic D1 D3 39 64
//! bitmap: number of parts (8 bytes, little endian), each a key (4 bytes) and a 32-bit roaring bitmap
//! CRC-32 of magic and bitmap (4 bytes, big endian)
//! ```

use flate2::Crc;
use roaring::RoaringTreemap;

const MAGIC: [u8; 4] = [0xd1, 0xd3, 0x39, 0x64];

/// The row numbers in a blob; what is wrong with it otherwise.
pub(super) fn decode(blob: &[u8]) -> Result<RoaringTreemap, &'static str> {
    let (length, rest) = blob.split_first_chunk::<4>().ok_or("it is too short")?;
    let (body, crc) = rest.split_last_chunk::<4>().ok_or("it is too short")?;
    if usize::try_from(u32::from_be_bytes(*length)).ok() != Some(body.len()) {
        return Err("its length is not what it says");
    }
    let bitmap = body.strip_prefix(&MAGIC).ok_or("it does not begin as a deletion vector does")?;
    let mut sum = Crc::new();
    sum.update(body);
    if sum.sum() != u32::from_be_bytes(*crc) {
        return Err("its checksum is wrong");
    }
    RoaringTreemap::deserialize_from(bitmap).map_err(|_| "its bitmap cannot be decoded")
}

/// A blob of `rows`.
#[cfg(test)]
pub(super) fn encode(rows: &RoaringTreemap) -> Vec<u8> {
    let mut body = MAGIC.to_vec();
    rows.serialize_into(&mut body).unwrap();
    let mut sum = Crc::new();
    sum.update(&body);
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length[..], &body, &sum.sum().to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_back_and_damage_is_seen() {
        let rows: RoaringTreemap = [0, 1, 7, 65_536, 5_000_000_000, 5_000_000_001].into();
        let blob = encode(&rows);
        assert_eq!(decode(&blob).unwrap(), rows);
        for at in 0..blob.len() {
            let mut damaged = blob.clone();
            damaged[at] ^= 0x10;
            decode(&damaged).unwrap_err();
            decode(&blob[..at]).unwrap_err();
        }
    }

    #[test]
    fn bytes_are_those_of_other_engines() {
        // Iceberg's Java, `BitmapPositionDeleteIndex` of 0 and 3.
        let blob = [
            0, 0, 0, 36, 0xd1, 0xd3, 0x39, 0x64, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3a, 0x30, 0,
            0, 1, 0, 0, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0, 0, 3, 0,
        ];
        let mut sum = Crc::new();
        sum.update(&blob[4..]);
        let blob = [&blob[..], &sum.sum().to_be_bytes()].concat();
        assert_eq!(decode(&blob).unwrap(), RoaringTreemap::from([0, 3]));
    }
}
