//! The calls: whose session, which operation, and what is answered.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use stoa_env::task;
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_hiveql::without_prefix;
use stoa_query::{Engine, SessionOptions};
use stoa_thrift::{
    Answer, Failure, FetchKind, Handle, Header, OperationKind, Orientation, Reader, Request,
    read_header,
};

use crate::operation::Operation;
use crate::options::HiveOptions;
use crate::peer::{Peer, new_handle};
use crate::sessions::{HiveSession, Sessions};
use crate::statement::{self, Begun};
use crate::{catalog, failure, info, type_info};

/// Name of the sessions' protocol in lists of queries.
const PROTOCOL: &str = "hive";
/// The user of who does not say who he is.
const ANONYMOUS: &str = "stoa";
/// Versions of the protocol: rows as columns are in all from V6 on.
const V6: i32 = 5;
const V11: i32 = 10;
/// The setting of a session that asks for a pool of the resource plan.
const POOL_KEY: &str = "wmpool";
/// Settings of a session that name the program that asks, for rules of workloads.
const APPLICATION_KEYS: [&str; 3] = ["applicationName", "ApplicationName", "wmapp"];
/// The setting of a session by which somebody asks to be taken for somebody else.
const PROXY_USER: &str = "hive.server2.proxy.user";

/// What all connections share.
pub(crate) struct Service {
    pub(crate) engine: Arc<Engine>,
    pub(crate) options: HiveOptions,
    sessions: Sessions,
}

impl Service {
    pub(crate) fn new(engine: Arc<Engine>, options: HiveOptions) -> Self {
        Self { engine, options, sessions: Sessions::default() }
    }

    /// Answers one message.
    ///
    /// # Errors
    /// It is no call (08P01).
    pub(crate) async fn call(&self, message: &[u8], peer: &mut Peer) -> Result<Vec<u8>> {
        let mut reader = Reader::new(message);
        let header = read_header(&mut reader)?;
        match Request::read(&header, &mut reader)? {
            Ok(request) => Ok(self.answer(request, peer).await.write(&header)),
            Err(unknown) => Ok(unknown.answer(&header)),
        }
    }

    /// Ends sessions whose client has gone.
    pub(crate) fn forget(&self, opened: &[Handle]) {
        opened.iter().for_each(|handle| self.sessions.close(*handle, self.engine.queries()));
    }

    /// Ends what nobody has used for long.
    pub(crate) fn forget_idle(&self) {
        let HiveOptions { session_idle_max, operation_idle_max, .. } = self.options;
        self.sessions.forget_idle(session_idle_max, operation_idle_max, self.engine.queries());
    }

    /// Ends all sessions.
    pub(crate) fn forget_all(&self) {
        self.sessions.close_all(self.engine.queries());
    }

    /// Completes when somebody terminates one of the sessions.
    pub(crate) async fn terminated(&self, opened: &[Handle]) {
        let sessions = opened.iter().filter_map(|handle| self.sessions.session(Some(*handle)).ok());
        let waits: Vec<_> =
            sessions.map(|own| Box::pin(async move { own.session.terminated().await })).collect();
        match waits.is_empty() {
            true => std::future::pending().await,
            false => drop(futures::future::select_all(waits).await),
        }
    }

    async fn answer(&self, request: Request, peer: &mut Peer) -> Answer {
        self.try_answer(request, peer).await.unwrap_or_else(Answer::Failed)
    }

