//! What a file may make the reader allocate.

/// Limits on memory that bytes from outside can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Inflated bytes of one metadata section: footer, stripe statistics, stripe footer, index.
    pub metadata_bytes: usize,
    /// Columns in a file, nested ones included.
    pub columns: usize,
    /// Stripes in a file.
    pub stripes: usize,
    /// Bytes of the arrays of one batch, and of the dictionaries of one stripe.
    pub batch_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { metadata_bytes: 256 << 20, columns: 1 << 20, stripes: 1 << 22, batch_bytes: 2 << 30 }
    }
}
