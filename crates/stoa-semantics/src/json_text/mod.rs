//! JSON as text: read to a tree, and written.
//!
//! ```text
//! text ─► value: a tree whose strings and numbers are parts of the text
//!           ├─► write: `jsonb` (keys sorted, blanks as PostgreSQL has them), or compact as json functions make it
//!           └─► contains: `@>`, and a text that equal values have in common
//! ```
//! Not here: types, casts (`json_casts`) and functions (`json`).

pub(crate) mod contains;
pub(crate) mod value;
pub(crate) mod write;