    async fn try_answer(&self, request: Request, peer: &mut Peer) -> Result<Answer, Failure> {
        let of_call = |error: Error| failure::of_call(&error);
        let rows = match request {
            Request::OpenSession { protocol, user, password, configuration } => {
                let opening = self.open(protocol, user, password, configuration, peer);
                return opening.await.map_err(of_call);
            }
            Request::CloseSession(session) => {
                let own = self.session(session, peer).map_err(of_call)?;
                self.sessions.close(own.handle, self.engine.queries());
                peer.opened.retain(|handle| *handle != own.handle);
                return Ok(Answer::Done);
            }
            Request::GetInfo { session, info } => {
                self.session(session, peer).map_err(of_call)?;
                return info::info(info).map(Answer::Info).map_err(of_call);
            }
            Request::ExecuteStatement { session, statement, run_async, timeout_s } => {
                let own = self.session(session, peer).map_err(of_call)?;
                return self.execute(&own, &statement, run_async, timeout_s).await;
            }
            Request::GetOperationStatus { operation, progress } => {
                let operation = self.operation(operation, peer).map_err(of_call)?;
                let status = operation.status(progress, self.engine.queries()).await;
                return Ok(Answer::Status(status));
            }
            Request::CancelOperation(operation) => {
                let operation = self.operation(operation, peer).map_err(of_call)?;
                operation.cancel(self.engine.queries());
                return Ok(Answer::Done);
            }
            Request::CloseOperation(operation) => {
                let operation = self.operation(operation, peer).map_err(of_call)?;
                self.sessions.end(operation.handle, self.engine.queries());
                return Ok(Answer::Done);
            }
            Request::GetResultSetMetadata(operation) => {
                let operation = self.operation(operation, peer).map_err(of_call)?;
                return Ok(Answer::Schema(operation.columns()));
            }
            Request::FetchResults { operation, orientation, rows_max, kind } => {
                let operation = self.operation(operation, peer).map_err(of_call)?;
                return fetch(&operation, orientation, rows_max, kind).await.map(Answer::Rows);
            }
            Request::GetQueryId(operation) => {
                let operation = self.operation(operation, peer).map_err(of_call)?;
                return Ok(Answer::QueryId(operation.handle.name()));
            }
            Request::SetClientInfo { session, .. } => {
                self.session(session, peer).map_err(of_call)?;
                return Ok(Answer::Done);
            }
            Request::DelegationToken => return Err(of_call(no_tokens())),
            metadata => self.metadata(metadata, peer).await.map_err(of_call)?,
        };
        let (own, kind, rows) = rows;
        self.begin(&own, Operation::done(&own.session, kind, Some(rows)))
            .map(|operation| answer_of(&operation))
            .map_err(of_call)
    }

    /// The rows of a call for metadata.
    async fn metadata(
        &self,
        request: Request,
        peer: &Peer,
    ) -> Result<(Arc<HiveSession>, OperationKind, RecordBatch)> {
        let engine = &self.engine;
        Ok(match request {
            Request::GetTypeInfo(session) => {
                (self.session(session, peer)?, OperationKind::TypeInfo, type_info::type_info()?)
            }
            Request::GetCatalogs(session) => {
                (self.session(session, peer)?, OperationKind::Catalogs, catalog::catalogs()?)
            }
            Request::GetTableTypes(session) => {
                (self.session(session, peer)?, OperationKind::TableTypes, catalog::table_types()?)
            }
            Request::GetPrimaryKeys(session) => {
                (self.session(session, peer)?, OperationKind::Unknown, catalog::primary_keys()?)
            }
            Request::GetCrossReference(session) => {
                (self.session(session, peer)?, OperationKind::Unknown, catalog::cross_reference()?)
            }
            Request::GetSchemas { session, schema } => {
                let own = self.session(session, peer)?;
                (own, OperationKind::Schemas, catalog::schemas(engine, schema.as_deref()).await?)
            }
            Request::GetTables { session, schema, table, types } => {
                let own = self.session(session, peer)?;
                let (schema, table) = (schema.as_deref(), table.as_deref());
                let rows = catalog::tables(engine, &own.session, schema, table, types.as_deref());
                let rows = rows.await?;
                (own, OperationKind::Tables, rows)
            }
            Request::GetColumns { session, schema, table, column } => {
                let own = self.session(session, peer)?;
                let (schema, table) = (schema.as_deref(), table.as_deref());
                let rows = catalog::columns(engine, &own.session, schema, table, column.as_deref());
                let rows = rows.await?;
                (own, OperationKind::Columns, rows)
            }
            Request::GetFunctions { session, function } => {
                let own = self.session(session, peer)?;
                let rows = catalog::functions(&own.session, function.as_deref()).await?;
                (own, OperationKind::Functions, rows)
            }
            _ => return Err(Error::internal("a call is answered by nobody")),
        })
    }

