//! Row keys: fields of a line put together.

use crate::lang::ast::KeyFormat;

/// The characters of random suffixes: 6 bits each.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Appends a part of a key, brought to its width; parts are joined by one blank.
pub(super) fn push_part(part: &[u8], format: KeyFormat, key: &mut Vec<u8>) {
    if !key.is_empty() {
        key.push(b' ');
    }
    let missing = |width: u8| usize::from(width).saturating_sub(part.len());
    let fill = |byte: u8, count: usize, key: &mut Vec<u8>| key.resize(key.len() + count, byte);
    match format {
        KeyFormat::Plain => key.extend_from_slice(part),
        KeyFormat::ZeroPadded(width) => {
            fill(b'0', missing(width), key);
            key.extend_from_slice(part);
        }
        KeyFormat::Right(width) => {
            fill(b' ', missing(width), key);
            key.extend_from_slice(part);
        }
        KeyFormat::Left(width) => {
            key.extend_from_slice(part);
            fill(b' ', missing(width), key);
        }
    }
}

/// Appends a blank and `count` random characters.
pub(super) fn push_random(count: u8, key: &mut Vec<u8>) {
    if count == 0 {
        return;
    }
    key.push(b' ');
    let mut bits = 0;
    for index in 0..count {
        if index % 10 == 0 {
            bits = stoa_env::random::u64();
        }
        key.push(ALPHABET[(bits & 63) as usize]);
        bits >>= 6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_padded_and_joined() {
        let mut key = Vec::new();
        push_part(b"42", KeyFormat::ZeroPadded(5), &mut key);
        push_part(b"ab", KeyFormat::Left(4), &mut key);
        push_part(b"cd", KeyFormat::Right(4), &mut key);
        push_part(b"longer", KeyFormat::Right(4), &mut key);
        assert_eq!(key, b"00042 ab     cd longer");
    }

    #[test]
    fn random_characters_differ() {
        let random = || {
            let mut key = b"r".to_vec();
            push_random(21, &mut key);
            key
        };
        let (a, b) = (random(), random());
        assert_eq!((a.len(), a[1]), (23, b' '));
        assert_ne!(a, b);
    }
}
