//! Statements that change something, or show it: what each does once its names and values are known.

pub(crate) mod allowed;
pub(crate) mod append;
pub(crate) mod columns;
pub(crate) mod comment;
pub(crate) mod copy;
pub(crate) mod ddl;
pub(crate) mod defaults;
pub(crate) mod dml;
pub(crate) mod external;
pub(crate) mod file_columns;
mod insert_kinds;
pub(crate) mod insert_values;
mod like;
pub(crate) mod load;
pub(crate) mod load_data;
pub(crate) mod maintain;
pub(crate) mod outcome;
mod parse_threads;
pub(crate) mod partitions;
pub(crate) mod resource_plans;
pub(crate) mod roles;
mod roll_back;
pub(crate) mod show;
pub(crate) mod temporary;
pub(crate) mod truncate;
mod uuid_texts;
pub(crate) mod view;
