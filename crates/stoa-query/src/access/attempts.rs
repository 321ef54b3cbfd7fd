//! How often a password may be guessed.
//!
//! In: who tried to log in as whom, from where, and that it failed. Out: whether another try is looked
//! at now. So many failures per role and address are free, and more per address; after each further
//! one nobody is let in that way for a while, twice as long each time, whatever the password.
//!
//! **Invariants:** of passwords tried at the same time not more are looked at than of those tried one
//! after another, but for the few that are being checked; a right password takes no failure back (or
//! whoever shares an address with a client that logs in could guess for ever); memory is bounded.
//!
//! Not here: what a right password is (`stoa-access`), who asks (the protocols).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_error::{Error, ErrorKind};

/// Failures as one role from one address that cost nothing.
const FREE_PER_ROLE: u32 = 10;

/// Failures from one address, as whatever roles, that cost nothing.
const FREE_PER_ADDRESS: u32 = 100;

/// How long nobody is let in after the first failure that is not free.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Failures are forgotten when there was none for so long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);

/// Roles and addresses of which failures are remembered.
const KNOWN_MAX: usize = 65_536;

/// Wrong passwords that are remembered per role and address.
const WRONG_MAX: usize = 16;

/// Something that a password is wrong with: the digest of role and password, and the version of the
/// policy that it was wrong under.
pub(crate) type Wrong = (u64, [u8; 32]);

/// Whose failures are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Who {
    Role(Box<str>, Option<IpAddr>),
    Address(IpAddr),
}

impl Who {
    fn free(&self) -> u32 {
        match self {
            Self::Role(..) => FREE_PER_ROLE,
            Self::Address(_) => FREE_PER_ADDRESS,
        }
    }
}

#[derive(Debug)]
struct Failures {
    count: u32,
    last: Instant,
    /// Passwords among them: the same one again is no new guess.
    wrong: Vec<Wrong>,
}

impl Failures {
    /// Until when nobody is let in.
    fn until(&self, who: &Who) -> Option<Instant> {
        let beyond = self.count.checked_sub(who.free())?.checked_sub(1)?;
        let pause = PAUSE.saturating_mul(1 << beyond.min(16)).min(PAUSE_MAX);
        self.last.checked_add(pause)
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= FORGOTTEN_AFTER
    }
}

/// The failures of late.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<Who, Failures>>);

impl Attempts {
    /// Whether a try to log in is looked at now.
    ///
    /// # Errors
    /// How long nobody is let in this way.
    pub(crate) fn may_try(
        &self,
        role: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<(), Duration> {
        let failures = self.0.lock();
        let until = keys(role, from).into_iter().filter_map(|who| failures.get(&who)?.until(&who));
        match until.max().map(|until| until.saturating_duration_since(now)) {
            Some(pause) if !pause.is_zero() => Err(pause),
            _ => Ok(()),
        }
    }

    /// Whether this password was found to be wrong before.
    pub(crate) fn knows_wrong(&self, role: &str, from: Option<IpAddr>, wrong: &Wrong) -> bool {
        let failures = self.0.lock();
        let known = failures.get(&Who::Role(role.into(), from.map(group)));
        known.is_some_and(|known| known.wrong.contains(wrong))
    }

    /// Counts a failure, if it is one: whether one is let in. A try that others have used up since it
    /// was let through counts for nothing.
    ///
    /// # Errors
    /// As [`Self::may_try`].
    pub(crate) fn judge(
        &self,
        role: &str,
        from: Option<IpAddr>,
        now: Instant,
        is_right: bool,
        wrong: Option<Wrong>,
    ) -> Result<bool, Duration> {
        self.may_try(role, from, now)?;
        if is_right {
            return Ok(true);
        }
        let mut failures = self.0.lock();
        if failures.len() >= KNOWN_MAX {
            make_room(&mut failures, now);
        }
        for who in keys(role, from) {
            let is_role = matches!(who, Who::Role(..));
            let known =
                failures.entry(who).or_insert(Failures { count: 0, last: now, wrong: Vec::new() });
            if known.is_forgotten(now) {
                (known.count, known.wrong) = (0, Vec::new());
            }
            (known.count, known.last) = (known.count.saturating_add(1), now);
            if let Some(wrong) = wrong.filter(|_| is_role) {
                if known.wrong.len() == WRONG_MAX {
                    known.wrong.remove(0);
                }
                known.wrong.push(wrong);
            }
        }
        Ok(false)
    }
}

/// The error of a try that is not looked at.
pub(crate) fn refused(pause: Duration) -> Error {
    let seconds = pause.as_millis().div_ceil(1000).max(1);
    Error::new(ErrorKind::Exhausted, "too many failed logins as this role or from this address")
        .with_sqlstate("53400")
        .with_hint(format!("try again in {seconds} s; the pause grows with each failure"))
}

fn keys(role: &str, from: Option<IpAddr>) -> Vec<Who> {
    let from = from.map(group);
    std::iter::once(Who::Role(role.into(), from)).chain(from.map(Who::Address)).collect()
}

/// Addresses that one client can have as many of as it likes count as one.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address => address,
    }
}

