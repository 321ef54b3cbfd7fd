//! `stoa ready`: whether a server takes statements, for scripts and health checks.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use stoa_env::clock::monotonic;
use stoa_error::{Error, Result};

use super::{print, settle};
use crate::client::{ClientTls, local_url};
use crate::config::{SettingFlags, scope};
use crate::failure::Failure;
use crate::runtime::block_on;
use crate::shell::unreachable_or_broken;
use crate::units;

/// Check whether the server on this machine, or another one (--url), takes statements. The exit code is 0 if
/// it does and 1 if not. Works without a login, also with access control.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReadyArgs {
    /// The server to check, http://HOST:PORT or https://HOST:PORT [default: this machine, --http-port]
    #[arg(long)]
    url: Option<String>,

    /// Wait at most this long for the server to become ready
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = units::parse_duration)]
    wait: Duration,

    #[command(flatten)]
    tls: ClientTls,

    #[command(flatten)]
    settings: SettingFlags<{ scope::SHELL }>,
}

const EXAMPLES: &str = "\
Examples:
  stoa ready                        as a health check of a container
  stoa ready --wait 30s             in a script, after the server was started";

/// One answer may take so long.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Between two questions while the server is not ready.
const PAUSE: Duration = Duration::from_millis(100);

pub fn run(args: ReadyArgs, file: Option<PathBuf>) -> Result<(), Failure> {
    let resolved = settle(&args.settings, file)?;
    let url = match &args.url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => local_url(&resolved.config).map_err(Failure::Usage)?,
    };
    let client = args.tls.client()?;
    block_on(&resolved.config, async {
        let begin = monotonic();
        loop {
            match ask(&client, &url).await {
                Ok(()) => break,
                Err(error) if begin.elapsed() >= args.wait => return Err(error),
                Err(_) => stoa_env::timer::sleep(PAUSE).await,
            }
        }
        print(&format!("{url} is ready\n"))
    })?;
    Ok(())
}

async fn ask(client: &reqwest::Client, url: &str) -> Result<()> {
    let sent = client.get(format!("{url}/ready")).timeout(ANSWER_LIMIT).send().await;
    let answer = sent.map_err(|error| unreachable_or_broken(url, error))?;
    if answer.status().is_success() {
        return Ok(());
    }
    let status = answer.status();
    let body: serde_json::Value = answer.json().await.unwrap_or_default();
    let reason = body["reason"].as_str().map_or_else(|| status.to_string(), str::to_owned);
    Err(Error::unavailable(format!("the server at {url} is not ready: {reason}")))
}
