//! The log's promises to its callers, on real files and on the simulated disk.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use stoa_commitlog::sim::{Fault, Operation, SimDisk, open_stepped};
use stoa_commitlog::{CommitLog, Durability, LogOptions, LogPosition, local_storage};
use stoa_error::ErrorKind;

fn open(directory: &std::path::Path) -> CommitLog {
    let storage = local_storage(directory).unwrap();
    CommitLog::open_blocking(storage, LogOptions::disk()).unwrap().0
}

#[tokio::test]
async fn many_writers_share_syncs_and_all_find_their_rows_again() {
    let directory = tempfile::tempdir().unwrap();
    let log = Arc::new(open(&directory.path().join("made/on/the/way")));
    let writers = (0..50_u32).map(|writer| {
        let log = log.clone();
        stoa_env::task::spawn(async move {
            let mut positions = Vec::new();
            for row in 0..40_u32 {
                let payload = [writer.to_le_bytes(), row.to_le_bytes()].concat();
                let mut appended = log.append(&[&payload], Durability::Sync).await.unwrap();
                positions.push((appended.acknowledged().await.unwrap(), payload));
            }
            positions
        })
    });
    let written = join_all(writers.collect::<Vec<_>>()).await;
    let mut written: Vec<(LogPosition, Vec<u8>)> =
        written.into_iter().flat_map(Result::unwrap).collect();
    written.sort_by_key(|(position, _)| position.sequence);
    let status = log.status();
    assert_eq!((status.appends, status.written), (2000, log.id().at(2000)));
    assert!(status.syncs <= 1500, "{} syncs for 2000 appends of 50 writers", status.syncs);
    assert_eq!(status.sync_us.count, status.syncs);
    assert_eq!(status.group_frames.sum, 2000);
    log.close().await.unwrap();
    let log = open(&directory.path().join("made/on/the/way"));
    let read: Vec<_> = log
        .replay(log.id().at(0))
        .unwrap()
        .map(|frame| frame.map(|(position, bytes)| (position, bytes.to_vec())).unwrap())
        .collect();
    assert_eq!(read, written);
}

#[test]
fn one_log_is_open_once() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path());
    let storage = local_storage(directory.path()).unwrap();
    let refused = CommitLog::open_blocking(storage, LogOptions::disk()).unwrap_err();
    assert_eq!((refused.kind(), refused.sqlstate()), (ErrorKind::Unavailable, "55006"));
    assert!(refused.detail().unwrap().contains(&std::process::id().to_string()));
    log.close_blocking().unwrap();
    open(directory.path()).close_blocking().unwrap();
}

#[test]
fn a_closed_log_takes_nothing_and_keeps_what_it_took() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path());
    let queued: Vec<_> =
        (0..10).map(|_| log.append_blocking(&[b"row"], Durability::Relaxed).unwrap()).collect();
    log.close_blocking().unwrap();
    log.close_blocking().unwrap();
    for mut appended in queued {
        appended.durable().now_or_never().unwrap().unwrap();
    }
    let refused = log.append_blocking(&[b"late"], Durability::Sync).unwrap_err();
    assert!(refused.message().ends_with("is closed"), "{refused}");
    assert!(log.sync_blocking().is_err());
    let storage = local_storage(directory.path()).unwrap();
    let (_, recovery) = CommitLog::open_blocking(storage, LogOptions::disk()).unwrap();
    assert_eq!((recovery.frames, recovery.clean, recovery.torn), (10, true, None));
}

#[test]
fn nothing_is_acknowledged_before_the_sync() {
    let disk = SimDisk::new(1);
    let (log, _, mut writer) = open_stepped(disk.storage(), LogOptions::disk()).unwrap();
    let opening = disk.operations().len();
    let mut synced = log.append_blocking(&[b"one"], Durability::Sync).unwrap();
    assert!(synced.acknowledged().now_or_never().is_none());
    assert_eq!(log.durable().sequence, 0);
    writer.step();
    assert_eq!(disk.operations()[opening..], [Operation::Write, Operation::Sync]);
    assert_eq!(synced.acknowledged().now_or_never().unwrap().unwrap(), log.id().at(1));
    // Relaxed: written, not synced, until somebody asks.
    let mut relaxed = log.append_blocking(&[b"two"], Durability::Relaxed).unwrap();
    writer.step();
    assert_eq!(disk.operations()[opening..].len(), 3);
    relaxed.acknowledged().now_or_never().unwrap().unwrap();
    assert!(relaxed.durable().now_or_never().is_none());
    assert_eq!((log.durable().sequence, log.status().written.sequence), (1, 2));
    let mut sync = Box::pin(log.sync());
    assert!(sync.as_mut().now_or_never().is_none());
    writer.step();
    assert_eq!(sync.now_or_never().unwrap().unwrap(), log.id().at(2));
    relaxed.durable().now_or_never().unwrap().unwrap();
    assert_eq!(disk.operations().last(), Some(&Operation::Sync));
}

