//! Values nobody can foresee.
#![allow(clippy::disallowed_methods)]

use uuid::Uuid;

/// A random (version 4) UUID.
pub fn uuid() -> Uuid {
    Uuid::new_v4()
}

/// Random bytes from a generator fit for secrets.
pub fn bytes<const N: usize>() -> [u8; N] {
    rand::random()
}

/// 64 random bits.
pub fn u64() -> u64 {
    rand::random()
}
