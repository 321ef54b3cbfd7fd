//! Settings: flags > environment > file > defaults.
//!
//! In: command-line flags, `STOA_*` variables, one TOML file, the machine. Out: a typed [`Config`],
//! with where each value came from.
//!
//! ```text
//! settings.rs (declared once) ─┬─► --http-port 0      flags.rs    (per command)
//!                              ├─► STOA_HTTP_PORT=0   resolve.rs
//!                              ├─► http_port = 0      file.rs
//!                              └─► stoa config, docs/configuration.md   show.rs
//! ```
//!
//! **Invariants:** a name that is not declared is an error in flags and file (a warning in the
//! environment, which belongs to others too). A value is checked wherever it comes from, also when
//! another source overrides it later. No other module reads flags, environment or file for settings.

mod file;
mod file_access;
mod flags;
mod machine;
mod pools;
mod resolve;
mod scripts;
mod setting;
mod settings;
mod show;
mod tables;
mod value;

#[cfg(test)]
mod tests;

pub use flags::SettingFlags;
pub use machine::Machine;
pub use resolve::{Resolved, Sources, resolve};
pub use setting::scope;
pub use settings::Config;
pub use show::{to_json, to_markdown, to_toml};
pub use value::{HivePort, LogFormat};
