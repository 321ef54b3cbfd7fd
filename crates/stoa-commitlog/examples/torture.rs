//! Random histories on the simulated disk, as many as one likes: `tests/crash.rs` at large.
//!
//! `cargo run --release -p stoa-commitlog --example torture -- HISTORIES [FIRST_SEED]`
//!
//! Each is a log through seven processes, ended by faults, kills and power cuts. Stops with the
//! seed at the first that loses or changes anything.
#![allow(clippy::expect_used)]

#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let histories = arguments.next().unwrap_or(10_000);
    let first = arguments.next().unwrap_or(0);
    let (mut restarts, mut truncations, mut frames) = (0, 0, 0);
    for seed in first..first + histories {
        let outcome = std::panic::catch_unwind(|| common::history(seed));
        let model = outcome.unwrap_or_else(|_| panic!("seed {seed} fails"));
        restarts += model.restarts;
        truncations += model.truncations;
        frames += model.payloads.len();
    }
    println!(
        "{histories} histories: {restarts} restarts, {truncations} of which cost unacknowledged \
         frames; {frames} frames at their ends; no acknowledged frame lost, none changed"
    );
}
