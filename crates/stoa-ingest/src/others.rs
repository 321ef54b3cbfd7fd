//! What statements that rewrite a table ask of other daemons.

use futures::future::BoxFuture;
use stoa_error::Result;
use stoa_table::Table;

/// The other daemons, for statements that rewrite a table.
pub trait Others: Send + Sync {
    /// A number that is another one each time that a daemon joins or goes.
    ///
    /// # Errors
    /// `Unavailable` where nobody can be asked.
    fn epoch(&self) -> BoxFuture<'_, Result<u64>>;

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

/// Tells how late it is for writes that carry a time, such as cells do.
pub trait WriteClock: Send + Sync {
    /// A time before all writes that are under way, and before all that begin from now on. Those of before are in the
    /// log.
    fn settled(&self) -> i64;
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
    /// [`FlushHold::settled`] of that daemon.
    ///
    /// [`FlushHold::settled`]: crate::FlushHold::settled
    fn settled(&self) -> Option<i64>;

    /// Brings the rows into files that came since.
    ///
    /// # Errors
    /// As [`Others::hold`]; `Conflict` where the other daemon has given the hold up.
    fn flush(&mut self) -> BoxFuture<'_, Result<()>>;
}
