//! What the system says about memory, which only Linux does, and about open files.

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

/// Lets this process open so many files, or as many as the system allows, and says how many those are; none without a limit.
#[cfg(unix)]
pub(crate) fn raise_open_files(wanted: u64) -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current? < allowed {
        // Where it cannot be raised, it stays as it is.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum });
    }
    getrlimit(Resource::Nofile).current
}

/// See above.
#[cfg(not(unix))]
pub(crate) fn raise_open_files(_: u64) -> Option<u64> {
    None
}
