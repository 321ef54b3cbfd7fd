//! The log on object stores: put-if-absent, fencing, lost answers.
#![allow(clippy::unwrap_used)]

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use stoa_commitlog::{
    CommitLog, Durability, LogOptions, LogStorage, Recovery, object_storage, plan_repair,
    storage_for_url, verify,
};
use stoa_error::ErrorKind;
use tokio::runtime::{Handle, Runtime};
use url::Url;

const PATIENCE: Duration = Duration::from_secs(600);

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn options() -> LogOptions {
    LogOptions { sync_interval_min: Duration::ZERO, ..LogOptions::object_store() }
}

fn storage(store: &Arc<dyn ObjectStore>, runtime: &Handle) -> Arc<dyn LogStorage> {
    patient(store, runtime, PATIENCE)
}

fn patient(
    store: &Arc<dyn ObjectStore>,
    runtime: &Handle,
    patience: Duration,
) -> Arc<dyn LogStorage> {
    object_storage(store.clone(), Path::from("warehouse/logs/daemon-1"), runtime.clone(), patience)
}

fn open(store: &Arc<dyn ObjectStore>, runtime: &Handle) -> (CommitLog, Recovery) {
    CommitLog::open_blocking(storage(store, runtime), options()).unwrap()
}

fn append(log: &CommitLog, payload: &[u8]) -> u64 {
    log.append_blocking(&[payload], Durability::Sync).unwrap().wait().unwrap().sequence
}

fn payloads(log: &CommitLog, after: u64) -> Vec<Bytes> {
    log.replay(log.id().at(after)).unwrap().map(|frame| frame.unwrap().1).collect()
}

/// Appends, closes, opens again, releases: on any store.
fn check_store(store: &Arc<dyn ObjectStore>) {
    let runtime = runtime();
    let (log, recovery) = open(store, runtime.handle());
    assert!(recovery.created);
    for sequence in 1..=5 {
        assert_eq!(append(&log, &[sequence as u8]), sequence);
    }
    log.close_blocking().unwrap();
    let (log, recovery) = open(store, runtime.handle());
    assert_eq!((recovery.epoch, recovery.frames, recovery.created), (2, 5, false));
    assert_eq!(recovery.last, log.id().at(5));
    assert_eq!(append(&log, b"six"), 6);
    assert_eq!(payloads(&log, 4), [&[5][..], b"six"]);
    // Segments 2 to 4 go; the claims stay.
    assert_eq!(log.release_blocking(log.id().at(3)).unwrap(), 3);
    assert_eq!(payloads(&log, 3).len(), 3);
    assert_eq!(log.replay(log.id().at(2)).err().unwrap().kind(), ErrorKind::NotFound);
    drop(log);
    let (log, recovery) = open(store, runtime.handle());
    assert_eq!((recovery.frames, recovery.first), (3, Some(log.id().at(4))));
    assert_eq!(log.release_blocking(log.id().at(6)).unwrap(), 3);
    drop(log);
    let (log, recovery) = open(store, runtime.handle());
    assert_eq!((recovery.frames, recovery.last.sequence), (0, 6));
    assert_eq!(append(&log, b"seven"), 7);
}

#[test]
fn a_log_lives_in_memory_and_in_files() {
    check_store(&(Arc::new(InMemory::new()) as Arc<dyn ObjectStore>));
    let directory = tempfile::tempdir().unwrap();
    let files = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
    check_store(&(Arc::new(files) as Arc<dyn ObjectStore>));
}

#[test]
fn a_new_writer_fences_the_old_one_off() {
    let runtime = runtime();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (old, _) = open(&store, runtime.handle());
    append(&old, b"old");
    let (new, recovery) = open(&store, runtime.handle());
    assert_eq!((recovery.frames, recovery.epoch), (1, 2));
    let refused = old.append_blocking(&[b"late"], Durability::Sync).unwrap().wait().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert_eq!(refused.hint(), Some("another daemon has taken this log over; connect to that one"));
    assert!(old.status().poisoned.is_some());
    // Nothing more goes through the old one, also no removal.
    assert!(old.append_blocking(&[b"later"], Durability::Sync).is_err());
    assert!(old.release_blocking(old.id().at(1)).is_err());
    append(&new, b"new");
    assert_eq!(payloads(&new, 0), [&b"old"[..], b"new"]);
}

/// A writer that sleeps through a takeover and a release of all that came after still finds its
/// number taken.
#[test]
fn a_writer_that_slept_for_long_is_fenced_off_too() {
    let runtime = runtime();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (sleeper, _) = open(&store, runtime.handle());
    append(&sleeper, b"one");
    for _ in 0..3 {
        let (log, _) = open(&store, runtime.handle());
        let last = append(&log, b"more");
        log.release_blocking(log.id().at(last)).unwrap();
        log.close_blocking().unwrap();
    }
    let late = sleeper.append_blocking(&[b"late"], Durability::Sync).unwrap().wait();
    assert!(late.unwrap_err().message().contains("has stopped"));
    let (log, recovery) = open(&store, runtime.handle());
    assert_eq!(recovery.last, log.id().at(4));
}

