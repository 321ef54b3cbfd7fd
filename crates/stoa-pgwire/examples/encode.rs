//! How long rows take from Arrow to `DataRow` messages: ours against arrow-pg's.
//!
//! ```text
//! cargo run --release -p stoa-pgwire --example encode [rounds]
//! ```
#![allow(clippy::expect_used)]

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_pg::datatypes::{arrow_schema_to_pg_fields, encode_recordbatch};
use bytes::BytesMut;
use pgwire::api::portal::Format;
use pgwire::messages::Message;
use stoa_env::clock;

fn report(rows: i64) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("account", Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("a{i}"))))),
        (
            "day",
            Arc::new(Date32Array::from_iter_values((0..rows).map(|i| 19_000 + i as i32 % 400))),
        ),
        ("imps", Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i * 1_000_003)))),
        ("cost", Arc::new(Float64Array::from_iter_values((0..rows).map(|i| i as f64 / 7.0)))),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of equal length")
}

fn ours(batch: &RecordBatch, binary: bool, out: &mut Vec<u8>) {
    out.clear();
    stoa_pgwire::measure::put_data_rows(batch, binary, out).expect("rows are small");
    black_box(&out);
}

fn theirs(batch: &RecordBatch, binary: bool, out: &mut BytesMut) {
    out.clear();
    let format = if binary { Format::UnifiedBinary } else { Format::UnifiedText };
    let fields = arrow_schema_to_pg_fields(&batch.schema(), &format, None).expect("known types");
    for row in encode_recordbatch(Arc::new(fields), batch.clone()) {
        row.and_then(|row| row.encode(out)).expect("rows are small");
    }
    black_box(&out);
}

/// Nanoseconds per call, the best of five.
fn best(rounds: u32, mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let start = clock::monotonic();
        (0..rounds).for_each(|_| work());
        start.elapsed().as_nanos() as f64 / f64::from(rounds)
    };
    (0..5).map(once).fold(f64::INFINITY, f64::min)
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20_000);
    println!("{:<22}{:>12}{:>12}{:>8}", "rows x 4 columns", "ours", "arrow-pg", "ratio");
    for rows in [7, 8192] {
        let batch = report(rows);
        let rounds = (rounds / rows as u32 * 7).max(1);
        for (binary, name) in [(false, "text"), (true, "binary")] {
            let mut out = Vec::new();
            let mine = best(rounds, || ours(&batch, binary, &mut out));
            let mut out = BytesMut::new();
            let other = best(rounds, || theirs(&batch, binary, &mut out));
            println!(
                "{:<22}{:>9.2} us{:>9.2} us{:>7.1}x",
                format!("{rows} {name}"),
                mine / 1000.0,
                other / 1000.0,
                other / mine
            );
        }
    }
}
