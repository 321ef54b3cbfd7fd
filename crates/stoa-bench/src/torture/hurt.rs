//! What happens to a daemon of a cluster, or to the network around it.

use std::fmt;
use std::time::Duration;

use super::death::Death;
use super::random::Random;
use super::wire::State;

/// What happens to a daemon.
#[derive(Clone, Debug)]
pub(crate) enum Hurt {
    Killed(Duration),
    Failed(Death),
    Frozen { after: Duration, frozen: Duration },
    Drained(Duration),
    Cut { from: From, state: State, after: Duration, lasting: Duration },
}

/// What it is cut off from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// The catalog's database.
    Catalog,
    /// The other daemons, as far as they call it: its own calls arrive.
    Peers,
    /// The object store that has files and commit logs.
    Store,
    /// All daemons are cut off from the catalog's database.
    CatalogOfAll,
    /// All daemons are cut off from each other.
    PeersOfAll,
    /// All daemons are cut off from the object store.
    StoreOfAll,
}

impl Hurt {
    /// Something by chance; an object store is cut off only where there is one.
    pub(crate) fn pick(random: &mut Random, has_store: bool) -> Self {
        let ms = |random: &mut Random, most| Duration::from_millis(random.below(most));
        match random.below(if has_store { 16 } else { 14 }) {
            0..3 => Self::Killed(ms(random, 700)),
            3..6 => loop {
                let death = Death::pick(random.next());
                if !death.failpoints().is_empty() {
                    break Self::Failed(death);
                }
            },
            6..9 => {
                let after = ms(random, 500);
                Self::Frozen { after, frozen: ms(random, 9_000) }
            }
            9 => Self::Drained(ms(random, 500)),
            kind => {
                let from = match random.below(8) {
                    0..6 if kind >= 14 => From::Store,
                    _ if kind >= 14 => From::StoreOfAll,
                    0..3 => From::Catalog,
                    3..6 => From::Peers,
                    6 => From::CatalogOfAll,
                    _ => From::PeersOfAll,
                };
                let state = [State::Silent, State::Broken][random.below(2) as usize];
                let after = ms(random, 500);
                let lasting = match from {
                    // A peer that is missed for four to six seconds may be declared dead when it is reached again:
                    // whether it lives is known of shorter and of longer cuts.
                    From::Peers | From::PeersOfAll => match random.below(4) {
                        0 => Duration::from_secs(7) + ms(random, 2_000),
                        _ => ms(random, 3_000),
                    },
                    _ => ms(random, 9_000),
                };
                Self::Cut { from, state, after, lasting }
            }
        }
    }
}

impl fmt::Display for Hurt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed(after) => write!(f, "was killed after {} ms", after.as_millis()),
            Self::Failed(death) => write!(f, "{death}"),
            Self::Frozen { after, frozen } => {
                write!(f, "froze after {} ms for {} ms", after.as_millis(), frozen.as_millis())
            }
            Self::Drained(after) => write!(f, "was ended after {} ms", after.as_millis()),
            Self::Cut { from, state, after, lasting } => {
                let from = match from {
                    From::Catalog => "was cut off from the catalog",
                    From::Peers => "was not reached by the others",
                    From::Store => "was cut off from the store",
                    From::StoreOfAll => "was cut off from the store as all others were",
                    From::CatalogOfAll => "was cut off from the catalog as all others were",
                    From::PeersOfAll => "was not reached by the others, nor they by anyone",
                };
                let state = if *state == State::Silent { "silently" } else { "with an error" };
                let (after, lasting) = (after.as_millis(), lasting.as_millis());
                write!(f, "{from} ({state}) after {after} ms for {lasting} ms")
            }
        }
    }
}
