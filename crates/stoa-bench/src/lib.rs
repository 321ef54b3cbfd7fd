//! Workloads: the ad-report table, the driver that asks for reports and measures the answers, and
//! measurements of the ORC and range-read crates alone.
//!
//! In: a size, a seed, a server's address. Out: Arrow batches of the table `ad_report`
//! ([`AdReport`]), and figures of a run ([`RunResult`]): reports per hour, latency percentiles,
//! CPU, bytes and memory of the server. [`orc`] measures ORC against other libraries, [`seek`]
//! range reads on slow stores, [`cells`] tables of cells; [`s3_proxy`] makes any S3 slow and unreliable.
//!
//! **Invariant:** the table is a pure function of its [`AdReportSpec`]: any chunk can be made alone,
//! in any order, on any thread, and the sums a report must answer can be computed without the table.
//! So every run checks a sample of the answers: it cannot be fast and wrong.
//!
//! Not here: how the batches get into a table (`stoa-query`), command line (`stoa`).

mod accounts;
mod ad_report;
mod batches;
mod calendar;
pub mod cells;
mod check;
pub mod cluster;
mod driver;
pub mod ingest;
mod measure;
mod mix;
pub mod orc;
mod report;
mod report_scan;
mod rows;
pub mod s3_proxy;
pub mod seek;
mod server_process;
mod summary;
pub mod torture;
mod write;

pub use ad_report::{AdReport, AdReportSpec, Chunk, DailySums};
pub use batches::ChunkBatches;
pub use driver::{Limit, Mode, RunOptions, RunResult, count_rows, run};
pub use measure::{ServerProbe, ServerUsage};
pub use report::{Report, ReportPicker};
pub use server_process::ServerProcess;
pub use summary::{json, table};
pub use write::{Parcel, Payload, ServerAddress, WritePath, Writer};
