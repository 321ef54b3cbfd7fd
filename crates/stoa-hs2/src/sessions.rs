//! Sessions and operations under their handles.
//!
//! **Invariant:** bounded in number; what nobody uses for long goes (`forget_idle`). An operation goes with its session.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_env::clock;
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_query::{Kept, QueryRegistry, Session};
use stoa_thrift::Handle;

use crate::operation::Operation;

/// Operations of a session at the same time.
const OPERATIONS_MAX: usize = 200;
/// Variables that a session may set, and bytes of each with its name.
const VARIABLES_MAX: usize = 1000;
const VARIABLE_BYTES_MAX: usize = 16 << 10;

/// A session of Hive's protocol, over one of the engine.
pub(crate) struct HiveSession {
    pub(crate) handle: Handle,
    pub(crate) session: Arc<Session>,
    pub(crate) user: String,
    variables: Mutex<BTreeMap<String, Variable>>,
    /// `None` once it is closed.
    operations: Mutex<Option<Vec<Handle>>>,
    used: Mutex<Instant>,
}

struct Variable {
    value: String,
    _kept: Kept,
}

impl HiveSession {
    pub(crate) fn new(handle: Handle, session: Arc<Session>, user: String) -> Self {
        Self {
            handle,
            session,
            user,
            variables: Mutex::default(),
            operations: Mutex::new(Some(Vec::new())),
            used: Mutex::new(clock::monotonic()),
        }
    }

    /// Remembers what a client has set and Stoa has no setting for.
    ///
    /// # Errors
    /// Exhausted: there are too many, or they are too long.
    pub(crate) fn set_variable(&self, name: &str, value: &str) -> Result<()> {
        let bytes = name.len() + value.len();
        let mut variables = self.variables.lock();
        let is_full = variables.len() >= VARIABLES_MAX && !variables.contains_key(name);
        if is_full || bytes > VARIABLE_BYTES_MAX {
            let text = format!(
                "a session can have {VARIABLES_MAX} variables of {VARIABLE_BYTES_MAX} bytes each"
            );
            return Err(Error::new(ErrorKind::Exhausted, text).with_sqlstate("54000"));
        }
        let variable = Variable { value: value.to_owned(), _kept: self.session.keep(bytes)? };
        variables.insert(name.to_owned(), variable);
        Ok(())
    }

    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.variables.lock().get(name).map(|variable| variable.value.clone())
    }

    /// All that were set, as `name=value`.
    pub(crate) fn variables(&self) -> Vec<String> {
        let variables = self.variables.lock();
        variables.iter().map(|(name, variable)| format!("{name}={}", variable.value)).collect()
    }
}

/// An operation with its session.
type OwnOperation = (Arc<HiveSession>, Arc<Operation>);

/// All sessions of a server.
#[derive(Default)]
pub(crate) struct Sessions {
    sessions: Mutex<HashMap<Handle, Arc<HiveSession>>>,
    operations: Mutex<HashMap<Handle, OwnOperation>>,
}

impl Sessions {
    /// Enters a session.
    ///
    /// # Errors
    /// 53300: there are as many as there may be.
    pub(crate) fn insert(&self, session: HiveSession, count_max: usize) -> Result<()> {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= count_max {
            return Err(Error::new(ErrorKind::Exhausted, "sorry, too many sessions already")
                .with_condition(Condition::TooManyConnections)
                .with_detail(format!("{count_max} sessions are open, which is the limit"))
                .with_hint("close sessions that nobody uses, or use a pool"));
        }
        sessions.insert(session.handle, Arc::new(session));
        Ok(())
    }

    /// The session under a handle, which counts as used now.
    ///
    /// # Errors
    /// Not found: there is none, or no more.
    pub(crate) fn session(&self, handle: Option<Handle>) -> Result<Arc<HiveSession>> {
        let found = handle.and_then(|handle| self.sessions.lock().get(&handle).cloned());
        let found = found.ok_or_else(no_session)?;
        *found.used.lock() = clock::monotonic();
        Ok(found)
    }

