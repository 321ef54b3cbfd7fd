//! How fast the generator makes rows: `cargo run --release -p stoa-bench --example generate [ROWS]`.

use stoa_bench::{AdReport, AdReportSpec};

fn main() -> stoa_error::Result<()> {
    let rows = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let begin = stoa_env::clock::monotonic();
    let table = AdReport::new(AdReportSpec { rows, ..AdReportSpec::default() });
    let chunks = table.chunks();
    println!("{} chunks laid out in {:.3} s", chunks.len(), begin.elapsed().as_secs_f64());
    let begin = stoa_env::clock::monotonic();
    let (mut made, mut bytes) = (0, 0);
    for chunk in &chunks {
        for batch in table.batches(chunk, 8192) {
            let batch = batch?;
            made += batch.num_rows();
            bytes += batch.get_array_memory_size();
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let rate = made as f64 / seconds / 1e6;
    println!(
        "{made} rows, {} MiB in {seconds:.3} s: {rate:.1} M rows/s on one thread",
        bytes >> 20
    );
    Ok(())
}
