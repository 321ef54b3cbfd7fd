//! Damage of any byte, in the newest segment and in older ones, has the documented outcome; what a
//! crash tears off has another.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use stoa_commitlog::sim::{SimDisk, open_stepped};
use stoa_commitlog::{
    Behind, CommitLog, DumpOptions, Durability, LogOptions, LogStorage, dump, plan_repair, verify,
};
use stoa_error::ErrorKind;

const HEADER_BYTES: usize = 64;
const FRAME_BYTES: usize = 24;

fn options() -> LogOptions {
    LogOptions { segment_bytes: 256, ..LogOptions::disk() }
}

fn payload(sequence: u64) -> Vec<u8> {
    format!("payload {sequence:02}").into_bytes()
}

fn append(log: &CommitLog, sequence: u64) {
    let appended = log.append_blocking(&[&payload(sequence)], Durability::Sync).unwrap();
    assert_eq!(appended.position().sequence, sequence);
}

fn name(number: u64) -> String {
    format!("{number:020}.log")
}

/// Twelve frames, each its own group, in segments 1 to 3; closed in order or not.
fn written(close: bool) -> SimDisk {
    let disk = SimDisk::new(1);
    let (log, _, mut writer) = open_stepped(disk.storage(), options()).unwrap();
    for sequence in 1..=12 {
        append(&log, sequence);
        assert!(writer.step());
    }
    if close {
        drop(log);
        writer.finish();
    }
    disk.kill();
    assert_eq!(disk.names(), [name(1), name(2), name(3)]);
    disk
}

/// What opening makes of the disk: the sequences recovered, or the refusal.
fn opened(disk: &SimDisk) -> Result<Vec<u64>, stoa_error::Error> {
    let (log, _, _writer) = open_stepped(disk.storage(), options())?;
    let frames = log.replay(log.id().at(0))?;
    frames
        .map(|frame| {
            let (position, bytes) = frame?;
            assert_eq!(bytes, payload(position.sequence));
            Ok(position.sequence)
        })
        .collect()
}

fn damaged(disk: &SimDisk, number: u64, change: impl Fn(&mut Vec<u8>)) {
    let mut contents = disk.contents(&name(number)).unwrap();
    change(&mut contents);
    disk.overwrite(&name(number), contents);
}

/// Bytes of a segment up to where its frames and marks end.
fn used_bytes(disk: &SimDisk, number: u64) -> usize {
    let report = verify(&disk.storage()).unwrap();
    report.segments[number as usize - 1].bytes as usize
}

#[test]
fn any_changed_byte_of_a_closed_log_is_refused_with_segment_and_offset() {
    for number in 1..=3 {
        let used = used_bytes(&written(true), number);
        // The closing mark proves everything before it; damage to the mark itself proves nothing
        // and costs nothing.
        let proven = if number == 3 { used - FRAME_BYTES } else { used };
        for at in 0..proven {
            let disk = written(true);
            damaged(&disk, number, |bytes| bytes[at] ^= 0x40);
            let error = opened(&disk).expect_err(&format!("segment {number}, byte {at}"));
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
            assert!(error.message().contains(&name(number)), "{error:?}");
            let offset: usize = {
                let text = error.message().split("offset ").nth(1).unwrap();
                text.split(':').next().unwrap().parse().unwrap()
            };
            assert!(offset <= at && at < offset + HEADER_BYTES, "byte {at}: {error:?}");
        }
        for at in proven..used {
            let disk = written(true);
            damaged(&disk, number, |bytes| bytes[at] ^= 0x40);
            assert_eq!(opened(&disk).unwrap(), Vec::from_iter(1..=12), "byte {at} of the mark");
        }
    }
}

#[test]
fn damage_before_the_last_group_of_a_crashed_log_is_refused_and_in_it_a_torn_tail() {
    let used = used_bytes(&written(false), 3);
    let frame = FRAME_BYTES + payload(12).len();
    for at in 0..used {
        let disk = written(false);
        damaged(&disk, 3, |bytes| bytes[at] ^= 1);
        match opened(&disk) {
            // No sync is known to have covered the last group.
            Ok(sequences) => {
                assert!(at >= used - frame, "byte {at}");
                assert_eq!(sequences, Vec::from_iter(1..=11));
            }
            Err(error) => {
                assert!(at < used - frame, "byte {at}: {error:?}");
                assert_eq!(error.kind(), ErrorKind::Corrupt);
            }
        }
    }
}

