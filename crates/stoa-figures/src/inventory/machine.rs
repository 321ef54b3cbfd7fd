//! What the machine does, and this process on it.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::{Kind, Unit};
use crate::seen::Shape;

/// What the operating system tells; `None` where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Machine {
    /// Processors.
    pub processors: u64,
    /// Time since the machine's start that processors worked, of all together, seconds.
    pub cpu_busy_s: Option<f64>,
    /// Time that they had nothing to do, or waited for a disk.
    pub cpu_idle_s: Option<f64>,
    /// Memory that is in use and cannot be had at once.
    pub memory_bytes: Option<u64>,
    /// All memory.
    pub memory_bytes_max: Option<u64>,
    /// Bytes that disks read since the machine's start.
    pub disk_bytes_read: Option<u64>,
    /// Bytes that they wrote.
    pub disk_bytes_written: Option<u64>,
    /// Bytes received over the network since the machine's start.
    pub bytes_received: Option<u64>,
    /// Bytes sent.
    pub bytes_sent: Option<u64>,
    /// CPU time of this process, seconds.
    pub process_cpu_s: Option<f64>,
    /// Bytes that this process read from disks.
    pub process_bytes_read: Option<u64>,
    /// Bytes that it wrote.
    pub process_bytes_written: Option<u64>,
}

const COUNTER: Kind = Kind::Counter;

type This = Figure<Machine>;

const FIGURES: &[This] = &[
    This::gauge("processors", Unit::Of("processors"), "That the process may use.", |s| {
        s.processors
    })
    .metric("stoa_machine_processors"),
    This::maybe_float(
        "cpu_busy_s",
        COUNTER,
        Unit::Seconds,
        "Time since the machine's start that its processors worked, of all together; null where the system does not \
         tell, here and below.",
        |s| s.cpu_busy_s,
    )
    .metric("stoa_machine_cpu_busy_seconds_total"),
    This::maybe_float(
        "cpu_idle_s",
        COUNTER,
        Unit::Seconds,
        "Time that they had nothing to do, or waited for a disk.",
        |s| s.cpu_idle_s,
    )
    .metric("stoa_machine_cpu_idle_seconds_total"),
    This::maybe_gauge(
        "memory_bytes",
        Unit::Bytes,
        "Memory of the machine in use that cannot be had at once.",
        |s| s.memory_bytes,
    )
    .metric("stoa_machine_memory_bytes"),
    This::maybe_gauge("memory_bytes_max", Unit::Bytes, "All memory of the machine.", |s| {
        s.memory_bytes_max
    })
    .metric("stoa_machine_memory_max_bytes"),
    This::maybe_counter(
        "disk_bytes_read",
        Unit::Bytes,
        "What the machine's disks read since its start; of partitions and layers above disks, only the disks count.",
        |s| s.disk_bytes_read,
    )
    .metric("stoa_machine_disk_read_bytes_total"),
    This::maybe_counter("disk_bytes_written", Unit::Bytes, "What they wrote.", |s| {
        s.disk_bytes_written
    })
    .metric("stoa_machine_disk_written_bytes_total"),
    This::maybe_counter(
        "bytes_received",
        Unit::Bytes,
        "What the machine received over the network since its start, loopback left out; in a container, what the \
         container received.",
        |s| s.bytes_received,
    )
    .metric("stoa_machine_network_received_bytes_total"),
    This::maybe_counter("bytes_sent", Unit::Bytes, "What it sent.", |s| s.bytes_sent)
        .metric("stoa_machine_network_sent_bytes_total"),
    This::maybe_float(
        "process_cpu_s",
        COUNTER,
        Unit::Seconds,
        "CPU time of this process since its start.",
        |s| s.process_cpu_s,
    ),
    This::maybe_counter(
        "process_bytes_read",
        Unit::Bytes,
        "What this process read from disks since its start; what was in the system's memory does not count.",
        |s| s.process_bytes_read,
    )
    .metric("stoa_process_disk_read_bytes_total"),
    This::maybe_counter(
        "process_bytes_written",
        Unit::Bytes,
        "What it wrote to them.",
        |s| s.process_bytes_written,
    )
    .metric("stoa_process_disk_written_bytes_total"),
];

/// `system.machine`.
pub static MACHINE: Group<Machine> = Group::new(
    "machine",
    "Machine",
    "Processors, memory, disks and network of the machine, and what this process takes of them.",
    Shape::One,
    FIGURES,
)
.table()
.in_status()
.for_everyone();
