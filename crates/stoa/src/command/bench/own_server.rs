//! The server that `stoa bench report` starts for itself.

use stoa_bench::ServerProcess;
use stoa_error::Result;

use super::torture::this_program;
use crate::config::Config;

/// Starts this program as a server with the settings of `config`.
pub(super) async fn start_server(config: &Config) -> Result<ServerProcess> {
    let program = this_program()?;
    let mut arguments = vec![
        "--warehouse".to_owned(),
        config.warehouse.clone(),
        "--memory-limit".to_owned(),
        config.memory_limit.0.to_string(),
        "--num-executors".to_owned(),
        config.num_executors.0.to_string(),
        "--cache-memory".to_owned(),
        config.cache_memory.0.to_string(),
        // The clients of the measurement do not encrypt.
        "--tls-cert=".to_owned(),
        "--tls-key=".to_owned(),
        "--tls-client-ca=".to_owned(),
        "--log-level".to_owned(),
        "warn".to_owned(),
    ];
    if let Some(dir) = &config.spill_dir {
        arguments.extend(["--spill-dir".to_owned(), dir.display().to_string()]);
    }
    arguments.extend(place_of(config));
    ServerProcess::start(&program, &arguments).await
}

/// Flags for where the warehouse is; keys come to the server the way they came here.
fn place_of(config: &Config) -> Vec<String> {
    let mut arguments = vec!["--catalog".to_owned(), config.catalog.clone()];
    for (flag, value) in [("endpoint", &config.s3_endpoint), ("region", &config.s3_region)] {
        let value = value.iter().flat_map(|value| [format!("--s3-{flag}"), value.clone()]);
        arguments.extend(value);
    }
    if let Some(path_style) = config.s3_path_style.0 {
        arguments.extend(["--s3-path-style".to_owned(), path_style.to_string()]);
    }
    if config.s3_allow_http {
        arguments.push("--s3-allow-http".to_owned());
    }
    arguments
}
