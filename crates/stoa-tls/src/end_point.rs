//! What a login is bound to: `tls-server-end-point` of RFC 5929, section 4.
//!
//! It is the hash of the server's certificate, by the hash function of the certificate's own
//! signature, and SHA-256 where that is MD5 or SHA-1. A client that computes the same talks to who has
//! the certificate's key, and to nobody in between.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const OBJECT_ID: u8 = 0x06;
/// `[0] EXPLICIT` in parameters of RSASSA-PSS: the hash function.
const FIRST_FIELD: u8 = 0xa0;

/// The arcs of `1.2.840.113549.1.1`, of signatures with RSA.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// `1.2.840.10045.4`, of signatures with ECDSA.
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
/// `2.16.840.1.101.3.4.2`, of hash functions.
const HASHES: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];

/// What logins over a connection with this certificate (DER) are bound to; `None` where the
/// certificate's signature names no hash function, as with Ed25519.
pub(crate) fn of(certificate: &[u8]) -> Option<Vec<u8>> {
    Some(match signature_hash(certificate)? {
        Hash::Sha224 => Sha224::digest(certificate).to_vec(),
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// The hash function of a certificate's signature; SHA-256 for weaker ones.
fn signature_hash(certificate: &[u8]) -> Option<Hash> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (_to_be_signed, rest) = element(certificate, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    let (id, parameters) = element(algorithm, OBJECT_ID)?;
    if let Some(arc) = id.strip_prefix(RSA) {
        return match arc {
            // MD5 and SHA-1.
            [4 | 5] => Some(Hash::Sha256),
            [10] => pss_hash(parameters),
            [11] => Some(Hash::Sha256),
            [12] => Some(Hash::Sha384),
            [13] => Some(Hash::Sha512),
            [14] => Some(Hash::Sha224),
            _ => None,
        };
    }
    match id.strip_prefix(ECDSA)? {
        // SHA-1.
        [1] => Some(Hash::Sha256),
        [3, 1] => Some(Hash::Sha224),
        [3, 2] => Some(Hash::Sha256),
        [3, 3] => Some(Hash::Sha384),
        [3, 4] => Some(Hash::Sha512),
        _ => None,
    }
}

/// The hash function in the parameters of RSASSA-PSS; SHA-1 where they name none.
fn pss_hash(parameters: &[u8]) -> Option<Hash> {
    let (fields, _) = element(parameters, SEQUENCE)?;
    let Some((hash, _)) = element(fields, FIRST_FIELD) else { return Some(Hash::Sha256) };
    let (algorithm, _) = element(hash, SEQUENCE)?;
    let (id, _) = element(algorithm, OBJECT_ID)?;
    match id.strip_prefix(HASHES)? {
        [1] => Some(Hash::Sha256),
        [2] => Some(Hash::Sha384),
        [3] => Some(Hash::Sha512),
        [4] => Some(Hash::Sha224),
        _ => None,
    }
}

/// The content of the DER element of this type that `bytes` begins with, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // The length of the length: certificates are far below 16 MiB.
        0x81..=0x83 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    (found == tag).then_some((content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate with nothing but an algorithm of its signature.
    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        element_of(SEQUENCE, &[element_of(SEQUENCE, &[]), element_of(SEQUENCE, algorithm)].concat())
    }

    fn id(prefix: &[u8], arcs: &[u8]) -> Vec<u8> {
        element_of(OBJECT_ID, &[prefix, arcs].concat())
    }

    fn element_of(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut element = vec![tag, content.len() as u8];
        element.extend_from_slice(content);
        element
    }

    #[test]
    fn the_signatures_hash_function_is_found() {
        let check = |prefix: &[u8], arcs: &[u8], expected: Option<Hash>| {
            assert_eq!(signature_hash(&certificate(&id(prefix, arcs))), expected, "{arcs:?}");
        };
        check(RSA, &[4], Some(Hash::Sha256));
        check(RSA, &[5], Some(Hash::Sha256));
        check(RSA, &[11], Some(Hash::Sha256));
        check(RSA, &[12], Some(Hash::Sha384));
        check(RSA, &[13], Some(Hash::Sha512));
        check(RSA, &[14], Some(Hash::Sha224));
        check(ECDSA, &[1], Some(Hash::Sha256));
        check(ECDSA, &[3, 2], Some(Hash::Sha256));
        check(ECDSA, &[3, 3], Some(Hash::Sha384));
        check(ECDSA, &[3, 4], Some(Hash::Sha512));
        check(RSA, &[99], None);
        // Ed25519.
        check(&[0x2b, 0x65], &[0x70], None);
    }

    #[test]
    fn damaged_certificates_have_none() {
        let whole = certificate(&id(ECDSA, &[3, 2]));
        for end in 0..whole.len() {
            assert_eq!(signature_hash(&whole[..end]), None);
        }
        for length in [0x80, 0x84, 0xff] {
            assert_eq!(signature_hash(&[SEQUENCE, length, 1, 2, 3]), None);
        }
    }
}
