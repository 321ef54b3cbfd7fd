//! Tables as the query engine sees them: names, scans, rows not yet in files, sinks.
//!
//! In: the warehouse's tables and the rows in the commit log. Out: table providers whose scans read one
//! snapshot for a caller who may. Knows no session and no statement. [`data::Data`] is what all sessions share of
//! it.

pub(crate) mod catalog;
pub(crate) mod cells;
pub(crate) mod changes;
pub(crate) mod data;
pub(crate) mod external;
pub(crate) mod file_cache;
pub(crate) mod filter;
pub(crate) mod fresh;
pub(crate) mod homes;
pub(crate) mod nested;
pub(crate) mod properties;
pub(crate) mod scan;
pub(crate) mod seen;
pub(crate) mod sequences;
pub(crate) mod sink;
pub(crate) mod storable;
pub(crate) mod table;
pub(crate) mod temporary;
pub(crate) mod transaction;
pub(crate) mod versions;
pub(crate) mod view;
