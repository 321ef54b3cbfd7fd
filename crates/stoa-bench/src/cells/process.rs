//! What this process has used: processor time, memory.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// User and system time of all threads so far.
pub(super) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The most memory since the last [`forget_peak`], in bytes; none where the system does not tell.
pub(super) fn peak_memory_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Lets the peak begin anew. Where that is not allowed, it is that of the process's whole life.
pub(super) fn forget_peak() {
    // The kernel's own command for it (proc(5), clear_refs).
    let _ = fs::write("/proc/self/clear_refs", "5");
}