#[test]
fn claims_of_old_openings_go_in_the_end() {
    let runtime = runtime();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    for opening in 1..=70 {
        let (log, recovery) = open(&store, runtime.handle());
        // The newest segment stays when it is released.
        assert_eq!((recovery.epoch, recovery.frames), (opening, u64::from(opening > 1)));
        let last = append(&log, b"row");
        log.release_blocking(log.id().at(last)).unwrap();
        log.close_blocking().unwrap();
    }
    let kept = storage(&store, runtime.handle()).segments().unwrap().len();
    assert_eq!(kept, 64 + 1, "claims of the last openings, and the newest segment");
}

#[test]
fn writers_that_open_at_once_end_with_one() {
    let runtime = runtime();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let opened: Vec<_> = std::thread::scope(|scope| {
        let open = || CommitLog::open_blocking(storage(&store, runtime.handle()), options());
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    });
    let mut epochs: Vec<u64> = opened.iter().map(|(_, recovery)| recovery.epoch).collect();
    epochs.sort_unstable();
    assert_eq!(epochs, [1, 2, 3, 4, 5, 6]);
    assert!(opened.iter().all(|(log, _)| log.id() == opened[0].0.id()));
    let try_append =
        |log: &CommitLog| log.append_blocking(&[b"mine"], Durability::Sync).unwrap().wait().is_ok();
    let written = opened.iter().filter(|(log, _)| try_append(log)).count();
    assert_eq!(written, 1, "only the last to open may write");
}

#[test]
fn an_object_with_a_changed_byte_is_damage_wherever_it_is() {
    let runtime = runtime();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (log, _) = open(&store, runtime.handle());
    append(&log, b"one");
    append(&log, b"two");
    drop(log);
    let path = Path::from("warehouse/logs/daemon-1/00000000000000000003.log");
    runtime.block_on(async {
        let mut bytes = store
            .get_opts(&path, GetOptions::default())
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap()
            .to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        store.put_opts(&path, bytes.into(), PutOptions::default()).await.unwrap();
    });
    let storage = storage(&store, runtime.handle());
    let damage = verify(&storage).unwrap().damage.unwrap();
    assert_eq!((damage.torn, damage.segment, damage.offset), (false, 3, 64));
    assert_eq!(
        CommitLog::open_blocking(storage.clone(), options()).unwrap_err().kind(),
        ErrorKind::Corrupt
    );
    let plan = plan_repair(&storage).unwrap().unwrap();
    plan.apply(stoa_commitlog::Behind::Kept, 2).unwrap();
    let (log, _) = open(&store, runtime.handle());
    assert_eq!(payloads(&log, 0), [&b"one"[..]]);
    assert_eq!(append(&log, b"three"), 3);
}

#[test]
fn a_put_whose_answer_was_lost_counts() {
    let runtime = runtime();
    let flaky = Arc::new(Flaky::default());
    let store: Arc<dyn ObjectStore> = flaky.clone();
    let (log, _) = open(&store, runtime.handle());
    flaky.mode.store(LOSES_ANSWER_AND_RETRIES, Ordering::SeqCst);
    append(&log, b"kept");
    flaky.mode.store(0, Ordering::SeqCst);
    append(&log, b"next");
    assert_eq!(payloads(&log, 0), [&b"kept"[..], b"next"]);
}

/// One answer that is lost in ten thousand puts is a matter of days: it must not end a daemon's writing.
#[test]
fn a_store_that_comes_back_does_not_stop_the_log() {
    let runtime = runtime();
    for mode in [FAILS_BEFORE, FAILS_AFTER] {
        let flaky = Arc::new(Flaky::default());
        let store: Arc<dyn ObjectStore> = flaky.clone();
        let (log, _) = open(&store, runtime.handle());
        append(&log, b"one");
        flaky.mode.store(mode, Ordering::SeqCst);
        let mut two = log.append_blocking(&[b"two"], Durability::Sync).unwrap();
        let puts = flaky.puts.load(Ordering::SeqCst);
        while flaky.puts.load(Ordering::SeqCst) < puts + 3 {
            std::thread::yield_now();
        }
        // Nobody is told before it is so.
        if mode == FAILS_BEFORE {
            assert!(two.acknowledged().now_or_never().is_none());
        }
        flaky.mode.store(0, Ordering::SeqCst);
        two.wait().unwrap();
        append(&log, b"three");
        assert_eq!(log.stopped(), None);
        assert_eq!(payloads(&log, 0), [&b"one"[..], b"two", b"three"]);
        let (log, recovery) = open(&store, runtime.handle());
        assert_eq!((recovery.frames, payloads(&log, 0).len()), (3, 3));
    }
}

