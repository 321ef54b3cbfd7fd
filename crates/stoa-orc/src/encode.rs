//! Values in, the bytes of ORC's stream codecs out.
//!
//! In: slices of plain values (nulls already left out). Out: bytes appended to a `Vec<u8>`.
//! **Invariant:** every call ends its last run, so a position taken between two calls always has
//! "values consumed in the run" = 0; only the boolean codec carries bits of an unfinished byte.
//! Not here: compression chunks and positions (`writer::stream`), Arrow arrays
//! (`writer::values`), and decoding.

pub(crate) mod bit_pack;
pub(crate) mod bloom;
pub(crate) mod boolean;
pub(crate) mod byte_rle;
pub(crate) mod dictionary;
pub(crate) mod int_rle;
pub(crate) mod varint;
