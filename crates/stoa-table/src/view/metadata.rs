//! The metadata file of a view, version 1 of Iceberg's specification of views.

use std::collections::{BTreeMap, HashSet};

use iceberg::spec::Schema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stoa_error::{Error, Place, Result};
use uuid::Uuid;

/// The only version of the specification.
const FORMAT_VERSION: i32 = 1;

/// The type of a representation that is SQL.
const SQL: &str = "sql";

/// All that a metadata file says. Once it is [`checked`](Self::checked), what it refers to is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ViewMetadata {
    pub(super) view_uuid: Uuid,
    pub(super) format_version: i32,
    pub(super) location: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) properties: BTreeMap<String, String>,
    pub(super) schemas: Vec<Schema>,
    pub(super) current_version_id: i32,
    pub(super) versions: Vec<ViewVersion>,
    pub(super) version_log: Vec<VersionLogEntry>,
}

/// One definition of the view; never changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ViewVersion {
    pub(super) version_id: i32,
    /// Milliseconds since 1970-01-01 UTC.
    pub(super) timestamp_ms: i64,
    pub(super) schema_id: i32,
    #[serde(default)]
    pub(super) summary: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) default_catalog: Option<String>,
    /// The levels of the namespace in which names without one are looked for.
    pub(super) default_namespace: Vec<String>,
    pub(super) representations: Vec<Representation>,
}

/// When a version became current.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct VersionLogEntry {
    pub(super) timestamp_ms: i64,
    pub(super) version_id: i32,
}

/// One way in which a version is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub(super) enum Representation {
    Sql(ViewSql),
    /// Of a type that is not known here; kept as it was read.
    Other(Map<String, Value>),
}

/// The query of a view in one dialect of SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewSql {
    /// The dialect, such as `stoa` or `spark`; upper and lower case do not matter.
    pub dialect: String,
    /// The query, without `CREATE VIEW`.
    pub sql: String,
}

impl TryFrom<Map<String, Value>> for Representation {
    type Error = String;

    fn try_from(map: Map<String, Value>) -> std::result::Result<Self, String> {
        let text = |key: &str| {
            let text = map.get(key).and_then(Value::as_str);
            text.ok_or_else(|| format!("a representation has no text {key:?}"))
        };
        if !text("type")?.eq_ignore_ascii_case(SQL) {
            return Ok(Self::Other(map));
        }
        let (dialect, sql) = (text("dialect")?.to_owned(), text("sql")?.to_owned());
        Ok(Self::Sql(ViewSql { dialect, sql }))
    }
}

impl From<Representation> for Map<String, Value> {
    fn from(representation: Representation) -> Self {
        match representation {
            Representation::Other(map) => map,
            Representation::Sql(ViewSql { dialect, sql }) => {
                let texts = [("type", SQL.to_owned()), ("sql", sql), ("dialect", dialect)];
                texts.map(|(key, text)| (key.to_owned(), Value::String(text))).into_iter().collect()
            }
        }
    }
}

impl ViewMetadata {
    pub(super) fn new(view_uuid: Uuid, location: String) -> Self {
        Self {
            view_uuid,
            format_version: FORMAT_VERSION,
            location,
            properties: BTreeMap::new(),
            schemas: Vec::new(),
            current_version_id: 0,
            versions: Vec::new(),
            version_log: Vec::new(),
        }
    }

    /// Reads the file `place`.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported`, naming the file.
    pub(super) fn parse(place: &str, json: &[u8]) -> Result<Self> {
        /// Read first: another version may have other fields.
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        struct Version {
            format_version: i32,
            view_uuid: Option<IgnoredAny>,
        }
        let unreadable = |source: serde_json::Error| damaged(place).with_source(source);
        let Version { format_version, view_uuid } =
            serde_json::from_slice(json).map_err(unreadable)?;
        if view_uuid.is_none() {
            return Err(damaged(place).with_detail("it has no view-uuid: it is not of a view"));
        }
        if format_version != FORMAT_VERSION {
            let what = format!("the view has format version {format_version}");
            return Err(Error::unsupported(what)
                .at(Place::file(place))
                .with_hint("version 1 can be read"));
        }
        let metadata: Self = serde_json::from_slice(json).map_err(unreadable)?;
        metadata.checked(place)
    }

    fn checked(self, place: &str) -> Result<Self> {
        let wrong = |what: String| Err(damaged(place).with_detail(what));
        let ids: HashSet<i32> = self.versions.iter().map(|version| version.version_id).collect();
        if ids.len() < self.versions.len() {
            return wrong("two versions have the same id".to_owned());
        }
        let schemas: HashSet<i32> = self.schemas.iter().map(Schema::schema_id).collect();
        if schemas.len() < self.schemas.len() {
            return wrong("two schemas have the same id".to_owned());
        }
        let Some(current) = self.current() else {
            let id = self.current_version_id;
            return wrong(format!("the current version, {id}, is not among the versions"));
        };
        if !schemas.contains(&current.schema_id) {
            return wrong(format!("the current schema, {}, is missing", current.schema_id));
        }
        for schema in &self.schemas {
            let mut fields = HashSet::new();
            if !schema.as_struct().fields().iter().all(|field| fields.insert(field.id)) {
                let id = schema.schema_id();
                return wrong(format!("two columns of schema {id} have the same id"));
            }
        }
        if self.location.is_empty() {
            return wrong("the location is empty".to_owned());
        }
        Ok(self)
    }

