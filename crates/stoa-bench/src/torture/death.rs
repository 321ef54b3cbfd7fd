//! How a server ends.

use std::fmt;
use std::time::Duration;

/// Points at which the server kills itself, with the most hits to wait for.
const POINTS: [(&str, u64); 17] = [
    ("log.written", 300),
    ("log.synced", 300),
    ("log.segment_created", 1),
    ("log.segment_removed", 2),
    ("flush.sealed", 6),
    ("flush.before_commit", 6),
    ("flush.after_commit", 6),
    ("flush.dropped", 6),
    ("flush.released", 6),
    ("write.files_written", 8),
    ("commit.manifests_written", 10),
    ("commit.metadata_written", 10),
    ("commit.swapped", 10),
    ("compaction.merged", 2),
    ("expire.committed", 2),
    ("expire.data_deleted", 2),
    ("commit.swapped", 2),
];

/// Points at which an error is made up; the server goes on as well as it can until it is killed.
const FAULTS: [&str; 6] = [
    "log.written",
    "log.synced",
    "flush.before_commit",
    "commit.metadata_written",
    "commit.swapped",
    "compaction.merged",
];

/// How a server ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Death {
    /// Killed so long after it was started, perhaps before it listens.
    Starting(Duration),
    /// Killed so long after its clients began.
    Serving(Duration),
    /// By itself at the n-th hit of a point; killed if that does not come.
    Point(&'static str, u64),
    /// Killed some time after an error at the n-th hit of a point.
    Fault(&'static str, u64, Duration),
}

impl Death {
    /// One of them: `random` is any number.
    pub fn pick(random: u64) -> Self {
        let [kind, which, nth, ms] = [0, 8, 16, 32].map(|shift| random >> shift & 0xffff);
        match kind & 0xff {
            0..40 => Self::Starting(Duration::from_millis(ms % 200)),
            40..120 => Self::Serving(Duration::from_millis(ms % 700)),
            120..230 => {
                let (point, most) = POINTS[which as usize % POINTS.len()];
                Self::Point(point, 1 + nth % most)
            }
            _ => {
                let point = FAULTS[which as usize % FAULTS.len()];
                Self::Fault(point, 1 + nth % 20, Duration::from_millis(200 + ms % 500))
            }
        }
    }

    /// What arms the server's fail points.
    pub fn failpoints(&self) -> String {
        match self {
            Self::Starting(_) | Self::Serving(_) => String::new(),
            Self::Point(point, nth) => format!("{point}=abort@{nth}"),
            Self::Fault(point, nth, _) => format!("{point}=error@{nth}"),
        }
    }

    /// How long after its clients began the server is killed if it has not ended.
    pub fn kill_after(&self) -> Duration {
        match self {
            Self::Starting(_) => Duration::ZERO,
            Self::Serving(after) | Self::Fault(_, _, after) => *after,
            Self::Point(..) => Duration::from_secs(3),
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting(after) => write!(f, "killed {} ms after its start", after.as_millis()),
            Self::Serving(after) => write!(f, "killed after {} ms", after.as_millis()),
            Self::Point(point, nth) => write!(f, "dies at {point}, hit {nth}"),
            Self::Fault(point, nth, after) => {
                write!(f, "error at {point}, hit {nth}; killed after {} ms", after.as_millis())
            }
        }
    }
}