/// Who waits for the store and is taken over meanwhile is refused when it answers again.
#[test]
fn a_log_that_is_taken_over_while_it_waits_is_fenced_off() {
    let runtime = runtime();
    let flaky = Arc::new(Flaky::default());
    let store: Arc<dyn ObjectStore> = flaky.clone();
    let (old, _) = open(&store, runtime.handle());
    append(&old, b"one");
    flaky.mode.store(FAILS_BEFORE, Ordering::SeqCst);
    let two = old.append_blocking(&[b"two"], Durability::Sync).unwrap();
    let puts = flaky.puts.load(Ordering::SeqCst);
    while flaky.puts.load(Ordering::SeqCst) < puts + 2 {
        std::thread::yield_now();
    }
    // Another daemon reaches the store.
    let direct: Arc<dyn ObjectStore> = flaky.inner.clone();
    let (new, recovery) = open(&direct, runtime.handle());
    assert_eq!((recovery.frames, append(&new, b"its")), (1, 2));
    flaky.mode.store(0, Ordering::SeqCst);
    assert_eq!(two.wait().unwrap_err().sqlstate(), "08007");
    assert!(old.stopped().is_some());
    assert_eq!(payloads(&new, 0), [&b"one"[..], b"its"]);
}

#[test]
fn a_busy_store_is_asked_again() {
    let runtime = runtime();
    let flaky = Arc::new(Flaky::default());
    let store: Arc<dyn ObjectStore> = flaky.clone();
    let (log, _) = open(&store, runtime.handle());
    flaky.mode.store(BUSY, Ordering::SeqCst);
    append(&log, b"kept");
    assert!(flaky.busy.load(Ordering::SeqCst) > 3);
    // Another writer is still told from a busy store.
    let (other, _) = open(&store, runtime.handle());
    append(&other, b"its");
    let refused = log.append_blocking(&[b"ours"], Durability::Sync).unwrap().wait();
    assert_eq!(refused.unwrap_err().sqlstate(), "08007");
    assert_eq!(payloads(&other, 0), [&b"kept"[..], b"its"]);
}

#[test]
fn a_store_that_puts_what_exists_is_refused() {
    let runtime = runtime();
    let flaky = Arc::new(Flaky::default());
    flaky.mode.store(IGNORES_IF_ABSENT, Ordering::SeqCst);
    let store: Arc<dyn ObjectStore> = flaky.clone();
    let error = CommitLog::open_blocking(storage(&store, runtime.handle()), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("ignores If-None-Match"), "{error}");
    // Nothing of a log was begun there.
    assert_eq!(storage(&store, runtime.handle()).segments().unwrap(), [0_u64; 0]);
}

#[test]
fn a_failed_put_stops_the_log_and_its_outcome_is_settled_by_opening_it() {
    let runtime = runtime();
    for (mode, kept) in [(FAILS_BEFORE, 1), (FAILS_AFTER, 2)] {
        let flaky = Arc::new(Flaky::default());
        let store: Arc<dyn ObjectStore> = flaky.clone();
        let storage = patient(&store, runtime.handle(), Duration::ZERO);
        let (log, _) = CommitLog::open_blocking(storage, options()).unwrap();
        append(&log, b"one");
        flaky.mode.store(mode, Ordering::SeqCst);
        let failed = log.append_blocking(&[b"two"], Durability::Sync).unwrap().wait();
        assert_eq!(failed.unwrap_err().sqlstate(), "08007");
        flaky.mode.store(0, Ordering::SeqCst);
        assert!(log.append_blocking(&[b"three"], Durability::Sync).is_err());
        let (log, recovery) = open(&store, runtime.handle());
        assert_eq!((recovery.frames, payloads(&log, 0).len()), (kept, kept as usize));
    }
}

/// A log that has stopped can be opened again once its store answers, and not before.
#[test]
fn whoever_waits_learns_when_the_log_can_be_opened_again() {
    let runtime = runtime();
    let flaky = Arc::new(Flaky::default());
    let store: Arc<dyn ObjectStore> = flaky.clone();
    let storage = patient(&store, runtime.handle(), Duration::ZERO);
    let (log, _) = CommitLog::open_blocking(storage, options()).unwrap();
    append(&log, b"one");
    let mut waiting = Box::pin(log.can_be_reopened());
    assert!(runtime.block_on(async { (&mut waiting).now_or_never() }).is_none(), "it is well");
    flaky.mode.store(AWAY, Ordering::SeqCst);
    log.append_blocking(&[b"two"], Durability::Sync).unwrap().wait().unwrap_err();
    let listed = flaky.listed.load(Ordering::SeqCst);
    runtime.block_on(async {
        let back = async {
            while flaky.listed.load(Ordering::SeqCst) < listed + 2 {
                tokio::task::yield_now().await;
            }
            flaky.mode.store(0, Ordering::SeqCst);
        };
        tokio::join!(&mut waiting, back);
    });
    assert_eq!(open(&store, runtime.handle()).1.frames, 1);
    let (log, _) = open(&store, runtime.handle());
    log.close_blocking().unwrap();
    assert!(runtime.block_on(async { log.can_be_reopened().now_or_never() }).is_none(), "closed");
}

