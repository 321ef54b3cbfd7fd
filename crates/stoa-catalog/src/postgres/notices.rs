//! Notifications that members or leases have changed. Hints only: some are lost.
//!
//! Each is sent in a transaction of its own that is not synced. A commit that notifies would hold a lock
//! of the whole database over its sync, so that no two commits could share one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use stoa_env::timer;
use tokio::sync::{Mutex, watch};

use super::Shared;
use super::lanes::{Connections, TRANSACTION_TIMEOUT};
use super::rows::within;
use crate::sql_text::literal;

/// The channel; the payload is the catalog's name.
const CHANNEL: &str = "stoa_cluster";

/// Between two attempts to listen.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) struct Notices {
    sending: Connections,
    /// One is sent at a time, and one more waits for its turn.
    turn: Mutex<()>,
    is_due: AtomicBool,
    is_closed: watch::Sender<bool>,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            sending: Connections::of(1),
            turn: Mutex::default(),
            is_due: AtomicBool::new(false),
            is_closed: watch::Sender::new(false),
        }
    }
}

impl Notices {
    pub(super) fn close(&self) {
        self.sending.close();
        self.is_closed.send_replace(true);
    }
}

/// Sends one, unless one that is due will do.
pub(super) fn send_soon(shared: &Arc<Shared>) {
    if shared.notices.is_due.swap(true, Ordering::SeqCst) {
        return;
    }
    let owned = Arc::clone(shared);
    shared.home.spawn(async move {
        if let Err(error) = send(&owned).await {
            tracing::debug!(%error, "a notification was not sent");
        }
    });
}

async fn send(shared: &Arc<Shared>) -> sqlx::Result<()> {
    let notices = &shared.notices;
    let _turn = notices.turn.lock().await;
    // The next change asks for a notification of its own.
    notices.is_due.store(false, Ordering::SeqCst);
    let message = format!(
        "BEGIN; SET LOCAL synchronous_commit = off; SELECT pg_notify('{CHANNEL}', {}); COMMIT",
        literal(&shared.name)
    );
    let sent = notices.sending.send(shared, &message, true);
    within(TRANSACTION_TIMEOUT, sent).await.map(|_| ())
}

/// Counts notifications and new connections, until nobody wants the number any more or the catalog is closed.
pub(super) fn listen(shared: &Arc<Shared>) -> watch::Receiver<u64> {
    let (count, received) = watch::channel(0);
    let mut is_closed = shared.notices.is_closed.subscribe();
    let (options, name) = (shared.address.options().clone(), shared.name.clone());
    shared.home.spawn(async move {
        let closed = async move {
            // It is an error that nobody has the catalog any more.
            let _ = is_closed.wait_for(|is_closed| *is_closed).await;
        };
        tokio::select! {
            () = closed => {}
            () = count.closed() => {}
            () = listen_again_and_again(options, &name, &count) => {}
        }
    });
    received
}

async fn listen_again_and_again(options: PgConnectOptions, name: &str, count: &watch::Sender<u64>) {
    loop {
        if let Err(error) = listen_until_lost(options.clone(), name, count).await {
            tracing::debug!(%error, "notifications are not received");
        }
        timer::sleep(PAUSE).await;
    }
}

async fn listen_until_lost(
    options: PgConnectOptions,
    name: &str,
    count: &watch::Sender<u64>,
) -> sqlx::Result<()> {
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen(CHANNEL).await?;
    count.send_modify(|count| *count += 1);
    // `None`: the connection was lost.
    while let Some(notification) = listener.try_recv().await? {
        if notification.payload() == name {
            count.send_modify(|count| *count += 1);
        }
    }
    Ok(())
}
