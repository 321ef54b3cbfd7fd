//! Answers of HiveServer2, written as the structs that each call has for them.

use crate::handle::Handle;
use crate::message::{Header, REPLY};
use crate::type_id::{Kind, TypeId};
use crate::writer::Writer;

/// `TStatusCode`.
const SUCCESS: i32 = 0;
const ERROR: i32 = 3;
/// The version that an answer without a session repeats; clients do not look at it.
const NO_PROTOCOL: i32 = 5;

/// What an operation is, as `TOperationType` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Their names say it.
pub enum OperationKind {
    Statement = 0,
    TypeInfo = 1,
    Catalogs = 2,
    Schemas = 3,
    Tables = 4,
    TableTypes = 5,
    Columns = 6,
    Functions = 7,
    Unknown = 8,
}

/// How far an operation is, as `TOperationState` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationState {
    /// It runs.
    Running = 1,
    /// There are rows to fetch, or there will be none.
    Finished = 2,
    /// Somebody stopped it.
    Canceled = 3,
    /// It failed.
    Failed = 5,
    /// It took longer than it may.
    TimedOut = 8,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What clients show.
    pub message: String,
    /// The SQLSTATE.
    pub sql_state: &'static str,
    /// Hive's code of the error.
    pub code: i32,
}

/// A fact about the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InfoValue {
    /// A text.
    Text(String),
    /// A number of two bytes.
    Small(i16),
    /// A length.
    Length(i64),
}

/// How far a running operation is, for clients that show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Titles of the columns of `rows`.
    pub header: Vec<String>,
    /// A table.
    pub rows: Vec<Vec<String>>,
    /// 0 to 1.
    pub share: f64,
    /// The line below.
    pub footer: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: i64,
    /// Whether nothing more will come.
    pub is_complete: bool,
}

/// What is known of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationStatus {
    /// How far it is.
    pub state: OperationState,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: i64,
    /// The same, of its end.
    pub completed_unix_ms: Option<i64>,
    /// Whether it has columns.
    pub has_rows: bool,
    /// Rows that it changed.
    pub changed_rows: Option<i64>,
    /// How far it is, if the client asked.
    pub progress: Option<Progress>,
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_id: TypeId,
    /// Numbers that belong to the type: `precision`, `scale`, `characterMaximumLength`.
    pub qualifiers: Vec<(&'static str, i32)>,
    /// What it is for.
    pub comment: Option<String>,
}

/// A page of rows, column by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSet {
    /// The number of the first row, from 0.
    pub first_row: i64,
    /// How many columns there are.
    pub column_count: usize,
    /// So many `TColumn` structs, one after another.
    pub columns: Vec<u8>,
    /// Whether there may be more rows.
    pub has_more: bool,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is done.
    Done,
    /// A session was begun.
    Opened {
        /// The version that both know: 5 is V6.
        protocol: i32,
        /// The session.
        session: Handle,
        /// Settings that the client is told.
        configuration: Vec<(String, String)>,
    },
    /// A fact.
    Info(InfoValue),
    /// An operation was begun.
    Operation {
        /// The operation.
        handle: Handle,
        /// What it is.
        kind: OperationKind,
        /// Whether it has columns.
        has_rows: bool,
    },
    /// How far an operation is.
    Status(OperationStatus),
    /// The columns of a result.
    Schema(Vec<Column>),
    /// Rows.
    Rows(RowSet),
    /// The server's own name of a query.
    QueryId(String),
    /// It failed.
    Failed(Failure),
}

impl Answer {
    /// The bytes that answer the call.
    pub fn write(&self, header: &Header) -> Vec<u8> {
        if let (Self::Failed(failure), "GetQueryId") = (self, header.name.as_str()) {
            // Its answer has no status.
            return crate::message::exception(header, &failure.message);
        }
        let mut out = Writer::new();
        out.message_begin(REPLY, &header.name, header.sequence);
        out.structure(0, |out| self.write_fields(&header.name, out));
        out.stop();
        out.into_bytes()
    }

