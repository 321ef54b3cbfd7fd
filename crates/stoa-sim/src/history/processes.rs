//! Processes start, tick, freeze, leave and die.

use stoa_cluster::membership::MemberEvent;
use stoa_cluster::{DaemonId, Monotonic};

use super::daemon::Daemon;
use super::message::Life;
use super::world::{Event, TICK_MS, World};

impl World {
    pub(super) fn start(&mut self, daemon: usize) {
        self.lives += 1;
        let (life, options, mutation) = (self.lives, self.options, self.mutation);
        if let Some(slot) = self.slots.get_mut(daemon) {
            let id = DaemonId::from_bits(daemon as u64);
            slot.is_starting = false;
            slot.process = Some(Daemon::new(id, life, options, mutation));
            self.note(|| format!("daemon {daemon} starts as process {life}"));
            let at = self.now_ms + self.random.below(TICK_MS);
            self.at(at, Event::Tick { daemon, life });
        }
    }

    pub(super) fn crash(&mut self, daemon: usize) {
        self.note(|| format!("daemon {daemon} crashes"));
        let down = match self.random.chance(500) || self.is_calm {
            true => self.random.between(100, 2000),
            false => self.random.between(2000, 20_000),
        };
        let at = self.now_ms + down;
        if let Some(slot) = self.slots.get_mut(daemon)
            && !slot.is_starting
        {
            slot.is_starting = true;
            (slot.process, slot.frozen_until) = (None, 0);
            slot.parked.clear();
            self.at(at, Event::Start { daemon });
        }
    }

    pub(super) fn freeze(&mut self, daemon: usize, until_ms: u64) {
        if let Some(slot) = self.slots.get_mut(daemon)
            && slot.process.is_some()
        {
            slot.frozen_until = until_ms;
            self.at(until_ms, Event::Thaw { daemon });
        }
    }

    pub(super) fn process(&mut self, daemon: usize) -> Option<&mut Daemon> {
        self.slots.get_mut(daemon)?.process.as_mut()
    }

    pub(super) fn tick(&mut self, daemon: usize, life: Life) -> Result<(), String> {
        let now = self.now();
        let Some(process) = self.process(daemon).filter(|process| process.life == life) else {
            return Ok(());
        };
        process.tick(now);
        let scans = process.ended_scans(now);
        let me = process.membership.me();
        let is_member = me.is_some_and(|me| self.database.members.lives(me));
        for scan in scans {
            let missing =
                scan.version.files.iter().find(|file| !self.store.files.contains_key(file));
            if let (true, Some(file)) = (is_member, missing) {
                return Err(format!(
                    "a scan of version {} misses file {file:#x}",
                    scan.version.number
                ));
            }
        }
        let next = self.now_ms + TICK_MS;
        self.at(next, Event::Tick { daemon, life });
        self.carry_out(daemon)
    }

    pub(super) fn leave(&mut self, daemon: usize, life: Life) -> Result<(), String> {
        let now = self.now();
        if let Some(process) = self.process(daemon).filter(|process| process.life == life) {
            process.leave(now);
            self.note(|| format!("daemon {daemon} leaves"));
        }
        self.carry_out(daemon)
    }
}

impl Daemon {
    fn leave(&mut self, now: Monotonic) {
        let actions = self.membership.on(MemberEvent::Leave, now);
        self.member_actions(actions);
    }
}
