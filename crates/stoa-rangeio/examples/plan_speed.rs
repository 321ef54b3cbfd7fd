//! How long planning takes, per plan, for reports of several sizes. Run with `--release`.

use std::ops::Range;

use stoa_env::clock::monotonic;
use stoa_rangeio::{PlanOptions, plan};

fn main() {
    for ranges in [1, 5, 10, 64, 500, 5000] {
        // Streams of a few columns in row groups some way apart.
        let wanted: Vec<Range<u64>> = (0..ranges)
            .map(|at| {
                let start = at * 700_000 + at * at % 97 * 1000;
                start..start + 40_000 + at % 7 * 10_000
            })
            .collect();
        for (name, options) in
            [("local file", PlanOptions::local_file()), ("adaptive", PlanOptions::object_store())]
        {
            let rounds = (200_000 / ranges).max(5);
            let started = monotonic();
            let mut reads = 0;
            for _ in 0..rounds {
                reads = plan(std::hint::black_box(&wanted), &options).len();
            }
            let each = (monotonic() - started).as_secs_f64() / rounds as f64;
            println!("{ranges:5} ranges, {name:10}: {reads:5} reads, {:9.2} µs", each * 1e6);
        }
    }
}
