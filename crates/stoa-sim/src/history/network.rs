//! Who reaches whom, and how long it takes.

use std::collections::BTreeMap;

use crate::random::Random;

/// Who can send and receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Daemon(usize),
    Database,
    Store,
}

#[derive(Default)]
pub struct Network {
    /// One-way cuts, with the time at which they end.
    cuts: BTreeMap<(Node, Node), u64>,
    loss_per_mille: u64,
    is_calm: bool,
}

impl Network {
    /// No more faults.
    pub fn calm(&mut self) {
        *self = Self { is_calm: true, ..Self::default() };
    }

    pub fn cut(&mut self, from: Node, to: Node, until_ms: u64) {
        self.cuts.insert((from, to), until_ms);
    }

    pub fn lose(&mut self, per_mille: u64) {
        self.loss_per_mille = per_mille;
    }

    /// When a message arrives: not at all, once, or more often.
    pub fn arrivals(
        &self,
        from: Node,
        to: Node,
        may_double: bool,
        random: &mut Random,
        now_ms: u64,
    ) -> Vec<u64> {
        let is_cut = self.cuts.get(&(from, to)).is_some_and(|until| now_ms < *until);
        if is_cut || random.chance(self.loss_per_mille) {
            return vec![];
        }
        let mut arrivals = vec![now_ms + self.delay(random)];
        if may_double && !self.is_calm && random.chance(10) {
            arrivals.push(now_ms + self.delay(random));
        }
        arrivals
    }

    fn delay(&self, random: &mut Random) -> u64 {
        match random.below(1000) {
            0..4 if !self.is_calm => random.between(1000, 9000),
            4..40 if !self.is_calm => random.between(20, 800),
            _ => random.between(1, 8),
        }
    }
}
