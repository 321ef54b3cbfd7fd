//! Tests of the real binary: command line, settings, shell, loads, server, measurements.
//!
//! Every test has a directory of its own as working directory, home and warehouse.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod attacks;
mod backup;
mod bench;
mod canaries;
mod cluster;
mod cluster_console;
mod command_line;
mod concurrent_loads;
mod deploy;
mod disk_faults;
mod distributed;
mod file_access;
mod harness;
mod history;
mod hql;
mod live_stream;
mod load;
mod log;
mod log_faults;
mod orc;
mod permissions;
mod scripts;
mod server;
mod settings;
mod shared_catalog;
mod shell;
mod slt;
mod tables;
mod tls;
mod torture;
