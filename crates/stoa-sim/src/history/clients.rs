//! Clients: they write, read, scan and ask for reports, at any daemon.

use std::time::Duration;

use stoa_cluster::fresh::{Freshness, Seen};

use super::ledger::SESSIONS;
use super::world::{CLIENTS_END_MS, Event, World};

impl World {
    /// A client writes or reads.
    pub(super) fn client(&mut self) -> Result<(), String> {
        let now = self.now();
        let daemon = self.random.below(self.slots.len() as u64) as usize;
        let session = self.random.below(SESSIONS) as usize;
        // Some readers have never been here before.
        let reader = if self.random.chance(300) { SESSIONS as usize } else { session };
        let next = self.now_ms + self.random.between(20, 120);
        // The last requests shall have had their answers.
        if next < CLIENTS_END_MS {
            self.at(next, Event::Client);
        }
        let choice = self.random.below(100);
        let acknowledged = self.ledger.acknowledged();
        let freshness = if choice < 70 { Freshness::Exact } else { Freshness::Known };
        if (40..85).contains(&choice) {
            let now_ms = self.now_ms;
            self.at(now_ms, Event::Read { daemon, session: reader, freshness, acknowledged });
            return Ok(());
        }
        let is_frozen = self.slots.get(daemon).is_none_or(|slot| slot.frozen_until > self.now_ms);
        if is_frozen {
            return Ok(());
        }
        let (bucket, lasts) = (self.random.below(8) as u32, self.random.between(500, 25_000));
        let Some(process) = self.slots.get_mut(daemon).and_then(|slot| slot.process.as_mut())
        else {
            return Ok(());
        };
        match choice {
            0..40 if process.own.is_open() => {
                let row = self.ledger.new_row(session);
                if self.now_ms > CLIENTS_END_MS - 10_000 {
                    self.ledger.must_end(row);
                }
                process.append(row, now);
            }
            85..90 => process.scan(now + Duration::from_millis(lasts)),
            90.. => {
                let report = self.ledger.report_begins(process.life);
                process.report(report, bucket, now);
            }
            _ => {}
        }
        self.carry_out(daemon)
    }

    pub(super) fn read(
        &mut self,
        daemon: usize,
        session: usize,
        freshness: Freshness,
        acknowledged: usize,
    ) -> Result<(), String> {
        let now = self.now();
        let Some(process) = self.slots.get(daemon).and_then(|slot| slot.process.as_ref()) else {
            return Ok(());
        };
        let new = Seen::default();
        let seen = self.ledger.sessions.get(session).map_or(&new, |session| &session.seen);
        let Some(answer) = process.answer(freshness, seen, now)? else { return Ok(()) };
        let (life, me) = (process.life, process.membership.me());
        let is_exact = freshness == Freshness::Exact;
        let is_complete =
            answer.version.files.iter().all(|file| self.store.files.contains_key(file));
        // A daemon that was declared dead and does not know may miss files: it fails, and is not wrong.
        if !is_complete && !me.is_some_and(|me| self.database.members.lives(me)) {
            return Ok(());
        }
        self.note(|| {
            format!(
                "session {session} reads at daemon {daemon}, exact: {is_exact}: {:?}",
                answer.seen
            )
        });
        self.ledger.read(session, life, &answer, &self.store, is_exact.then_some(acknowledged))
    }
}