    fn write_fields(&self, name: &str, out: &mut Writer) {
        if let Self::QueryId(id) = self {
            return out.text_field(1, id);
        }
        match self {
            Self::Failed(failure) => failure.write_status(out),
            _ => out.structure(1, |out| out.i32_field(1, SUCCESS)),
        }
        match self {
            Self::Done | Self::QueryId(_) => {}
            Self::Failed(_) => write_required(name, out),
            Self::Opened { protocol, session, configuration } => {
                out.i32_field(2, *protocol);
                out.structure(3, |out| session.write(1, out));
                out.map_field(4, Kind::Bytes, configuration.len());
                for (key, value) in configuration {
                    out.bytes(key.as_bytes());
                    out.bytes(value.as_bytes());
                }
            }
            Self::Info(value) => out.structure(2, |out| value.write(out)),
            Self::Operation { handle, kind, has_rows } => out.structure(2, |out| {
                handle.write(1, out);
                out.i32_field(2, *kind as i32);
                out.bool_field(3, *has_rows);
            }),
            Self::Status(status) => status.write(out),
            Self::Schema(columns) => out.structure(2, |out| write_schema(columns, out)),
            Self::Rows(rows) => {
                out.bool_field(2, rows.has_more);
                out.structure(3, |out| rows.write(out));
            }
        }
    }
}

/// Fields without which clients refuse an answer, also one that says that the call failed.
fn write_required(name: &str, out: &mut Writer) {
    match name {
        "OpenSession" => out.i32_field(2, NO_PROTOCOL),
        "GetInfo" => out.structure(2, |out| InfoValue::Text(String::new()).write(out)),
        _ => {}
    }
}

impl Failure {
    /// Writes it as the status of an answer. Messages for information are left out: Java's clients take them
    /// for a serialised stack trace.
    fn write_status(&self, out: &mut Writer) {
        out.structure(1, |out| {
            out.i32_field(1, ERROR);
            out.text_field(3, self.sql_state);
            out.i32_field(4, self.code);
            out.text_field(5, &self.message);
        });
    }
}

impl InfoValue {
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Text(text) => out.text_field(1, text),
            Self::Small(number) => out.i16_field(2, *number),
            Self::Length(length) => out.i64_field(6, *length),
        }
    }
}

impl OperationStatus {
    fn write(&self, out: &mut Writer) {
        out.i32_field(2, self.state as i32);
        if let Some(failure) = &self.failure {
            out.text_field(3, failure.sql_state);
            out.i32_field(4, failure.code);
            out.text_field(5, &failure.message);
        }
        out.i64_field(7, self.started_unix_ms);
        if let Some(completed) = self.completed_unix_ms {
            out.i64_field(8, completed);
        }
        out.bool_field(9, self.has_rows);
        if let Some(progress) = &self.progress {
            out.structure(10, |out| progress.write(out));
        }
        if let Some(rows) = self.changed_rows {
            out.i64_field(11, rows);
        }
    }
}

impl Progress {
    fn write(&self, out: &mut Writer) {
        out.texts_field(1, &self.header);
        out.field(Kind::List, 2);
        out.list(Kind::List, self.rows.len());
        self.rows.iter().for_each(|row| out.texts(row));
        out.double_field(3, self.share);
        // `TJobExecutionStatus`.
        out.i32_field(4, i32::from(self.is_complete));
        out.text_field(5, &self.footer);
        out.i64_field(6, self.started_unix_ms);
    }
}

fn write_schema(columns: &[Column], out: &mut Writer) {
    out.field(Kind::List, 1);
    out.list(Kind::Struct, columns.len());
    for (column, position) in columns.iter().zip(1..) {
        out.text_field(1, &column.name);
        out.structure(2, |out| column.write_type(out));
        out.i32_field(3, position);
        if let Some(comment) = &column.comment {
            out.text_field(4, comment);
        }
        out.stop();
    }
}

impl Column {
    /// A `TTypeDesc` with one entry: Hive writes arrays, maps and structs as primitive entries as well.
    fn write_type(&self, out: &mut Writer) {
        out.field(Kind::List, 1);
        out.list(Kind::Struct, 1);
        out.structure(1, |out| {
            out.i32_field(1, self.type_id as i32);
            if !self.qualifiers.is_empty() {
                out.structure(2, |out| self.write_qualifiers(out));
            }
        });
        out.stop();
    }

    fn write_qualifiers(&self, out: &mut Writer) {
        out.map_field(1, Kind::Struct, self.qualifiers.len());
        for (name, value) in &self.qualifiers {
            out.bytes(name.as_bytes());
            out.i32_field(1, *value);
            out.stop();
        }
    }
}

impl RowSet {
    fn write(&self, out: &mut Writer) {
        out.i64_field(1, self.first_row);
        out.field(Kind::List, 2);
        // Rows one by one are of versions before V6.
        out.list(Kind::Struct, 0);
        out.field(Kind::List, 3);
        out.list(Kind::Struct, self.column_count);
        out.raw(&self.columns);
    }
}
