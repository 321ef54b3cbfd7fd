//! The types that settings have, and how their texts are read.

use std::net::IpAddr;
use std::path::PathBuf;

use stoa_store::Secret;

use super::Machine;
use super::setting::SettingValue;

impl SettingValue for String {
    const KIND: &'static str = "text";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        if text.is_empty() {
            return Err("must not be empty".into());
        }
        Ok(text.to_owned())
    }
}

impl SettingValue for Option<PathBuf> {
    const KIND: &'static str = "directory";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        Ok((!text.is_empty()).then(|| PathBuf::from(text)))
    }
}

/// A file that is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath(pub PathBuf);

impl SettingValue for Option<FilePath> {
    const KIND: &'static str = "file";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        Ok((!text.is_empty()).then(|| FilePath(PathBuf::from(text))))
    }
}

impl SettingValue for Option<String> {
    const KIND: &'static str = "text";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }
}

impl SettingValue for Option<Secret> {
    const KIND: &'static str = "secret";
    const IS_SECRET: bool = true;

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        Ok((!text.is_empty()).then(|| Secret::new(text)))
    }
}

impl SettingValue for bool {
    const KIND: &'static str = "true or false";
    const IS_SWITCH: bool = true;
    const IS_BARE: bool = true;

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        text.parse().map_err(|_| "must be true or false".into())
    }
}

impl SettingValue for u16 {
    const KIND: &'static str = "port";
    const IS_BARE: bool = true;

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        text.parse().map_err(|_| "must be a port, 0 to 65535".into())
    }
}

/// The port of HiveServer2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HivePort {
    /// Hive's own, if it is free.
    Auto,
    /// None.
    Off,
    /// This one; 0 is a free one.
    Port(u16),
}

impl SettingValue for HivePort {
    const KIND: &'static str = "port, auto or none";

    fn parse(text: &str, machine: &Machine) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::Off),
            _ => u16::parse(text, machine)
                .map(Self::Port)
                .map_err(|why| format!("{why}, auto or none")),
        }
    }
}

impl SettingValue for u32 {
    const KIND: &'static str = "number";
    const IS_BARE: bool = true;

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        text.parse().ok().filter(|n| *n > 0).ok_or("must be a whole number from 1".into())
    }
}

impl SettingValue for u64 {
    const KIND: &'static str = "number";
    const IS_BARE: bool = true;

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        text.parse().map_err(|_| "must be a whole number from 0".into())
    }
}

impl SettingValue for IpAddr {
    const KIND: &'static str = "IP address";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        let text = if text == "localhost" { "127.0.0.1" } else { text };
        text.parse().map_err(|_| "must be an IP address such as 127.0.0.1 or ::1".into())
    }
}

/// Room for a number of bytes: `2GiB`, `512 MB`, `1073741824`, or a share of the machine's memory: `50%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub u64);

/// A number of bytes from which on something is large, written as a [`ByteSize`]; may be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteThreshold(pub u64);

const UNITS: [(&str, u64); 11] = [
    ("", 1),
    ("b", 1),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("%", 0),
];

impl SettingValue for ByteSize {
    const KIND: &'static str = "size";

    fn parse(text: &str, machine: &Machine) -> Result<Self, String> {
        let bytes = bytes_of(text, machine)?;
        if bytes < 16 << 20 {
            return Err("must be at least 16MiB".into());
        }
        Ok(Self(bytes))
    }
}

impl SettingValue for ByteThreshold {
    const KIND: &'static str = "size";

    fn parse(text: &str, machine: &Machine) -> Result<Self, String> {
        bytes_of(text, machine).map(Self)
    }
}

fn bytes_of(text: &str, machine: &Machine) -> Result<u64, String> {
    let wrong = || "must be a size such as 2GiB, 512MB or 50% (of the memory)".to_owned();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let unit = unit.trim().to_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    Ok(match unit.as_str() {
        "%" if number > 100.0 => return Err("must be at most 100%".into()),
        "%" => number / 100.0 * machine.memory_bytes as f64,
        _ => number * *factor as f64,
    } as u64)
}

/// A number of threads; `auto` is one per processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads(pub usize);

impl SettingValue for Threads {
    const KIND: &'static str = "number";

    fn parse(text: &str, machine: &Machine) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(machine.processors));
        }
        let wrong = || "must be auto or a whole number, 1 to 1024".to_owned();
        text.parse().ok().filter(|n| (1..=1024).contains(n)).map(Self).ok_or_else(wrong)
    }
}

/// A number that follows another setting where it is `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots(pub Option<usize>);

impl SettingValue for Slots {
    const KIND: &'static str = "number";

    fn parse(text: &str, machine: &Machine) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self(None)),
            _ => Threads::parse(text, machine).map(|number| Self(Some(number.0))),
        }
    }
}

/// A number of things; `None` where it follows from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub Option<u32>);

impl SettingValue for Count {
    const KIND: &'static str = "auto or a number";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(None));
        }
        let wrong = || "must be auto or a whole number from 1".to_owned();
        let count = text.parse().ok().filter(|count: &u32| *count > 0);
        count.map(|count| Self(Some(count))).ok_or_else(wrong)
    }
}

/// Where a bucket's name stands in addresses; `None` where that follows from the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStyle(pub Option<bool>);

impl SettingValue for PathStyle {
    const KIND: &'static str = "auto, true or false";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self(None)),
            "true" => Ok(Self(Some(true))),
            "false" => Ok(Self(Some(false))),
            _ => Err("must be auto, true or false".into()),
        }
    }
}

/// Dollars for a million requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price(pub f64);

impl SettingValue for Price {
    const KIND: &'static str = "dollars";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
        price.map(Self).ok_or("must be a number of dollars such as 0.40".into())
    }
}

/// A share of something, 1 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(pub u8);

impl SettingValue for Percent {
    const KIND: &'static str = "percentage";
    const IS_BARE: bool = true;

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        let percent = text.parse().ok().filter(|percent| (1..=100).contains(percent));
        percent.map(Self).ok_or("must be a whole number, 1 to 100".into())
    }
}

/// Where alerts are posted; it may hold a secret.
#[derive(Clone, Debug)]
pub struct Webhook(pub Secret);

impl SettingValue for Option<Webhook> {
    const KIND: &'static str = "URL";
    const IS_SECRET: bool = true;

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = || "must be a URL that begins with http:// or https://".to_owned();
        let url = url::Url::parse(text).map_err(|_| wrong())?;
        match url.scheme() {
            "http" | "https" => Ok(Some(Webhook(Secret::new(text)))),
            _ => Err(wrong()),
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl SettingValue for LogFormat {
    const KIND: &'static str = "text or json";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("must be text or json".into()),
        }
    }
}

/// A filter of log lines, known to be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLevel(pub String);

impl SettingValue for LogLevel {
    const KIND: &'static str = "level or filters";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        let levels = ["off", "error", "warn", "info", "debug", "trace"];
        // The filter type takes any bare word as the name of a module.
        let bare = text.split(',').filter(|part| !part.contains(['=', '[']));
        for word in bare {
            if !levels.contains(&word.trim()) {
                return Err(format!("must be one of {}", levels.join(", ")));
            }
        }
        tracing_subscriber::EnvFilter::try_new(text).map_err(|e| e.to_string())?;
        Ok(Self(text.to_owned()))
    }
}
