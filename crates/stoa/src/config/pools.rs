//! The settings `pools` and `workload_rules`.
//!
//! ```text
//! pools          = "reports slots=4 queue=100; batch slots=1 memory=2GiB timeout=10m read=50GiB"
//! workload_rules = "user=etl* -> batch; application=dbt protocol=http -> batch"
//! ```
//!
//! A value with blanks or `;` stands in double quotes: `application="Power BI" -> reports`. In the TOML
//! file both may be lists of tables, which `tables` turns into this text.

use stoa_query::{PoolOptions, WorkloadRule};

use super::Machine;
use super::setting::SettingValue;
use super::value::{ByteSize, Threads};
use crate::units::parse_duration;

/// Pools of queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolList(pub Vec<PoolOptions>);

impl SettingValue for PoolList {
    const KIND: &'static str = "list of pools";

    fn parse(text: &str, machine: &Machine) -> Result<Self, String> {
        entries(text).map(|entry| pool(entry, machine)).collect::<Result<_, _>>().map(Self)
    }
}

/// Who goes into which pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleList(pub Vec<WorkloadRule>);

impl SettingValue for RuleList {
    const KIND: &'static str = "list of rules";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        entries(text).map(rule).collect::<Result<_, _>>().map(Self)
    }
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    unquoted(text, |c| c == ';').map(str::trim).filter(|entry| !entry.is_empty())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    unquoted(text, char::is_whitespace).filter(|word| !word.is_empty())
}

/// Splits at the separators that are not within double quotes.
fn unquoted(text: &str, is_separator: impl Fn(char) -> bool) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c| {
        is_quoted ^= c == '"';
        !is_quoted && is_separator(c)
    })
}

/// A name or pattern without its quotes.
fn plain(word: &str) -> &str {
    word.strip_prefix('"').and_then(|word| word.strip_suffix('"')).unwrap_or(word)
}

/// What is before and after the arrow, which is not within quotes.
fn at_arrow(text: &str) -> Option<(&str, &str)> {
    let is_outside = |place: &usize| {
        let before = text.get(..*place).unwrap_or_default();
        before.matches('"').count().is_multiple_of(2)
    };
    let place = text.match_indices("->").map(|(place, _)| place).find(is_outside)?;
    Some((text.get(..place)?, text.get(place + 2..)?))
}

fn pool(entry: &str, machine: &Machine) -> Result<PoolOptions, String> {
    let mut words = words(entry);
    let name = plain(words.next().unwrap_or_default());
    if name.contains(['=', '*']) {
        return Err(format!("must begin with the name of a pool, as in batch slots=1: {entry}"));
    }
    let mut pool = PoolOptions { name: name.to_owned(), ..PoolOptions::default() };
    let wrong = |word: &str, why: String| format!("{word} of pool {name}: {why}");
    for word in words {
        let (key, value) = pair(word)?;
        let bytes = || ByteSize::parse(value, machine).map(|size| size.0);
        match key {
            "slots" => {
                let slots = Threads::parse(value, machine).map_err(|why| wrong(word, why))?;
                pool.slots = Some(slots.0);
            }
            "queue" => {
                let queue = value.parse().map_err(|_| wrong(word, "must be a number".into()))?;
                pool.queue_max = Some(queue);
            }
            "memory" => {
                let bytes = bytes().map_err(|why| wrong(word, why))?;
                pool.memory_bytes_max = Some(usize::try_from(bytes).unwrap_or(usize::MAX));
            }
            "timeout" => {
                pool.timeout = Some(parse_duration(value).map_err(|why| wrong(word, why))?);
            }
            "read" => pool.bytes_read_max = Some(bytes().map_err(|why| wrong(word, why))?),
            _ => {
                return Err(wrong(word, "must be slots, queue, memory, timeout or read".into()));
            }
        }
    }
    Ok(pool)
}

fn rule(entry: &str) -> Result<WorkloadRule, String> {
    let (who, pool) = at_arrow(entry)
        .ok_or_else(|| format!("must name a pool, as in user=etl -> batch: {entry}"))?;
    let mut rule = WorkloadRule { pool: plain(pool.trim()).to_owned(), ..WorkloadRule::default() };
    for word in words(who) {
        let (key, value) = pair(word)?;
        let place = match key {
            "user" => &mut rule.user,
            "application" => &mut rule.application,
            "protocol" => &mut rule.protocol,
            _ => return Err(format!("{word} must be user, application or protocol")),
        };
        *place = Some(value.to_owned());
    }
    Ok(rule)
}

fn pair(word: &str) -> Result<(&str, &str), String> {
    let (key, value) = word.split_once('=').ok_or_else(|| format!("must be name=value: {word}"))?;
    Ok((key, plain(value)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MACHINE: Machine = Machine { processors: 2, memory_bytes: 8 << 30 };

    #[test]
    fn pools_are_read() {
        let text = "reports slots=4 queue=100; batch memory=2GiB timeout=10m read=50% ;";
        let PoolList(pools) = PoolList::parse(text, &MACHINE).unwrap();
        assert_eq!(pools.len(), 2);
        assert_eq!((pools[0].slots, pools[0].queue_max), (Some(4), Some(100)));
        assert_eq!(pools[1].memory_bytes_max, Some(2 << 30));
        assert_eq!(pools[1].timeout, Some(Duration::from_secs(600)));
        assert_eq!(pools[1].bytes_read_max, Some(4 << 30));
        assert_eq!(PoolList::parse("", &MACHINE).unwrap().0, []);
        for wrong in ["slots=4", "a slot=4", "a slots", "a slots=0", "a timeout=x", "a read=1"] {
            assert!(PoolList::parse(wrong, &MACHINE).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules_are_read() {
        let RuleList(rules) =
            RuleList::parse("user=etl* protocol=http -> batch; -> rest", &MACHINE).unwrap();
        assert_eq!(rules[0].user.as_deref(), Some("etl*"));
        assert_eq!((rules[0].protocol.as_deref(), &*rules[0].pool), (Some("http"), "batch"));
        assert_eq!(rules[1], WorkloadRule { pool: "rest".into(), ..WorkloadRule::default() });
        let text = "application=\"Power BI; -> x\" -> \"slow ones\";user=a->b";
        let RuleList(rules) = RuleList::parse(text, &MACHINE).unwrap();
        assert_eq!(rules[0].application.as_deref(), Some("Power BI; -> x"));
        assert_eq!((&*rules[0].pool, &*rules[1].pool, rules.len()), ("slow ones", "b", 2));
        assert!(RuleList::parse("user=etl", &MACHINE).is_err());
        assert!(RuleList::parse("group=etl -> batch", &MACHINE).is_err());
    }
}
