//! What the fuzz targets share.
//!
//! In: the fuzzer's bytes. Out: nothing, or a panic where an invariant of `stoa-orc` does not
//! hold: no panic, no endless loop, no allocation far beyond the declared limits, and rows that
//! do not depend on how they are read.
//! Not here: the targets themselves (`fuzz_targets`), seeds (`examples/seeds.rs`).

pub mod batch;
pub mod input;
pub mod memory;
pub mod read;
pub mod streams;

/// Files put together by hand; shared with the tests of `stoa-orc`.
#[path = "../../crates/stoa-orc/tests/support/build.rs"]
pub mod build;
