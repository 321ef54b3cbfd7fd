//! Puts flags, environment, file and defaults on top of each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stoa_error::{Error, Result};
use stoa_table::CatalogPlace;

use super::file;
use super::machine::Machine;
use super::setting::Setting;
use super::settings::{Config, SETTINGS};

/// Looked for where no file is named; no error if it is not there.
const DEFAULT_FILE: &str = "stoa.toml";
/// Names the file in place of `--config`.
const FILE_VARIABLE: &str = "STOA_CONFIG";

/// Variables that look like settings and are those of scripts of this project.
const OF_SCRIPTS: [&str; 4] =
    ["STOA_ATTACK_CONNECTIONS", "STOA_DISK_FAULTS", "STOA_SCRATCH", "STOA_TOOLS"];

/// Stands for a secret.
const HIDDEN: &str = "(hidden)";

/// Where settings may come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Flags given.
    pub flags: Vec<(&'static Setting, String)>,
    /// All environment variables that start with `STOA_`.
    pub environment: BTreeMap<String, String>,
    /// The file named by `--config`.
    pub file: Option<PathBuf>,
}

impl Sources {
    /// Adds the variables of this process to the flags and file that the command line gave.
    pub fn of_process(flags: &[(&'static Setting, String)], file: Option<&Path>) -> Self {
        let ours = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with("STOA_"))?;
            Some((name, value.to_string_lossy().into_owned()))
        });
        Self {
            flags: flags.to_vec(),
            environment: ours.collect(),
            file: file.map(Path::to_path_buf),
        }
    }
}

/// The effective settings.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// With their types.
    pub config: Config,
    /// Text and source (`default`, `flag --x`, `environment STOA_X`, `stoa.toml:3`), in the order
    /// of [`SETTINGS`].
    pub values: Vec<(&'static Setting, String, String)>,
    /// What the user should know, such as variables that look misspelt.
    pub warnings: Vec<String>,
    given_as_flag: Vec<&'static str>,
}

impl Resolved {
    /// Whether the setting was given on the command line.
    pub fn is_flag(&self, name: &str) -> bool {
        self.given_as_flag.contains(&name)
    }

    /// Whether nobody gave the setting.
    pub fn is_default(&self, name: &str) -> bool {
        self.values.iter().any(|(setting, _, source)| setting.name == name && source == "default")
    }
}

/// Settles every setting.
///
/// # Errors
/// Invalid, naming the source: an unknown key in the file, a value that cannot be read; not found:
/// a file that was named but is not there.
pub fn resolve(sources: &Sources, machine: &Machine) -> Result<Resolved> {
    let mut values: Vec<_> =
        SETTINGS.iter().map(|s| (s, s.default.to_owned(), "default".to_owned())).collect();
    let given =
        file_values(sources)?.into_iter().chain(environment_values(&sources.environment)).chain(
            sources
                .flags
                .iter()
                .map(|(s, text)| (*s, text.clone(), format!("flag --{}", s.flag()))),
        );
    for (setting, text, source) in given {
        let text = text.trim().to_owned();
        (setting.check)(&text, machine).map_err(|why| {
            Error::invalid(format!("{source}: {} = {text:?} {why}", setting.name))
        })?;
        if let Some(slot) = values.iter_mut().find(|slot| slot.0.name == setting.name) {
            *slot = (setting, text, source);
        }
    }
    let text_of = |name: &str| {
        values.iter().find(|slot| slot.0.name == name).map_or("", |slot| slot.1.as_str())
    };
    let config = Config::read(text_of, machine)
        .map_err(|(name, why)| Error::internal(format!("setting {name} {why}")))?;
    for (setting, text, _) in &mut values {
        if setting.is_secret && !text.is_empty() {
            HIDDEN.clone_into(text);
        }
        // A URL may hold a password.
        if let Some(database) = CatalogPlace::postgres(text) {
            *text = database.to_string();
        }
    }
    Ok(Resolved {
        config,
        warnings: environment_warnings(&sources.environment),
        given_as_flag: sources.flags.iter().map(|(setting, _)| setting.name).collect(),
        values,
    })
}

fn file_values(sources: &Sources) -> Result<Vec<(&'static Setting, String, String)>> {
    let variable = sources.environment.get(FILE_VARIABLE).map(PathBuf::from);
    let named = sources.file.clone().or(variable);
    let path = named.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    match std::fs::read_to_string(&path) {
        Ok(text) => file::read(&path, &text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && named.is_none() => Ok(Vec::new()),
        Err(e) => {
            let place = path.display();
            Err(Error::not_found(format!("cannot read configuration file {place}: {e}")))
        }
    }
}

fn environment_values(
    environment: &BTreeMap<String, String>,
) -> Vec<(&'static Setting, String, String)> {
    let of = |setting: &'static Setting| {
        let name = setting.variable();
        Some((setting, environment.get(&name)?.clone(), format!("environment {name}")))
    };
    SETTINGS.iter().filter_map(of).collect()
}

/// Names the variables that are close to a setting's. Others are left alone: a container platform
/// makes names such as `STOA_SERVICE_HOST` for a service called stoa.
fn environment_warnings(environment: &BTreeMap<String, String>) -> Vec<String> {
    let known: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
    let misspelt = environment.keys().filter_map(|name| {
        if known.contains(name) || name == FILE_VARIABLE || OF_SCRIPTS.contains(&name.as_str()) {
            return None;
        }
        let near = nearest(name, known.iter().map(String::as_str))?;
        Some(format!("environment variable {name} is not a setting; did you mean {near}?"))
    });
    misspelt.collect()
}

/// The error for a name that is not declared, with the nearest that is.
pub(super) fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Error {
    let error = Error::invalid(format!("unknown {what} {name:?}"));
    match nearest(name, known) {
        Some(near) => error.with_hint(format!("did you mean {near}?")),
        None => error.with_hint("`stoa config` lists all settings"),
    }
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate));
    let (distance, candidate) = scored.min()?;
    (distance <= 1 + name.len() / 4).then_some(candidate)
}
