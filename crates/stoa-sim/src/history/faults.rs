//! What goes wrong, chosen by the seed.

use stoa_cluster::membership::MemberEvent;

use super::network::Node;
use super::world::{Event, World};

impl World {
    /// One random fault.
    pub(super) fn fault(&mut self) {
        let count = self.slots.len() as u64;
        let daemon = self.random.below(count) as usize;
        let node = Node::Daemon(daemon);
        let peer = Node::Daemon(self.random.below(count) as usize);
        // Short ones, and ones that outlast leases.
        let lasts = match self.random.chance(500) {
            true => self.random.between(200, 3000),
            false => self.random.between(3000, 15_000),
        };
        let until = self.now_ms + lasts;
        match self.random.below(14) {
            0 | 1 => self.crash(daemon),
            2..5 => {
                self.note(|| format!("daemon {daemon} freezes for {lasts} ms"));
                self.freeze(daemon, until);
            }
            5 | 6 => self.cut(&[(node, Node::Database), (Node::Database, node)], until),
            // Only the way back: what was asked happens, and nobody hears of it.
            7 => self.cut(&[(Node::Database, node)], until),
            8 => self.cut(&[(node, peer), (peer, node)], until),
            9 => self.cut(&[(node, peer)], until),
            10 => self.cut(&[(node, Node::Store), (Node::Store, node)], until),
            11 => {
                self.note(|| format!("the database is away for {lasts} ms"));
                self.database_away_until = until;
            }
            12 => self.jump(),
            _ if self.random.chance(500) => {
                let loss = self.random.below(200);
                self.note(|| format!("{loss} of 1000 messages are lost"));
                self.network.lose(loss);
            }
            _ => self.drain(daemon),
        }
    }

    fn cut(&mut self, ways: &[(Node, Node)], until_ms: u64) {
        for (from, to) in ways {
            self.note(|| format!("cut from {from:?} to {to:?} until {until_ms} ms"));
            self.network.cut(*from, *to, until_ms);
        }
    }

    /// The database's clock is set, as after a failover to a machine with another clock.
    fn jump(&mut self) {
        let by = match self.random.chance(500) {
            true => self.random.between(1000, 20_000),
            false => self.random.between(20_000, 3_600_000),
        } as i64;
        let by = if self.random.chance(650) { by } else { -by };
        self.note(|| format!("the database's clock jumps by {by} ms"));
        self.database.clock_ahead_ms += by;
        self.clock_ahead_ms_max = self.clock_ahead_ms_max.max(self.database.clock_ahead_ms);
    }

    fn drain(&mut self, daemon: usize) {
        self.note(|| format!("daemon {daemon} drains"));
        let now = self.now();
        if let Some(process) = self.slots.get_mut(daemon).and_then(|slot| slot.process.as_mut()) {
            process.membership.on(MemberEvent::Drain, now);
            let (life, at) = (process.life, self.now_ms + 4000);
            self.at(at, Event::Leave { daemon, life });
        }
    }

    /// Everything works again, for good.
    pub(super) fn heal(&mut self) {
        self.note(|| "all faults end".into());
        self.network.calm();
        self.is_calm = true;
        self.database_away_until = 0;
        // Leases that were granted by a clock far ahead must be able to expire.
        self.database.clock_ahead_ms = self.clock_ahead_ms_max;
        for daemon in 0..self.slots.len() {
            let now_ms = self.now_ms;
            if let Some(slot) = self.slots.get_mut(daemon) {
                slot.frozen_until = slot.frozen_until.min(now_ms);
            }
            self.at(now_ms, Event::Thaw { daemon });
        }
    }
}
