//! Simulated clusters: histories of faults, and what a cluster of a given size costs.
//!
//! | module | in | out |
//! |---|---|---|
//! | [`history`] | a seed, optionally a mistake to make | how much happened, or the first broken promise with its trace |
//! | [`scale`] | sizes of clusters | the page `docs/scale.md` |
//!
//! **Invariant:** a seed decides a history to the last message; nothing here reads a clock.
//!
//! Not here: the machines themselves (`stoa-cluster`), and real processes on real networks.

pub mod history;
mod random;
pub mod scale;
