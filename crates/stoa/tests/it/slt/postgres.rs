//! The PostgreSQL protocol, message by message: the simple protocol, and the extended one with every
//! statement parsed, bound, described and executed. Values come as text with the OID of their type.

use std::sync::Arc;

use async_trait::async_trait;
use stoa_testkit::slt::{Answer, Cell, Connection, Failure, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::run_on_server;

struct Postgres {
    port: u16,
    /// Whether statements go by the extended protocol.
    is_extended: bool,
}

#[async_trait]
impl Protocol for Postgres {
    fn name(&self) -> &'static str {
        if self.is_extended { "extended" } else { "postgres" }
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, Failure> {
        let socket = TcpStream::connect(("127.0.0.1", self.port)).await.map_err(Failure::broken)?;
        let mut client = Client { socket, is_extended: self.is_extended };
        client.start().await?;
        Ok(Box::new(client))
    }
}

struct Client {
    socket: TcpStream,
    is_extended: bool,
}

/// A message from the server.
struct Message {
    kind: u8,
    body: Vec<u8>,
}

#[async_trait]
impl Connection for Client {
    async fn run(&mut self, sql: &str) -> Result<Answer, Failure> {
        // Rows of COPY are asked for and sent by messages of their own.
        let is_copy = sql.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("COPY"));
        let messages = match self.is_extended && !is_copy {
            true => extended(sql),
            false => message(b'Q', &[text(sql)]),
        };
        self.send(&messages).await?;
        self.answer().await
    }
}

impl Client {
    async fn start(&mut self) -> Result<(), Failure> {
        let version = (3_i32 << 16).to_be_bytes().to_vec();
        let names = [text("user"), text("me"), text("database"), text("stoa"), vec![0]];
        let body = [version, names.concat()].concat();
        let packet = [length_of(body.len()), body].concat();
        self.send(&packet).await?;
        self.answer().await.map(|_| ())
    }

    /// Everything up to ReadyForQuery.
    async fn answer(&mut self) -> Result<Answer, Failure> {
        let (mut failure, mut columns, mut rows, mut changed) = (None, None, Vec::new(), 0);
        loop {
            let Message { kind, body } = self.next().await?;
            match kind {
                b'T' => columns = Some(cells_of(&body)),
                b'D' => rows.push(row(&body, columns.as_deref().unwrap_or_default())),
                b'C' => changed = changed_rows(&body),
                // A client that has no rows to send.
                b'G' => self.send(&message(b'c', &[])).await?,
                b'H' => columns = Some(Vec::new()),
                b'd' => rows.extend(lines(&body)),
                b'E' => failure = Some(failure_of(&body)),
                b'Z' => break,
                _ => {}
            }
        }
        match (failure, columns) {
            (Some(failure), _) => Err(failure),
            (None, Some(_)) => Ok(Answer::Rows(rows)),
            (None, None) => Ok(Answer::Done(changed)),
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.socket.write_all(bytes).await.map_err(Failure::broken)
    }

    async fn next(&mut self) -> Result<Message, Failure> {
        let kind = self.socket.read_u8().await.map_err(Failure::broken)?;
        let length = self.socket.read_u32().await.map_err(Failure::broken)?;
        let mut body = vec![0; length as usize - 4];
        self.socket.read_exact(&mut body).await.map_err(Failure::broken)?;
        Ok(Message { kind, body })
    }
}

/// Parse, Bind, Describe, Execute and Sync of a statement without parameters.
fn extended(sql: &str) -> Vec<u8> {
    let none = || vec![0, 0];
    [
        message(b'P', &[text(""), text(sql), none()]),
        message(b'B', &[text(""), text(""), none(), none(), none()]),
        message(b'D', &[b"P".to_vec(), text("")]),
        message(b'E', &[text(""), 0_i32.to_be_bytes().to_vec()]),
        message(b'S', &[]),
    ]
    .concat()
}

fn message(kind: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    let body = parts.concat();
    [vec![kind], length_of(body.len()), body].concat()
}

/// The length of a message, which counts itself.
fn length_of(body: usize) -> Vec<u8> {
    u32::try_from(body + 4).unwrap().to_be_bytes().to_vec()
}

fn text(value: &str) -> Vec<u8> {
    [value.as_bytes(), &[0]].concat()
}

/// What the columns of a RowDescription hold.
fn cells_of(mut body: &[u8]) -> Vec<Cell> {
    let columns = u16::from_be_bytes(take(&mut body));
    (0..columns)
        .map(|_| {
            let name = body.iter().position(|byte| *byte == 0).unwrap();
            // The column's table and its number there.
            body = &body[name + 1 + 6..];
            let oid = u32::from_be_bytes(take(&mut body));
            // Length, modifier and format.
            body = &body[8..];
            Cell::of_oid(oid)
        })
        .collect()
}

/// The cells of a DataRow.
fn row(mut body: &[u8], columns: &[Cell]) -> Vec<String> {
    let values = u16::from_be_bytes(take(&mut body));
    assert_eq!(usize::from(values), columns.len());
    let mut cell = |column: &Cell| {
        let Ok(length) = usize::try_from(i32::from_be_bytes(take(&mut body))) else {
            return column.cell(None);
        };
        let (value, rest) = body.split_at(length);
        body = rest;
        column.cell(Some(std::str::from_utf8(value).unwrap()))
    };
    columns.iter().map(&mut cell).collect()
}

fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (first, rest) = bytes.split_first_chunk::<N>().unwrap();
    *bytes = rest;
    *first
}

/// The lines of a CopyData, each as a row of one cell.
fn lines(body: &[u8]) -> Vec<Vec<String>> {
    String::from_utf8_lossy(body).lines().map(|line| vec![line.to_owned()]).collect()
}

/// The number at the end of a command tag.
fn changed_rows(body: &[u8]) -> u64 {
    let tag = String::from_utf8_lossy(body);
    let number = tag.trim_end_matches('\0').rsplit(' ').next().map(str::parse);
    number.and_then(Result::ok).unwrap_or_default()
}

fn failure_of(body: &[u8]) -> Failure {
    let field = |code: u8| {
        let mut fields = body.split(|byte| *byte == 0);
        let found = fields.find(|field| field.first() == Some(&code));
        found.map(|field| String::from_utf8_lossy(&field[1..]).into_owned()).unwrap_or_default()
    };
    Failure { sqlstate: field(b'C'), message: [field(b'M'), field(b'D'), field(b'H')].join("\n") }
}

async fn run_file(name: &str) {
    run_on_server(name, |server| Arc::new(Postgres { port: server.pg_port(), is_extended: false }))
        .await;
}

async fn run_file_extended(name: &str) {
    run_on_server(name, |server| Arc::new(Postgres { port: server.pg_port(), is_extended: true }))
        .await;
}

mod simple {
    stoa_testkit::slt_tests!(super::run_file);
}

mod extended_protocol {
    stoa_testkit::slt_tests!(super::run_file_extended);
}
