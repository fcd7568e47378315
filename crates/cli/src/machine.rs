//! What the system says about memory; only Linux does.

/// The most memory that this process has had, in MiB, where the system tells.
pub(crate) fn peak_mb() -> Option<f64> {
    kilobytes("/proc/self/status", "VmHWM:").map(|kb| kb / 1024.0)
}

/// The memory that can still be had, in bytes, where the system tells.
pub(crate) fn available_bytes() -> Option<f64> {
    kilobytes("/proc/meminfo", "MemAvailable:").map(|kb| kb * 1024.0)
}

/// The number behind `key` in one of Linux's tables of `Key:  number kB`.
fn kilobytes(file: &str, key: &str) -> Option<f64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
