//! How fast text becomes batches on one thread: generates lines of five columns in memory and
//! prints rows/s and MB/s per format. Run with `--release`; the argument is the number of rows.

#![allow(clippy::expect_used)]
use std::io::Cursor;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use stoa_load::{Format, Input, LoadOptions, open};

fn main() {
    let rows: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2_000_000);
    for format in [Format::Csv, Format::PgText, Format::Ndjson] {
        let text = generate(format, rows);
        let bytes = text.len();
        let schema = Arc::new(Schema::new(vec![
            Field::new("base", DataType::Utf8, true),
            Field::new("base_name", DataType::Utf8, true),
            Field::new("day", DataType::Date32, true),
            Field::new("trips", DataType::Int64, true),
            Field::new("cost", DataType::Float64, true),
        ]));
        let options =
            LoadOptions { format: Some(format), header: Some(false), ..LoadOptions::default() };
        let input = Input::Stream {
            name: "generated".to_owned(),
            reader: Box::new(Cursor::new(text)),
            total_bytes: Some(bytes as u64),
        };
        let started = stoa_env::clock::monotonic();
        let mut loaded = 0;
        for batch in open(vec![input], schema, options).expect("open") {
            loaded += batch.expect("batch").num_rows() as u64;
        }
        let seconds = (stoa_env::clock::monotonic() - started).as_secs_f64();
        assert_eq!(loaded, rows);
        println!(
            "{:7} {:.2} M rows/s, {:.0} MB/s",
            format.name(),
            rows as f64 / seconds / 1e6,
            bytes as f64 / seconds / 1e6
        );
    }
}

fn generate(format: Format, rows: u64) -> Vec<u8> {
    use std::io::Write;
    let mut text = Vec::new();
    for row in 0..rows {
        let (base, day, trips) = (row % 329, row % 28 + 1, row * 7919 % 100_000);
        let cost = trips as f64 * 0.37;
        let written = match format {
            Format::Ndjson => writeln!(
                text,
                "{{\"base\":\"B{base:05}\",\"base_name\":\"CAR SERVICE {base}, INC.\",\"day\":\"2015-03-{day:02}\",\"trips\":{trips},\"cost\":{cost:.2}}}"
            ),
            Format::PgText => writeln!(
                text,
                "B{base:05}\tCAR SERVICE {base}, INC.\t2015-03-{day:02}\t{trips}\t{cost:.2}"
            ),
            _ => writeln!(
                text,
                "B{base:05},\"CAR SERVICE {base}, INC.\",2015-03-{day:02},{trips},{cost:.2}"
            ),
        };
        written.expect("memory");
    }
    text
}
