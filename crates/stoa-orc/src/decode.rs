//! From the bytes of a stripe's streams to Arrow arrays.
//!
//! In: a [`plan`] of what to read and the bytes of a run of row groups. Out: arrays of a given
//! number of rows. Layers: [`source`] inflates chunks, [`int_rle`], [`byte_rle`] decode runs,
//! the column decoders put values under a validity mask, [`position`] finds where runs start.
//! Not here: which bytes to ask for and when (`decoder`).

pub(crate) mod binary;
pub(crate) mod bit_unpack;
pub(crate) mod byte_rle;
pub(crate) mod column;
pub(crate) mod context;
pub(crate) mod decimal;
pub(crate) mod dictionary;
pub(crate) mod int_rle;
pub(crate) mod nested;
pub(crate) mod plan;
pub(crate) mod position;
pub(crate) mod primitive;
pub(crate) mod rle_v1;
pub(crate) mod rle_v2;
pub(crate) mod row_filter;
pub(crate) mod source;
pub(crate) mod timestamp;
pub(crate) mod timezone;
pub(crate) mod union;
pub(crate) mod validity;
