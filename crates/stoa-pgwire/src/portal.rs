//! Portals: statements with their parameters bound, and how far their rows were fetched.
//!
//! **Invariant:** a portal's query runs once; a later `Execute` or `FETCH` goes on where the one
//! before stopped.

use arrow_schema::SchemaRef;
use stoa_query::{Kept, ScalarValue};

use crate::scroll::ScrollRows;
use crate::statement::SharedStatement;
use crate::unsent::UnsentRows;

/// A bound statement, or a cursor.
pub(crate) struct Portal {
    pub(crate) statement: SharedStatement,
    /// Format codes of the result, as the client sent them.
    pub(crate) formats: Vec<i16>,
    pub(crate) state: PortalState,
    /// Outlives its transaction, if that commits.
    pub(crate) hold: bool,
    /// Whether its transaction did.
    pub(crate) is_committed: bool,
    /// What its values count for.
    pub(crate) _kept: Option<Kept>,
}

/// How far a portal got.
pub(crate) enum PortalState {
    /// Not executed yet.
    Bound(Vec<ScalarValue>),
    /// Executed; rows may be left.
    Open(UnsentRows),
    /// A cursor that goes both ways.
    Scroll(Box<ScrollRows>),
    /// All done.
    Ended,
}

impl PortalState {
    /// The columns, once it is executed.
    pub(crate) fn schema(&self) -> Option<SchemaRef> {
        match self {
            Self::Open(rows) => Some(rows.schema()),
            Self::Scroll(rows) => Some(rows.schema()),
            Self::Bound(_) | Self::Ended => None,
        }
    }
}
