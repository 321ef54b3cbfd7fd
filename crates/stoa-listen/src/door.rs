//! A listener's door: counts connections, and says which may come in and which must go.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_env::clock;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::guarded::Guarded;
use crate::guest::Guest;
use crate::limits::{Limits, counted_address};

/// How often the log tells of refusals; a flood of connections must not become one of lines.
const TELL_INTERVAL: Duration = Duration::from_secs(10);

/// Connections that doors have refused since the process started, by their names.
static REFUSED: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// Connections that were refused since the process started, by the name of the listener; of each that has
/// been opened.
pub fn refused_connections() -> Vec<(&'static str, u64)> {
    REFUSED.lock().iter().map(|(name, count)| (*name, *count)).collect()
}

/// Why a connection is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There are as many connections as there may be, and none of them waits.
    Full,
    /// There are as many from its address as there may be, and none of them waits.
    Address,
    /// What descriptors are left is for files.
    Descriptors,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "too many connections",
            Self::Address => "too many connections from one address",
            Self::Descriptors => "too few file descriptors are left",
        })
    }
}

/// The door of one listener.
#[derive(Debug)]
pub struct Door {
    /// What the log calls it.
    name: &'static str,
    connections_max: usize,
    limits: Limits,
    books: Mutex<Books>,
    /// There may be room.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Books {
    open: HashMap<u64, Entry>,
    by_address: HashMap<IpAddr, usize>,
    /// Those that wait, by their turn: the longest-waiting first.
    waiting: BTreeMap<u64, Guest>,
    /// Ids and turns.
    next: u64,
    refused: u64,
    sent_away: u64,
    /// How many of those that were sent away have given their descriptors back.
    gone: u64,
    told: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    turn: Option<u64>,
}

