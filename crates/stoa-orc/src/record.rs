//! What a writer remembers of a file, so that it can be compared with what is read again.

use bytes::Bytes;

use crate::compression::CompressionKind;
use crate::schema::TypeTree;
use crate::stripe_info::StripeInfo;
use crate::value_checksum::Checksum;

/// What a writer remembers of its file.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) types: TypeTree,
    pub(crate) compression: CompressionKind,
    pub(crate) block_bytes: usize,
    pub(crate) row_index_stride: u32,
    /// The user's own keys.
    pub(crate) user_metadata: std::collections::BTreeMap<String, Bytes>,
    /// Columns with a bloom filter.
    pub(crate) bloom_columns: Vec<u32>,
    /// Timestamps of which some were written as nanoseconds.
    pub(crate) nano_columns: Vec<u32>,
    pub(crate) stripes: Vec<StripeRecord>,
    /// Where the tail starts; hash of its bytes.
    pub(crate) tail_from: u64,
    pub(crate) tail_hash: u64,
    pub(crate) file_bytes: u64,
}

/// What a writer remembers of a stripe.
#[derive(Clone, Debug)]
pub(crate) struct StripeRecord {
    pub(crate) info: StripeInfo,
    /// Hash of the stripe's bytes.
    pub(crate) hash: u64,
    /// By column, then by row group.
    pub(crate) checksums: Vec<Vec<Checksum>>,
}