#[test]
fn what_arrives_during_a_sync_is_the_next_group() {
    let disk = SimDisk::new(1);
    let (log, _, mut writer) = open_stepped(disk.storage(), LogOptions::disk()).unwrap();
    let mut waiting: Vec<_> =
        (0..100).map(|_| log.append_blocking(&[&[7; 100]], Durability::Sync).unwrap()).collect();
    writer.step();
    let status = log.status();
    assert_eq!((status.syncs, status.group_frames.sum, status.group_frames.count), (1, 100, 1));
    assert!(waiting.iter_mut().all(|appended| appended.acknowledged().now_or_never().is_some()));
    // Over the cap they become several.
    let options = LogOptions { group_bytes_max: 1000, ..LogOptions::disk() };
    let (log, _, mut writer) = open_stepped(SimDisk::new(2).storage(), options).unwrap();
    for _ in 0..16 {
        drop(log.append_blocking(&[&[7; 100]], Durability::Sync).unwrap());
    }
    while writer.step() {}
    assert_eq!(log.status().group_frames.buckets, [(15, 2)]);
}

#[test]
fn large_payloads_go_alone_and_too_large_ones_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let storage = local_storage(directory.path()).unwrap();
    let options = LogOptions {
        in_flight_bytes_max: 1 << 20,
        payload_bytes_max: 5 << 20,
        ..LogOptions::disk()
    };
    let (log, _) = CommitLog::open_blocking(storage, options).unwrap();
    let large: Vec<u8> = (0..5 << 20).map(|n: u32| n as u8).collect();
    let (left, right) = large.split_at(1_000_000);
    drop(log.append_blocking(&[b"before"], Durability::Sync).unwrap());
    // More than all the room there is: it gets all of it.
    log.append_blocking(&[left, right], Durability::Sync).unwrap().wait().unwrap();
    drop(log.append_blocking(&[b"behind"], Durability::Sync).unwrap());
    log.append_blocking(&[], Durability::Sync).unwrap().wait().unwrap();
    let error = log.append_blocking(&[&large, b"!"], Durability::Sync).unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Invalid, "54000"));
    let read: Vec<_> = log.replay(log.id().at(0)).unwrap().map(|frame| frame.unwrap().1).collect();
    assert_eq!(read, [&b"before"[..], &large, b"behind", b""]);
}

#[test]
fn a_full_queue_makes_appends_wait_and_then_refuses_retryably() {
    let options = LogOptions {
        in_flight_bytes_max: 1000,
        append_wait_max: Duration::from_millis(1),
        ..LogOptions::disk()
    };
    let (log, _, mut writer) = open_stepped(SimDisk::new(1).storage(), options).unwrap();
    let append = || log.append_blocking(&[&[1; 400]], Durability::Sync);
    let _waiting = [append().unwrap(), append().unwrap()];
    let refused = append().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exhausted);
    assert!(refused.kind().is_retryable() && refused.hint().is_some());
    assert!(refused.message().contains("848 bytes in flight"), "{refused}");
    let status = log.status();
    assert_eq!((status.waits, status.refusals, status.in_flight_bytes), (1, 1, 848));
    writer.step();
    assert_eq!(log.status().in_flight_bytes, 0);
    drop(append().unwrap());
}

#[tokio::test]
async fn an_append_that_waits_gets_room_when_there_is_some() {
    let options = LogOptions { in_flight_bytes_max: 1000, ..LogOptions::disk() };
    let (log, _, mut writer) = open_stepped(SimDisk::new(1).storage(), options).unwrap();
    let _first = log.append(&[&[1; 900]], Durability::Sync).await.unwrap();
    let parts: [&[u8]; 1] = [&[2; 900]];
    let mut second = Box::pin(log.append(&parts, Durability::Sync));
    assert!(second.as_mut().now_or_never().is_none());
    // Given up while it waits, it leaves nothing behind.
    drop(second);
    let mut third = Box::pin(log.append(&parts, Durability::Sync));
    assert!(third.as_mut().now_or_never().is_none());
    writer.step();
    assert_eq!(third.await.unwrap().position().sequence, 2);
    // One that waits when the log stops is told.
    let mut fourth = Box::pin(log.append(&parts, Durability::Sync));
    assert!(fourth.as_mut().now_or_never().is_none());
    drop(writer);
    assert_eq!(fourth.await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[test]
fn a_failed_sync_stops_the_log_for_good() {
    let disk = SimDisk::new(1);
    let (log, _, mut writer) = open_stepped(disk.storage(), LogOptions::disk()).unwrap();
    let opening = disk.operations().len();
    disk.inject(opening + 1, Fault::Error);
    let being_synced = log.append_blocking(&[b"one"], Durability::Sync).unwrap();
    writer.step();
    let error = being_synced.wait().unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Unavailable, "08007"));
    assert!(error.message().contains("simulated: input/output error"), "{error}");
    // Refused at once, and with nothing done to the disk.
    assert_eq!(log.append_blocking(&[b"two"], Durability::Sync).unwrap_err().sqlstate(), "58030");
    assert!(log.sync_blocking().is_err());
    assert!(!writer.step());
    assert!(log.release_blocking(log.id().at(0)).is_err());
    drop(writer);
    assert!(log.close_blocking().is_err());
    assert_eq!(disk.operations()[opening..], [Operation::Write, Operation::Sync]);
    assert!(log.status().poisoned.unwrap().contains("cannot sync"));
}

