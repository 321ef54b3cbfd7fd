//! Triggers: what they look at, from when on, and what they do.

use serde::{Deserialize, Serialize};
use stoa_error::{Error, Result};

/// What a trigger looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Counter {
    /// Time since the query began, milliseconds.
    ElapsedTime,
    /// Time since it was let in, milliseconds.
    ExecutionTime,
    /// Bytes that it read from storage, whatever the store.
    BytesRead,
}

/// What a trigger does with a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Ends it.
    Kill,
    /// Moves it into the pool of this path.
    Move(String),
}

/// A trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// The condition as text: a name, `>`, and a number or a text in quotes.
    pub expression: String,
    /// What it looks at.
    pub counter: Counter,
    /// Beyond this it acts; milliseconds or bytes.
    pub limit: u64,
    /// What it does.
    pub action: Action,
}

/// Hive's counters that Stoa does not have.
const OTHERS: [&str; 15] = [
    "BYTES_WRITTEN",
    "SHUFFLE_BYTES",
    "DAG_TOTAL_TASKS",
    "DAG_GROUPED_INPUT_SPLITS",
    "DAG_INPUT_DIRECTORIES",
    "DAG_INPUT_FILES",
    "DAG_RAW_INPUT_SPLITS",
    "VERTEX_TOTAL_TASKS",
    "VERTEX_GROUPED_INPUT_SPLITS",
    "VERTEX_INPUT_DIRECTORIES",
    "VERTEX_INPUT_FILES",
    "VERTEX_RAW_INPUT_SPLITS",
    "CREATED_FILES",
    "CREATED_DYNAMIC_PARTITIONS",
    "TOTAL_TASKS",
];

const KNOWN: &str = "use ELAPSED_TIME, EXECUTION_TIME or BYTES_READ";

/// Names of units and how many milliseconds they are.
const TIMES: [(&str, f64); 7] = [
    ("d", 86_400_000.0),
    ("h", 3_600_000.0),
    ("m", 60_000.0),
    ("s", 1000.0),
    ("ms", 1.0),
    ("us", 0.001),
    ("ns", 0.000_001),
];

/// Names of units and how many bytes they are.
const SIZES: [(&str, u64); 7] = [
    ("b", 1),
    ("bytes", 1),
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("tb", 1 << 40),
    ("pb", 1 << 50),
];

impl Trigger {
    /// A trigger of a condition `counter > limit`; `is_text` if the limit was written in quotes, where it may have a
    /// unit. Without one it is milliseconds or bytes.
    ///
    /// # Errors
    /// `Unsupported` (0A000) for a counter that Stoa does not have, `Invalid` (22023) for a limit that is none.
    pub fn new(counter: &str, limit: &str, is_text: bool, action: Action) -> Result<Self> {
        let written = counter.to_ascii_uppercase();
        let counter = counter_of(&written)?;
        let value = limit_of(counter, limit)?;
        let limit =
            if is_text { format!("'{}'", limit.replace('\'', "''")) } else { limit.to_owned() };
        Ok(Self { expression: format!("{written} > {limit}"), counter, limit: value, action })
    }
}

impl Action {
    /// As Hive shows it.
    pub fn text(&self) -> String {
        match self {
            Self::Kill => "KILL".to_owned(),
            Self::Move(pool) => format!("MOVE TO {pool}"),
        }
    }
}

fn counter_of(name: &str) -> Result<Counter> {
    match name {
        "ELAPSED_TIME" => return Ok(Counter::ElapsedTime),
        "EXECUTION_TIME" => return Ok(Counter::ExecutionTime),
        // A store before it: HDFS_BYTES_READ. Stoa counts all stores together.
        name if name == "BYTES_READ" || name.ends_with("_BYTES_READ") => {
            return Ok(Counter::BytesRead);
        }
        _ => {}
    }
    let is_hives = OTHERS.iter().any(|other| name.ends_with(other));
    let said = match is_hives {
        true => format!("the counter {name} is not supported in triggers"),
        false => format!("triggers do not know the counter {name}"),
    };
    Err(Error::unsupported(said).with_hint(KNOWN))
}

