//! Which partitions and files are there.
//!
//! In: a location. Out: directories `column=value` at the depth of the partition columns, and the data files in them.
//! Directories of other names are none of the table's.
//!
//! **Invariant:** what is hidden (`_…`, `.…`) is not looked into.

use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ListResult, ObjectStoreExt, PutPayload};
use stoa_env::timer;
use stoa_error::{Error, ErrorKind, Result};
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

/// After that, a directory is not listed again.
const LIST_TIME: Duration = Duration::from_secs(5);

/// Before it is listed again the first time; then twice as long each time.
const LIST_WAIT: Duration = Duration::from_millis(50);

/// An empty file that stands for a directory in a store that has none. Hive does not see it either.
const MARKER: &str = "_stoa_partition";

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

/// Those of some directories that are wanted, with the number of partition columns that they have values of.
pub type KeepDirectories<'a> =
    dyn Fn(Vec<Partition>, usize) -> Result<Vec<Partition>> + Send + Sync + 'a;

/// The partitions that are there and that `keep` keeps, in the order of their names. A location that is not there has
/// none. Directories that `keep` does not keep are not looked into, which saves a request each.
///
/// # Errors
/// Those of the store, and of `keep`; 54000 for too many.
pub async fn partitions(
    location: &Location,
    columns: &[String],
    keep: &KeepDirectories<'_>,
) -> Result<Vec<Partition>> {
    let mut level =
        vec![Partition { path: location.path.clone(), name: String::new(), values: Vec::new() }];
    for (depth, column) in columns.iter().enumerate() {
        let list = |parent| directories(location.clone(), parent, column.clone());
        let below = stream::iter(level).map(list);
        let below: Vec<Vec<Partition>> = below.buffered(LISTS_MAX).try_collect().await?;
        level = keep(below.into_iter().flatten().collect(), depth + 1)?;
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
async fn directories(
    location: Location,
    parent: Partition,
    column: String,
) -> Result<Vec<Partition>> {
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

/// Makes the directory of a partition, which has no rows then. In a store without directories, an empty file that nobody
/// reads ([`MARKER`]) stands for it.
///
/// # Errors
/// Those of the store; `Invalid` for a name that cannot be one of directories.
pub async fn make_partition(location: &Location, name: &str) -> Result<()> {
    let place = format!("{}/{name}", location.literal_of(&location.path));
    if let Some(path) = place.strip_prefix("file://") {
        return stoa_store::make_directory(path).await;
    }
    let marker = below(&location.path, &format!("{name}/{MARKER}"))?;
    let put = location.store.put(&marker, PutPayload::new()).await;
    put.map(drop).map_err(|error| from_object_store(&location.literal_of(&marker), error))
}

/// A path below another; what names stand for is not changed.
pub(crate) fn below(path: &Path, name: &str) -> Result<Path> {
    let all = match path.as_ref() {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    };
    Path::parse(&all).map_err(|source| {
        Error::invalid(format!("{all} is no usable path"))
            .with_sqlstate("22023")
            .with_hint("values of partition columns become names of directories")
            .with_source(source)
    })
}

/// What is directly in a directory. An answer that breaks off half-way, which the store itself does not ask for again, is
/// asked for again here.
async fn list(location: &Location, path: &Path) -> Result<ListResult> {
    let began = timer::now();
    let mut wait = LIST_WAIT;
    loop {
        let error = match location.store.list_with_delimiter(Some(path)).await {
            Ok(listed) => return Ok(listed),
            Err(object_store::Error::NotFound { .. }) => {
                return Ok(ListResult { common_prefixes: Vec::new(), objects: Vec::new() });
            }
            Err(error) => from_object_store(&location.literal_of(path), error),
        };
        if error.kind() != ErrorKind::Unavailable || began.elapsed() > LIST_TIME {
            return Err(error);
        }
        timer::sleep(wait).await;
        wait *= 2;
    }
}