    /// The operation under a handle, with its session; both count as used now.
    ///
    /// # Errors
    /// Not found: there is none, or no more.
    pub(crate) fn operation(
        &self,
        handle: Option<Handle>,
    ) -> Result<(Arc<HiveSession>, Arc<Operation>)> {
        let found = handle.and_then(|handle| self.operations.lock().get(&handle).cloned());
        let (session, operation) = found.ok_or_else(no_operation)?;
        operation.touch();
        *session.used.lock() = clock::monotonic();
        Ok((session, operation))
    }

    /// Enters an operation.
    ///
    /// # Errors
    /// 53400: the session has as many as it may have. Not found: it was closed meanwhile.
    pub(crate) fn begin(
        &self,
        session: &Arc<HiveSession>,
        operation: Operation,
    ) -> Result<Arc<Operation>> {
        let mut own = session.operations.lock();
        let own = own.as_mut().ok_or_else(no_session)?;
        if own.len() >= OPERATIONS_MAX {
            let text = format!("this session has {OPERATIONS_MAX} open operations");
            return Err(Error::new(ErrorKind::Exhausted, text)
                .with_sqlstate("53400")
                .with_hint("close statements whose rows were read"));
        }
        own.push(operation.handle);
        let operation = Arc::new(operation);
        let entry = (Arc::clone(session), Arc::clone(&operation));
        self.operations.lock().insert(operation.handle, entry);
        Ok(operation)
    }

    /// Forgets an operation, and stops it.
    pub(crate) fn end(&self, handle: Handle, queries: &QueryRegistry) {
        let removed = self.operations.lock().remove(&handle);
        if let Some((session, operation)) = removed {
            if let Some(own) = session.operations.lock().as_mut() {
                own.retain(|one| *one != handle);
            }
            operation.cancel(queries);
        }
    }

    /// Forgets a session with its operations.
    pub(crate) fn close(&self, handle: Handle, queries: &QueryRegistry) {
        let removed = self.sessions.lock().remove(&handle);
        if let Some(session) = removed {
            let own = session.operations.lock().take();
            own.into_iter().flatten().for_each(|operation| self.end(operation, queries));
            session.session.cancel();
        }
    }

    /// Closes all.
    pub(crate) fn close_all(&self, queries: &QueryRegistry) {
        let all: Vec<_> = self.sessions.lock().keys().copied().collect();
        all.into_iter().for_each(|handle| self.close(handle, queries));
    }

    /// Forgets what nobody used for long, and sessions that somebody has terminated.
    pub(crate) fn forget_idle(
        &self,
        session_max: Duration,
        operation_max: Duration,
        queries: &QueryRegistry,
    ) {
        let idle = |(handle, (_, operation)): (&Handle, &(_, Arc<Operation>))| {
            operation.is_idle(operation_max).then_some(*handle)
        };
        let operations: Vec<_> = self.operations.lock().iter().filter_map(idle).collect();
        operations.into_iter().for_each(|handle| self.end(handle, queries));
        let open: Vec<_> = self.sessions.lock().values().cloned().collect();
        for session in open {
            let is_idle = session.used.lock().elapsed() >= session_max && !self.is_busy(&session);
            if is_idle || session.session.is_terminated() {
                self.close(session.handle, queries);
            }
        }
    }

    fn is_busy(&self, session: &HiveSession) -> bool {
        let own = session.operations.lock().clone().unwrap_or_default();
        let operations = self.operations.lock();
        own.iter().any(|handle| operations.get(handle).is_some_and(|(_, one)| one.is_running()))
    }
}

/// Texts as Hive's, which clients look for.
fn no_session() -> Error {
    Error::not_found(
        "Invalid SessionHandle: the session was closed, has expired, or is another role's",
    )
    .with_sqlstate("08003")
    .with_hint("connect again")
}

fn no_operation() -> Error {
    Error::not_found("Invalid OperationHandle: the operation was closed, or has expired")
        .with_sqlstate("HY010")
        .with_hint("run the statement again")
}
