//! From a text to an answer: parsed or recognised, planned, executed.
//!
//! In: text and parameters. Out: outcomes. **Invariants:** each execution reads, for every table it names,
//! one snapshot: the one that is current when it starts. A statement prepared earlier sees what was committed
//! since, and means the tables that have its names now; it fails clearly if that changes the columns of its
//! answer.

mod bytes;
mod composite;
mod effects;
mod execute;
pub(crate) mod hiveql;
mod hql;
mod insert_all;
mod learn;
mod load_data;
pub(crate) mod parse;
pub(crate) mod prepare;
mod renew;
mod run;
