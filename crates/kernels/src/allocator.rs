//! What the system's allocator is told.

/// Blocks from here on are memory of their own, which goes back to the system when it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: std::ffi::c_int = 1 << 20;

/// Keeps the heap free of large blocks. When one is freed, glibc concludes that more are to come, and takes later ones from its heap;
/// what is read of a checkpoint then leaves holes between the small weights that stay, an eighth of a model in all. Called once, before
/// anything large is allocated.
pub fn keep_large_blocks_apart() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // Safety: it sets a number of the allocator, which takes any.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}
