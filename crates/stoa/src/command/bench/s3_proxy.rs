//! `stoa bench s3-proxy`: a slow and unreliable S3.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use stoa_bench::s3_proxy::{Proxy, ProxyOptions};
use stoa_error::{Error, Result};
use tokio::signal::unix::{SignalKind, signal};

use crate::shell::output_error;
use crate::units;

const EXAMPLES: &str = "\
Runs in front of an S3 endpoint. When it listens, it prints one line of JSON, {\"endpoint\":\"http://127.0.0.1:…\"}.
The path /-/counts shows the requests so far. Ctrl-C or SIGTERM ends it.

Examples:
  stoa bench s3-proxy --to http://127.0.0.1:9000 --port 9001
                                               30 ms, 90 MB/s per connection, like S3 from the same region
  stoa bench s3-proxy --to http://127.0.0.1:9000 --latency 0ms --errors 0.1 --lost 0.05 --truncated 0.1";

/// Arguments of `s3-proxy`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct S3ProxyArgs {
    /// The S3 endpoint to forward requests to
    #[arg(long, value_name = "URL")]
    to: String,

    /// Port on 127.0.0.1; 0 chooses a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// Delay of each request
    #[arg(long, value_name = "TIME", default_value = "30ms", value_parser = units::parse_duration)]
    latency: Duration,

    /// Megabytes per second of each connection; 0 = no limit
    #[arg(long, value_name = "MB/S", default_value_t = 90.0)]
    bandwidth: f64,

    /// Share of requests that fail with 500 or 503
    #[arg(long, value_name = "0–1", default_value_t = 0.0)]
    errors: f64,

    /// Share of requests that the store executes, but whose response is lost
    #[arg(long, value_name = "0–1", default_value_t = 0.0)]
    lost: f64,

    /// Share of reads whose body is truncated
    #[arg(long, value_name = "0–1", default_value_t = 0.0)]
    truncated: f64,

    /// Seed for the choice of requests that fail
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

pub(super) async fn s3_proxy(args: S3ProxyArgs) -> Result<()> {
    let options = ProxyOptions {
        upstream: args.to,
        latency: args.latency,
        bandwidth: (args.bandwidth > 0.0).then_some(args.bandwidth * 1e6),
        errors: args.errors,
        lost: args.lost,
        truncated: args.truncated,
        seed: args.seed,
    };
    let mut ends = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    let proxy = Proxy::bind(&options, args.port).await?;
    let line = json!({ "endpoint": format!("http://{}", proxy.address()) });
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(output_error)?;
    let [Ok(interrupt), Ok(terminate)] = &mut ends else {
        return Err(Error::internal("cannot take over signals"));
    };
    tokio::select! {
        served = proxy.serve(std::future::pending()) => served,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}
