//! Whatever happens to process, power and disk: what is recovered is a prefix of what was appended
//! and holds all that was acknowledged.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Model, die, fault, live};
use stoa_commitlog::sim::{Fault, Operation, SimDisk, SimRandom, open_stepped};
use stoa_commitlog::{LogOptions, StorageKind};

/// One log through several processes, each ended by a fault at a random operation, or by nothing.
fn history(seed: u64) -> Model {
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

#[test]
fn random_histories_lose_nothing() {
    let (mut restarts, mut truncations, mut frames) = (0, 0, 0);
    for seed in 0..4000 {
        let model = history(seed);
        restarts += model.restarts;
        truncations += model.truncations;
        frames += model.payloads.len();
    }
    // The test is worth something only if crashes did cost unacknowledged frames.
    assert!(
        restarts > 10_000 && truncations > 1_000 && frames > 10_000,
        "{restarts} {truncations} {frames}"
    );
}

/// The same work again and again, with a fault at each of its operations in turn, those of opening
/// included.
#[test]
fn a_fault_at_every_operation_loses_nothing() {
    for seed in 0..40 {
        for fault in [Fault::Error, Fault::Death] {
            let operations = (0..).take_while(|&at| faulty_history(seed, at, fault)).count();
            assert!(operations > 20, "only {operations} operations with seed {seed}");
        }
    }
}

/// Whether the second of three processes got as far as operation `at`, where its fault is.
fn faulty_history(seed: u64, at: usize, fault: Fault) -> bool {
    let mut random = SimRandom::new(seed);
    let disk = SimDisk::new(seed);
    let mut model = Model::default();
    live(&disk, &mut random, &mut model, 40);
    die(&disk, &mut random, &mut model);
    disk.inject(at, fault);
    live(&disk, &mut random, &mut model, 60);
    let reached = disk.has_faulted();
    die(&disk, &mut random, &mut model);
    live(&disk, &mut random, &mut model, 10);
    reached
}

/// Opening takes a known, small number of operations.
#[test]
fn opening_is_short() {
    let disk = SimDisk::new(1);
    assert_eq!(disk.storage().kind(), StorageKind::Appendable);
    drop(open_stepped(disk.storage(), LogOptions::disk()).unwrap());
    use Operation::{Create, Rename, Sync, SyncNames, Write};
    assert_eq!(disk.operations(), [SyncNames, Create, Write, Sync, Rename, SyncNames]);
}
