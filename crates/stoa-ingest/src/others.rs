//! What statements that rewrite a table ask of other daemons.

use futures::future::BoxFuture;
use stoa_error::Result;
use stoa_table::Table;

/// The other daemons, for statements that rewrite a table.
pub trait Others: Send + Sync {
    /// Makes those whose turn is before this daemon's, or after it, flush `table` and hold it.
    ///
    /// # Errors
    /// `Unavailable` where one of them does not answer and is not known to be dead.
    fn hold<'a>(
        &'a self,
        table: &'a Table,
        turn: Turn,
    ) -> BoxFuture<'a, Result<Vec<Box<dyn OtherHold>>>>;
}

/// Which of the other daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Those with lower ids than this one's.
    Before,
    /// Those with higher ids.
    After,
}

/// A table that another daemon holds for this one, until dropped.
pub trait OtherHold: Send + Sync {
    /// Brings the rows into files that came since.
    ///
    /// # Errors
    /// As [`Others::hold`]; `Conflict` where the other daemon has given the hold up.
    fn flush(&mut self) -> BoxFuture<'_, Result<()>>;
}
