//! One client's connection: takes messages, keeps what outlives them, answers.
//!
//! ```text
//!  Wire ─► message ─► simple   (Query)
//!                 └─► extended (Parse, Bind, Describe, Execute, Close, Flush, Sync)
//!                          └──► execute ─► engine's session
//! ```
//!
//! **Invariants:** an error in an extended message is sent at once, and silences all until the next
//! `Sync`; outside a
//! transaction block no portal outlives a `Sync`; every `Query` and every `Sync` is answered by
//! exactly one `ReadyForQuery`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use stoa_env::clock;
use stoa_error::{Error, ErrorKind};
use stoa_query::Session;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::portal::Portal;
use crate::recent::Recent;
use crate::settings::Settings;
use crate::statement::SharedStatement;
use crate::transaction::{Transaction, Warning};
use crate::wire::backend::Severity;
use crate::wire::frontend::{Damage, Message};
use crate::wire::stream::{Incoming, Stop, Wire};

/// Prepared statements a connection may keep.
pub(crate) const STATEMENTS_MAX: usize = 10_000;
/// Portals a connection may keep.
pub(crate) const PORTALS_MAX: usize = 1000;

/// A connection after its start.
pub(crate) struct Connection<S> {
    pub(crate) wire: Wire<S>,
    pub(crate) session: Arc<Session>,
    pub(crate) statements: HashMap<String, SharedStatement>,
    pub(crate) portals: HashMap<String, Portal>,
    /// What came by the simple protocol.
    pub(crate) recent: Recent,
    pub(crate) transaction: Transaction,
    pub(crate) settings: Settings,
    /// Extended messages are dropped until the next `Sync`.
    skipping: bool,
    /// Nothing is under way: the last answer was `ReadyForQuery`.
    at_rest: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    /// Takes over a socket whose client was let in.
    pub(crate) fn new(wire: Wire<S>, session: Arc<Session>) -> Self {
        Self {
            wire,
            session,
            statements: HashMap::new(),
            portals: HashMap::new(),
            recent: Recent::default(),
            transaction: Transaction::default(),
            settings: Settings::default(),
            skipping: false,
            at_rest: true,
        }
    }

    /// Serves the client until it leaves, the connection breaks, or `closing` turns true while
    /// nothing is under way.
    pub(crate) async fn run(mut self, mut closing: watch::Receiver<bool>) {
        let says_goodbye = self.serve(&mut closing).await;
        // What was not committed is not to stay behind as files.
        self.session.roll_back().await;
        if says_goodbye {
            self.wire.close().await;
        }
    }

    /// Whether there is still something to be sent at the end.
    async fn serve(&mut self, closing: &mut watch::Receiver<bool>) -> bool {
        self.settings.renew(&self.session, &mut self.wire.output);
        self.ready();
        let mut result = self.wire.flush().await;
        while result.is_ok() {
            if self.at_rest && *closing.borrow() {
                self.wire.output.error(Severity::Fatal, &closing_error(), 0);
                return true;
            }
            if self.session.is_terminated() {
                self.wire.output.error(Severity::Fatal, &terminated_error(), 0);
                return true;
            }
            let session = Arc::clone(&self.session);
            let incoming = tokio::select! {
                biased;
                incoming = self.wire.next() => incoming,
                _ = closing.changed(), if self.at_rest => continue,
                () = session.terminated() => continue,
            };
            result = match incoming {
                Incoming::Message(Message::Terminate) | Incoming::End => return false,
                Incoming::Message(message) => self.take(message).await,
                Incoming::Damaged(damage) => self.take_damage(damage).await,
            };
        }
        false
    }

    async fn take(&mut self, message: Message) -> Result<(), Stop> {
        if self.skipping && message != Message::Sync {
            return Ok(());
        }
        self.at_rest = false;
        let extended = message.is_extended();
        // What runs statements is boxed, so that an idle connection does not hold room for it; the other
        // messages, most of all, need none.
        let result = match message {
            Message::Query(sql) => Box::pin(self.simple_query(&sql)).await,
            Message::Parse { name, sql, types } => Box::pin(self.parse(name, &sql, &types)).await,
            Message::Bind(bind) => self.bind(bind),
            Message::DescribeStatement(name) => self.describe_statement(&name),
            Message::DescribePortal(name) => self.describe_portal(&name),
            Message::Execute { portal, rows_max } => {
                Box::pin(self.execute_portal(&portal, rows_max)).await
            }
            Message::CloseStatement(name) => self.close_statement(&name),
            Message::ClosePortal(name) => self.close_portal(&name),
            Message::Flush => self.wire.flush().await,
            Message::Sync => {
                self.skipping = false;
                if !self.transaction.in_block() {
                    self.portals.retain(|_, portal| portal.hold);
                }
                self.ready();
                return self.wire.flush().await;
            }
            // Late data of a COPY that has failed.
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => {
                self.at_rest = true;
                return Ok(());
            }
            Message::Terminate => return Err(Stop::Gone),
        };
        match result {
            Ok(()) => self.wire.flush_if_large().await,
            Err(Stop::Gone) => Err(Stop::Gone),
            Err(Stop::Failed(error)) => self.failed(&error, extended).await,
        }
    }

    async fn take_damage(&mut self, damage: Damage) -> Result<(), Stop> {
        if damage.fatal {
            self.wire.output.error(Severity::Fatal, &damage.error, 0);
            self.wire.flush().await?;
            return Err(Stop::Gone);
        }
        if self.skipping {
            return Ok(());
        }
        self.at_rest = false;
        self.failed(&damage.error, damage.extended).await
    }

    /// Answers a message that failed.
    async fn failed(&mut self, error: &Error, extended: bool) -> Result<(), Stop> {
        self.report(error, 0);
        if extended {
            self.skipping = true;
            // At once: a client may wait for answers before it sends its Sync, and a Flush is skipped
            // from here on.
            return self.wire.flush().await;
        }
        self.ready();
        self.wire.flush().await
    }

    /// Sends an error; `position_offset` characters stand before the statement it points into.
    pub(crate) fn report(&mut self, error: &Error, position_offset: usize) {
        match error.kind() {
            ErrorKind::Internal | ErrorKind::Corrupt => {
                tracing::error!(sqlstate = error.sqlstate(), ?error, "statement failed");
            }
            _ => tracing::debug!(sqlstate = error.sqlstate(), ?error, "statement failed"),
        }
        self.transaction.fail();
        self.wire.output.error(Severity::Error, error, position_offset);
    }

    /// Appends `ReadyForQuery`.
    pub(crate) fn ready(&mut self) {
        self.at_rest = true;
        self.wire.output.ready_for_query(self.transaction.status());
    }

    pub(crate) fn warn(&mut self, warning: Option<Warning>) {
        if let Some(Warning { sqlstate, message }) = warning {
            self.wire.output.notice(Severity::Warning, sqlstate, &message, "");
        }
    }

    /// When the statement that begins now must end.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let timeout = self.settings.statement_timeout?;
        clock::monotonic().checked_add(timeout)
    }
}

const TERMINATING: &str = "terminating connection due to administrator command";

/// Somebody called `pg_terminate_backend`.
fn terminated_error() -> Error {
    Error::unavailable(TERMINATING).with_sqlstate("57P01").with_hint("connect again")
}

fn closing_error() -> Error {
    Error::unavailable(TERMINATING)
        .with_sqlstate("57P01")
        .with_hint("the server is shutting down; connect again later")
}