    async fn open(
        &self,
        protocol: i32,
        user: Option<String>,
        password: Option<String>,
        configuration: Vec<(String, String)>,
        peer: &mut Peer,
    ) -> Result<Answer> {
        if self.engine.is_closing() {
            return Err(Error::unavailable("the server is shutting down")
                .with_sqlstate("57P03")
                .with_hint("connect again later"));
        }
        if protocol < V6 {
            return Err(Error::unsupported(
                "the client's version of the protocol is older than V6",
            )
            .with_sqlstate("08P01")
            .with_hint("use a client of Hive 0.13 or newer"));
        }
        self.let_in(user, password, peer).await?;
        let user = peer.user.clone().unwrap_or_else(|| ANONYMOUS.to_owned());
        let value = |key: &str| {
            let found = configuration.iter().find(|(name, _)| plain_key(name) == key);
            found.map(|(_, value)| value.clone())
        };
        if let Some(other) = value(PROXY_USER).filter(|other| *other != user)
            && self.engine.asks_for_login()
        {
            let text = format!("role \"{user}\" cannot act as \"{other}\"");
            return Err(Error::new(ErrorKind::Forbidden, text)
                .with_hint("connect as that role; impersonation is not supported"));
        }
        let application = APPLICATION_KEYS.iter().find_map(|key| value(key)).unwrap_or_default();
        let session = self.engine.session(SessionOptions {
            user: user.clone(),
            protocol: PROTOCOL,
            application,
            pool: value(POOL_KEY).filter(|name| !name.is_empty()),
            ..SessionOptions::default()
        });
        session.check_pool()?;
        // What its client may change: `SET stoa.dialect=postgres`.
        session.begin_with("dialect", "hive")?;
        if let Some(database) = value("use:database").filter(|name| !name.is_empty()) {
            statement::use_database(&self.engine, &session, &database).await?;
        }
        let handle = new_handle();
        let own = HiveSession::new(handle, session, user);
        let variables = configuration.iter().filter(|(name, _)| name != "use:database");
        for (name, value) in variables {
            match plain_key(name) {
                key if key.starts_with(statement::SETTING_PREFIX) => {
                    statement::set(&own, key, value)?;
                }
                key => own.set_variable(key, value)?,
            }
        }
        self.sessions.insert(own, self.options.max_sessions)?;
        peer.opened.push(handle);
        Ok(Answer::Opened {
            protocol: protocol.min(V11),
            session: handle,
            configuration: Vec::new(),
        })
    }

    /// Checks who begins a session, unless the transport has done so.
    async fn let_in(
        &self,
        user: Option<String>,
        password: Option<String>,
        peer: &mut Peer,
    ) -> Result<()> {
        if self.engine.asks_for_login() && !peer.is_known {
            let Some((user, password)) = user.zip(password) else {
                return Err(Error::new(ErrorKind::Forbidden, "no user and password were given")
                    .with_condition(Condition::InvalidAuthorization)
                    .with_hint(
                        "connect with user and password: the server has access_control on",
                    ));
            };
            self.engine.log_in_from(&user, &password, Some(peer.address)).await?;
            peer.user = Some(user);
        } else if peer.user.is_none() {
            peer.user = user.filter(|name| !name.is_empty());
        }
        peer.is_known = true;
        Ok(())
    }

    /// Checks a password that came with the transport.
    ///
    /// # Errors
    /// As [`Engine::log_in_from`].
    pub(crate) async fn log_in(&self, user: String, password: &str, peer: &mut Peer) -> Result<()> {
        self.engine.log_in_from(&user, password, Some(peer.address)).await?;
        peer.user = Some(user).filter(|name| !name.is_empty());
        peer.is_known = true;
        Ok(())
    }

    /// The session of a call; one of another role is none.
    fn session(&self, handle: Option<Handle>, peer: &Peer) -> Result<Arc<HiveSession>> {
        let own = self.sessions.session(handle)?;
        if own.session.is_terminated() {
            self.sessions.close(own.handle, self.engine.queries());
            return self.sessions.session(None);
        }
        match self.is_of(&own, peer) {
            true => Ok(own),
            false => self.sessions.session(None),
        }
    }

