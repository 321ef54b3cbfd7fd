//! An allocator that does not let one execution take more memory than its limits allow.
//!
//! In: what is allocated. Out: a panic beyond [`LIVE_BYTES_MAX`]. Memory that C libraries take for
//! themselves is not counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// Most bytes that an execution may hold: a few times the limits of [`crate::read::limits`],
/// because a batch is decoded into buffers and then made into arrays.
pub const LIVE_BYTES_MAX: isize = 160 << 20;

/// Counts bytes.
pub struct Counting;

static LIVE_BYTES: AtomicIsize = AtomicIsize::new(0);

fn add(bytes: usize) {
    let live = LIVE_BYTES.fetch_add(bytes as isize, Relaxed) + bytes as isize;
    if live > LIVE_BYTES_MAX {
        // Room for the message of the panic.
        LIVE_BYTES.fetch_sub(LIVE_BYTES_MAX, Relaxed);
        panic!("{live} bytes are allocated, {bytes} of them at once");
    }
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
        LIVE_BYTES.fetch_sub(layout.size() as isize, Relaxed);
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size.saturating_sub(layout.size()));
        LIVE_BYTES.fetch_sub(layout.size().saturating_sub(size) as isize, Relaxed);
        unsafe { System.realloc(at, layout, size) }
    }
}
