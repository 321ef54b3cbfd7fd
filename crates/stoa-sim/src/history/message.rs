//! What daemons, the database and the store say to each other.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use stoa_cluster::fresh::Push;
use stoa_cluster::lease::{Holder, LeaseRow};
use stoa_cluster::membership::{MemberState, MemberTable};
use stoa_cluster::pins::Pin;
use stoa_cluster::{DatabaseTime, Incarnation, LogId};

/// A row of the table: only its name matters.
pub type Row = u64;

/// A data file of the table.
pub type FileId = u64;

/// One process: a daemon that starts again is another.
pub type Life = u64;

/// What a lease is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Writing or taking over a log.
    Log(LogId),
    /// Compacting the table and deleting its files.
    Maintenance,
}

/// Proves that a lease is or was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub name: Name,
    pub holder: Holder,
    pub epoch: u64,
}

/// A version of the one table.
#[derive(Clone, Debug, Default)]
pub struct Version {
    pub number: u64,
    pub files: BTreeSet<FileId>,
    pub positions: BTreeMap<LogId, u64>,
    pub retired: BTreeSet<LogId>,
    /// Files of older versions that are still there, with the first version without them.
    pub replaced: BTreeMap<FileId, u64>,
}

/// A compare-and-swap of the table's version.
#[derive(Clone, Debug)]
pub struct Commit {
    pub token: Token,
    pub expected: u64,
    pub add: FileId,
    pub remove: BTreeSet<FileId>,
    pub position: Option<(LogId, u64)>,
}

/// Everything that a daemon reads in one statement.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub members: MemberTable,
    pub leases: Vec<(Name, LeaseRow)>,
    pub version: Rc<Version>,
    pub pins: Vec<Pin>,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    Join,
    Renew { me: Holder, pin: Option<u64> },
    SetState { me: Holder, state: MemberState },
    Suspect { peer: Holder, me: Holder },
    Trust { peer: Holder, me: Holder },
    Expire { peer: Holder, observed: DatabaseTime },
    Read,
    Acquire { name: Name, holder: Holder, observed: Option<DatabaseTime> },
    RenewLease(Token),
    Commit(Commit),
    Retire { token: Token, log: LogId },
    Forget { file: FileId },
}

/// What a statement returned.
#[derive(Clone, Debug)]
pub enum Returned {
    Joined(Incarnation),
    Read(Box<Snapshot>),
    Epoch(Option<u64>),
    /// A row was changed, or none.
    Changed(bool),
    Committed(Rc<Version>),
    /// Another has committed meanwhile.
    Moved,
    /// The token is not valid any more.
    Fenced,
}

/// An object of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub writer: Life,
    pub epoch: u64,
    /// None: a claim.
    pub records: Vec<(u64, Row)>,
}

/// A request to the store.
#[derive(Clone, Debug)]
pub enum Request {
    Put { log: LogId, number: u64, segment: Segment },
    List { log: LogId },
    Release { log: LogId, to: u64 },
    PutFile { file: FileId, rows: Vec<Row> },
    DeleteFile { file: FileId },
}

/// What the store answered.
#[derive(Clone, Debug)]
pub enum Response {
    Done,
    /// Another object has this name.
    Taken,
    Listed(Vec<(u64, Segment)>),
}

/// What one daemon says to another.
#[derive(Clone, Debug)]
pub enum PeerMessage {
    Push { to: Holder, push: Push, records: Vec<(u64, Row)> },
    Told { by: Holder, log: LogId, to: u64 },
    Hello { by: Holder, log: LogId },
    Probe { probe: u64 },
    Answer { probe: u64 },
    Report { report: u64 },
    Reported { report: u64 },
}

/// Anything that travels.
#[derive(Clone, Debug)]
pub enum Message {
    Statement { life: Life, call: u64, statement: Statement },
    Returned { life: Life, call: u64, returned: Returned },
    Request { life: Life, call: u64, request: Request },
    Response { life: Life, call: u64, response: Response },
    Peer { from: usize, message: PeerMessage },
}