    /// The version that holds now.
    pub(super) fn current(&self) -> Option<&ViewVersion> {
        self.version(self.current_version_id)
    }

    pub(super) fn version(&self, id: i32) -> Option<&ViewVersion> {
        self.versions.iter().find(|version| version.version_id == id)
    }

    pub(super) fn schema(&self, id: i32) -> Option<&Schema> {
        self.schemas.iter().find(|schema| schema.schema_id() == id)
    }
}

/// Whether a metadata file is of a view, and of which; `None` for a table's, or where nothing can be
/// made of it.
pub(crate) fn view_uuid(json: &[u8]) -> Option<Uuid> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Identity {
        view_uuid: Uuid,
    }
    serde_json::from_slice::<Identity>(json).ok().map(|identity| identity.view_uuid)
}

fn damaged(place: &str) -> Error {
    Error::corrupt("the view metadata is not valid").at(Place::file(place))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The first example of Iceberg's specification of views, and a representation of an unknown type.
    const EXAMPLE: &str = r#"{
        "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
        "format-version": 1,
        "location": "s3://bucket/warehouse/default.db/event_agg",
        "current-version-id": 1,
        "properties": {"comment": "Daily event counts"},
        "versions": [{
            "version-id": 1,
            "timestamp-ms": 1573518431292,
            "schema-id": 1,
            "default-catalog": "prod",
            "default-namespace": ["default"],
            "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
            "representations": [
                {"type": "sql", "sql": "SELECT COUNT(1), CAST(ts AS DATE) FROM e", "dialect": "spark"},
                {"type": "plan", "bytes": [1, 2]}
            ]
        }],
        "schemas": [{
            "schema-id": 1,
            "type": "struct",
            "fields": [
                {"id": 1, "name": "event_count", "required": false, "type": "int", "doc": "Count"},
                {"id": 2, "name": "event_date", "required": false, "type": "date"}
            ]
        }],
        "version-log": [{"timestamp-ms": 1573518431292, "version-id": 1}]
    }"#;

    #[test]
    fn the_example_of_the_specification_comes_back() {
        let read = ViewMetadata::parse("f", EXAMPLE.as_bytes()).unwrap();
        assert_eq!(read.current().unwrap().default_catalog.as_deref(), Some("prod"));
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written, serde_json::from_str::<Value>(EXAMPLE).unwrap());
        assert_eq!(view_uuid(EXAMPLE.as_bytes()), Some(read.view_uuid));
        assert_eq!(view_uuid(br#"{"table-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385"}"#), None);
    }

    #[test]
    fn damage_names_the_file() {
        let check = |from: &str, to: &str, code: &str, word: &str| {
            assert!(EXAMPLE.contains(from), "{from}");
            let json = EXAMPLE.replace(from, to);
            let error = ViewMetadata::parse("file:///w/v.json", json.as_bytes()).unwrap_err();
            assert_eq!(error.sqlstate(), code, "{error:?}");
            let text = format!("{} {:?}", error.message_with_sources(), error.detail());
            assert!(text.contains("file:///w/v.json") && text.contains(word), "{text}");
        };
        check("\"format-version\": 1", "\"format-version\": 2", "0A000", "version 2");
        check("\"format-version\": 1,", "", "XX001", "format-version");
        check("\"current-version-id\": 1", "\"current-version-id\": 2", "XX001", "version, 2,");
        check(
            "\"schema-id\": 1,\n            \"default",
            "\"schema-id\": 9,\n            \"default",
            "XX001",
            "schema, 9,",
        );
        check("\"dialect\": \"spark\"", "\"dialect\": 7", "XX001", "dialect");
        check("\"id\": 2", "\"id\": 1", "XX001", "not valid");
        check("s3://bucket/warehouse/default.db/event_agg", "", "XX001", "location");
        check("fa6506c3-", "", "XX001", "UUID");
        check("view-uuid", "table-uuid", "XX001", "not of a view");
        check("\"int\"", "\"geography-of-tomorrow\"", "XX001", "not valid");
        for cut in 0..EXAMPLE.len() {
            ViewMetadata::parse("f", &EXAMPLE.as_bytes()[..cut]).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0..EXAMPLE.len(), byte: u8, cut in 0..40usize) {
            let mut bytes = EXAMPLE.as_bytes().to_vec();
            bytes[at] = byte;
            let end = (at + 1 + cut).min(bytes.len());
            bytes.drain(at + 1..end);
            let _ = ViewMetadata::parse("f", &bytes);
            let _ = view_uuid(&bytes);
        }
    }
}
