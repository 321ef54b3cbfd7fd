//! Plans that are made once and used with other values.
//!
//! ```text
//! text ─► fingerprint ─► lifted statement ─┐
//!                        (values compared   ├─► plan optimised with places ─► values bound ─► physical plan
//! prepared statement with $1, $2, … ───────┘    (once per form)               (per call)
//! ```
//! In: a statement that the engine planned. Out: its optimised plan with places for the values that it
//! compares columns with. The next statement that differs in nothing but such values is not parsed,
//! resolved or optimised again; what depends on data (files, row groups, partitions) is planned anew.
//!
//! **Invariants:** a template answers as planning in full would: a value that is used for anything but
//! a comparison with a column is part of the form, and one of another type than its column is planned
//! in full. Templates are of one namespace and one set of session options. Tables are looked up again
//! at each call; where one has other columns now, its templates are not used.
//!
//! A list of values, of any length, comes in the place of one value (`lists`).
//!
//! Not here: reports, which need no plan at all ([`crate::reuse::report`]).

mod lift;
mod lists;
mod plan;
mod statement;

pub(crate) use lift::Lift;
pub(crate) use plan::{PlanTemplate, TableForm};
pub(crate) use statement::{LiftedForm, LiftedStatement};
