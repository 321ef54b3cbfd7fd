//! What holds for the connections of one listener.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Limits that are the same for all protocols; how many connections there may be is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections from one address.
    pub per_address_max: usize,
    /// Whether that holds for clients on this machine, too.
    pub counts_loopback: bool,
    /// Time from a connection's begin to the end of its login, or of its first request's head.
    pub login_timeout: Duration,
    /// Time between the end of a request and the end of the next one's head.
    pub idle_timeout: Duration,
    /// How long a client waits for the descriptor of one that is sent away for it. That one ends at its
    /// next read, which is woken; only a write to a client that takes nothing holds it up.
    pub leave_timeout: Duration,
    /// Bytes read of a client that waits; more are read once it is known or has a request under way.
    pub waiting_bytes_max: usize,
    /// Numbers of descriptors from this one on are not taken by connections.
    pub descriptors_max: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_address_max: 750,
            counts_loopback: false,
            login_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
            leave_timeout: Duration::from_secs(1),
            waiting_bytes_max: 128 << 10,
            descriptors_max: None,
        }
    }
}

impl Limits {
    /// How many connections may come from an address.
    pub(crate) fn of_address_max(&self, address: IpAddr) -> usize {
        match address.is_loopback() && !self.counts_loopback {
            true => usize::MAX,
            false => self.per_address_max,
        }
    }

    /// Whether a connection may hold the descriptor with this number.
    pub(crate) fn may_hold(&self, descriptor: u64) -> bool {
        self.descriptors_max.is_none_or(|max| descriptor < max)
    }
}

/// What counts as one address: of IPv6 the network, since a client has all addresses of one.
pub(crate) fn counted_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_is_one_address() {
        let check = |text: &str, expected: &str| {
            let expected: IpAddr = expected.parse().unwrap();
            assert_eq!(counted_address(text.parse().unwrap()), expected);
        };
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check("::ffff:10.1.2.3", "10.1.2.3");
        check("10.1.2.3", "10.1.2.3");
        check("::1", "::1");
    }

    #[test]
    fn this_machine_counts_only_where_it_should() {
        let check = |counts_loopback, text: &str, expected| {
            let limits = Limits { per_address_max: 3, counts_loopback, ..Limits::default() };
            assert_eq!(limits.of_address_max(text.parse().unwrap()), expected, "{text}");
        };
        check(false, "10.0.0.1", 3);
        check(false, "127.0.0.1", usize::MAX);
        check(false, "::1", usize::MAX);
        check(true, "127.0.0.1", 3);
    }

    #[test]
    fn high_descriptors_are_left_alone() {
        let limits = Limits { descriptors_max: Some(100), ..Limits::default() };
        assert!(limits.may_hold(99) && !limits.may_hold(100));
        assert!(Limits::default().may_hold(1 << 40));
    }
}
