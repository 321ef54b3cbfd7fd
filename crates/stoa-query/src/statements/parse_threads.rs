//! Threads that parse rows for statements.
//!
//! A thread waits for more work when it is done: rows often come a thousand at a time, each thousand as a statement, and a new
//! thread with new memory costs as much as parsing them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;

type Work = Box<dyn FnOnce() + Send>;

/// Threads that wait at once.
const WAITING_MAX: usize = 32;

/// How long one waits.
const WAITS_FOR: Duration = Duration::from_secs(10);

static THREADS: ParseThreads = ParseThreads::new(WAITS_FOR);

/// Runs `work`, which may wait for a client for as long as it likes, on a thread of its own.
///
/// # Errors
/// The operating system refused a thread.
pub(crate) fn run(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    THREADS.run(Box::new(work))
}

struct ParseThreads {
    waiting: Mutex<Vec<Waiting>>,
    number: AtomicU64,
    waits_for: Duration,
}

/// A thread that has nothing to do. Whoever takes it out of the list gives it work.
struct Waiting {
    number: u64,
    work: SyncSender<Work>,
}

impl ParseThreads {
    const fn new(waits_for: Duration) -> Self {
        Self { waiting: Mutex::new(Vec::new()), number: AtomicU64::new(0), waits_for }
    }

    fn run(&'static self, work: Work) -> std::io::Result<()> {
        // The last one: its memory is the warmest.
        let waiting = self.waiting.lock().pop();
        let work = match waiting {
            Some(thread) => match thread.work.send(work) {
                Ok(()) => return Ok(()),
                // It is gone, which it never is while it waits.
                Err(unsent) => unsent.0,
            },
            None => work,
        };
        let serve = move || {
            let mut next = Some(work);
            while let Some(work) = next {
                work();
                next = self.wait();
            }
        };
        stoa_env::task::spawn_thread("stoa-load", serve).map(drop)
    }

    /// Waits for work; `None` if none came, or if enough others wait.
    fn wait(&self) -> Option<Work> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let (work, come) = sync_channel(1);
        {
            let mut waiting = self.waiting.lock();
            if waiting.len() >= WAITING_MAX {
                return None;
            }
            waiting.push(Waiting { number, work });
        }
        if let Ok(work) = come.recv_timeout(self.waits_for) {
            return Some(work);
        }
        let mut waiting = self.waiting.lock();
        match waiting.iter().position(|thread| thread.number == number) {
            Some(place) => {
                waiting.remove(place);
                None
            }
            // Somebody has taken it, and sends work.
            None => {
                drop(waiting);
                come.recv().ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn threads_are_used_again() {
        static THREADS: ParseThreads = ParseThreads::new(Duration::from_secs(60));
        let mut seen = HashSet::new();
        for _ in 0..100 {
            let (sender, receiver) = channel();
            THREADS.run(Box::new(move || sender.send(thread::current().id()).unwrap())).unwrap();
            seen.insert(receiver.recv().unwrap());
            while THREADS.waiting.lock().is_empty() {
                thread::yield_now();
            }
        }
        assert_eq!(seen.len(), 1);
    }

    #[test]
    fn all_work_is_done_though_threads_stop_to_wait() {
        static THREADS: ParseThreads = ParseThreads::new(Duration::from_micros(50));
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            for part in 0..4_u32 {
                let sender = sender.clone();
                scope.spawn(move || {
                    for number in 0..2_000 {
                        let sender = sender.clone();
                        let work = move || sender.send(part * 2_000 + number).unwrap();
                        THREADS.run(Box::new(work)).unwrap();
                        if number % 64 == 0 {
                            thread::yield_now();
                        }
                    }
                });
            }
        });
        drop(sender);
        let mut done: Vec<u32> = receiver.iter().collect();
        done.sort_unstable();
        assert_eq!(done, (0..8_000).collect::<Vec<_>>());
    }
}
