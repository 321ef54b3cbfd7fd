//! Texts of HiveQL as texts of Stoa's SQL.

use stoa_error::Result;

pub use stoa_hiveql::Options as HiveOptions;

/// The statements of a text, each translated, with semicolons between.
///
/// # Errors
/// As [`stoa_hiveql::translate`].
pub(super) fn translated(text: &str, options: HiveOptions) -> Result<String> {
    stoa_sql::measure(text)?;
    let statements = stoa_hiveql::split(text)?;
    let translated = statements.into_iter().map(|text| stoa_hiveql::translate(text, options));
    Ok(translated.collect::<Result<Vec<_>>>()?.join(";\n"))
}
