//! Where a stripe and its parts are in a file.

use std::ops::Range;

use crate::proto;

/// Where a stripe is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeInfo {
    /// Offset in the file in bytes.
    pub offset: u64,
    /// Bytes of index streams, which come first.
    pub index_bytes: u64,
    /// Bytes of data streams.
    pub data_bytes: u64,
    /// Bytes of the stripe footer, which comes last.
    pub footer_bytes: u64,
    /// Rows in the stripe.
    pub rows: u64,
    /// Rows of the file before this stripe.
    pub first_row: u64,
}

impl StripeInfo {
    /// From a footer; `first_row` rows come before it.
    pub(crate) fn of(stripe: &proto::StripeInformation, first_row: u64) -> Self {
        Self {
            offset: stripe.offset(),
            index_bytes: stripe.index_length(),
            data_bytes: stripe.data_length(),
            footer_bytes: stripe.footer_length(),
            rows: stripe.number_of_rows(),
            first_row,
        }
    }

    /// The whole stripe in the file.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.footer_range().end
    }

    /// The stripe footer in the file.
    pub fn footer_range(&self) -> Range<u64> {
        let start = self.offset + self.index_bytes + self.data_bytes;
        start..start + self.footer_bytes
    }

    /// The index streams in the file.
    pub fn index_range(&self) -> Range<u64> {
        self.offset..self.offset + self.index_bytes
    }
}
