//! Values that are bound to a statement, until it runs or others are bound.

use stoa_query::{Kept, ScalarValue};

/// Values, one row for each time that the statement is to run.
#[derive(Default)]
pub(crate) struct Bound {
    pub(crate) rows: Vec<Vec<ScalarValue>>,
    /// What they count for.
    _kept: Option<Kept>,
}

impl Bound {
    pub(crate) fn new(rows: Vec<Vec<ScalarValue>>, kept: Kept) -> Self {
        Self { rows, _kept: Some(kept) }
    }
}
