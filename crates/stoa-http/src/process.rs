//! What the operating system says about this process. Linux only; `None` elsewhere.

/// Resident memory, bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// CPU time used in user and system mode, seconds.
pub(crate) fn cpu_seconds() -> Option<f64> {
    // Linux counts in ticks of 1/100 s on every architecture that userland sees.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the command in parentheses and may hold blanks.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_memory_and_time() {
        assert!(resident_bytes().unwrap() > 1 << 20);
        assert!(cpu_seconds().unwrap() >= 0.0);
    }
}