fn limit_of(counter: Counter, text: &str) -> Result<u64> {
    let is_bytes = counter == Counter::BytesRead;
    let wrong = || {
        let units = match is_bytes {
            true => "bytes, or with a unit: 'b', 'kb', 'mb', 'gb', 'tb', 'pb'",
            false => "milliseconds, or with a unit: 'ms', 'sec', 'min', 'hour', 'day'",
        };
        Error::invalid(format!("\"{text}\" is no limit of a trigger"))
            .with_sqlstate("22023")
            .with_hint(format!("give a whole number of {units}"))
    };
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = unit.trim().to_ascii_lowercase();
    if unit.is_empty() {
        return Ok(number);
    }
    if is_bytes {
        let (_, bytes) = SIZES.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        return number.checked_mul(*bytes).ok_or_else(wrong);
    }
    let unit = short_time(&unit).ok_or_else(wrong)?;
    let (_, millis) = TIMES.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    Ok((number as f64 * millis) as u64)
}

/// The short name of a unit of time, as Hive reads them: `sec` may have more letters, as in `second`.
fn short_time(unit: &str) -> Option<&'static str> {
    const LONG: [(&str, &str); 7] = [
        ("day", "d"),
        ("hour", "h"),
        ("min", "m"),
        ("sec", "s"),
        ("msec", "ms"),
        ("usec", "us"),
        ("nsec", "ns"),
    ];
    let is = |(long, short): &&(&str, &'static str)| unit == *short || unit.starts_with(long);
    LONG.iter().find(is).map(|(_, short)| *short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_units() {
        for (counter, limit, expected) in [
            ("ELAPSED_TIME", "10", 10),
            ("elapsed_time", "30sec", 30_000),
            ("EXECUTION_TIME", "1hour", 3_600_000),
            ("EXECUTION_TIME", "2 minutes", 120_000),
            ("ELAPSED_TIME", "7ms", 7),
            ("ELAPSED_TIME", "1 d", 86_400_000),
            ("BYTES_READ", "10kb", 10_240),
            ("HDFS_BYTES_READ", "1 GB", 1 << 30),
            ("S3A_BYTES_READ", "0", 0),
        ] {
            let trigger = Trigger::new(counter, limit, true, Action::Kill).unwrap();
            assert_eq!(trigger.limit, expected, "{counter} {limit}");
        }
        for (counter, limit) in [
            ("ELAPSED_TIME", "10 millis"),
            ("BYTES_READ", "10k"),
            ("BYTES_READ", "-1000"),
            ("BYTES_READ", ""),
            ("BYTES_READ", "99999999999999999999"),
            ("BYTES_READ", "99999 pb"),
            ("ELAPSED_TIME", "1.5 sec"),
        ] {
            let error = Trigger::new(counter, limit, true, Action::Kill).unwrap_err();
            assert_eq!(error.sqlstate(), "22023", "{counter} {limit}");
        }
    }

    #[test]
    fn counters_that_are_not_there_are_named() {
        for name in ["SHUFFLE_BYTES", "HDFS_BYTES_WRITTEN", "dag_total_tasks", "WHATEVER"] {
            let error = Trigger::new(name, "1", false, Action::Kill).unwrap_err();
            assert_eq!(error.sqlstate(), "0A000", "{name}");
            assert!(error.message().contains(&name.to_uppercase()), "{error}");
        }
    }

    #[test]
    fn conditions_are_shown_as_they_were_written() {
        let shown = |limit, is_text| {
            Trigger::new("bytes_read", limit, is_text, Action::Kill).unwrap().expression
        };
        assert_eq!(shown("10kb", true), "BYTES_READ > '10kb'");
        assert_eq!(shown("10", false), "BYTES_READ > 10");
    }
}