#[test]
fn puts_are_bounded_in_time() {
    let runtime = runtime();
    let flaky = Arc::new(Flaky::default());
    let store: Arc<dyn ObjectStore> = flaky.clone();
    let interval = Duration::from_millis(50);
    let options = LogOptions { sync_interval_min: interval, ..options() };
    let storage = storage(&store, runtime.handle());
    let (log, _) = CommitLog::open_blocking(storage, options).unwrap();
    let begin = stoa_env::clock::monotonic();
    let puts = flaky.puts.load(Ordering::SeqCst);
    for _ in 0..5 {
        append(&log, b"row");
    }
    let puts = flaky.puts.load(Ordering::SeqCst) - puts;
    assert_eq!(puts, 5);
    assert!(begin.elapsed() >= interval * 4, "{:?}", begin.elapsed());
    // Closing does not wait for the interval.
    log.close_blocking().unwrap();
}

#[test]
fn a_url_names_the_storage() {
    let runtime = runtime();
    let directory = tempfile::tempdir().unwrap();
    let url = Url::from_file_path(directory.path().join("a/b")).unwrap();
    let refuse = |url: &Url| Err(stoa_error::Error::unsupported(format!("no store for {url}")));
    let files = storage_for_url(&url, runtime.handle(), PATIENCE, refuse).unwrap();
    assert_eq!(files.place(), directory.path().join("a/b").display().to_string());
    let url = Url::parse("s3://bucket/logs").unwrap();
    let memory =
        |_: &Url| Ok((Arc::new(InMemory::new()) as Arc<dyn ObjectStore>, Path::from("logs")));
    let objects = storage_for_url(&url, runtime.handle(), PATIENCE, memory).unwrap();
    assert_eq!(objects.place(), "InMemory logs");
    assert_eq!(
        storage_for_url(&url, runtime.handle(), PATIENCE, refuse).unwrap_err().message(),
        "no store for s3://bucket/logs"
    );
}

const FAILS_BEFORE: usize = 1;
const FAILS_AFTER: usize = 2;
const LOSES_ANSWER_AND_RETRIES: usize = 3;
const BUSY: usize = 4;
const IGNORES_IF_ABSENT: usize = 5;
const AWAY: usize = 6;

/// A store in memory whose puts fail as told.
#[derive(Debug, Default)]
struct Flaky {
    inner: Arc<InMemory>,
    mode: AtomicUsize,
    puts: AtomicUsize,
    busy: AtomicUsize,
    listed: AtomicUsize,
}

impl fmt::Display for Flaky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("flaky")
    }
}

fn timed_out() -> object_store::Error {
    object_store::Error::Generic { store: "flaky", source: "timed out".into() }
}

#[async_trait]
impl ObjectStore for Flaky {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.puts.fetch_add(1, Ordering::SeqCst);
        assert_eq!(options.mode, PutMode::Create);
        let mode = self.mode.load(Ordering::SeqCst);
        if mode == FAILS_BEFORE || mode == AWAY {
            return Err(timed_out());
        }
        if mode == BUSY && self.busy.fetch_add(1, Ordering::SeqCst) < 3 {
            // How object_store tells of S3's 409 (ConditionalRequestConflict).
            return Err(object_store::Error::AlreadyExists {
                path: location.to_string(),
                source: "409 Conflict".into(),
            });
        }
        if mode == IGNORES_IF_ABSENT {
            let options = PutOptions { mode: PutMode::Overwrite, ..options };
            return self.inner.put_opts(location, payload, options).await;
        }
        let first = self.inner.put_opts(location, payload.clone(), options.clone()).await;
        match mode {
            FAILS_AFTER => Err(timed_out()),
            // What a client does that got no answer to a put it may repeat.
            LOSES_ANSWER_AND_RETRIES => self.inner.put_opts(location, payload, options).await,
            _ => first,
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed.fetch_add(1, Ordering::SeqCst);
        if self.mode.load(Ordering::SeqCst) == AWAY {
            return futures::stream::once(async { Err(timed_out()) }).boxed();
        }
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
