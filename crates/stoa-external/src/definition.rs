//! What an external table is: where its files are, and how rows are written in them.
//!
//! The definition is kept as properties of the table in the catalog, all of which begin with [`PREFIX`], beside those
//! that users set (`skip.header.line.count`).

use std::collections::BTreeMap;
use std::fmt;

use stoa_error::{Error, Result};

/// What the properties of a definition begin with.
const PREFIX: &str = "stoa.external.";
const LOCATION: &str = "stoa.external.location";
const FORMAT: &str = "stoa.external.format";
const SERDE: &str = "stoa.external.serde";
const DROPPED: &str = "stoa.external.dropped";
/// Hive's own: lines at the beginning of each text file that hold no rows.
const SKIP_HEADER: &str = "skip.header.line.count";
/// A user's statement that a directory is the same on all machines.
const SHARED: &str = "stoa.shared-directory";
const SKIP_FOOTER: &str = "skip.footer.line.count";
/// Most lines of a header.
const HEADER_LINES_MAX: u64 = 1000;

/// What files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// ORC.
    Orc,
    /// Apache Parquet.
    Parquet,
    /// Lines of text.
    Text,
    /// Hadoop's SequenceFile, whose values are lines of text.
    Sequence,
}

/// How the fields of a line are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serde {
    /// Hive's `LazySimpleSerDe`: `ROW FORMAT DELIMITED`.
    Delimited,
    /// Hive's `OpenCSVSerde`: all columns are texts.
    OpenCsv,
}

/// An external table, but for its name and columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The directory, as `file:///…` or `s3://…`, literally.
    pub location: String,
    /// What its files are.
    pub format: FileFormat,
    /// How lines are written; of no meaning to ORC and Parquet.
    pub serde: Serde,
    /// `SERDEPROPERTIES` and the clauses of `ROW FORMAT DELIMITED`, by Hive's names (`field.delim`, `separatorChar`).
    pub serde_properties: BTreeMap<String, String>,
    /// Lines at the beginning of each text file that hold no rows.
    pub header_lines: u64,
    /// Whether a directory is the same on all machines, as on a network file system.
    pub is_shared: bool,
    /// Names of partitions (`day=2024-05-01/hour=1`) that were dropped while their files stayed.
    pub dropped: Vec<String>,
}

impl FileFormat {
    /// As `STORED AS` names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Orc => "ORC",
            Self::Parquet => "PARQUET",
            Self::Text => "TEXTFILE",
            Self::Sequence => "SEQUENCEFILE",
        }
    }

    /// The format of this name.
    ///
    /// # Errors
    /// 0A000 for another.
    pub fn of_name(name: &str) -> Result<Self> {
        let known = [Self::Orc, Self::Parquet, Self::Text, Self::Sequence];
        let found = known.into_iter().find(|format| format.name().eq_ignore_ascii_case(name));
        found.or(name.eq_ignore_ascii_case("orcfile").then_some(Self::Orc)).ok_or_else(|| {
            Error::unsupported(format!("STORED AS {} is not supported", name.to_uppercase()))
                .with_hint("external tables are stored as ORC, PARQUET, TEXTFILE or SEQUENCEFILE")
        })
    }

    /// Whether rows are lines.
    pub fn has_lines(self) -> bool {
        matches!(self, Self::Text | Self::Sequence)
    }
}

impl Serde {
    /// Its class in Hive.
    pub fn class(self) -> &'static str {
        match self {
            Self::Delimited => "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
            Self::OpenCsv => "org.apache.hadoop.hive.serde2.OpenCSVSerde",
        }
    }

    /// The serde of a class of Hive's, with or without its package; `None` for those of ORC and Parquet, which their
    /// formats say.
    ///
    /// # Errors
    /// 0A000 for another.
    pub fn of_class(class: &str) -> Result<Option<Self>> {
        match class.rsplit('.').next().unwrap_or(class) {
            "LazySimpleSerDe" => Ok(Some(Self::Delimited)),
            "OpenCSVSerde" => Ok(Some(Self::OpenCsv)),
            "OrcSerde" | "ParquetHiveSerDe" => Ok(None),
            _ => Err(Error::unsupported(format!("ROW FORMAT SERDE '{class}' is not supported"))
                .with_hint("LazySimpleSerDe, OpenCSVSerde, OrcSerde and ParquetHiveSerDe are")),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Delimited => "delimited",
            Self::OpenCsv => "opencsv",
        }
    }
}

impl fmt::Display for Serde {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class())
    }
}

impl Definition {
    /// Whether a property belongs to a definition, and is none that users set.
    pub fn is_own_property(key: &str) -> bool {
        key.starts_with(PREFIX)
    }

