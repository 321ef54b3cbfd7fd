//! Columns of texts that functions make, within the bounds of values and columns.

use arrow::array::{StringArray, StringBuilder};
use datafusion::error::{DataFusionError, Result};
use stoa_error::{Error, ErrorKind};

use crate::errors::to_datafusion;

/// Bytes of a value that a function makes, at most.
pub(super) const VALUE_BYTES_MAX: usize = 64 << 20;

/// A value that is too large.
pub(super) fn too_large(function: &str) -> DataFusionError {
    let message = format!("the result of {function} is too large");
    to_datafusion(
        Error::new(ErrorKind::Exhausted, message)
            .with_sqlstate("54000")
            .with_detail(format!("at most {VALUE_BYTES_MAX} bytes are possible")),
    )
}

/// A column of texts that is made, within the bounds of values and columns.
pub(super) struct Texts {
    texts: StringBuilder,
    bytes: usize,
    function: &'static str,
}

impl Texts {
    pub(super) fn of(function: &'static str) -> Self {
        Self { texts: StringBuilder::new(), bytes: 0, function }
    }

    /// # Errors
    /// A value, or the column, is too large (54000).
    pub(super) fn append(&mut self, text: Option<impl AsRef<str>>) -> Result<()> {
        let bytes = text.as_ref().map_or(0, |text| text.as_ref().len());
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes > VALUE_BYTES_MAX || self.bytes > i32::MAX as usize {
            return Err(too_large(self.function));
        }
        self.texts.append_option(text);
        Ok(())
    }

    pub(super) fn finish(&mut self) -> StringArray {
        self.texts.finish()
    }
}
