//! Values of table properties, judged when somebody sets them.
//!
//! In: properties that a table is to be made with, or that are set. Out: nothing, or which of them has a
//! value that could not be followed later, by a commit, by maintenance, or by another engine.
//!
//! How data files are written is judged on the whole table ([`crate::write::check_properties`]): whether a
//! value is possible depends on other properties and on the columns.
//!
//! Properties that are not listed belong to somebody else and may have any value. Not here: what becomes
//! of a table that has got a bad value elsewhere (whoever reads the property says so).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use stoa_error::{Error, Result};

use crate::TableIdent;
use crate::retention::{RETENTION, Retention};

/// The properties of Stoa's own that tables of rows can have, beside those of fresh rows.
pub const STOA_PROPERTIES: [&str; 7] = [
    RETENTION,
    "stoa.compaction.min-input-files",
    "stoa.history.snapshots-max",
    "stoa.orc.compression-block-bytes",
    "stoa.orc.compression-level",
    "stoa.orc.dictionary",
    "stoa.orc.row-index-stride",
];

/// What a value must be.
enum Rule {
    Whole(RangeInclusive<u64>),
    Switch,
    OneOf(&'static [&'static str]),
    Retention,
}

/// The largest number that other engines read, too.
const NUMBER_MAX: u64 = (1 << 63) - 1;

const ANY_NUMBER: Rule = Rule::Whole(0..=NUMBER_MAX);
const COUNT: Rule = Rule::Whole(1..=NUMBER_MAX);
const ISOLATION: Rule = Rule::OneOf(&["serializable", "snapshot"]);

const RULES: &[(&str, Rule)] = &[
    ("commit.manifest-merge.enabled", Rule::Switch),
    ("commit.manifest.min-count-to-merge", ANY_NUMBER),
    ("commit.manifest.target-size-bytes", ANY_NUMBER),
    ("commit.retry.max-wait-ms", ANY_NUMBER),
    ("commit.retry.min-wait-ms", ANY_NUMBER),
    ("commit.retry.num-retries", Rule::Whole(0..=1000)),
    ("commit.retry.total-timeout-ms", ANY_NUMBER),
    ("gc.enabled", Rule::Switch),
    ("history.expire.max-snapshot-age-ms", ANY_NUMBER),
    ("history.expire.min-snapshots-to-keep", ANY_NUMBER),
    ("stoa.compaction.min-input-files", COUNT),
    ("stoa.history.snapshots-max", ANY_NUMBER),
    (RETENTION, Rule::Retention),
    ("write.delete.isolation-level", ISOLATION),
    ("write.merge.isolation-level", ISOLATION),
    ("write.metadata.delete-after-commit.enabled", Rule::Switch),
    ("write.metadata.previous-versions-max", ANY_NUMBER),
    ("write.object-storage.enabled", Rule::Switch),
    ("write.target-file-size-bytes", COUNT),
    ("write.update.isolation-level", ISOLATION),
];

/// Refuses values that could not be followed.
///
/// # Errors
/// `Invalid`, naming property and value, and what it may be.
pub(crate) fn check(ident: &TableIdent, properties: &BTreeMap<String, String>) -> Result<()> {
    for (key, value) in properties {
        let Some((_, rule)) = RULES.iter().find(|(name, _)| name == key) else { continue };
        judge(rule, value).map_err(|may_be| {
            let what = format!("table {ident}: property {key} = {value:?} cannot be used");
            Error::invalid(what).with_hint(format!("set it to {may_be}"))
        })?;
    }
    Ok(())
}

/// What the value may be, where it is not that.
fn judge(rule: &Rule, value: &str) -> std::result::Result<(), String> {
    let (is_right, may_be) = match rule {
        Rule::Whole(range) => {
            let is_right = value.parse().is_ok_and(|number: u64| range.contains(&number));
            let most = match *range.end() {
                NUMBER_MAX => String::new(),
                end => format!(" to {end}"),
            };
            (is_right, format!("a whole number from {}{most}", range.start()))
        }
        Rule::Switch => (matches!(value, "true" | "false"), "true or false".to_owned()),
        Rule::OneOf(values) => (values.contains(&value), values.join(" or ")),
        Rule::Retention => {
            (value.parse::<Retention>().is_ok(), "a time such as '13 months'".to_owned())
        }
    };
    if is_right { Ok(()) } else { Err(may_be) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_nobody_could_follow_are_refused() {
        let ident = TableIdent { namespace: "public".to_owned(), name: "t".to_owned() };
        let code = |key: &str, value: &str| {
            let properties = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            check(&ident, &properties).err().map_or("ok", |error| error.sqlstate())
        };
        for (key, rule) in RULES {
            let right: &[&str] = match rule {
                Rule::Whole(_) => &["1", "100"],
                Rule::Switch => &["true", "false"],
                Rule::OneOf(values) => values,
                Rule::Retention => &["13 months", "1 day"],
            };
            for value in right {
                assert_eq!(code(key, value), "ok", "{key} = {value}");
            }
            for value in ["", "-1", "soon", "1.5", "TRUE", "18446744073709551616"] {
                assert_eq!(code(key, value), "22023", "{key} = {value}");
            }
        }
        assert_eq!(code("stoa.compaction.min-input-files", "0"), "22023");
        assert_eq!(code("stoa.history.snapshots-max", "0"), "ok");
        assert_eq!(code("somebody.else", "whatever"), "ok");
    }
}
