//! A log on a simulated disk, and what it must hold after whatever happens.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use futures::FutureExt;
use stoa_commitlog::sim::{Fault, SimDisk, SimRandom, Stepper, open_stepped};
use stoa_commitlog::{Appended, CommitLog, Durability, LogOptions, LogPosition, Recovery};

/// Small sizes, so that few operations reach every limit.
pub fn small_options(random: &mut SimRandom) -> LogOptions {
    LogOptions {
        segment_bytes: 512 + random.below(16 << 10),
        group_bytes_max: 256 + random.below(4 << 10) as usize,
        unsynced_bytes_max: 1 + random.below(8 << 10),
        ..LogOptions::disk()
    }
}

/// What was appended to a log, and how far it must have come.
#[derive(Default)]
pub struct Model {
    /// Payloads by sequence, from 1.
    pub payloads: Vec<Vec<u8>>,
    /// Must survive a power cut.
    pub durable: u64,
    /// Must survive the end of the process.
    pub written: u64,
    pub released: u64,
    pub restarts: u64,
    pub truncations: u64,
}

/// A log as one process has it open.
pub struct Life {
    pub log: CommitLog,
    pub writer: Option<Stepper>,
    waiting: Vec<(Durability, Appended)>,
}

impl Life {
    /// Opens the log and checks everything in it against the model. Nothing where a fault kept it
    /// from opening; without one it must open.
    pub fn begin(disk: &SimDisk, options: LogOptions, model: &mut Model) -> Option<Self> {
        let (log, recovery, writer) = match open_stepped(disk.storage(), options) {
            Ok(opened) => opened,
            Err(_) if disk.has_faulted() => return None,
            Err(error) => panic!("{error:?}"),
        };
        model.check_recovered(&log, &recovery);
        Some(Self { log, writer: Some(writer), waiting: Vec::new() })
    }

    pub fn append(&mut self, random: &mut SimRandom, model: &mut Model) {
        let size = match random.below(10) {
            0 => 0,
            1 => random.below(9000),
            _ => random.below(200),
        };
        let payload: Vec<u8> = (0..size).map(|_| random.bits() as u8).collect();
        let durability = if random.chance(70) { Durability::Sync } else { Durability::Relaxed };
        let (left, right) = payload.split_at(payload.len() / 3);
        let Ok(appended) = self.log.append_blocking(&[left, right], durability) else { return };
        model.payloads.push(payload);
        assert_eq!(appended.position().sequence, model.payloads.len() as u64);
        self.waiting.push((durability, appended));
    }

    /// Writes a group and notes who has been acknowledged. False when there was nothing.
    pub fn step(&mut self, model: &mut Model) -> bool {
        let stepped = self.writer.as_mut().unwrap().step();
        self.note(model);
        stepped
    }

    pub fn note(&mut self, model: &mut Model) {
        self.waiting.retain_mut(|(durability, appended)| {
            match appended.acknowledged().now_or_never() {
                None => true,
                Some(Err(_)) => false,
                Some(Ok(position)) => {
                    model.written = model.written.max(position.sequence);
                    if *durability == Durability::Sync {
                        model.durable = model.durable.max(position.sequence);
                    }
                    false
                }
            }
        });
        // What the log itself calls durable counts as a promise too.
        model.durable = model.durable.max(self.log.durable().sequence);
    }

    pub fn sync(&mut self, model: &mut Model) {
        let last = model.payloads.len() as u64;
        let mut sync = Box::pin(self.log.sync());
        let before = sync.as_mut().now_or_never();
        while self.writer.as_mut().unwrap().step() {}
        if let Some(Ok(position)) = before.or_else(|| sync.now_or_never()) {
            assert_eq!(position.sequence, last);
            model.durable = last;
        }
        self.note(model);
    }

    pub fn release(&mut self, random: &mut SimRandom, model: &mut Model) {
        let up_to = random.below(self.log.durable().sequence + 1);
        // A position may be released only if it is known to be kept elsewhere, whatever happens
        // to the log, so it counts even if the removal of files fails.
        model.released = model.released.max(up_to);
        let _ = self.log.release_blocking(self.log.id().at(up_to));
    }

    pub fn close(mut self, model: &mut Model) {
        let closing = self.log.close();
        let mut closing = Box::pin(closing);
        assert!(closing.as_mut().now_or_never().is_none());
        self.writer.take().unwrap().finish();
        let closed = closing.now_or_never().unwrap();
        self.note(model);
        if closed.is_ok() {
            model.durable = model.payloads.len() as u64;
        }
    }
}

impl Model {
    fn check_recovered(&mut self, log: &CommitLog, recovery: &Recovery) {
        let last = recovery.last.sequence;
        let appended = self.payloads.len() as u64;
        assert!(last <= appended, "recovered {last} of {appended}");
        let kept = self.written.max(self.durable);
        assert!(kept <= last, "{kept} were to be kept, {last} recovered");
        assert_eq!(log.durable(), recovery.last);
        assert!(recovery.gaps.is_empty());
        self.check_replay(log, recovery.last);
        if last < appended {
            self.truncations += 1;
        }
        self.payloads.truncate(last as usize);
        // Whoever replays may publish what it got: it must not go away again.
        (self.durable, self.written) = (last, last);
        self.restarts += 1;
    }

    pub fn check_replay(&self, log: &CommitLog, last: LogPosition) {
        let from = log.id().at(self.released.min(last.sequence));
        let mut due = from.sequence;
        for frame in log.replay(from).unwrap() {
            let (position, payload) = frame.unwrap();
            due += 1;
            assert_eq!(position, log.id().at(due));
            assert_eq!(payload, self.payloads[due as usize - 1], "payload of {position}");
        }
        assert_eq!(due, last.sequence);
    }
}

/// Runs one process: random work until `steps` or a fault ends it.
pub fn live(disk: &SimDisk, random: &mut SimRandom, model: &mut Model, steps: u64) {
    let Some(mut life) = Life::begin(disk, small_options(random), model) else { return };
    for _ in 0..steps {
        match random.below(20) {
            0..10 => life.append(random, model),
            10..17 => drop(life.step(model)),
            17 => life.sync(model),
            18 => life.release(random, model),
            _ => model.check_replay(&life.log, life.log.durable()),
        }
        if life.log.status().poisoned.is_some() {
            break;
        }
    }
    if random.chance(20) {
        life.close(model);
    }
}

/// Ends the process in one of the ways there are.
pub fn die(disk: &SimDisk, random: &mut SimRandom, model: &mut Model) {
    if random.chance(40) {
        disk.kill();
    } else {
        model.written = model.durable;
        disk.power_cut();
    }
}

fn fault(random: &mut SimRandom) -> Fault {
    if random.chance(50) { Fault::Error } else { Fault::Death }
}

/// One log through several processes, each ended by a fault at a random operation, or by nothing.
pub fn history(seed: u64) -> Model {
    let mut random = SimRandom::new(seed);
    let disk = SimDisk::new(random.bits());
    let mut model = Model::default();
    for _ in 0..6 {
        if random.chance(70) {
            let operation = random.below(60) as usize;
            disk.inject(operation, fault(&mut random));
        }
        let steps = random.below(80);
        live(&disk, &mut random, &mut model, steps);
        die(&disk, &mut random, &mut model);
    }
    live(&disk, &mut random, &mut model, 0);
    model
}
