//! The SQL shell: reads statements, runs them, shows what comes back.
//!
//! In: lines from a terminal, a file, a pipe or `-c`. Out: results on stdout, errors on stderr.
//!
//! ```text
//! source.rs ─ lines ─► splitter.rs ─ statements ─► runner.rs ─► backend (local.rs │ remote.rs)
//! (editor.rs, complete.rs)     └── \d \g \watch … ─► meta.rs ─► commands.rs
//!                                                 rows ─► format/ ─► output.rs (stdout, pager, file, command)
//! ```
//!
//! **Invariants:** a statement is sent when its semicolon is there, or at the end of a text that is
//! not typed. Results stream: memory does not grow with their size. Ctrl-C cancels what runs and
//! leaves the shell open.
//!
//! Not here: what statements mean (`stoa-query`), the protocol's server side (`stoa-http`).

mod backend;
mod commands;
mod complete;
mod editor;
mod format;
mod local;
mod meta;
mod output;
mod remote;
mod runner;
mod source;
mod splitter;

pub use backend::Backend;
pub use editor::Editor;
pub use format::{Format, output_error};
pub use local::LocalBackend;
pub use remote::{RemoteBackend, problem_in, problem_of, unreachable_or_broken};
pub use runner::{Next, Shell, ShellOptions};
pub use source::TextSource;
