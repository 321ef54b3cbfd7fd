//! Settings that the TOML file may write as lists of tables: `[[pools]]`, `[[workload_rules]]`.
//!
//! In: the tables. Out: the same as the one line of text that flags and environment variables take
//! (`pools`), which checks the values. Keys and types are checked here, where their lines are known.

use stoa_error::{Error, Result};
use toml::de::{DeArray, DeTable, DeValue};

/// A list of tables: the setting's name, the key that each table must have, and its other keys with
/// whether they are numbers only, texts only, or either.
struct Tables {
    name: &'static str,
    required: &'static str,
    keys: &'static [(&'static str, Type)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Number,
    Text,
    /// A size or time: text with a unit, or a bare number.
    Quantity,
}

const TABLES: &[Tables] = &[
    Tables {
        name: "pools",
        required: "name",
        keys: &[
            ("name", Type::Text),
            ("slots", Type::Number),
            ("queue", Type::Number),
            ("memory", Type::Quantity),
            ("timeout", Type::Quantity),
            ("read", Type::Quantity),
        ],
    },
    Tables {
        name: "workload_rules",
        required: "pool",
        keys: &[
            ("user", Type::Text),
            ("application", Type::Text),
            ("protocol", Type::Text),
            ("pool", Type::Text),
        ],
    },
];

/// Whether the setting may be written as a list of tables.
pub(super) fn is_one(name: &str) -> bool {
    TABLES.iter().any(|tables| tables.name == name)
}

/// The tables of setting `name` as the text that a flag takes; `place` names the line of an offset.
///
/// # Errors
/// Invalid, with file, line, table and key: what is no table, an unknown or missing key, a value of
/// the wrong type.
pub(super) fn text(
    name: &str,
    list: DeArray<'_>,
    place: &impl Fn(usize) -> String,
) -> Result<String> {
    let Some(tables) = TABLES.iter().find(|tables| tables.name == name) else {
        return Err(Error::invalid(format!("{name} cannot be a list")));
    };
    let mut entries = Vec::new();
    for item in list {
        let at = place(item.span().start);
        let DeValue::Table(table) = item.into_inner() else {
            return Err(Error::invalid(format!("{at}: {name} must be tables, as in [[{name}]]")));
        };
        entries.push(tables.entry(table, &at, place)?);
    }
    Ok(entries.join("; "))
}

impl Tables {
    /// One table as text.
    fn entry(
        &self,
        table: DeTable<'_>,
        at: &str,
        place: &impl Fn(usize) -> String,
    ) -> Result<String> {
        let (mut required, mut words) = (None, Vec::new());
        for (key, value) in table {
            let at = place(key.span().start);
            let key = key.get_ref().as_ref();
            let kind = self.keys.iter().find(|(known, _)| *known == key).map(|(_, kind)| *kind);
            let kind = kind.ok_or_else(|| self.unknown(key, &at))?;
            let value = kind
                .text(value.into_inner())
                .map_err(|why| Error::invalid(format!("{at}: {key} in [[{}]] {why}", self.name)))?;
            match key == self.required {
                true => required = Some(value),
                false => words.push(format!("{key}={value}")),
            }
        }
        let Some(required) = required else {
            let (name, key) = (self.name, self.required);
            return Err(Error::invalid(format!("{at}: [[{name}]] needs the key {key}")));
        };
        let words = words.join(" ");
        Ok(match self.name {
            "workload_rules" => format!("{words} -> {required}"),
            _ => format!("{required} {words}"),
        })
    }

    fn unknown(&self, key: &str, at: &str) -> Error {
        let keys: Vec<&str> = self.keys.iter().map(|(known, _)| *known).collect();
        Error::invalid(format!("{at}: unknown key {key:?} in [[{}]]", self.name))
            .with_hint(format!("its keys are {}", keys.join(", ")))
    }
}

impl Type {
    /// A value as one word, in quotes where it has blanks; the error says what it must be.
    fn text(self, value: DeValue<'_>) -> Result<String, String> {
        match value {
            DeValue::Integer(number) if self != Self::Text => Ok(number.to_string()),
            DeValue::String(text) if self != Self::Number => word(text.trim()),
            _ => Err(match self {
                Self::Number => "must be a number".to_owned(),
                Self::Text => "must be a text in quotes".to_owned(),
                Self::Quantity => {
                    "must be a text in quotes such as \"2GiB\" or \"10m\", or a number".to_owned()
                }
            }),
        }
    }
}

fn word(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.*%@/:+".contains(c);
    match text {
        "" => Err("must not be empty".to_owned()),
        text if text.contains('"') => Err("must not contain a double quote".to_owned()),
        text if text.chars().all(is_plain) && !text.contains("->") => Ok(text.to_owned()),
        text => Ok(format!("\"{text}\"")),
    }
}
