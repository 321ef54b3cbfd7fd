//! Calls of HiveServer2, read from their arguments.

use stoa_error::Result;

use crate::handle::Handle;
use crate::message::{Header, UnknownMethod};
use crate::reader::{Reader, Stop};
use crate::type_id::Kind;

/// Which rows to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orientation {
    /// Those that were not fetched yet.
    Next,
    /// From the first one.
    First,
    /// Another place.
    Other,
}

/// What to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchKind {
    /// The rows of the result.
    Rows,
    /// The lines of the operation's log.
    Log,
}

/// A call. Handles are `None` where the client sent none that a server gives out; texts that it left out are
/// `None`, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Begins a session.
    OpenSession {
        /// The newest version that the client knows: 5 is V6.
        protocol: i32,
        /// Who the client says it is; matters where the transport has not asked.
        user: Option<String>,
        /// Its password.
        password: Option<String>,
        /// `use:database`, `set:hiveconf:…` and so on.
        configuration: Vec<(String, String)>,
    },
    /// Ends a session.
    CloseSession(Option<Handle>),
    /// Asks for a fact about the server, by its number in `TGetInfoType`.
    GetInfo {
        /// The session.
        session: Option<Handle>,
        /// The fact.
        info: i32,
    },
    /// Runs a statement.
    ExecuteStatement {
        /// The session.
        session: Option<Handle>,
        /// Its text.
        statement: String,
        /// Whether the answer does not wait for its end.
        run_async: bool,
        /// Seconds that it may take; 0 is no limit.
        timeout_s: i64,
    },
    /// Lists the types.
    GetTypeInfo(Option<Handle>),
    /// Lists the catalogs.
    GetCatalogs(Option<Handle>),
    /// Lists the kinds of tables.
    GetTableTypes(Option<Handle>),
    /// Lists the databases.
    GetSchemas {
        /// The session.
        session: Option<Handle>,
        /// Pattern of their names.
        schema: Option<String>,
    },
    /// Lists tables.
    GetTables {
        /// The session.
        session: Option<Handle>,
        /// Pattern of the databases' names.
        schema: Option<String>,
        /// Pattern of the tables' names.
        table: Option<String>,
        /// Their kinds; all if `None`.
        types: Option<Vec<String>>,
    },
    /// Lists columns.
    GetColumns {
        /// The session.
        session: Option<Handle>,
        /// Pattern of the databases' names.
        schema: Option<String>,
        /// Pattern of the tables' names.
        table: Option<String>,
        /// Pattern of the columns' names.
        column: Option<String>,
    },
    /// Lists functions.
    GetFunctions {
        /// The session.
        session: Option<Handle>,
        /// Pattern of their names.
        function: Option<String>,
    },
    /// Lists primary keys.
    GetPrimaryKeys(Option<Handle>),
    /// Lists foreign keys.
    GetCrossReference(Option<Handle>),
    /// Asks how far an operation is; waits a little for its end.
    GetOperationStatus {
        /// The operation.
        operation: Option<Handle>,
        /// Whether the client wants to show progress.
        progress: bool,
    },
    /// Stops an operation.
    CancelOperation(Option<Handle>),
    /// Ends an operation and forgets its result.
    CloseOperation(Option<Handle>),
    /// Asks for the columns of a result.
    GetResultSetMetadata(Option<Handle>),
    /// Fetches rows, or lines of the log.
    FetchResults {
        /// The operation.
        operation: Option<Handle>,
        /// From where.
        orientation: Orientation,
        /// Rows at most.
        rows_max: i64,
        /// Rows or log.
        kind: FetchKind,
    },
    /// Asks for the server's own name of a query.
    GetQueryId(Option<Handle>),
    /// Tells something about the client.
    SetClientInfo {
        /// The session.
        session: Option<Handle>,
        /// `ApplicationName` and so on.
        configuration: Vec<(String, String)>,
    },
    /// Asks for a token of Kerberos: get, cancel or renew.
    DelegationToken,
}

impl Request {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// The outer one: the bytes are no message (08P01). The inner one: there is no such call.
    pub fn read(header: &Header, reader: &mut Reader<'_>) -> Result<Result<Self, UnknownMethod>> {
        let Some(mut call) = Call::named(&header.name) else { return Ok(Err(UnknownMethod)) };
        let read = reader.fields(|reader, id, kind| match (id, kind) {
            (1, Kind::Struct) => reader.fields(|r, id, kind| call.take(r, id, kind)).map(|()| true),
            _ => Ok(false),
        });
        read?;
        Ok(call.request().ok_or(UnknownMethod))
    }
}

/// What fields 2 and up of a request struct are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    OpenSession,
    GetInfo,
    Execute,
    /// Nothing but a handle matters.
    Handle,
    /// Texts: catalog, then patterns.
    Patterns,
    Status,
    Fetch,
    ClientInfo,
}

/// Fields of a call, as far as they were read.
struct Call<'a> {
    name: &'a str,
    shape: Shape,
    handle: Option<Handle>,
    numbers: [i64; 2],
    flag: bool,
    texts: [Option<String>; 4],
    types: Option<Vec<String>>,
    pairs: Vec<(String, String)>,
}

