//! How many connections each port may have, so that descriptors are left for files.
//!
//! In: settings, and the limit of descriptors, which is raised as far as the process may. Out: numbers
//! for each protocol. Where the limit allows fewer connections than the settings, each port gets an
//! equal share of what it allows.

use std::time::Duration;

use stoa_env::descriptors;
use stoa_error::{Error, Result};
use stoa_listen::Limits;

use crate::config::Config;

/// Descriptors of the process itself: standard streams, listeners, runtimes, the catalog.
const OWN_DESCRIPTORS: u64 = 64;
/// Most descriptors that are left for files unless the settings say more.
const RESERVED_MAX: u64 = 4096;
/// Ports that share what is not reserved.
const PORTS: u64 = 4;
/// Fewer connections to a port are not worth a start.
const LEAST: u64 = 8;

/// Numbers of connections.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Connections {
    /// Sessions of the PostgreSQL protocol.
    pub(super) sessions: usize,
    /// Its sockets, with those of clients that log in.
    pub(super) pg_sockets: usize,
    pub(super) http: usize,
    pub(super) flight: usize,
    pub(super) hive: usize,
    pub(super) limits: Limits,
}

impl Connections {
    /// Raises the process's limit of descriptors and divides what it allows.
    ///
    /// # Errors
    /// Invalid: next to nothing is left for connections.
    pub(super) fn of(config: &Config) -> Result<Self> {
        let descriptors = descriptors::raise_limit();
        let divided = Self::divide(config, descriptors)?;
        let asked = config.max_connections as usize;
        if divided.sessions < asked || divided.http < asked {
            tracing::warn!(
                descriptors,
                max_connections = asked,
                sessions = divided.sessions,
                http = divided.http,
                "the limit of open files allows fewer connections than max_connections; raise it \
                 (ulimit -n)"
            );
        }
        Ok(divided)
    }

    fn divide(config: &Config, descriptors: u64) -> Result<Self> {
        let reserved = config.reserved_descriptors.0.map(u64::from);
        let reserved = reserved.unwrap_or((descriptors / 4).min(RESERVED_MAX));
        let for_connections = descriptors.saturating_sub(reserved);
        let share = for_connections.saturating_sub(OWN_DESCRIPTORS) / PORTS;
        if share < LEAST {
            let what = format!(
                "{descriptors} file descriptors are too few: {reserved} are reserved for files, and \
                 {OWN_DESCRIPTORS} are the server's own"
            );
            return Err(Error::invalid(what)
                .with_hint("raise the limit of open files (ulimit -n), or reserve fewer"));
        }
        let share = usize::try_from(share).unwrap_or(usize::MAX);
        let asked = config.max_connections as usize;
        let per_address = config.max_connections_per_address.0;
        let pg_sockets = stoa_pgwire::sockets_for(asked).min(share);
        Ok(Self {
            sessions: asked.min(pg_sockets - pg_sockets / 4),
            pg_sockets,
            http: asked.min(share),
            flight: asked.min(share),
            hive: asked.min(share),
            limits: Limits {
                per_address_max: per_address.map_or((asked - asked / 4).max(1), |max| max as usize),
                counts_loopback: per_address.is_some(),
                login_timeout: Duration::from_secs(config.login_timeout_s.into()),
                descriptors_max: Some(for_connections),
                ..Limits::default()
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Machine, Sources, resolve};

    use super::*;

    fn config(text: &str) -> Config {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f.toml");
        std::fs::write(&file, text).unwrap();
        let sources = Sources { file: Some(file), ..Sources::default() };
        resolve(&sources, &Machine { memory_bytes: 8 << 30, processors: 4 }).unwrap().config
    }

    fn divided(text: &str, descriptors: u64) -> Connections {
        Connections::divide(&config(text), descriptors).unwrap()
    }

    #[test]
    fn with_descriptors_enough_there_are_as_many_connections_as_asked_for() {
        let all = divided("", 1 << 20);
        assert_eq!((all.sessions, all.pg_sockets, all.http, all.flight), (256, 384, 256, 256));
        assert_eq!(all.limits.descriptors_max, Some((1 << 20) - 4096));
        assert_eq!(all.limits.login_timeout, Duration::from_secs(30));
        assert_eq!((all.limits.per_address_max, all.limits.counts_loopback), (192, false));
        let one = divided("max_connections = 1", 1 << 20);
        assert_eq!((one.sessions, one.pg_sockets, one.http), (1, 65, 1));
    }

    #[test]
    fn with_few_descriptors_each_port_has_a_share() {
        let few = divided("", 256);
        assert_eq!(
            (few.sessions, few.pg_sockets, few.http, few.flight, few.hive),
            (24, 32, 32, 32, 32)
        );
        assert_eq!(few.limits.descriptors_max, Some(192));
        let reserved = divided("reserved_descriptors = 100\nmax_connections_per_address = 5", 256);
        assert_eq!(reserved.limits.descriptors_max, Some(156));
        assert_eq!((reserved.limits.per_address_max, reserved.limits.counts_loopback), (5, true));
        assert_eq!(reserved.http, 23);
    }

    #[test]
    fn with_next_to_none_the_server_says_what_to_do() {
        for (text, descriptors) in [("", 64), ("reserved_descriptors = 950", 1024)] {
            let error = Connections::divide(&config(text), descriptors).unwrap_err();
            assert!(error.message().contains("too few"), "{error}");
            assert!(error.hint().unwrap().contains("ulimit -n"));
        }
    }
}
