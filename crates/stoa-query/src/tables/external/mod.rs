//! External tables as the engine sees them: files in Hive's layout, read where they lie and written back.
//!
//! ```text
//! filters ─► prune: partitions ─► files, dealt to plan partitions ─► ExternalScanExec ─► batches
//! rows ─► ExternalSink ─► hidden files ─► renamed when all are complete
//! ```
//! The catalog has an external table as a table whose properties hold its [`Definition`], and which has no files of its
//! own. So names, columns, owners, rights and views are those of any table; [`StoaTable`] checks rights before it
//! comes here.
//!
//! **Invariants:** each scan lists the files anew; no file is read or written that `file_access` does not allow now,
//! whoever has made the table.
//!
//! Not here: layouts and formats (`stoa-external`), statements that define such tables (`statements::external`).

mod metrics;
mod prune;
mod scan;
mod sink;

use std::collections::BTreeSet;
use std::path::Path;

use stoa_access::Privilege;
use stoa_catalog::TableIdent;
use stoa_error::{Error, ErrorKind, Result};
use stoa_external::{Definition, Partition};
use stoa_member::Member;
use stoa_store::Location;
use stoa_table::Table;

use crate::access::FileAccess;
use crate::tables::cells;
use crate::tables::table::StoaTable;

pub(crate) use prune::{can_partition, kept};
pub(crate) use scan::{ExternalScanExec, plan as plan_scan};
pub(crate) use sink::{DirectoryTarget, Overwrite, OverwriteTarget, plan_append};

/// Whether a table is external.
pub(crate) fn is_external(table: &Table) -> bool {
    !matches!(definition_of(table), Ok(None))
}

/// The definition of an external table; `None` for others.
///
/// # Errors
/// `Corrupt` where it cannot be read.
pub(crate) fn definition_of(table: &Table) -> Result<Option<Definition>> {
    Definition::of(|key| table.property(key), || table.properties())
}

/// The names of the partition columns, in order.
pub(crate) fn partition_columns(table: &Table) -> Vec<String> {
    table.partition_terms().into_iter().map(|term| term.column).collect()
}

/// Refuses rows that come or go by other ways than a query: for tables of cells and external tables.
///
/// # Errors
/// `Unsupported` (42809).
pub(crate) fn refuse_rows(table: &Table) -> Result<()> {
    cells::refuse_rows(table)?;
    match is_external(table) {
        true => Err(Error::unsupported(format!(
            "{} is an external table: its rows are in files that Stoa does not own",
            table.ident()
        ))
        .with_sqlstate("42809")
        .with_hint("INSERT INTO and INSERT OVERWRITE … SELECT write to it")),
        false => Ok(()),
    }
}

/// Whether each of some partitions is wanted, of whose columns so many are known.
type Keep<'a> = dyn Fn(&[Partition], usize) -> Result<Vec<bool>> + Send + Sync + 'a;

/// An external table at one moment.
pub(crate) struct ExternalFiles {
    pub(crate) definition: Definition,
    pub(crate) location: Location,
    access: FileAccess,
}

impl ExternalFiles {
    /// The files of an external table.
    ///
    /// # Errors
    /// 42501 where statements may not use them, 0A000 where other daemons of the cluster would see others.
    pub(crate) fn of(table: &StoaTable) -> Result<Self> {
        let definition = definition_of(&table.table)?
            .ok_or_else(|| Error::internal("a table lost its definition as an external one"))?;
        let access = table.file_access.as_ref().clone();
        access.may_use(&definition.location)?;
        refuse_elsewhere(&definition, table.table.ident(), table.member.as_ref())?;
        let location = table.table.warehouse().stores().resolve(&definition.location)?;
        Ok(Self { definition, location, access })
    }

    /// The partitions that are there, but those that were dropped.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn partitions(&self, columns: &[String]) -> Result<Vec<Partition>> {
        self.partitions_where(columns, &|some, _| Ok(vec![true; some.len()])).await
    }

    /// Those of them that `keep` keeps. It is asked for all partitions at once, and before that for the directories
    /// around them, of which those that it does not keep are not looked into; the number is that of the columns whose
    /// values are known.
    ///
    /// # Errors
    /// Those of the store, and of `keep`.
    pub(crate) async fn partitions_where(
        &self,
        columns: &[String],
        keep: &Keep<'_>,
    ) -> Result<Vec<Partition>> {
        let dropped: BTreeSet<&String> = self.definition.dropped.iter().collect();
        let keep_there = |level: Vec<Partition>, depth: usize| {
            let is_there = |partition: &Partition| !dropped.contains(&partition.name);
            let there: Vec<Partition> = level.into_iter().filter(is_there).collect();
            let kept = keep(&there, depth)?;
            let kept =
                there.into_iter().zip(kept).filter_map(|(one, is_kept)| is_kept.then_some(one));
            Ok(kept.collect())
        };
        stoa_external::partitions(&self.location, columns, &keep_there).await
    }

    /// The files of a partition.
    ///
    /// # Errors
    /// 42501 for a file that leads out of what may be used, and those of the store.
    pub(crate) async fn files(
        &self,
        partition: &Partition,
    ) -> Result<Vec<stoa_external::DataFile>> {
        let files = stoa_external::files(&self.location, &partition.path).await?;
        for file in &files {
            let place = self.location.literal_of(&file.path);
            if let Some(path) = place.strip_prefix("file://") {
                self.access.to_read(path)?;
            }
        }
        Ok(files)
    }
}

/// Refuses a directory of this machine while daemons of the cluster are on others, which have another directory of this
/// name, or none.
///
/// # Errors
/// 0A000.
pub(crate) fn refuse_elsewhere(
    definition: &Definition,
    ident: &TableIdent,
    member: Option<&Member>,
) -> Result<()> {
    let is_local = definition.location.starts_with("file://") && !definition.is_shared;
    match member.filter(|_| is_local).and_then(Member::other_machine) {
        None => Ok(()),
        Some(machine) => Err(Error::unsupported(format!(
            "the external table {ident} is in {}, a directory of this machine, and daemons of the cluster are also on \
             others, such as {machine}",
            definition.location
        ))
        .with_hint(
            "keep its files in s3://…; if the directory is the same on all machines, as on a network file system, say so \
             with TBLPROPERTIES ('stoa.shared-directory' = 'true')",
        )),
    }
}

/// Where a statement says that files are, as a literal location; a directory need not be there yet.
///
/// # Errors
/// 42501 where `file_access` does not allow it, or it is the warehouse itself; `Invalid` for what is no location.
pub(crate) fn location_of(text: &str, access: &FileAccess, warehouse: &str) -> Result<String> {
    let url = stoa_store::parse_location(text)?;
    let mut location = stoa_store::literal_of(&url)?;
    if let Some(path) = location.strip_prefix("file://") {
        location = format!("file://{}", access.directory(Path::new(path))?.display());
    } else {
        access.may_use(&location)?;
    }
    let is_below = |one: &str, other: &str| {
        one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if is_below(&location, warehouse) || is_below(warehouse, &location) {
        return Err(Error::new(
            ErrorKind::Forbidden,
            format!("{text} is in the warehouse, or around it"),
        )
        .with_sqlstate("42501")
        .with_hint("external tables have directories of their own"));
    }
    Ok(location)
}

/// What a statement needs beside reading.
pub(crate) fn privileges(overwrites: bool) -> &'static [Privilege] {
    match overwrites {
        true => &[Privilege::Insert, Privilege::Delete],
        false => &[Privilege::Insert],
    }
}
