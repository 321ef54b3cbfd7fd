//! The format of a column's values in messages, and its code.

use stoa_error::{Error, Result};

/// Text or binary, per column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// PostgreSQL's text form.
    Text,
    /// PostgreSQL's send/recv form.
    Binary,
}

impl Format {
    /// The code used in messages.
    pub(crate) fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }

    /// From the code used in messages.
    pub(crate) fn from_code(code: i16) -> Result<Self> {
        match code {
            0 => Ok(Self::Text),
            1 => Ok(Self::Binary),
            other => Err(Error::invalid(format!("format code {other} is neither 0 nor 1"))
                .with_sqlstate("08P01")),
        }
    }

    /// Spreads the codes of a message over `count` columns: none means text, one counts for all.
    ///
    /// # Errors
    /// Any other number of codes.
    pub(crate) fn spread(codes: &[i16], count: usize) -> Result<Vec<Self>> {
        match codes {
            [] => Ok(vec![Self::Text; count]),
            [one] => Ok(vec![Self::from_code(*one)?; count]),
            many if many.len() == count => many.iter().map(|code| Self::from_code(*code)).collect(),
            many => Err(Error::invalid(format!(
                "message has {} format codes but there are {count} columns",
                many.len()
            ))
            .with_sqlstate("08P01")),
        }
    }
}
