//! Settings of the system's allocator.

/// Blocks of this size and larger are mapped on their own, and go back to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: std::ffi::c_int = 1 << 20;

/// Keeps large blocks out of the heap. When a large block is freed, glibc expects more of them and takes later ones from its heap. Buffers
/// for reading a checkpoint then leave holes between the small weights that stay: an eighth of a model in all. To be called once, before
/// anything large is allocated.
pub fn keep_large_blocks_apart() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // Safety: it sets a number of the allocator, which takes any.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}
