//! The effective settings as TOML and JSON, and the reference page as Markdown.

use std::fmt::Write;

use serde_json::{Value, json};

use super::resolve::Resolved;
use super::setting::{Setting, scope};
use super::settings::SETTINGS;

/// A file that sets exactly what is in effect, with where each value came from.
pub fn to_toml(resolved: &Resolved) -> String {
    let mut text = String::new();
    for (setting, value, source) in &resolved.values {
        if setting.is_secret && !value.is_empty() {
            let _ = writeln!(text, "# {} is set and not shown  # {source}", setting.name);
            continue;
        }
        let value = (setting.to_toml)(value);
        let _ = writeln!(text, "{} = {value}  # {source}", setting.name);
    }
    text
}

/// The same as a list of objects.
pub fn to_json(resolved: &Resolved) -> Value {
    let entry = |(setting, value, source): &(&'static Setting, String, String)| {
        json!({
            "name": setting.name,
            "value": value,
            "source": source,
            "default": setting.default,
            "flag": format!("--{}", setting.flag()),
            "environment": setting.variable(),
            "doc": setting.doc(),
        })
    };
    resolved.values.iter().map(entry).collect()
}

/// The reference page, `docs/configuration.md`.
pub fn to_markdown() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         <!-- Written by `stoa config --markdown` from crates/stoa/src/config/settings.rs. -->\n\n\
         The first of these that sets a value applies: a flag, an environment variable, the TOML file\n\
         (`--config FILE`, or `STOA_CONFIG`, or `stoa.toml` in the current directory), the default.\n\
         `stoa config` prints the values in effect and where each comes from; its output is a valid\n\
         file. An unknown key in the file is an error.\n\n\
         Secrets are not shown. The settings that begin with `s3_` can also be in a table `[s3]`,\n\
         without this prefix. [s3.md](s3.md) describes how Stoa finds credentials.\n\n\
         Sizes have units: `512MB` (powers of 1000), `2GiB` (powers of 1024), `50%` (of the memory\n\
         that the process may use, including the limits of its container).\n",
    );
    for setting in SETTINGS {
        let default = match setting.default {
            "" => "empty".to_owned(),
            default => format!("`{default}`"),
        };
        let flag = match setting.scope {
            scope::FILE_ONLY => "No flag: other users could see it. ".to_owned(),
            _ => format!("Flag: `--{}`. ", setting.flag()),
        };
        let _ = write!(
            text,
            "\n## `{}`\n\n{}\n\nDefault: {default}. Value: {}. {flag}Environment: `{}`.\n",
            setting.name,
            wrap(&setting.doc(), 96),
            setting.kind,
            setting.variable(),
        );
    }
    text
}

fn wrap(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        if length > 0 && length + 1 + word.len() > width {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += word.len();
    }
    lines
}
