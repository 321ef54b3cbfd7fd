//! One file of the simulated disk: what readers see, what is durable, and what a sync would make so.

use super::random::SimRandom;

const PAGE_BYTES: usize = 4096;

/// How much of what was not synced a power cut keeps.
#[derive(Clone, Copy)]
pub(super) enum Keeps {
    Nothing,
    Everything,
    SomePages,
}

#[derive(Debug, Default)]
pub(super) struct File {
    /// What readers see.
    pub(super) seen: Vec<u8>,
    /// What a power cut leaves for certain.
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl Keeps {
    pub(super) fn keeps_one(self, random: &mut SimRandom) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::SomePages => random.chance(50),
        }
    }
}

impl Change {
    fn apply(&self, contents: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => put(contents, *offset, bytes),
            Self::SetLen(len) => contents.resize(*len, 0),
        }
    }
}

impl File {
    /// A file of which everything is durable.
    pub(super) fn durable(contents: Vec<u8>) -> Self {
        Self { seen: contents.clone(), durable: contents, pending: Vec::new() }
    }

    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.pending.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    /// A sync that failed: some pages may have arrived, and none is tried again.
    pub(super) fn fail_sync(&mut self, random: &mut SimRandom) {
        let seen = std::mem::take(&mut self.seen);
        self.lose(Keeps::SomePages, random);
        self.seen = seen;
    }

    pub(super) fn lose(&mut self, keeps: Keeps, random: &mut SimRandom) {
        for change in std::mem::take(&mut self.pending) {
            match (keeps, change) {
                (Keeps::Nothing, _) => {}
                (Keeps::SomePages, Change::Write { offset, bytes }) => {
                    self.keep_some_pages(offset, &bytes, random);
                }
                (_, change) if keeps.keeps_one(random) => change.apply(&mut self.durable),
                _ => {}
            }
        }
        // A file may have its new length without its new bytes.
        let longer = self.seen.len() > self.durable.len();
        if longer && matches!(keeps, Keeps::SomePages) && random.chance(30) {
            self.durable.resize(self.seen.len(), 0);
        }
        self.seen = self.durable.clone();
    }

    fn keep_some_pages(&mut self, offset: usize, bytes: &[u8], random: &mut SimRandom) {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let page = (PAGE_BYTES - (offset + at) % PAGE_BYTES).min(rest.len());
            let kept = match random.below(5) {
                0 | 1 => page,
                2 => random.below(page as u64 + 1) as usize,
                _ => 0,
            };
            if let Some(kept) = rest.get(..kept).filter(|kept| !kept.is_empty()) {
                put(&mut self.durable, offset + at, kept);
            }
            at += page;
        }
    }
}

fn put(contents: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if contents.len() < end {
        contents.resize(end, 0);
    }
    if let Some(place) = contents.get_mut(offset..end) {
        place.copy_from_slice(bytes);
    }
}
