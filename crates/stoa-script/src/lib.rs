//! Programs of users that rows go through: which may run, how they are run, and how they end.
//!
//! ```text
//! "python3 count.py" ─► command: words ─► Allowed: the program and its files ─► Launch
//!
//! rows ─► text ─► stdin ─► the program ─► stdout ─► whole lines ─► rows
//!                 └───────── Script ──────────┘
//!                              │ starts, asks to end, reaps
//!                              ▼
//!                            guard (`stoa script-guard …`): the program's parent
//! ```
//! The guard is a process of its own, because only a parent can find all descendants of a program, also those that left its
//! process group, and because somebody has to end them when the server itself was killed.
//!
//! **Invariants:** nothing runs that an administrator has not allowed. What a program left behind ends with it: when the
//! program ends, when nobody reads its rows any more, and when the server is gone. Memory is bounded by a chunk, a line and
//! the end of stderr. A program gets no variable, no descriptor and no folder of the server's.
//!
//! Not here: rows, types, SQL, and who asks (`stoa-query`).

mod allowed;
mod command;
mod guard;
mod script;
mod spec;

pub use allowed::{Allowed, Launch, SessionFiles};
pub use command::words;
pub use guard::{GUARD_WORD, guard};
pub use script::{Guard, Script};
pub use spec::{Format, SortKey, Spec};
