//! Whatever happens to process, power and disk: what is recovered is a prefix of what was appended
//! and holds all that was acknowledged.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Model, die, history, live};
use stoa_commitlog::sim::{Fault, Operation, SimDisk, SimRandom, open_stepped};
use stoa_commitlog::{LogOptions, StorageKind};

#[test]
fn random_histories_lose_nothing() {
    let (mut restarts, mut truncations, mut frames) = (0, 0, 0);
    for seed in 0..2000 {
        let model = history(seed);
        restarts += model.restarts;
        truncations += model.truncations;
        frames += model.payloads.len();
    }
    // The test is worth something only if crashes did cost unacknowledged frames.
    assert!(
        restarts > 5_000 && truncations > 500 && frames > 10_000,
        "{restarts} {truncations} {frames}"
    );
}

/// The same work again and again, with a fault at each of its operations in turn, those of opening
/// included.
#[test]
fn a_fault_at_every_operation_loses_nothing() {
    for seed in 0..16 {
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
