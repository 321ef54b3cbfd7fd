//! What the process may use of the machine, limits of its container included.

use std::path::{Path, PathBuf};

/// Processors and memory.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Bytes of memory the process may use: the machine's, or its control group's if that is less.
    pub memory_bytes: u64,
    /// Processors the process may use, at least 1; affinity and group quota included.
    pub processors: usize,
}

/// Assumed where the machine does not say.
const MEMORY_BYTES_UNKNOWN: u64 = 2 << 30;

impl Machine {
    /// Looks at this machine.
    pub fn here() -> Self {
        let memory = [memory_of_machine(), memory_of_group()].into_iter().flatten().min();
        Self {
            memory_bytes: memory.unwrap_or(MEMORY_BYTES_UNKNOWN),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

fn memory_of_machine() -> Option<u64> {
    parse_meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The least limit on the way from the process's control group up to the root (cgroup v2, then v1).
fn memory_of_group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let files = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        match (parts.next(), parts.next()) {
            (Some(""), Some(path)) => limits("/sys/fs/cgroup", path, "memory.max"),
            (Some("memory"), Some(path)) => {
                limits("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
            }
            _ => Vec::new(),
        }
    });
    // "max" (v2) and a number near 2^63 (v1) mean no limit; the machine's own size is less.
    files.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).min()
}

fn limits(root: &str, group: &str, file: &str) -> Vec<PathBuf> {
    let group = Path::new(root).join(group.trim_start_matches('/'));
    group.ancestors().take_while(|dir| dir.starts_with(root)).map(|dir| dir.join(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_kib() {
        let text = "MemTotal:       24689152 kB\nMemFree:  1 kB\n";
        assert_eq!(parse_meminfo(text), Some(24_689_152 * 1024));
    }

    #[test]
    fn limits_are_looked_for_up_to_the_root() {
        let files = limits("/sys/fs/cgroup", "/a/b", "memory.max");
        let expected = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"];
        assert_eq!(files, expected.map(|dir| Path::new(dir).join("memory.max")));
    }

    #[test]
    fn this_machine_has_something() {
        let machine = Machine::here();
        assert!(machine.memory_bytes > 1 << 20 && machine.processors > 0);
    }
}
