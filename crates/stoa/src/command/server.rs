//! `stoa server`.

use std::path::PathBuf;

use clap::Args;

use super::settle;
use crate::config::{SettingFlags, scope};
use crate::failure::Failure;
use crate::runtime::{block_on, start_log};
use crate::server;

/// Serve SQL over the PostgreSQL protocol, HTTP, Arrow Flight SQL and HiveServer2, with a console in the browser.
/// By default, data is in ./stoa-data, and the server listens on 127.0.0.1 only.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServerArgs {
    /// Stop when standard input ends: for programs that start a server, which then ends with them
    #[arg(long)]
    stop_with_stdin: bool,

    #[command(flatten)]
    settings: SettingFlags<{ scope::SERVER }>,
}

const EXAMPLES: &str = "\
Examples:
  stoa server                                  data in ./stoa-data
  stoa server --warehouse /srv/stoa            data elsewhere
  stoa server --warehouse s3://bucket/stoa     data in S3 (AWS_PROFILE, AWS_ACCESS_KEY_ID, …)
  stoa server --http-port 0 --pg-port 0 --flight-port 0 --hive-port 0
                                               free ports; scripts read them from the line below

When it listens on all ports, it prints one line of JSON to stdout:
  {\"event\":\"listening\",\"http_port\":15002,\"pg_port\":5433,\"flight_port\":15003,\"hive_port\":10000,\"warehouse\":\"file:///…\",\"pid\":42,…}
Logs go to stderr. After SIGTERM or Ctrl-C, running queries can finish within --shutdown-grace-s; then
they are cancelled, and the server exits with 0. A second signal ends it at once.";

pub fn run(args: ServerArgs, file: Option<PathBuf>) -> Result<(), Failure> {
    let resolved = settle(&args.settings, file)?;
    server::check_tls(&resolved.config).map_err(Failure::Usage)?;
    server::check_listen(&resolved.config).map_err(Failure::Usage)?;
    start_log(&resolved, false);
    block_on(&resolved.config, server::run(&resolved.config, args.stop_with_stdin))
        .map_err(Failure::Failed)
}
