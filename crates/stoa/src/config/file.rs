//! The TOML file: `name = value` lines, the table `[s3]`, and lists of tables such as `[[pools]]`
//! (`tables`).

use std::path::Path;

use stoa_error::{Error, Result};
use toml::de::{DeTable, DeValue};

use super::resolve::unknown;
use super::setting::Setting;
use super::settings::SETTINGS;
use super::tables;

/// Settings that begin so may stand in a table of this name.
const TABLE: &str = "s3";

/// Reads settings from the text of `file`, with the place of each (`stoa.toml:3`).
///
/// # Errors
/// Invalid, with file and line: not TOML, a key that is no setting, a value that is a list or table
/// where the setting is not written so, an unknown key or a wrong type in such a table.
pub(super) fn read(file: &Path, text: &str) -> Result<Vec<(&'static Setting, String, String)>> {
    let place = |offset: usize| {
        let line = text.get(..offset).unwrap_or(text).matches('\n').count() + 1;
        format!("{}:{line}", file.display())
    };
    let table = DeTable::parse(text).map_err(|e| {
        let start = e.span().map_or(0, |span| span.start);
        Error::invalid(format!("{}: not valid TOML: {}", place(start), e.message()))
    })?;
    let mut values = Vec::new();
    for (name, start, value) in flat(table.into_inner()) {
        let at = place(start);
        let setting = SETTINGS
            .iter()
            .find(|setting| setting.name == name)
            .ok_or_else(|| unknown("setting", &name, SETTINGS.iter().map(|s| s.name)).at(&at))?;
        let text = match value {
            DeValue::String(text) => text.into_owned(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(value) => value.to_string(),
            DeValue::Array(list) if tables::is_one(&name) => tables::text(&name, list, &place)?,
            _ => {
                return Err(Error::invalid(format!(
                    "{at}: {name} must be a {}, not a date, list or table",
                    setting.kind
                )));
            }
        };
        values.push((setting, text, at));
    }
    Ok(values)
}

/// Keys with where they begin and their values; those of the table `[s3]` as `s3_…`.
fn flat(table: DeTable<'_>) -> Vec<(String, usize, DeValue<'_>)> {
    let mut found = Vec::new();
    for (key, value) in table {
        let start = key.span().start;
        match (key.get_ref().as_ref(), value.into_inner()) {
            (TABLE, DeValue::Table(inner)) => {
                let inner = inner.into_iter().map(|(key, value)| {
                    let name = format!("{TABLE}_{}", key.get_ref());
                    (name, key.span().start, value.into_inner())
                });
                found.extend(inner);
            }
            (name, value) => found.push((name.to_owned(), start, value)),
        }
    }
    found
}