    /// The definition that a table's properties hold; `None` for a table that is not external.
    ///
    /// # Errors
    /// `Corrupt` where a property of Stoa's is none that it can have been, `Invalid` (22023) for a user's.
    pub fn of<'a>(
        property: impl Fn(&str) -> Option<&'a str>,
        all: impl Fn() -> BTreeMap<String, String>,
    ) -> Result<Option<Self>> {
        let Some(location) = property(LOCATION) else { return Ok(None) };
        let damaged =
            |key: &str| Error::corrupt(format!("property {key} of an external table is damaged"));
        let format = property(FORMAT).ok_or_else(|| damaged(FORMAT))?;
        let format = FileFormat::of_name(format).map_err(|e| damaged(FORMAT).with_source(e))?;
        let serde = match property(SERDE) {
            None | Some("delimited") => Serde::Delimited,
            Some("opencsv") => Serde::OpenCsv,
            Some(_) => return Err(damaged(SERDE)),
        };
        let serde_prefix = format!("{SERDE}.");
        let of_serde = |(key, value): (String, String)| {
            Some((key.strip_prefix(&serde_prefix)?.to_owned(), value))
        };
        let dropped = property(DROPPED).unwrap_or_default().lines().map(str::to_owned).collect();
        let all = all();
        let (header_lines, is_shared) = (header_lines(&all)?, is_shared(&all)?);
        Ok(Some(Self {
            location: location.to_owned(),
            format,
            serde,
            serde_properties: all.into_iter().filter_map(of_serde).collect(),
            header_lines,
            is_shared,
            dropped,
        }))
    }

    /// Checks what a user says of an external table.
    ///
    /// # Errors
    /// `Invalid` (22023) and `Unsupported` for what cannot be followed.
    pub fn check(&self, properties: &BTreeMap<String, String>) -> Result<()> {
        header_lines(properties)?;
        is_shared(properties)?;
        if self.format.has_lines() {
            crate::TextFormat::of(self)?;
        }
        if let Some(lines) = properties.get(SKIP_FOOTER).filter(|lines| lines.trim() != "0") {
            return Err(Error::unsupported(format!("{SKIP_FOOTER} = {lines} is not supported"))
                .with_hint("take the last lines out of the files"));
        }
        Ok(())
    }

    /// Properties of external tables that users may set although they begin as Stoa's own do.
    pub const USER_PROPERTIES: [&'static str; 1] = [SHARED];

    /// The properties that hold it, but for those of users.
    pub fn properties(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::from([
            (LOCATION.to_owned(), self.location.clone()),
            (FORMAT.to_owned(), self.format.name().to_owned()),
            (SERDE.to_owned(), self.serde.name().to_owned()),
        ]);
        for (key, value) in &self.serde_properties {
            all.insert(format!("{SERDE}.{key}"), value.clone());
        }
        all
    }

    /// The property that holds names of dropped partitions, and its value.
    pub fn dropped_property(names: &[String]) -> (String, String) {
        (DROPPED.to_owned(), names.join("\n"))
    }
}

fn header_lines(properties: &BTreeMap<String, String>) -> Result<u64> {
    let Some(text) = properties.get(SKIP_HEADER) else { return Ok(0) };
    let lines = text.trim().parse::<u64>().ok().filter(|lines| *lines <= HEADER_LINES_MAX);
    lines.ok_or_else(|| {
        Error::invalid(format!("{SKIP_HEADER} is \"{text}\", which is no number of lines"))
            .with_sqlstate("22023")
            .with_hint(format!("write a number up to {HEADER_LINES_MAX}"))
    })
}

fn is_shared(properties: &BTreeMap<String, String>) -> Result<bool> {
    match properties.get(SHARED).map(|text| text.trim()) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => Err(Error::invalid(format!("{SHARED} is \"{text}\""))
            .with_sqlstate("22023")
            .with_hint("write true where the directory is the same on all machines, else false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_comes_back_from_its_properties() {
        let definition = Definition {
            location: "file:///data/x".into(),
            format: FileFormat::Text,
            serde: Serde::Delimited,
            serde_properties: BTreeMap::from([("field.delim".to_owned(), "\t".to_owned())]),
            header_lines: 0,
            is_shared: false,
            dropped: Vec::new(),
        };
        let all = definition.properties();
        let read = Definition::of(|key| all.get(key).map(String::as_str), || all.clone());
        assert_eq!(read.unwrap(), Some(definition));
        assert_eq!(Definition::of(|_| None, BTreeMap::new).unwrap(), None);
    }

    #[test]
    fn what_is_not_read_is_refused() {
        assert_eq!(FileFormat::of_name("avro").unwrap_err().sqlstate(), "0A000");
        assert_eq!(Serde::of_class("org.x.RegexSerDe").unwrap_err().sqlstate(), "0A000");
        let lines = BTreeMap::from([(SKIP_HEADER.to_owned(), "many".to_owned())]);
        assert_eq!(header_lines(&lines).unwrap_err().sqlstate(), "22023");
        let shared = |text: &str| is_shared(&[(SHARED.to_owned(), text.to_owned())].into());
        assert_eq!(shared("yes").unwrap_err().sqlstate(), "22023");
        assert!(shared("true").unwrap() && !shared("false").unwrap());
    }
}
