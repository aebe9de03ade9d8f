//! A global allocator that counts what the current thread asks of it, and hands everything to the system's.

#![expect(unsafe_code, reason = "a global allocator cannot be written without it")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    // Without destructor and without lazy initialization, so that they may be used from inside an allocator.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

/// The counting allocator.
pub(crate) struct Counting;

/// How often this thread called the allocator so far, to get memory or to give it back.
pub(crate) fn calls() -> u64 {
    CALLS.get()
}

/// The bytes this thread holds: what it got less what it gave back.
pub(crate) fn live() -> usize {
    LIVE.get()
}

/// Wrapping, since a thread may give back what another one got.
fn count(got: usize, given_back: usize) {
    CALLS.set(CALLS.get() + 1);
    LIVE.set(LIVE.get().wrapping_add(got).wrapping_sub(given_back));
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract; counting neither
// allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: every pointer of ours came from `System`, with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size, layout.size());
        // SAFETY: as for `dealloc`; the caller's new size, unchanged.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
