//! Which partitions and files are there.
//!
//! In: a location. Out: directories `column=value` at the depth of the partition columns, and the data files in them.
//! Directories of other names are none of the table's.
//!
//! **Invariant:** what is hidden (`_…`, `.…`) is not looked into.

use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::path::Path;
use stoa_error::{Error, Result};
use stoa_store::{Location, from_object_store};

use crate::names::{DEFAULT_PARTITION, is_hidden, unescaped};

/// Directories that are listed at a time.
const LISTS_MAX: usize = 16;

/// Most partitions of one table.
const PARTITIONS_MAX: usize = 100_000;

/// Most files of one scan.
const FILES_MAX: usize = 1_000_000;

/// How deep directories in partitions are looked into.
const DEPTH_MAX: usize = 16;

/// A partition that is there; the whole table where there are no partition columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its directory.
    pub path: Path,
    /// `day=2024-05-01/hour=1`, as its directories are called; empty for the whole table.
    pub name: String,
    /// The values of the partition columns, as texts; `None` is NULL.
    pub values: Vec<Option<String>>,
}

/// A file with rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Where it is in the store.
    pub path: Path,
    /// Its size.
    pub bytes: u64,
}

/// The partitions that are there, in the order of their names. A location that is not there has none.
///
/// # Errors
/// Those of the store; 54000 for too many.
pub async fn partitions(location: &Location, columns: &[String]) -> Result<Vec<Partition>> {
    let mut level =
        vec![Partition { path: location.path.clone(), name: String::new(), values: Vec::new() }];
    for column in columns {
        let list = |parent| below(location.clone(), parent, column.clone());
        let below = stream::iter(level).map(list);
        let below: Vec<Vec<Partition>> = below.buffered(LISTS_MAX).try_collect().await?;
        level = below.into_iter().flatten().collect();
        if level.len() > PARTITIONS_MAX {
            let place = location.literal_of(&location.path);
            return Err(Error::invalid(format!(
                "{place} has more than {PARTITIONS_MAX} partitions"
            ))
            .with_sqlstate("54000")
            .with_hint("define tables of parts of it"));
        }
    }
    level.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(level)
}

/// The directories `column=value` in a directory.
async fn below(location: Location, parent: Partition, column: String) -> Result<Vec<Partition>> {
    let listed = list(&location, &parent.path).await?;
    let mut found = Vec::new();
    for path in listed.common_prefixes {
        let Some(name) = path.filename().filter(|name| !is_hidden(name)) else { continue };
        let Some((key, value)) = name.split_once('=') else { continue };
        if !unescaped(key).eq_ignore_ascii_case(&column) {
            continue;
        }
        let value = Some(unescaped(value)).filter(|value| value != DEFAULT_PARTITION);
        let mut values = parent.values.clone();
        values.push(value);
        let name = match parent.name.is_empty() {
            true => name.to_owned(),
            false => format!("{}/{name}", parent.name),
        };
        found.push(Partition { name, values, path });
    }
    Ok(found)
}

/// The data files of a partition, also those in directories below it, in the order of their paths. Empty files have no
/// rows and are left out.
///
/// # Errors
/// Those of the store; 54000 for too many, or directories that are too deep.
pub async fn files(location: &Location, directory: &Path) -> Result<Vec<DataFile>> {
    let mut all = Vec::new();
    let mut level = vec![directory.clone()];
    for _ in 0..DEPTH_MAX {
        let mut below = Vec::new();
        for path in level {
            let listed = list(location, &path).await?;
            for object in listed.objects {
                let is_seen = object.location.filename().is_some_and(|name| !is_hidden(name));
                if is_seen && object.size > 0 {
                    all.push(DataFile { path: object.location, bytes: object.size });
                }
            }
            let prefixes = listed.common_prefixes.into_iter();
            below.extend(
                prefixes.filter(|path| path.filename().is_some_and(|name| !is_hidden(name))),
            );
        }
        if below.is_empty() {
            all.sort_by(|one: &DataFile, other| one.path.cmp(&other.path));
            return Ok(all);
        }
        if all.len() > FILES_MAX {
            break;
        }
        level = below;
    }
    let place = location.literal_of(directory);
    Err(Error::invalid(format!("{place} has too many files or too deep directories"))
        .with_sqlstate("54000")
        .with_hint(format!(
            "tables have up to {FILES_MAX} files in directories up to {DEPTH_MAX} deep"
        )))
}

/// Makes the directory of a partition, which has no rows then. A store without directories has nothing to make.
///
/// # Errors
/// Those of the disk.
pub async fn make_partition(location: &Location, name: &str) -> Result<()> {
    let place = format!("{}/{name}", location.literal_of(&location.path));
    match place.strip_prefix("file://") {
        Some(path) => stoa_store::make_directory(path).await,
        None => Ok(()),
    }
}

async fn list(location: &Location, path: &Path) -> Result<object_store::ListResult> {
    let listed = location.store.list_with_delimiter(Some(path)).await;
    match listed {
        Err(object_store::Error::NotFound { .. }) => {
            Ok(object_store::ListResult { common_prefixes: Vec::new(), objects: Vec::new() })
        }
        Err(error) => Err(from_object_store(&location.literal_of(path), error)),
        Ok(listed) => Ok(listed),
    }
}
