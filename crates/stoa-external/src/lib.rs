//! Files where Hive has them: an external table is a directory, and its partitions are directories in it.
//!
//! ```text
//! visits/day=2024-05-01/000000_0      location / partition column = value / data files
//! visits/day=2024-05-01/_SUCCESS      hidden: names that begin with _ or .
//! visits/day=__HIVE_DEFAULT_PARTITION__/000000_0
//! ```
//! In: a [`Definition`] (location, format, how rows are written), the columns, a store. Out: the partitions and
//! files that are there now ([`partitions`], [`files`]), their rows as Arrow batches ([`Rows`]), and files with new
//! rows ([`HiveWriter`]).
//!
//! Values mean what they mean to Hive 4.0.1: a text that is no value of the column's type is NULL, fields that a line
//! lacks are NULL, and those that it has too many are left out.
//!
//! **Invariants:** memory is bounded by a few mebibytes of encoded bytes and a batch per file that is read (Parquet: a
//! row group); bytes from outside never panic; a file that is written is hidden until it is complete, and a statement
//! that fails leaves none.
//!
//! Not here: the definition in the catalog, rights, which files may be named, pruning (`stoa-query`); loading files into
//! Stoa's own tables (`stoa-load`).

mod adapt;
mod definition;
mod layout;
mod names;
mod read;
mod text;
mod write;

pub use adapt::Limit;
pub use definition::{Definition, FileFormat, Serde};
pub use layout::{DataFile, KeepDirectories, Partition, files, make_partition, partitions};
pub use names::{DEFAULT_PARTITION, escaped, is_hidden, unescaped};
pub use read::{FilePart, PrunedGroups, ReadOptions, Rows};
pub use text::{TextFormat, partition_array, value_text};
pub use write::{HiveWriter, WriteTarget};
