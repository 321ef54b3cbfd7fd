//! Metadata of tables and views as it must be at another place: files name each other by absolute locations.
//!
//! ```text
//! manifests       file_path, referenced_data_file ─► …            their sizes may change
//! manifest lists  manifest_path, manifest_length  ─► …            which lists say
//! JSON            location, manifest-list, metadata-file, statistics-path ─► …
//! ```

use std::collections::HashMap;
use std::io::{Read, Write};

use apache_avro::types::Value;
use apache_avro::{Codec, Reader, Writer};
use bytes::Bytes;
use stoa_error::{Error, Place, Result};

/// From where to where: literal locations without a trailing slash.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) from: String,
    pub(crate) to: String,
}

/// What an Avro file of a table's metadata holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Manifest,
    ManifestList,
    Other,
}

impl Move {
    /// A location as it is afterwards.
    fn moved(&self, text: &str) -> Option<String> {
        let rest = text.strip_prefix(&self.from)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", self.to))
    }

    fn in_json(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => {
                if let Some(moved) = self.moved(text) {
                    *text = moved;
                }
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.in_json(item)),
            serde_json::Value::Object(members) => {
                members.values_mut().for_each(|member| self.in_json(member));
            }
            _ => {}
        }
    }

    fn in_avro(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(moved) = self.moved(text) {
                    *text = moved;
                }
            }
            Value::Union(_, inner) => self.in_avro(inner),
            Value::Array(items) => items.iter_mut().for_each(|item| self.in_avro(item)),
            Value::Record(fields) => fields.iter_mut().for_each(|(_, field)| self.in_avro(field)),
            Value::Map(members) => members.values_mut().for_each(|member| self.in_avro(member)),
            _ => {}
        }
    }

    /// Metadata of a table or view, packed as it was.
    ///
    /// # Errors
    /// `Corrupt` where it is no JSON.
    pub(crate) fn json(&self, path: &str, bytes: &Bytes) -> Result<Bytes> {
        let damaged = |source: Box<dyn std::error::Error + Send + Sync>| {
            Error::corrupt("the metadata cannot be read").at(Place::file(path)).with_source(source)
        };
        let is_packed = bytes.starts_with(&[0x1f, 0x8b]);
        let mut text = Vec::new();
        if is_packed {
            let mut packed = flate2::read::GzDecoder::new(&bytes[..]);
            packed.read_to_end(&mut text).map_err(|source| damaged(source.into()))?;
        }
        let text = if is_packed { &text } else { &bytes[..] };
        let mut json = serde_json::from_slice(text).map_err(|source| damaged(source.into()))?;
        self.in_json(&mut json);
        let text = serde_json::to_vec(&json).map_err(|source| damaged(source.into()))?;
        if !is_packed {
            return Ok(text.into());
        }
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(&text).map_err(|source| damaged(source.into()))?;
        Ok(packed.finish().map_err(|source| damaged(source.into()))?.into())
    }

    /// A manifest or a manifest list; `sizes` are those of manifests, by their locations afterwards.
    ///
    /// # Errors
    /// `Corrupt` where it is no Avro file; `Unsupported` (0A000) where it names files of position deletes, which name data
    /// files themselves.
    pub(crate) fn avro(
        &self,
        path: &str,
        bytes: &Bytes,
        sizes: &HashMap<String, u64>,
    ) -> Result<Bytes> {
        let damaged = |source: apache_avro::Error| {
            Error::corrupt("the file cannot be read as Avro")
                .at(Place::file(path))
                .with_source(source)
        };
        let reader = Reader::new(&bytes[..]).map_err(damaged)?;
        let schema = reader.writer_schema().clone();
        let metadata = reader.user_metadata().clone();
        let mut writer =
            Writer::with_codec(&schema, Vec::new(), Codec::Deflate(Default::default()));
        for (key, value) in metadata {
            writer.add_user_metadata(key, value).map_err(damaged)?;
        }
        for record in reader {
            let mut record = record.map_err(damaged)?;
            refuse_position_deletes(path, &record)?;
            self.in_avro(&mut record);
            state_size(&mut record, sizes);
            writer.append(record).map_err(damaged)?;
        }
        Ok(writer.into_inner().map_err(damaged)?.into())
    }
}

/// What the file at `path` is, by its schema.
pub(crate) fn kind_of(path: &str, bytes: &Bytes) -> Kind {
    if !path.ends_with(".avro") {
        return Kind::Other;
    }
    let Ok(reader) = Reader::new(&bytes[..]) else { return Kind::Other };
    let apache_avro::Schema::Record(record) = reader.writer_schema() else { return Kind::Other };
    let has = |name: &str| record.lookup.contains_key(name);
    if has("manifest_path") {
        Kind::ManifestList
    } else if has("data_file") {
        Kind::Manifest
    } else {
        Kind::Other
    }
}

fn field<'a>(record: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Record(fields) = record else { return None };
    let value = fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)?;
    Some(if let Value::Union(_, inner) = value { inner } else { value })
}

/// In the manifest list, the size that a manifest has now.
fn state_size(record: &mut Value, sizes: &HashMap<String, u64>) {
    let Some(Value::String(path)) = field(record, "manifest_path") else { return };
    let Some(size) = sizes.get(path) else { return };
    let size = Value::Long(*size as i64);
    if let Value::Record(fields) = record {
        for (_, value) in fields.iter_mut().filter(|(name, _)| name == "manifest_length") {
            *value = size.clone();
        }
    }
}

/// Files of position deletes hold locations of data files. Deletion vectors are named by their manifests only.
fn refuse_position_deletes(path: &str, record: &Value) -> Result<()> {
    let Some(file) = field(record, "data_file") else { return Ok(()) };
    let is_position_delete = matches!(field(file, "content"), Some(Value::Int(1)));
    let is_vector = matches!(field(file, "file_format"), Some(Value::String(format)) if format.eq_ignore_ascii_case("puffin"));
    let is_live = !matches!(field(record, "status"), Some(Value::Int(2)));
    if !is_position_delete || is_vector || !is_live {
        return Ok(());
    }
    Err(Error::unsupported("tables with position deletes can only be restored to where they were")
        .at(Place::file(path))
        .with_detail("files of position deletes hold the locations of data files")
        .with_hint("restore to the same location; or run COMPACT TABLE … FULL and EXPIRE SNAPSHOTS FROM … there, and take the backup again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_the_place_is_moved() {
        let to = Move { from: "file:///a/b".into(), to: "s3://c".into() };
        assert_eq!(to.moved("file:///a/b/x.orc").as_deref(), Some("s3://c/x.orc"));
        assert_eq!(to.moved("file:///a/b").as_deref(), Some("s3://c"));
        assert_eq!(to.moved("file:///a/bc/x.orc"), None);
        let json =
            r#"{"location": "file:///a/b/t", "list": ["file:///a/b/t/m", 1], "s": "file:///a/bc"}"#;
        let moved = to.json("m", &Bytes::from(json)).unwrap();
        let moved: serde_json::Value = serde_json::from_slice(&moved).unwrap();
        let expected = serde_json::json!({"location": "s3://c/t", "list": ["s3://c/t/m", 1], "s": "file:///a/bc"});
        assert_eq!(moved, expected);
        assert!(to.json("m", &Bytes::from("{")).is_err());
    }
}
