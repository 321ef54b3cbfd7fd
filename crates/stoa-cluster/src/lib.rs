//! x
mod id;
pub mod placement;
mod time;
pub use id::{DaemonId, Incarnation, LogId, TableId};
pub use time::{DatabaseTime, Monotonic};
