//! The object store: logs as numbered objects, put if absent, and data files.

use std::collections::BTreeMap;

use stoa_cluster::LogId;

use super::Mutation;
use super::message::{FileId, Request, Response, Row, Segment};

#[derive(Default)]
pub struct Store {
    logs: BTreeMap<LogId, BTreeMap<u64, Segment>>,
    pub files: BTreeMap<FileId, Vec<Row>>,
    mutation: Option<Mutation>,
}

impl Store {
    pub fn new(mutation: Option<Mutation>) -> Self {
        Self { mutation, ..Self::default() }
    }

    pub fn run(&mut self, request: Request) -> Response {
        match request {
            Request::Put { log, number, segment } => {
                let present =
                    self.logs.entry(log).or_default().entry(number).or_insert(segment.clone());
                // A repeated request whose first one succeeded finds its own bytes.
                return if *present == segment { Response::Done } else { Response::Taken };
            }
            Request::List { log } => {
                let segments = self.logs.get(&log).into_iter().flatten();
                return Response::Listed(
                    segments.map(|(n, segment)| (*n, segment.clone())).collect(),
                );
            }
            Request::Release { log, to } => {
                let deletes_claims = self.mutation == Some(Mutation::DeleteClaims);
                let is_kept = |segment: &Segment| match segment.records.last() {
                    None => !deletes_claims,
                    Some((last, _)) => *last > to,
                };
                let segments = self.logs.entry(log).or_default();
                // The newest one tells a taker where the log ends.
                let newest = segments.keys().next_back().copied().filter(|_| !deletes_claims);
                segments.retain(|number, segment| Some(*number) == newest || is_kept(segment));
            }
            Request::PutFile { file, rows } => drop(self.files.insert(file, rows)),
            Request::DeleteFile { file } => drop(self.files.remove(&file)),
        }
        Response::Done
    }

    /// Whether a record is in the log.
    pub fn has(&self, log: LogId, sequence: u64) -> bool {
        let segments = self.logs.get(&log).into_iter().flatten();
        segments.flat_map(|(_, s)| &s.records).any(|(other, _)| *other == sequence)
    }
}
