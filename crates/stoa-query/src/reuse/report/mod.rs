//! Statements that are reports, recognised by their text.
//!
//! ```text
//! text ─► fingerprint: text without literals ─► template ─► values bound ─► stoa-report
//!                                              (made when the statement was planned the first time)
//! ```
//! In: the text of a statement. Out: a template of an earlier statement that differs in nothing but
//! its literals, and these. Such a statement is neither parsed nor planned again.
//!
//! **Invariants:** a template answers exactly as the planner would: what it is not sure of, a
//! literal of another kind than the column among it, is planned in full. A template is of one
//! identity and one schema of its table; where either has changed, it is not used.
//!
//! Not here: execution (`stoa-report`).

mod bind;
pub(crate) mod explain;
mod functions;
mod places;
mod recognise;
mod shape;
mod statement;

pub(crate) use bind::{Values, days};
pub(crate) use functions::{fits, function_of};
pub(crate) use places::parse_places;
pub(crate) use recognise::{recognise, table_of};
pub(crate) use shape::{Operand, ReportShape, ShapeCondition, ShapeTest};
pub(crate) use statement::ReportStatement;

#[cfg(test)]
mod tests;
