//! What the operating system says about the machine, and about this process on it.
//!
//! In: files of `/proc` and `/sys`. Out: [`Machine`]. Linux only; elsewhere, and where a file says something else than
//! expected, a figure is `None`.
//!
//! Sources: proc(5); Linux, Documentation/admin-guide/iostats.rst (a sector has 512 bytes whatever the disk says).

use std::fs::read_to_string;
use std::path::Path;

use stoa_figures::Machine;

/// Linux counts in ticks of 1/100 s on every architecture that userland sees.
const TICKS_PER_SECOND: f64 = 100.0;
const SECTOR_BYTES: u64 = 512;

/// The figures of now.
pub(crate) fn read() -> Machine {
    let file = |path: &str| read_to_string(path).ok();
    let cpu = file("/proc/stat").as_deref().and_then(cpu);
    let memory = file("/proc/meminfo").as_deref().and_then(memory);
    let disks = file("/proc/diskstats").map(|text| disks(&text, is_disk));
    let network = file("/proc/net/dev").map(|text| network(&text, is_network_card));
    let io = file("/proc/self/io").as_deref().and_then(process_io);
    Machine {
        processors: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
        cpu_busy_s: cpu.map(|(busy, _)| busy),
        cpu_idle_s: cpu.map(|(_, idle)| idle),
        memory_bytes: memory.map(|(used, _)| used),
        memory_bytes_max: memory.map(|(_, all)| all),
        disk_bytes_read: disks.map(|(read, _)| read),
        disk_bytes_written: disks.map(|(_, written)| written),
        bytes_received: network.map(|(received, _)| received),
        bytes_sent: network.map(|(_, sent)| sent),
        process_cpu_s: file("/proc/self/stat").as_deref().and_then(process_cpu),
        process_bytes_read: io.map(|(read, _)| read),
        process_bytes_written: io.map(|(_, written)| written),
    }
}

/// Seconds that all processors together were busy, and had nothing to do or waited for a disk; what the hypervisor gave
/// to others is neither.
fn cpu(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().map_while(|text| text.parse().ok()).collect();
    // Guests count in user and nice already.
    let [user, nice, system, idle, io_wait, irq, soft_irq, ..] = ticks[..] else { return None };
    let busy = user + nice + system + irq + soft_irq;
    Some((busy / TICKS_PER_SECOND, (idle + io_wait) / TICKS_PER_SECOND))
}

/// Bytes of memory that cannot be had at once, and all.
fn memory(meminfo: &str) -> Option<(u64, u64)> {
    let bytes = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    let (all, available) = (bytes("MemTotal")?, bytes("MemAvailable")?);
    Some((all.saturating_sub(available), all))
}

/// Bytes that disks read and wrote.
fn disks(diskstats: &str, is_disk: impl Fn(&str) -> bool) -> (u64, u64) {
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let sectors = |field: usize| fields.get(field)?.parse::<u64>().ok();
        is_disk(fields.get(2)?).then_some((sectors(5)?, sectors(9)?))
    };
    let sum = diskstats.lines().filter_map(of_line).fold((0_u64, 0_u64), |sum, disk| {
        (sum.0.saturating_add(disk.0), sum.1.saturating_add(disk.1))
    });
    (sum.0.saturating_mul(SECTOR_BYTES), sum.1.saturating_mul(SECTOR_BYTES))
}

/// Whether a block device is a disk: no partition, and nothing that lies in memory or on other devices.
fn is_disk(name: &str) -> bool {
    const LAYERS: [&str; 6] = ["loop", "ram", "zram", "dm-", "md", "nbd"];
    !LAYERS.iter().any(|layer| name.starts_with(layer))
        && Path::new("/sys/block").join(name).exists()
}

/// Bytes received and sent by network cards; where there are none, as in containers, by all interfaces but loopback.
fn network(dev: &str, is_card: impl Fn(&str) -> bool) -> (u64, u64) {
    let of_line = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        let counts: Vec<u64> =
            counts.split_whitespace().map_while(|text| text.parse().ok()).collect();
        let name = name.trim().to_owned();
        (name != "lo").then_some((name, *counts.first()?, *counts.get(8)?))
    };
    let all: Vec<(String, u64, u64)> = dev.lines().filter_map(of_line).collect();
    let has_cards = all.iter().any(|(name, ..)| is_card(name));
    let counted = all.iter().filter(|(name, ..)| !has_cards || is_card(name));
    counted.fold((0, 0), |sum, (_, received, sent)| {
        (sum.0.saturating_add(*received), sum.1.saturating_add(*sent))
    })
}

fn is_network_card(name: &str) -> bool {
    Path::new("/sys/class/net").join(name).join("device").exists()
}

/// CPU time of a process in user and system mode, seconds.
fn process_cpu(stat: &str) -> Option<f64> {
    // The second field is the command in parentheses and may hold blanks.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

/// Bytes that a process read from disks and wrote to them.
fn process_io(io: &str) -> Option<(u64, u64)> {
    let bytes = |name: &str| {
        io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.trim().parse().ok()
    };
    Some((bytes("read_bytes")?, bytes("write_bytes")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_busy_or_idle() {
        let stat = "cpu  100 20 30 4000 50 6 7 800 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1\n";
        assert_eq!(cpu(stat), Some((1.63, 40.5)));
        for other in ["", "cpu 1 2 3", "cpux 1 2 3 4 5 6 7"] {
            assert_eq!(cpu(other), None, "{other}");
        }
    }

    #[test]
    fn memory_is_what_is_not_available() {
        let text = "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    400 kB\n";
        assert_eq!(memory(text), Some((600 * 1024, 1000 * 1024)));
        assert_eq!(memory("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn disks_count_once() {
        let text = " 259 0 nvme0n1 10 0 100 5 20 0 200 9 0 1 1\n 259 1 nvme0n1p1 10 0 100 5 20 0 200 9 0 1 1\n \
                    8 0 sda 1 1 3 1 1 1 4 1 0 0 0\n 253 0 dm-0 1 0 7 0 1 0 7 0 0 0 0\nbroken\n";
        let is_disk = |name: &str| ["nvme0n1", "sda"].contains(&name);
        assert_eq!(disks(text, is_disk), (103 * 512, 204 * 512));
        assert_eq!(disks("", is_disk), (0, 0));
    }

    #[test]
    fn bridges_and_loopback_do_not_count() {
        let text = "Inter-| Receive | Transmit\n face |bytes packets\n    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n  \
                    eth0: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\ndocker0:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n";
        assert_eq!(network(text, |name| name == "eth0"), (10, 20));
        assert_eq!(network(text, |_| false), (15, 26), "in a container");
    }

    #[test]
    fn a_process_has_time_and_bytes() {
        let stat = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0";
        assert_eq!(process_cpu(stat), Some(2.0));
        let io =
            "rchar: 9\nwchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n";
        assert_eq!(process_io(io), Some((4096, 8192)));
        assert_eq!(process_io("rchar: 9\n"), None);
    }

    /// Against `nproc` and `free`, which are not ours.
    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_tells() {
        let machine = read();
        let told = |program: &str, arguments: &[&str]| {
            let output = std::process::Command::new(program).args(arguments).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(machine.processors.to_string(), told("nproc", &[]).trim());
        let free = told("free", &["-b"]);
        let all = free.lines().nth(1).unwrap().split_whitespace().nth(1).unwrap().to_owned();
        assert_eq!(machine.memory_bytes_max.unwrap().to_string(), all);
        assert!(machine.cpu_busy_s.unwrap() > 0.0 && machine.process_cpu_s.is_some());
    }
}