impl Door {
    /// A door for `connections_max` connections at once.
    pub fn new(name: &'static str, connections_max: usize, limits: Limits) -> Arc<Self> {
        REFUSED.lock().entry(name).or_default();
        Arc::new(Self {
            name,
            connections_max: connections_max.max(1),
            limits,
            books: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Waits until one more may come in: there are fewer connections than there may be, or one waits
    /// that can be sent away. One task at a time may ask.
    pub async fn room(&self) {
        while !self.has_room() {
            self.changed.notified().await;
        }
    }

    fn has_room(&self) -> bool {
        let books = self.books.lock();
        books.open.len() < self.connections_max || !books.waiting.is_empty()
    }

    /// Lets a connection in that was accepted from `peer`. Where no descriptor is left but one waits that
    /// can be sent away, waits until that one has given its descriptor back, if that is soon. One
    /// task at a time may ask.
    ///
    /// # Errors
    /// The socket again, and why it is not let in.
    pub async fn let_in(
        self: &Arc<Self>,
        socket: TcpStream,
        peer: SocketAddr,
    ) -> Result<Guarded<TcpStream>, (TcpStream, Refusal)> {
        // A descriptor's number is the least that is free: if that is one of those left for files,
        // all below are in use.
        let descriptor = u64::try_from(socket.as_raw_fd()).unwrap_or_default();
        // Answers are small and complete: waiting for more to send only delays them.
        let _ = socket.set_nodelay(true);
        match self.admit(peer.ip(), descriptor).await {
            Ok(guest) => Ok(Guarded::new(socket, guest)),
            Err(refusal) => Err((socket, refusal)),
        }
    }

    async fn admit(self: &Arc<Self>, address: IpAddr, descriptor: u64) -> Result<Guest, Refusal> {
        let address = counted_address(address);
        let admitted = self.make_room(address, descriptor).await.map(|()| self.enter(address));
        if let Err(refusal) = admitted {
            self.tell(refusal);
        }
        admitted
    }

    async fn make_room(&self, address: IpAddr, descriptor: u64) -> Result<(), Refusal> {
        if !self.limits.may_hold(descriptor) {
            self.free_descriptor().await?;
        }
        let of_address = self.books.lock().by_address.get(&address).copied().unwrap_or_default();
        if of_address >= self.limits.of_address_max(address) && !self.send_one_away(Some(address)) {
            return Err(Refusal::Address);
        }
        let open = self.books.lock().open.len();
        if open >= self.connections_max && !self.send_one_away(None) {
            return Err(Refusal::Full);
        }
        Ok(())
    }

    /// Waits until a connection that waits has given its descriptor back. The new one may then keep
    /// the number that it has: as many descriptors are in use as may be.
    async fn free_descriptor(&self) -> Result<(), Refusal> {
        // Some may be on their way already, for others that came before.
        let before = self.books.lock().gone;
        if !self.send_one_away(None) {
            return Err(Refusal::Descriptors);
        }
        let one_has_gone = async {
            while self.books.lock().gone == before {
                self.changed.notified().await;
            }
        };
        let in_time = stoa_env::timer::timeout(self.limits.leave_timeout, one_has_gone).await;
        in_time.map_err(|_| Refusal::Descriptors)
    }

    fn enter(self: &Arc<Self>, address: IpAddr) -> Guest {
        let mut books = self.books.lock();
        let id = books.turn();
        let guest = Guest::new(id, address, Arc::clone(self));
        books.open.insert(id, Entry { address, turn: Some(id) });
        *books.by_address.entry(address).or_default() += 1;
        books.waiting.insert(id, guest.clone());
        guest
    }

    /// Sends the longest-waiting connection away, of those from `address` if one is given; `false` if
    /// there is none.
    fn send_one_away(&self, address: Option<IpAddr>) -> bool {
        loop {
            let Some(guest) = self.books.lock().longest_waiting(address) else { return false };
            // It may have logged in just now; then it waits no more, and another has to go.
            if guest.send_away() {
                let mut books = self.books.lock();
                books.remove(guest.id());
                books.sent_away += 1;
                return true;
            }
        }
    }

    /// Says once in a while that connections are refused.
    fn tell(&self, refusal: Refusal) {
        *REFUSED.lock().entry(self.name).or_default() += 1;
        let mut books = self.books.lock();
        books.refused += 1;
        let now = clock::monotonic();
        if books.told.is_some_and(|told| now.duration_since(told) < TELL_INTERVAL) {
            return;
        }
        books.told = Some(now);
        let (refused, sent_away, open) = (books.refused, books.sent_away, books.open.len());
        drop(books);
        tracing::warn!(
            listener = self.name,
            reason = %refusal,
            open,
            refused_total = refused,
            sent_away_total = sent_away,
            "connections are refused"
        );
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn waits_no_more(&self, id: u64) {
        let mut books = self.books.lock();
        if let Some(turn) = books.open.get_mut(&id).and_then(|entry| entry.turn.take()) {
            books.waiting.remove(&turn);
        }
    }

    pub(crate) fn waits_again(&self, guest: &Guest) {
        let mut books = self.books.lock();
        let turn = books.turn();
        let Some(entry) = books.open.get_mut(&guest.id()) else { return };
        entry.turn = Some(turn);
        books.waiting.insert(turn, guest.clone());
        drop(books);
        self.changed.notify_one();
    }

    pub(crate) fn leave(&self, id: u64) {
        // What waited goes outside of the lock, since it may be the last of its guest.
        let mut books = self.books.lock();
        if !books.open.contains_key(&id) {
            books.gone += 1;
        }
        let left = books.remove(id);
        drop(books);
        drop(left);
        self.changed.notify_one();
    }
}

impl Books {
    fn turn(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Takes it off the list, but leaves it among those that are open.
    fn longest_waiting(&mut self, address: Option<IpAddr>) -> Option<Guest> {
        let of_address = |guest: &Guest| {
            address.is_none_or(|address| {
                self.open.get(&guest.id()).is_some_and(|entry| entry.address == address)
            })
        };
        let turn =
            self.waiting.iter().find(|(_, guest)| of_address(guest)).map(|(turn, _)| *turn)?;
        let guest = self.waiting.remove(&turn)?;
        if let Some(entry) = self.open.get_mut(&guest.id()) {
            entry.turn = None;
        }
        Some(guest)
    }

    fn remove(&mut self, id: u64) -> Option<Guest> {
        let entry = self.open.remove(&id)?;
        if let Some(count) = self.by_address.get_mut(&entry.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&entry.address);
            }
        }
        entry.turn.and_then(|turn| self.waiting.remove(&turn))
    }
}

/// Tells a client that was not let in why, without waiting for it: a new socket has room for a few
/// words.
pub fn turn_away(socket: TcpStream, words: &[u8]) {
    // The socket of the system knows at once that it can be written to, tokio's only after a while.
    let told = socket.into_std().and_then(|mut socket| socket.write_all(words));
    if let Err(error) = told {
        tracing::debug!(%error, "cannot tell a client that it is refused");
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn door(connections_max: usize, limits: Limits) -> Arc<Door> {
        Door::new("test", connections_max, limits)
    }

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    /// Lets one in whose descriptor has a low number, which waits for nothing.
    fn admit(door: &Arc<Door>, last: u8) -> Result<Guest, Refusal> {
        let admitted = std::pin::pin!(door.admit(address(last), 0));
        match admitted.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(admitted) => admitted,
            Poll::Pending => panic!("it waits"),
        }
    }

    fn open(door: &Door) -> usize {
        door.books.lock().open.len()
    }

    #[test]
    fn refusals_are_counted_by_listener() {
        let door = Door::new("counted", 1, Limits::default());
        let of_it = || refused_connections().into_iter().find(|(name, _)| *name == "counted");
        assert_eq!(of_it(), Some(("counted", 0)));
        let guest = admit(&door, 1).unwrap();
        guest.known();
        assert_eq!(admit(&door, 2).unwrap_err(), Refusal::Full);
        assert_eq!(of_it(), Some(("counted", 1)));
    }

    #[test]
    fn whoever_waits_longest_makes_room() {
        let door = door(2, Limits::default());
        let first = admit(&door, 1).unwrap();
        let second = admit(&door, 1).unwrap();
        first.known();
        let third = admit(&door, 1).unwrap();
        assert!(!first.send_away(), "who has logged in stays");
        assert_eq!(open(&door), 2);
        third.known();
        assert_eq!(admit(&door, 1).unwrap_err(), Refusal::Full);
        // The second is out of the books already.
        second.leave();
        assert_eq!(open(&door), 2);
        first.leave();
        admit(&door, 1).unwrap();
        assert_eq!(open(&door), 2);
    }

    #[test]
    fn a_connection_waits_again_between_requests() {
        let door = door(1, Limits::default());
        let first = admit(&door, 1).unwrap();
        let (one, two) = (first.begin(), first.begin());
        assert_eq!(admit(&door, 2).unwrap_err(), Refusal::Full);
        drop(one);
        assert!(!door.has_room(), "another request is under way");
        drop(two);
        assert!(door.has_room());
        admit(&door, 2).unwrap();
        assert_eq!(open(&door), 1);
    }

    #[test]
    fn one_address_does_not_shut_others_out() {
        let door = door(4, Limits { per_address_max: 3, ..Limits::default() });
        let guests: Vec<_> = (0..3).map(|_| admit(&door, 1).unwrap()).collect();
        guests.iter().for_each(Guest::known);
        assert_eq!(admit(&door, 1).unwrap_err(), Refusal::Address);
        let other = admit(&door, 2).unwrap();
        assert_eq!(open(&door), 4);
        // Its own waiting connection makes room, not that of another address.
        guests[0].leave();
        let waiting = admit(&door, 1).unwrap();
        let next = admit(&door, 1).unwrap();
        next.known();
        other.known();
        assert_eq!(admit(&door, 1).unwrap_err(), Refusal::Address);
        waiting.leave();
        assert_eq!(open(&door), 4);
    }

    #[tokio::test]
    async fn descriptors_for_files_are_not_taken() {
        let door = door(9, Limits { descriptors_max: Some(50), ..Limits::default() });
        let guest = door.admit(address(1), 49).await.unwrap();
        guest.known();
        assert_eq!(door.admit(address(1), 50).await.unwrap_err(), Refusal::Descriptors);
        assert_eq!(open(&door), 1);
        guest.leave();
        assert_eq!(open(&door), 0);
        assert!(door.books.lock().by_address.is_empty());
    }

    /// While a crowd of silent clients comes, whoever is sent away is not gone yet when the next one
    /// comes: that one must not be refused for it.
    #[tokio::test]
    async fn without_descriptors_the_next_has_that_of_one_that_goes() {
        let door = door(9, Limits { descriptors_max: Some(50), ..Limits::default() });
        let waiting = door.admit(address(1), 49).await.unwrap();
        let mut next = std::pin::pin!(door.admit(address(2), 50));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(next.as_mut().poll(&mut cx).is_pending(), "the descriptor is still in use");
        assert!(waiting.send_away(), "it has been told to go");
        assert_eq!(open(&door), 0);
        waiting.leave();
        let Poll::Ready(Ok(_next)) = next.as_mut().poll(&mut cx) else { panic!("not let in") };
        assert_eq!(open(&door), 1);
    }

    #[tokio::test]
    async fn whoever_does_not_go_is_not_waited_for_without_end() {
        let leave_timeout = Duration::ZERO;
        let limits = Limits { descriptors_max: Some(50), leave_timeout, ..Limits::default() };
        let door = door(9, limits);
        let _stuck = door.admit(address(1), 49).await.unwrap();
        assert_eq!(door.admit(address(1), 50).await.unwrap_err(), Refusal::Descriptors);
    }

    #[tokio::test]
    async fn whoever_asks_for_room_gets_it_when_one_leaves() {
        let door = door(1, Limits::default());
        let guest = admit(&door, 1).unwrap();
        guest.known();
        let asking = stoa_env::task::spawn({
            let door = Arc::clone(&door);
            async move { door.room().await }
        });
        guest.leave();
        asking.await.unwrap();
    }
}