#[test]
fn appends_queued_behind_a_failed_write_are_refused_for_certain() {
    let disk = SimDisk::new(1);
    let options = LogOptions { group_bytes_max: 100, ..LogOptions::disk() };
    let (log, _, mut writer) = open_stepped(disk.storage(), options).unwrap();
    disk.inject(disk.operations().len(), Fault::Error);
    let first = log.append_blocking(&[&[1; 90]], Durability::Sync).unwrap();
    let second = log.append_blocking(&[&[2; 90]], Durability::Relaxed).unwrap();
    writer.step();
    assert_eq!(first.wait().unwrap_err().sqlstate(), "08007");
    assert_eq!(second.wait().unwrap_err().sqlstate(), "58030");
}

#[test]
fn a_full_disk_stops_the_log_and_room_starts_it_again() {
    let disk = SimDisk::new(1);
    let (log, _, mut writer) = open_stepped(disk.storage(), LogOptions::disk()).unwrap();
    disk.set_capacity(Some(4000));
    let mut kept = 0;
    let error = loop {
        let appended = log.append_blocking(&[&[9; 300]], Durability::Sync).unwrap();
        writer.step();
        match appended.wait() {
            Ok(position) => kept = position.sequence,
            Err(error) => break error,
        }
    };
    assert!(kept > 5);
    assert!(error.hint().unwrap().contains("make room"), "{error:?}");
    let refused = log.append_blocking(&[b"more"], Durability::Sync).unwrap_err();
    assert_eq!(refused.sqlstate(), "53100");
    disk.kill();
    assert!(open_stepped(disk.storage(), LogOptions::disk()).is_err());
    disk.set_capacity(None);
    disk.kill();
    let (log, recovery, _writer) = open_stepped(disk.storage(), LogOptions::disk()).unwrap();
    assert_eq!(recovery.last, log.id().at(kept));
}

#[test]
fn a_gone_writer_leaves_nobody_waiting() {
    let (log, _, writer) = open_stepped(SimDisk::new(1).storage(), LogOptions::disk()).unwrap();
    let appended = log.append_blocking(&[b"one"], Durability::Sync).unwrap();
    drop(writer);
    assert!(appended.wait().is_err());
    assert!(log.close_blocking().is_err());
}

#[test]
fn released_segments_go_and_are_written_again() {
    let disk = SimDisk::new(1);
    let options = LogOptions { segment_bytes: 1000, ..LogOptions::disk() };
    let (log, _, mut writer) = open_stepped(disk.storage(), options).unwrap();
    let mut fill = |frames: u64| {
        for _ in 0..frames {
            let appended = log.append_blocking(&[&[5; 400]], Durability::Sync).unwrap();
            writer.step();
            appended.wait().unwrap();
        }
    };
    fill(6);
    assert_eq!(log.status().segments, 3);
    assert_eq!(log.release_blocking(log.id().at(1)).unwrap(), 0);
    assert_eq!(log.release_blocking(log.id().at(2)).unwrap(), 1);
    assert_eq!(log.release_blocking(log.id().at(6)).unwrap(), 1, "the newest stays");
    assert_eq!(log.status().released, log.id().at(6));
    let files = disk.names();
    fill(4);
    assert_eq!(disk.names().len(), files.len(), "{files:?} became {:?}", disk.names());
    assert_eq!(log.replay(log.id().at(6)).unwrap().count(), 4);
    let other = "00000000000000ff:3".parse().unwrap();
    assert_eq!(log.release_blocking(other).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(log.release_blocking(log.id().at(11)).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(log.replay(log.id().at(0)).err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(log.replay(log.id().at(11)).err().unwrap().kind(), ErrorKind::Corrupt);
    assert_eq!(log.replay(other).err().unwrap().kind(), ErrorKind::Invalid);
}

#[test]
fn options_that_cannot_work_are_refused() {
    let check = |options: LogOptions, text: &str| {
        let error = open_stepped(SimDisk::new(1).storage(), options).err().unwrap();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, text));
    };
    check(
        LogOptions { payload_bytes_max: 1 << 30, ..LogOptions::disk() },
        "payload_bytes_max is 1073741824, it must be at most 67108864",
    );
    check(
        LogOptions { group_bytes_max: 0, ..LogOptions::disk() },
        "group_bytes_max is 0, it must be 25 to 4294967295",
    );
}
