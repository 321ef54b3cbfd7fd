//! `json` and `jsonb`: texts underneath, told apart by a mark on their fields.
//!
//! ```text
//! text ─► json_text: a tree, and how it is written
//!           ├─► get: -> ->> #> #>> and what looks into a value
//!           ├─► edit: jsonb_set, jsonb_insert, - || and what makes another value of one
//!           ├─► paths: SQL/JSON paths (`json_path`)
//!           └─► build: to_json, json_build_object and what makes one of SQL values
//! ```
//! `json` keeps its text as it is; `jsonb` is normal form: keys ordered by length and bytes, of equal ones
//! the last, numbers with their digits. **Invariants:** a value that is marked can be parsed; nesting is bounded by
//! [`DEPTH_MAX`](super::json_text::value::DEPTH_MAX). A text without a mark is taken as JSON by the operators: columns of type `json` are stored as texts.
//!
//! Not here: casts and comparisons (`json_casts`), rows of a value (`json_each`, …) and aggregates, which `stoa-sql` writes as calls of what is here.

mod build;
mod edit;
mod get;
mod pair;
mod paths;
mod planner;
mod records;
mod rows;

pub(super) use build::{functions, rewrite};
pub(super) use edit::FUNCTIONS as EDIT;
pub(super) use get::FUNCTIONS as GET;
pub(super) use pair::FUNCTIONS as PAIR;
pub(super) use paths::FUNCTIONS as PATHS;
pub(super) use planner::{JsonOperators, JsonSubscripts};
pub(super) use records::FUNCTIONS as RECORDS;
pub(super) use rows::as_records;

use super::json_kind::JsonKind;
