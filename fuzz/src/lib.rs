//! What the fuzz targets share.
//!
//! In: the fuzzer's bytes. Out: nothing, or a panic where an invariant of `stoa-orc` does not
//! hold: no panic, no endless loop, no allocation far beyond the declared limits, and rows that
//! do not depend on how they are read.
//! Not here: the targets themselves (`fuzz_targets`), seeds (`examples/seeds.rs`).

pub mod batch;
pub mod input;
pub mod read;
pub mod streams;

/// Files put together by hand; shared with the tests of `stoa-orc`.
#[path = "../../crates/stoa-orc/tests/support/build.rs"]
pub mod build;

/// An allocator that counts; shared with the tests of `stoa-orc`.
#[path = "../../crates/stoa-orc/tests/support/memory.rs"]
pub mod memory;

/// Most bytes that an execution may hold: a few times the limits of [`read::limits`], because a
/// batch is decoded into buffers and then made into arrays; the fuzzer's own corpus is in it, too.
pub const LIVE_BYTES_MAX: usize = 256 << 20;

#[global_allocator]
static COUNTING: memory::Counting = memory::Counting;

/// What a target does first.
pub fn start() {
    memory::abort_beyond(LIVE_BYTES_MAX);
}
