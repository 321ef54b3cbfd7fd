//! A client that sends what it is told and shows what comes back, message by message.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::within;

pub struct RawClient {
    socket: TcpStream,
}

/// A message from the server.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub kind: char,
    pub body: Vec<u8>,
}

impl Answer {
    /// A field of an ErrorResponse or NoticeResponse.
    pub fn field(&self, code: u8) -> Option<String> {
        self.body
            .split(|byte| *byte == 0)
            .find(|field| field.first() == Some(&code))
            .map(|field| String::from_utf8(field[1..].to_vec()).unwrap())
    }
}

impl RawClient {
    /// A socket without a word said.
    pub async fn silent(port: u16) -> Self {
        Self { socket: TcpStream::connect(("127.0.0.1", port)).await.unwrap() }
    }

    /// A client that was let in.
    pub async fn connect(port: u16) -> Self {
        let mut client = Self::silent(port).await;
        client.startup(&[("user", "me"), ("database", "stoa")]).await;
        let answers = client.until('Z').await;
        assert_eq!(answers[0].kind, 'R');
        client
    }

    pub async fn startup(&mut self, parameters: &[(&str, &str)]) {
        let mut body = (3_i32 << 16).to_be_bytes().to_vec();
        for (name, value) in parameters {
            body.extend(text(name));
            body.extend(text(value));
        }
        body.push(0);
        let mut packet = (body.len() as i32 + 4).to_be_bytes().to_vec();
        packet.extend(body);
        self.send_bytes(&packet).await;
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    pub async fn send(&mut self, messages: &[Vec<u8>]) {
        self.send_bytes(&messages.concat()).await;
    }

    pub async fn byte(&mut self) -> u8 {
        within(self.socket.read_u8()).await.unwrap()
    }

    /// The next message; `None` at the end of the connection.
    pub async fn next(&mut self) -> Option<Answer> {
        let kind = within(self.socket.read_u8()).await.ok()?;
        let length = self.socket.read_i32().await.unwrap();
        let mut body = vec![0; length as usize - 4];
        self.socket.read_exact(&mut body).await.unwrap();
        Some(Answer { kind: kind.into(), body })
    }

    /// The messages up to the first of `kind`.
    pub async fn until(&mut self, kind: char) -> Vec<Answer> {
        let mut answers = Vec::new();
        while answers.last().is_none_or(|answer: &Answer| answer.kind != kind) {
            answers.push(self.next().await.expect("the connection ended"));
        }
        answers
    }

    /// The kinds of the messages up to `ReadyForQuery`, as one text.
    pub async fn kinds(&mut self) -> String {
        self.until('Z').await.iter().map(|answer| answer.kind).collect()
    }
}

fn text(value: &str) -> Vec<u8> {
    let mut bytes = value.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as i32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &text(sql))
}

pub fn parse(name: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    let mut body = [text(name), text(sql)].concat();
    body.extend((types.len() as u16).to_be_bytes());
    types.iter().for_each(|oid| body.extend(oid.to_be_bytes()));
    message(b'P', &body)
}

pub fn bind(portal: &str, statement: &str, parameters: &[Option<&str>]) -> Vec<u8> {
    let mut body = [text(portal), text(statement)].concat();
    body.extend(0_u16.to_be_bytes());
    body.extend((parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        match parameter {
            None => body.extend((-1_i32).to_be_bytes()),
            Some(value) => {
                body.extend((value.len() as i32).to_be_bytes());
                body.extend(value.as_bytes());
            }
        }
    }
    body.extend(0_u16.to_be_bytes());
    message(b'B', &body)
}

pub fn describe(target: u8, name: &str) -> Vec<u8> {
    message(b'D', &[vec![target], text(name)].concat())
}

pub fn execute(portal: &str, rows_max: i32) -> Vec<u8> {
    message(b'E', &[text(portal), rows_max.to_be_bytes().to_vec()].concat())
}

pub fn sync() -> Vec<u8> {
    message(b'S', b"")
}
