//! INSERT and DELETE.

use stoa_error::{Error, Result};

use super::Session;
use crate::batch::CellBatchBuilder;
use crate::cell::{CellKind, CellRef, WHOLE_ROW};
use crate::lang::ast::{Delete, DeleteVersions, InsertCell, Text};
use crate::output::{Output, Statistics};
use crate::read::is_counter_value;
use crate::time_text::parse_load_timestamp;

impl Session {
    pub(super) async fn insert(
        &self,
        name: &str,
        cells: &[InsertCell],
        out: &mut dyn Output,
    ) -> Result<()> {
        let mut statistics = Statistics::start();
        let (table, schema) = self.open(name).await?;
        let _under_way = self.store.timestamps().begin();
        let mut builder = CellBatchBuilder::new();
        let given = cells.iter().any(|cell| cell.timestamp.is_some());
        for cell in cells {
            let (family_name, qualifier) = split_column(&cell.column);
            let family = schema.require_family(family_name)?;
            let (row, value) = (made(&cell.row), made(&cell.value));
            check_key(&row, qualifier)?;
            if family.options.is_counter() && !is_counter_value(value.as_bytes()) {
                let text = format!("\"{value}\" is no number for the counter '{family_name}'");
                return Err(Error::invalid(text)
                    .with_sqlstate("22P02")
                    .with_hint("write n or +n to add, -n to take away, =n to start anew"));
            }
            let timestamp = match &cell.timestamp {
                Some(text) => self.timestamp(text)?,
                None => self.store.timestamps().reserve(1),
            };
            let (row, value) = (row.as_bytes(), value.as_bytes());
            builder.push_insert(row, family.id, qualifier.as_bytes(), timestamp, value)?;
        }
        let batch = builder.finish();
        let batch = if given { batch } else { batch.with_new_timestamps() };
        statistics.count(&batch);
        self.store.mutate(&table, batch).await?;
        self.print_statistics(&statistics, true, out)
    }

    pub(super) async fn delete(&self, delete: &Delete, out: &mut dyn Output) -> Result<()> {
        let mut statistics = Statistics::start();
        let (table, schema) = self.open(&delete.table).await?;
        let _under_way = self.store.timestamps().begin();
        let timestamp = match &delete.versions {
            DeleteVersions::All => self.store.timestamps().reserve(1),
            DeleteVersions::UpTo(text) | DeleteVersions::Exactly(text) => self.timestamp(text)?,
        };
        let one_version = matches!(delete.versions, DeleteVersions::Exactly(_));
        let row = delete.row.as_bytes();
        let mut builder = CellBatchBuilder::new();
        if delete.columns.is_empty() {
            if one_version {
                return Err(Error::invalid("VERSION needs the column whose version is meant")
                    .with_sqlstate("42601")
                    .with_hint("DELETE column FROM …, or TIMESTAMP for all that is not newer"));
            }
            let marker =
                |kind| CellRef { kind, ..CellRef::insert(row, WHOLE_ROW, b"", timestamp, b"") };
            check_key(&delete.row, "")?;
            builder.push(marker(CellKind::DeleteRow))?;
        }
        for column in &delete.columns {
            let (family, qualifier) = split_column(column);
            check_key(&delete.row, qualifier)?;
            let family = schema.require_family(family)?.id;
            let kind = match column.contains(':') {
                _ if one_version => CellKind::DeleteVersion,
                true => CellKind::DeleteCell,
                false => CellKind::DeleteFamily,
            };
            let cell = CellRef::insert(row, family, qualifier.as_bytes(), timestamp, b"");
            builder.push(CellRef { kind, ..cell })?;
        }
        let mut batch = builder.finish();
        if matches!(delete.versions, DeleteVersions::All) {
            batch = batch.with_new_timestamps();
        }
        statistics.count(&batch);
        self.store.mutate(&table, batch).await?;
        self.print_statistics(&statistics, true, out)
    }

    /// A timestamp as a statement writes it.
    pub(super) fn timestamp(&self, text: &str) -> Result<i64> {
        parse_load_timestamp(text.as_bytes(), self.options.zone).ok_or_else(|| {
            Error::invalid(format!("\"{text}\" is no timestamp"))
                .with_sqlstate("22007")
                .with_hint("write YYYY-MM-DD HH:MM:SS, with a fraction if you like")
        })
    }
}

/// Family and qualifier; without a colon the qualifier is empty.
pub(super) fn split_column(column: &str) -> (&str, &str) {
    column.split_once(':').unwrap_or((column, ""))
}

/// The text, or a new identifier.
fn made(text: &Text) -> String {
    match text {
        Text::Literal(text) => text.clone(),
        Text::Guid => stoa_env::random::uuid().to_string(),
    }
}

/// NUL ends rows and qualifiers in Hypertable's keys, so neither can hold it.
fn check_key(row: &str, qualifier: &str) -> Result<()> {
    let what = match () {
        () if row.is_empty() => "a row key may not be empty",
        () if row.contains('\0') => "a row key may not contain NUL",
        () if qualifier.contains('\0') => "a qualifier may not contain NUL",
        () => return Ok(()),
    };
    Err(Error::invalid(what).with_sqlstate("22023"))
}
