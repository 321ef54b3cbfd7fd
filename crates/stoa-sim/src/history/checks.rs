//! What must be true after each step, and at the end.

use stoa_cluster::fresh::{Freshness, Seen};

use super::message::{Life, Name, Request};
use super::world::World;

impl World {
    pub(super) fn check_holders(&self) -> Result<(), String> {
        let now = self.now();
        let mut believed: Vec<(Name, Life)> = vec![];
        for process in self.slots.iter().filter_map(|slot| slot.process.as_ref()) {
            for name in process.believes(now) {
                if let Some((_, other)) = believed.iter().find(|(known, _)| *known == name) {
                    return Err(format!(
                        "processes {other} and {} both hold {name:?}",
                        process.life
                    ));
                }
                believed.push((name, process.life));
            }
        }
        Ok(())
    }

    pub(super) fn check_delete(&self, request: &Request) -> Result<(), String> {
        let Request::DeleteFile { file } = request else { return Ok(()) };
        for process in self.slots.iter().filter_map(|slot| slot.process.as_ref()) {
            let is_member =
                process.membership.me().is_some_and(|me| self.database.members.lives(me));
            let mut pinned = process.pinned();
            if let (true, Some(version)) =
                (is_member, pinned.find(|version| version.files.contains(file)))
            {
                let number = version.number;
                return Err(format!(
                    "file {file:#x} is deleted, but process {} reads version {number}",
                    process.life
                ));
            }
        }
        Ok(())
    }

    /// After the recovery: somebody answers exactly, nothing is lost, no log is left behind.
    pub(super) fn end(&mut self) -> Result<(), String> {
        let now = self.now();
        let processes: Vec<_> =
            self.slots.iter().filter_map(|slot| slot.process.as_ref()).collect();
        let lives: Vec<_> = processes.iter().map(|process| process.life).collect();
        let seen = Seen::default();
        for process in &processes {
            let Some(answer) = process.answer(Freshness::Exact, &seen, now)? else {
                return Err(format!(
                    "process {} does not answer exactly after the recovery",
                    process.life
                ));
            };
            self.ledger.end(&answer, &self.store, &lives)?;
        }
        Ok(())
    }
}
