//! `stoa-sim`: runs histories, shows one, or prints the page about scale.

use std::ops::Range;
use std::process::ExitCode;

use stoa_sim::history::{self, Mutation, Summary};
use stoa_sim::scale;

const USAGE: &str = "\
Usage:
  stoa-sim histories [FROM TO]     run the histories with seeds FROM (inclusive) to TO (exclusive); 0 1000 by default
  stoa-sim trace SEED [MUTATION]   show what happens in one history
  stoa-sim scale                   print docs/scale.md
Mutations are mistakes to make: SkipClaim, AcknowledgeBeforeTold, …";

/// Lines of a history's end that are shown.
const TRACE_LINES: usize = 400;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["histories"] => histories(0..1000),
        ["histories", from, to] => match (from.parse(), to.parse()) {
            (Ok(from), Ok(to)) => histories(from..to),
            _ => usage(),
        },
        ["trace", seed] => trace(seed, None),
        ["trace", seed, name] => {
            match Mutation::ALL.into_iter().find(|mutation| format!("{mutation:?}") == *name) {
                Some(mutation) => trace(seed, Some(mutation)),
                None => usage(),
            }
        }
        ["scale"] => {
            print!("{}", scale::document());
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn histories(seeds: Range<u64>) -> ExitCode {
    let mut total = Summary::default();
    let mut violations = 0;
    for seed in seeds.clone() {
        match history::run(seed, None) {
            Ok(summary) => total += summary,
            Err(violation) => {
                violations += 1;
                println!("{violation}");
            }
        }
    }
    let count = seeds.end.saturating_sub(seeds.start);
    println!(
        "{count} histories, {} events, {} rows acknowledged, {} reads checked, {violations} violations",
        total.events, total.acknowledged, total.reads
    );
    ExitCode::from(u8::from(violations > 0))
}

fn trace(seed: &str, mutation: Option<Mutation>) -> ExitCode {
    let Ok(seed) = seed.parse() else { return usage() };
    for line in history::trace(seed, mutation, TRACE_LINES) {
        println!("{line}");
    }
    ExitCode::SUCCESS
}