#[test]
fn an_idle_log_knows_what_is_durable_even_if_it_crashes() {
    let disk = SimDisk::new(2);
    let (log, _, mut writer) = open_stepped(disk.storage(), options()).unwrap();
    append(&log, 1);
    assert!(writer.step());
    // Nothing queued: the log marks what is durable.
    assert!(!writer.step());
    drop(writer);
    disk.kill();
    damaged(&disk, 1, |bytes| bytes[HEADER_BYTES + FRAME_BYTES] ^= 1);
    let error = opened(&disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.message().ends_with(
            "CRC-32C does not match; it was durable before sequence 1 at offset 98 was written"
        ),
        "{error}"
    );
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_off() {
    let used = used_bytes(&written(false), 3);
    let frame = FRAME_BYTES + payload(12).len();
    for (end, rest) in (used - frame..=used).flat_map(|end| [(end, 0), (end, 9), (end, 5000)]) {
        let disk = written(false);
        // What was not written reads as zeroes, or is not there.
        damaged(&disk, 3, |bytes| {
            bytes.truncate(end);
            bytes.resize(end + rest, 0);
        });
        let last = if end == used { 12 } else { 11 };
        let report = verify(&disk.storage()).unwrap();
        assert!(report.can_be_opened());
        assert_eq!(report.last, last, "cut at {end}, {rest} zeroes");
        assert_eq!(opened(&disk).unwrap(), Vec::from_iter(1..=last));
        // What was cut off does not come back behind what is appended next.
        disk.kill();
        let (log, recovery, mut writer) = open_stepped(disk.storage(), options()).unwrap();
        assert!(recovery.torn.is_none());
        append(&log, last + 1);
        assert!(writer.step());
        drop(writer);
        disk.power_cut();
        assert_eq!(opened(&disk).unwrap(), Vec::from_iter(1..=last + 1));
    }
}

#[test]
fn frames_behind_a_torn_one_are_cut_off_with_it() {
    let disk = SimDisk::new(3);
    let (log, _, mut writer) = open_stepped(disk.storage(), LogOptions::disk()).unwrap();
    append(&log, 1);
    assert!(writer.step());
    // One group: one write, one sync, any of its pages may be missing.
    (2..=5).for_each(|sequence| append(&log, sequence));
    assert!(writer.step());
    drop(writer);
    disk.kill();
    let second = HEADER_BYTES + FRAME_BYTES + payload(1).len();
    damaged(&disk, 1, |bytes| bytes[second..second + 10].fill(0xee));
    let report = verify(&disk.storage()).unwrap();
    let torn = report.damage.unwrap();
    assert_eq!((torn.torn, torn.offset, torn.sequence), (true, second as u64, 2));
    assert_eq!((torn.frames_behind, torn.highest_behind), (3, Some(5)));
    assert_eq!(opened(&disk).unwrap(), [1]);
}

#[test]
fn missing_and_foreign_segments_are_refused() {
    let check = |change: fn(&SimDisk), text: &str| {
        let disk = written(true);
        change(&disk);
        let error = opened(&disk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains(text), "{error}");
    };
    check(
        |disk| disk.lose_file(&name(2)),
        "the segment is missing; the next there is has number 3",
    );
    check(
        |disk| disk.overwrite(&name(2), disk.contents(&name(3)).unwrap()),
        "the segment says it is number 3",
    );
    check(
        |disk| disk.overwrite(&name(2), written_elsewhere().contents(&name(2)).unwrap()),
        "the segment is of log",
    );
    check(
        |disk| damaged(disk, 2, |bytes| bytes[HEADER_BYTES..].fill(0)),
        "the segment ends with sequence",
    );
}

fn written_elsewhere() -> SimDisk {
    written(true)
}

/// A log with damage to frame 6, in segment 2, and what a repair says and does.
fn repaired(behind: Behind) -> (Arc<dyn LogStorage>, SimDisk, Vec<u64>) {
    let disk = written(true);
    let storage = disk.storage();
    let line = dump_lines(&storage, &DumpOptions { sequences: 6..=6, ..DumpOptions::default() });
    let offset: usize = {
        let text = line[0].split(r#""offset":"#).nth(1).unwrap();
        text.split(',').next().unwrap().parse().unwrap()
    };
    damaged(&disk, 2, |bytes| bytes[offset + FRAME_BYTES] ^= 1);
    let plan = plan_repair(&storage).unwrap().unwrap();
    assert_eq!((plan.damage.segment, plan.damage.offset), (2, offset as u64));
    assert_eq!(plan.frames_behind, 6);
    assert_eq!(plan.lost(Behind::Kept), [6..=6]);
    assert_eq!(plan.lost(Behind::GivenUp), [6..=12]);
    let outcome = plan.apply(behind, 20).unwrap();
    assert_eq!(outcome.lost, plan.lost(behind));
    assert_eq!(outcome.next, 21);
    assert_eq!(outcome.copies.len(), 2);
    assert!(outcome.copies.iter().all(|copy| disk.names().contains(copy)), "{:?}", disk.names());
    assert!(plan_repair(&storage).unwrap().is_none());
    assert_eq!(plan.apply(behind, 20).unwrap_err().kind(), ErrorKind::Conflict);
    let recovered = opened(&disk).unwrap();
    (storage, disk, recovered)
}

#[test]
fn a_repair_gives_up_only_what_cannot_be_read() {
    let (storage, disk, recovered) = repaired(Behind::Kept);
    assert_eq!(recovered, [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12]);
    let report = verify(&storage).unwrap();
    assert_eq!(report.gaps, [6..=6, 13..=20]);
    disk.power_cut();
    let (log, recovery, _writer) = open_stepped(disk.storage(), options()).unwrap();
    assert_eq!((recovery.gaps, recovery.last.sequence), (vec![6..=6, 13..=20], 20));
    append(&log, 21);
}

#[test]
fn a_repair_can_go_back_to_a_prefix() {
    let (storage, _disk, recovered) = repaired(Behind::GivenUp);
    assert_eq!(recovered, [1, 2, 3, 4, 5]);
    assert_eq!(verify(&storage).unwrap().gaps, [6..=20]);
}

#[test]
fn any_damaged_log_can_be_repaired() {
    for number in 1..=3 {
        for at in (0..used_bytes(&written(true), number)).step_by(7) {
            for behind in [Behind::Kept, Behind::GivenUp] {
                let disk = written(true);
                damaged(&disk, number, |bytes| bytes[at] ^= 0xff);
                let storage = disk.storage();
                let Some(plan) = plan_repair(&storage).unwrap() else { continue };
                plan.apply(behind, 0).unwrap();
                let recovered = opened(&disk).unwrap();
                let lost = plan.lost(behind);
                let expected: Vec<u64> =
                    (1..=12).filter(|n| !lost.iter().any(|r| r.contains(n))).collect();
                assert_eq!(recovered, expected, "segment {number}, byte {at}, {behind:?}");
                assert!(behind == Behind::GivenUp || recovered.len() >= 11);
            }
        }
    }
}

fn dump_lines(storage: &Arc<dyn LogStorage>, options: &DumpOptions) -> Vec<String> {
    let mut out = Vec::new();
    dump(storage, options, &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_dump_has_a_line_per_frame_and_one_for_damage() {
    let disk = written(true);
    let storage = disk.storage();
    let log = verify(&storage).unwrap().log.unwrap();
    let all = dump_lines(&storage, &DumpOptions::default());
    assert_eq!(all.len(), 12);
    let options = DumpOptions { sequences: 2..=2, payloads: true, ..DumpOptions::default() };
    let crc = all[1].split(r#""crc":""#).nth(1).unwrap().split('"').next().unwrap();
    let hex: String = payload(2).iter().map(|byte| format!("{byte:02x}")).collect();
    let line = format!(
        r#"{{"position":"{log}:2","segment":1,"offset":98,"bytes":10,"crc":"{crc}","payload":"{hex}"}}"#
    );
    assert_eq!(dump_lines(&storage, &options), [line]);
    damaged(&disk, 1, |bytes| bytes[98 + FRAME_BYTES] ^= 1);
    assert_eq!(dump_lines(&storage, &DumpOptions::default()).len(), 2);
    let lines =
        dump_lines(&storage, &DumpOptions { behind_damage: true, ..DumpOptions::default() });
    assert_eq!(lines.len(), 12);
    assert!(lines[1].starts_with(r#"{"damage":"CRC-32C does not match; it was durable"#));
    assert!(lines[11].ends_with(r#""behind_damage":true}"#));
}

#[test]
fn a_report_reads_well() {
    let text = verify(&written(true).storage()).unwrap().to_string();
    assert!(text.contains("simulated/00000000000000000001.log: epoch 1, "), "{text}");
    assert!(text.contains("frames: 12, payload bytes: 120\nsequences: 1 to 12\n"), "{text}");
    assert!(text.ends_with("whole, and closed in order"), "{text}");
    let empty = verify(&SimDisk::new(0).storage()).unwrap();
    assert!(empty.to_string().starts_with("no log in simulated\n"), "{empty}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the bytes of the segments: an answer, and nothing recovered that was not written.
    #[test]
    fn any_bytes_are_recovered_from_or_refused(
        number in 1..=3_u64,
        at in 0..400_usize,
        cut in 0..400_usize,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        copied in any::<bool>(),
    ) {
        let disk = written(true);
        damaged(&disk, number, |contents| {
            let at = at.min(contents.len());
            let end = (at + cut).min(contents.len());
            // Random bytes, or frames of the log itself where they do not belong.
            let bytes = if copied { contents[..at].to_vec() } else { bytes.clone() };
            contents.splice(at..end, bytes);
        });
        let storage = disk.storage();
        let report = verify(&storage).unwrap();
        dump_lines(&storage, &DumpOptions { behind_damage: true, ..DumpOptions::default() });
        if let Some(plan) = plan_repair(&storage).unwrap() {
            plan.apply(Behind::Kept, 12).unwrap();
        }
        let recovered = opened(&disk).unwrap();
        prop_assert!(recovered.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(recovered.len() as u64 >= report.frames);
        prop_assert!(recovered.iter().all(|sequence| (1..=12).contains(sequence)));
    }
}