impl<'a> Call<'a> {
    fn named(name: &'a str) -> Option<Self> {
        let shape = match name {
            "OpenSession" => Shape::OpenSession,
            "GetInfo" => Shape::GetInfo,
            "ExecuteStatement" => Shape::Execute,
            "CloseSession"
            | "GetTypeInfo"
            | "GetCatalogs"
            | "GetTableTypes"
            | "GetPrimaryKeys"
            | "GetCrossReference"
            | "CancelOperation"
            | "CloseOperation"
            | "GetResultSetMetadata"
            | "GetQueryId"
            | "GetDelegationToken"
            | "CancelDelegationToken"
            | "RenewDelegationToken" => Shape::Handle,
            "GetSchemas" | "GetTables" | "GetColumns" | "GetFunctions" => Shape::Patterns,
            "GetOperationStatus" => Shape::Status,
            "FetchResults" => Shape::Fetch,
            "SetClientInfo" => Shape::ClientInfo,
            _ => return None,
        };
        Some(Self {
            name,
            shape,
            handle: None,
            numbers: [0; 2],
            flag: false,
            texts: Default::default(),
            types: None,
            pairs: Vec::new(),
        })
    }

    /// Takes a field of the request struct; `false` if it does not matter.
    fn take(&mut self, reader: &mut Reader<'_>, id: i16, kind: Kind) -> Result<bool, Stop> {
        match (self.shape, id, kind) {
            (Shape::OpenSession, 1, Kind::I32) | (Shape::GetInfo | Shape::Fetch, 2, Kind::I32) => {
                self.numbers[0] = reader.i32()?.into();
            }
            (Shape::OpenSession, 2, Kind::Bytes) => self.texts[0] = Some(text(reader)?),
            (Shape::OpenSession, 3, Kind::Bytes) => self.texts[1] = Some(text(reader)?),
            (Shape::OpenSession, 4, Kind::Map) | (Shape::ClientInfo, 2, Kind::Map) => {
                self.pairs = reader.pairs()?;
            }
            (Shape::Execute, 2, Kind::Bytes) => self.texts[0] = Some(text(reader)?),
            (Shape::Execute, 4, Kind::Bool) | (Shape::Status, 2, Kind::Bool) => {
                self.flag = reader.byte()? != 0;
            }
            (Shape::Execute, 5, Kind::I64) => self.numbers[0] = reader.i64()?,
            (Shape::Patterns, 2..=5, Kind::Bytes) => {
                if let Some(place) = self.texts.get_mut(usize::from(id.unsigned_abs()) - 2) {
                    *place = Some(text(reader)?);
                }
            }
            (Shape::Patterns, 5, Kind::List) => self.types = Some(reader.texts()?),
            (Shape::Fetch, 3, Kind::I64) => self.numbers[1] = reader.i64()?,
            (Shape::Fetch, 4, Kind::I16) => self.flag = reader.i16()? != 0,
            (Shape::OpenSession, _, _) => return Ok(false),
            (_, 1, Kind::Struct) => self.handle = Handle::read(reader)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn request(self) -> Option<Request> {
        let session = self.handle;
        let operation = self.handle;
        let [first, second, third, fourth] = self.texts;
        Some(match self.name {
            "OpenSession" => Request::OpenSession {
                protocol: i32::try_from(self.numbers[0]).unwrap_or_default(),
                user: first,
                password: second,
                configuration: self.pairs,
            },
            "CloseSession" => Request::CloseSession(session),
            "GetInfo" => {
                let info = i32::try_from(self.numbers[0]).unwrap_or_default();
                Request::GetInfo { session, info }
            }
            "ExecuteStatement" => Request::ExecuteStatement {
                session,
                statement: first.unwrap_or_default(),
                run_async: self.flag,
                timeout_s: self.numbers[0],
            },
            "GetTypeInfo" => Request::GetTypeInfo(session),
            "GetCatalogs" => Request::GetCatalogs(session),
            "GetTableTypes" => Request::GetTableTypes(session),
            "GetSchemas" => Request::GetSchemas { session, schema: second },
            "GetTables" => {
                Request::GetTables { session, schema: second, table: third, types: self.types }
            }
            "GetColumns" => {
                Request::GetColumns { session, schema: second, table: third, column: fourth }
            }
            "GetFunctions" => Request::GetFunctions { session, function: third },
            "GetPrimaryKeys" => Request::GetPrimaryKeys(session),
            "GetCrossReference" => Request::GetCrossReference(session),
            "GetOperationStatus" => Request::GetOperationStatus { operation, progress: self.flag },
            "CancelOperation" => Request::CancelOperation(operation),
            "CloseOperation" => Request::CloseOperation(operation),
            "GetResultSetMetadata" => Request::GetResultSetMetadata(operation),
            "FetchResults" => Request::FetchResults {
                operation,
                orientation: match self.numbers[0] {
                    0 => Orientation::Next,
                    4 => Orientation::First,
                    _ => Orientation::Other,
                },
                rows_max: self.numbers[1],
                kind: if self.flag { FetchKind::Log } else { FetchKind::Rows },
            },
            "GetQueryId" => Request::GetQueryId(operation),
            "SetClientInfo" => Request::SetClientInfo { session, configuration: self.pairs },
            "GetDelegationToken" | "CancelDelegationToken" | "RenewDelegationToken" => {
                Request::DelegationToken
            }
            _ => return None,
        })
    }
}

fn text(reader: &mut Reader<'_>) -> Result<String, Stop> {
    reader.text().map(str::to_owned)
}
