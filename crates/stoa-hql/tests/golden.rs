//! The scripts of `golden/` over cells in memory.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use stoa_hql::{CellStore, MemoryCells, TimestampSource};

#[path = "support/golden.rs"]
mod golden;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_print_what_is_expected() {
    let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden");
    let empty_store = || async {
        let clock = TimestampSource::manual(golden::START_NS);
        Arc::new(MemoryCells::new(clock)) as Arc<dyn CellStore>
    };
    golden::check(&written, &[], empty_store).await;
}