/// Forgets what is old; where that is not enough, the older half.
fn make_room(failures: &mut HashMap<Who, Failures>, now: Instant) {
    failures.retain(|_, known| !known.is_forgotten(now));
    if failures.len() < KNOWN_MAX {
        return;
    }
    let mut times: Vec<Instant> = failures.values().map(|known| known.last).collect();
    let middle = times.len() / 2;
    let (_, middle, _) = times.select_nth_unstable(middle);
    let middle = *middle;
    failures.retain(|_, known| known.last > middle);
}

#[cfg(test)]
mod tests {
    use stoa_env::clock;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn fail(attempts: &Attempts, role: &str, from: IpAddr, now: Instant) -> Result<bool, Duration> {
        attempts.judge(role, Some(from), now, false, None)
    }

    #[test]
    fn pauses_grow_and_hold_for_the_right_password_too() {
        let (attempts, start) = (Attempts::default(), clock::monotonic());
        for _ in 0..FREE_PER_ROLE {
            assert_eq!(fail(&attempts, "ann", HERE, start), Ok(false));
        }
        assert_eq!(attempts.may_try("ann", Some(HERE), start), Ok(()));
        let mut now = start;
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            assert_eq!(fail(&attempts, "ann", HERE, now), Ok(false));
            let pause = Duration::from_secs(seconds);
            assert_eq!(attempts.may_try("ann", Some(HERE), now), Err(pause));
            assert_eq!(attempts.judge("ann", Some(HERE), now, true, None), Err(pause));
            // Tries that are refused do not make it longer.
            assert_eq!(fail(&attempts, "ann", HERE, now), Err(pause));
            // Another role from there, and the role from elsewhere, are another matter.
            assert_eq!(attempts.may_try("bob", Some(HERE), now), Ok(()));
            assert_eq!(attempts.may_try("ann", Some(THERE), now), Ok(()));
            now += pause;
            assert_eq!(attempts.may_try("ann", Some(HERE), now), Ok(()));
        }
        assert_eq!(attempts.judge("ann", Some(HERE), now, true, None), Ok(true));
        assert_eq!(fail(&attempts, "ann", HERE, now), Ok(false));
        assert!(attempts.may_try("ann", Some(HERE), now).is_err());
        now += FORGOTTEN_AFTER;
        for _ in 0..FREE_PER_ROLE {
            assert_eq!(fail(&attempts, "ann", HERE, now), Ok(false));
            assert_eq!(attempts.may_try("ann", Some(HERE), now), Ok(()));
        }
    }

    #[test]
    fn many_roles_from_one_address_are_too_many() {
        let (attempts, now) = (Attempts::default(), clock::monotonic());
        for number in 0..=FREE_PER_ADDRESS {
            assert_eq!(fail(&attempts, &format!("role{number}"), HERE, now), Ok(false));
        }
        assert!(attempts.may_try("another", Some(HERE), now).is_err());
        assert_eq!(attempts.may_try("another", Some(THERE), now), Ok(()));
        // A network of IPv6 is one client; an address of IPv4 is the same however it is written.
        let inner = |host: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, host));
        assert_eq!(group(inner(1)), group(inner(2)));
        let Ok(mapped) = "::ffff:10.0.0.1".parse::<IpAddr>() else { panic!("no address") };
        assert!(attempts.may_try("another", Some(mapped), now).is_err());
    }

    #[test]
    fn a_wrong_password_is_known_for_its_role_address_and_version() {
        let (attempts, now) = (Attempts::default(), clock::monotonic());
        let wrong = (7, [1; 32]);
        assert!(!attempts.knows_wrong("ann", Some(HERE), &wrong));
        assert_eq!(attempts.judge("ann", Some(HERE), now, false, Some(wrong)), Ok(false));
        assert!(attempts.knows_wrong("ann", Some(HERE), &wrong));
        assert!(!attempts.knows_wrong("ann", Some(THERE), &wrong));
        assert!(!attempts.knows_wrong("ann", Some(HERE), &(8, [1; 32])));
    }

    #[test]
    fn memory_is_bounded() {
        let (attempts, start) = (Attempts::default(), clock::monotonic());
        for number in 0..3 * KNOWN_MAX as u32 {
            let address = IpAddr::V4(std::net::Ipv4Addr::from(number));
            let now = start + Duration::from_millis(u64::from(number));
            assert_eq!(fail(&attempts, "ann", address, now), Ok(false));
        }
        assert!(attempts.0.lock().len() <= KNOWN_MAX + 1);
    }
}