    fn operation(&self, handle: Option<Handle>, peer: &Peer) -> Result<Arc<Operation>> {
        let (own, operation) = self.sessions.operation(handle)?;
        match self.is_of(&own, peer) {
            true => Ok(operation),
            false => self.sessions.operation(None).map(|(_, operation)| operation),
        }
    }

    fn is_of(&self, own: &HiveSession, peer: &Peer) -> bool {
        !self.engine.asks_for_login()
            || (peer.is_known && peer.user.as_deref() == Some(own.user.as_str()))
    }

    fn begin(&self, own: &Arc<HiveSession>, operation: Operation) -> Result<Arc<Operation>> {
        self.sessions.begin(own, operation)
    }

    /// Begins a statement; waits for its first rows unless the client wants to ask for them.
    async fn execute(
        &self,
        own: &Arc<HiveSession>,
        text: &str,
        run_async: bool,
        timeout_s: i64,
    ) -> Result<Answer, Failure> {
        let of_statement = |error: Error| failure::of_statement(&error);
        let timeout = u64::try_from(timeout_s).ok().filter(|seconds| *seconds > 0);
        let timeout = timeout.map(Duration::from_secs);
        let begun =
            statement::begin(&self.engine, own, text, timeout).await.map_err(of_statement)?;
        let (operation, prepared) = match begun {
            Begun::Done(operation) => {
                let operation = self.begin(own, operation).map_err(of_statement)?;
                return Ok(answer_of(&operation));
            }
            Begun::Planned(operation, prepared) => (operation, prepared),
        };
        let operation = self.begin(own, operation).map_err(of_statement)?;
        let queries = self.engine.queries().clone();
        let mut running = Box::pin(Arc::clone(&operation).run(prepared, queries));
        // A report is done at once: another task, on another thread, would cost more than it.
        if futures::poll!(running.as_mut()).is_pending() {
            task::spawn(running);
        }
        if run_async {
            return Ok(answer_of(&operation));
        }
        let mut waiting = Waiting { service: self, operation: Some(operation.handle) };
        operation.ended().await;
        waiting.operation = None;
        match operation.failure() {
            Some(failure) => {
                self.sessions.end(operation.handle, self.engine.queries());
                Err(failure)
            }
            None => Ok(answer_of(&operation)),
        }
    }
}

/// Ends an operation whose client goes away while it waits for it.
struct Waiting<'a> {
    service: &'a Service,
    /// `None` once it has ended.
    operation: Option<Handle>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(operation) = self.operation {
            self.service.sessions.end(operation, self.service.engine.queries());
        }
    }
}

fn answer_of(operation: &Operation) -> Answer {
    Answer::Operation {
        handle: operation.handle,
        kind: operation.kind,
        has_rows: operation.has_rows(),
    }
}

async fn fetch(
    operation: &Operation,
    orientation: Orientation,
    rows_max: i64,
    kind: FetchKind,
) -> Result<stoa_thrift::RowSet, Failure> {
    match kind {
        FetchKind::Rows => operation.page(orientation, rows_max).await,
        FetchKind::Log => operation.log(orientation, rows_max),
    }
}

/// The name of a variable in the configuration of a session, as JDBC (`set:hiveconf:x`) or PyHive (`x`) writes it.
fn plain_key(name: &str) -> &str {
    without_prefix(name.strip_prefix("set:").unwrap_or(name))
}

fn no_tokens() -> Error {
    Error::unsupported("there are no delegation tokens: Kerberos is not supported")
        .with_hint("connect with user and password")
}

/// The answer to a message that is too long to be read.
pub(crate) fn too_long(beginning: &[u8], max: usize) -> Option<Vec<u8>> {
    let header: Header = read_header(&mut Reader::new(beginning)).ok()?;
    let text =
        format!("the message is longer than {max} bytes; load rows with `stoa load` or COPY");
    Some(stoa_thrift::exception(&header, &text))
}
