//! `stoa config`: which settings are in effect, and where each came from.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::settle;
use crate::config::{SettingFlags, scope, to_json, to_markdown, to_toml};
use crate::failure::Failure;
use crate::shell::output_error;

/// Print the settings in effect as a valid stoa.toml, with the source of each value. The first of
/// these that sets a value applies: flag, environment (STOA_…), file, default.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Print JSON, with the documentation of each setting
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print the reference page of all settings (docs/configuration.md)
    #[arg(long)]
    markdown: bool,

    #[command(flatten)]
    settings: SettingFlags<{ scope::ALL }>,
}

pub fn run(args: ConfigArgs, file: Option<PathBuf>) -> Result<(), Failure> {
    let text = if args.markdown {
        to_markdown()
    } else {
        let resolved = settle(&args.settings, file)?;
        for warning in &resolved.warnings {
            eprintln!("warning: {warning}");
        }
        match args.json {
            true => format!("{:#}\n", json!({ "settings": to_json(&resolved) })),
            false => to_toml(&resolved),
        }
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(output_error)?;
    Ok(())
}
