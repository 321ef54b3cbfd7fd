//! Simulated clusters: histories of faults, and what a cluster of a given size costs.
//!
//! Not here: the machines themselves (`stoa-cluster`), and real processes on real networks.

pub mod history;
pub mod random;
