//! Waiting for a future on a thread that may block.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use stoa_env::Env;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs `future` on this thread; nothing if `deadline` passed first, by the clock of its world.
///
/// Not for threads that drive async tasks: it would hold them up.
pub(crate) fn block_on<F: Future>(
    future: F,
    deadline: Option<(&Env, Instant)>,
) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let Some((env, deadline)) = deadline else {
            thread::park();
            continue;
        };
        let left = env.park_time(deadline);
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}
