//! CREATE, ALTER, DROP, EXISTS, DESCRIBE, SHOW CREATE TABLE.

use std::io::Read;

use stoa_error::{Error, ErrorKind, Place, Result};

use super::Session;
use crate::lang::ast::{TableChange, TableSource};
use crate::output::Output;
use crate::schema::{TableDefinitions, TableOptions, TableSchema};

/// Times a change of a schema is tried when others change it, too.
const ALTER_TRIES: u32 = 5;

/// Bytes a schema file may have.
const SCHEMA_BYTES_MAX: u64 = 16 << 20;

impl Session {
    pub(super) async fn create_table(&self, name: &str, source: TableSource) -> Result<()> {
        let schema = match source {
            TableSource::Definitions(definitions, options) => {
                TableSchema::create(&definitions, options)?
            }
            TableSource::Like(other) => {
                let (_, schema) = self.open(&other).await?;
                // The ids stay, so that dropped families leave the same gaps.
                TableSchema { generation: 1, ..schema.as_ref().clone() }
            }
            TableSource::SchemaFile(file) => {
                let (definitions, options) = self.read_schema(&file)?;
                TableSchema::create(&definitions, options)?
            }
        };
        self.store.create_table(&self.table(name)?, schema).await
    }

    pub(super) async fn alter_table(&self, name: &str, change: TableChange) -> Result<()> {
        let target = match &change {
            TableChange::SchemaFile(file) => Some(self.read_schema(file)?.0),
            TableChange::Actions(_) => None,
        };
        let mut tries = 0;
        loop {
            let (table, schema) = self.open(name).await?;
            let altered = match (&change, &target) {
                (TableChange::Actions(actions), _) => schema.alter(actions)?,
                (_, Some(target)) => schema.alter(&schema.changes_to(target))?,
                (_, None) => return Ok(()),
            };
            tries += 1;
            match self.store.alter_table(&table, altered).await {
                Err(e) if e.kind() == ErrorKind::Conflict && tries < ALTER_TRIES => {}
                other => return other,
            }
        }
    }

    pub(super) async fn drop_table(&self, name: &str, if_exists: bool) -> Result<()> {
        let table = self.table(name)?;
        match self.store.drop_table(&table).await {
            Err(e) if if_exists && e.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    pub(super) async fn exists_table(&self, name: &str, out: &mut dyn Output) -> Result<()> {
        let exists = self.store.schema(&self.table(name)?).await?.is_some();
        out.write(if exists { b"true\n" } else { b"false\n" })
    }

    /// The XML and the statement are each followed by a blank line (reference §1.1).
    pub(super) async fn describe_table(
        &self,
        name: &str,
        with_ids: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        let (_, schema) = self.open(name).await?;
        out.write(format!("{}\n", schema.describe(with_ids)).as_bytes())
    }

    pub(super) async fn show_create_table(&self, name: &str, out: &mut dyn Output) -> Result<()> {
        let (_, schema) = self.open(name).await?;
        out.write(format!("{}\n", schema.show_create(name)).as_bytes())
    }

    fn read_schema(&self, file: &str) -> Result<(TableDefinitions, TableOptions)> {
        let mut text = String::new();
        let opened = self.files.open(file)?;
        let read = opened.bytes.take(SCHEMA_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|e| Error::invalid(format!("schema file {file} is not text")).with_source(e))?;
        TableDefinitions::from_xml(&text).map_err(|e| e.at(Place::file(file)))
    }
}
