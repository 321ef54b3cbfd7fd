//! Files as servers leave them: whole, torn, of somebody else.

use proptest::prelude::*;

use super::*;

fn sample(step_s: u64, unix_ms: i64) -> Sample {
    Sample {
        unix_ms,
        step_s,
        per_second: 12.5,
        failed: 3,
        p99_ms: Some(0.25),
        fresh_rows: Some(1 << 40),
        machine_cpu_ratio: Some(0.5),
        sent_per_second: Some(1e9),
        ..Sample::default()
    }
}

/// A server's start: its file, and the samples of a step that are in it.
fn open(directory: &Path, step_s: u64) -> (Ring, Vec<Sample>) {
    let mut levels = Levels::default();
    let ring = Ring::open(directory, &mut levels).expect("a file");
    let samples = levels.since(step_s, i64::MIN);
    (ring, samples)
}

fn file(directory: &Path) -> PathBuf {
    directory.join("history-0.ring")
}

#[test]
fn what_was_written_is_there_after_a_start_and_the_oldest_make_room() {
    let directory = tempfile::tempdir().unwrap();
    let now = clock::unix_ms();
    let (ring, samples) = open(directory.path(), 10);
    assert!(samples.is_empty());
    let written: Vec<Sample> = (0..500).map(|n| sample(10, now - (499 - n) * 10_000)).collect();
    ring.write(&written);
    ring.write(&[sample(7, now), sample(600, now)]);
    drop(ring);
    let (_ring, samples) = open(directory.path(), 10);
    assert_eq!(samples, written[500 - 360..]);
    let length = std::fs::metadata(file(directory.path())).unwrap().len();
    assert_eq!(length, file_bytes() as u64, "it does not grow");
    assert!(length < 1 << 20);
}

#[test]
fn servers_have_files_of_their_own_and_the_next_one_takes_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let (one, _) = open(directory.path(), 1);
    let (two, _) = open(directory.path(), 1);
    one.write(&[sample(1, clock::unix_ms())]);
    drop(two);
    assert!(open(directory.path(), 1).1.is_empty(), "that of the first is in use");
    drop(one);
    assert_eq!(open(directory.path(), 1).1.len(), 1);
}

#[test]
fn what_was_torn_is_left_out_and_the_rest_stays() {
    let directory = tempfile::tempdir().unwrap();
    let now = clock::unix_ms();
    let (ring, _) = open(directory.path(), 60);
    let all = [sample(60, now - 60_000), sample(60, now)];
    ring.write(&all);
    let at = offset_of(&all[1]).unwrap();
    drop(ring);
    // Half of a record, as a machine that fails may leave it.
    let torn = std::fs::OpenOptions::new().write(true).open(file(directory.path())).unwrap();
    torn.write_all_at(&[0xff; 40], at + 60).unwrap();
    let mut levels = Levels::default();
    let bytes = std::fs::read(file(directory.path())).unwrap();
    assert_eq!(read(&bytes, now, &mut levels), 1);
    let (ring, samples) = open(directory.path(), 60);
    assert_eq!(samples, all[..1]);
    // Its place is used again.
    ring.write(&all[1..]);
    drop(ring);
    assert_eq!(open(directory.path(), 60).1, all);
    // A file that ends too early.
    let short = std::fs::OpenOptions::new().write(true).open(file(directory.path())).unwrap();
    short.set_len(at).unwrap();
    let (ring, samples) = open(directory.path(), 60);
    assert!(samples.len() < 2);
    ring.write(&all);
    drop(ring);
    assert_eq!(open(directory.path(), 60).1, all);
}

#[test]
fn a_file_of_somebody_else_is_put_aside() {
    let other_version = || {
        let mut bytes = header();
        bytes[8] = 99;
        bytes
    };
    for bytes in [b"not ours".to_vec(), vec![0; 4096], other_version(), {
        let mut long = header();
        long.resize(file_bytes() + 1, 0);
        long
    }] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(file(directory.path()), &bytes).unwrap();
        let (ring, samples) = open(directory.path(), 1);
        assert!(samples.is_empty());
        let aside = directory.path().join("history-0.unreadable");
        assert_eq!(std::fs::read(aside).unwrap(), bytes);
        ring.write(&[sample(1, clock::unix_ms())]);
        drop(ring);
        assert_eq!(open(directory.path(), 1).1.len(), 1);
    }
}

#[test]
fn without_a_place_samples_are_in_memory_only() {
    let directory = tempfile::tempdir().unwrap();
    let taken = directory.path().join("taken");
    std::fs::write(&taken, b"a file").unwrap();
    assert!(Ring::open(&taken, &mut Levels::default()).is_none());
    std::fs::create_dir(file(directory.path())).unwrap();
    assert!(Ring::open(directory.path(), &mut Levels::default()).is_none());
}

#[test]
fn samples_that_are_too_old_or_ahead_are_not_shown() {
    let directory = tempfile::tempdir().unwrap();
    let now = clock::unix_ms();
    let (ring, _) = open(directory.path(), 1);
    ring.write(&[sample(1, now - 601_000), sample(1, now + 3_600_000), sample(1, now - 1000)]);
    drop(ring);
    assert_eq!(open(directory.path(), 1).1, [sample(1, now - 1000)]);
}

proptest! {
    /// Whatever is in the file, a start goes on.
    #[test]
    fn any_bytes_are_read(
        bytes in proptest::collection::vec(any::<u8>(), 0..5000),
        with_header in any::<bool>(),
    ) {
        let all = if with_header { [header(), bytes].concat() } else { bytes };
        let mut levels = Levels::default();
        let damaged = read(&all, clock::unix_ms(), &mut levels);
        prop_assert!(damaged <= all.len() / RECORD_BYTES);
    }

    #[test]
    fn a_record_is_what_was_written(
        unix_ms in 0_i64..1 << 45,
        numbers in proptest::collection::vec(0.0_f64..1e12, NUMBERS),
        none in 0..NUMBERS,
    ) {
        let mut all: [f64; NUMBERS] = numbers.try_into().unwrap();
        all[none] = f64::NAN;
        let sample = sample_of(unix_ms, STEPS[2].seconds, &all);
        prop_assert_eq!(decoded(&encoded(&sample), STEPS[2]), Some(sample.clone()));
        let mut record = encoded(&sample);
        record[none] ^= 1;
        prop_assert_eq!(decoded(&record, STEPS[2]), None);
    }
}
