//! An allocator that counts, to see that damaged files take no more memory than the limits say.
//!
//! Make it the `#[global_allocator]` of a test of its own. Also used by the fuzz targets. Memory
//! that C libraries take for themselves is not counted.
#![allow(unsafe_code, dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts bytes.
pub struct Counting;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);
static BYTES_MAX: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Ends the process once more than `bytes` are held.
pub fn abort_beyond(bytes: usize) {
    BYTES_MAX.store(bytes, Relaxed);
}

/// Most bytes held while `work` ran, besides those held before. One at a time.
pub fn peak_bytes<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE_BYTES.load(Relaxed);
    PEAK_BYTES.store(before, Relaxed);
    let result = work();
    (result, PEAK_BYTES.load(Relaxed).saturating_sub(before))
}

fn add(bytes: usize) {
    let live = LIVE_BYTES.fetch_add(bytes, Relaxed) + bytes;
    PEAK_BYTES.fetch_max(live, Relaxed);
    if live > BYTES_MAX.load(Relaxed) {
        abort_beyond(usize::MAX);
        eprintln!("{live} bytes are allocated, {bytes} of them at once");
        std::process::abort();
    }
}

fn remove(bytes: usize) {
    LIVE_BYTES.fetch_sub(bytes, Relaxed);
}

// SAFETY: calls are passed on to `System` unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        remove(layout.size());
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        remove(layout.size());
        unsafe { System.realloc(at, layout, size) }
    }
}
