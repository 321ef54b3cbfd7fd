//! A server on a free port, and connections to it that send what they are told.

use std::net::SocketAddr;
use std::sync::Arc;

use stoa_hs2::{HiveOptions, serve_with};
use stoa_query::{Engine, EngineOptions};
use stoa_thrift::Writer;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use url::Url;

pub struct Server {
    pub engine: Arc<Engine>,
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<stoa_error::Result<()>>,
    _warehouse: TempDir,
}

impl Server {
    pub async fn start(options: HiveOptions) -> Self {
        let warehouse = tempfile::tempdir().unwrap();
        let url = Url::from_directory_path(warehouse.path()).unwrap();
        let logs = Some(url.join("_log/").unwrap());
        let engine = EngineOptions { threads: 2, logs, ..EngineOptions::new(url) };
        let engine = Engine::open(engine).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async {
            let _ = stopped.await;
        };
        let serving = serve_with(listener, Arc::clone(&engine), options, shutdown);
        let running = stoa_env::task::spawn(serving);
        Self { engine, address, stop: Some(stop), running, _warehouse: warehouse }
    }

    pub async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    pub async fn stop(mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.running.await.unwrap().unwrap();
    }
}

/// A connection.
pub struct Client(pub TcpStream);

impl Client {
    pub async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// All that comes until the server closes the connection, or resets it.
    pub async fn rest(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest).await;
        rest
    }

    /// So many bytes.
    pub async fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    /// Opens a session without SASL; returns its handle as the server wrote it.
    pub async fn open(&mut self) -> Vec<u8> {
        self.send(&open_session(9)).await;
        let begin = self.read(4 + 4 + 11 + 4).await;
        assert!(begin.ends_with(&[0, 0, 0, 0]), "{begin:?}");
        // Success, the version, and the handle: a struct of two texts of 16 bytes.
        let status = self.read(3 + 3 + 7 + 1).await;
        assert_eq!(status[6..], [8, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(self.read(7).await, [8, 0, 2, 0, 0, 0, 9]);
        let handle = self.read(3 + 3 + 2 * 23 + 2).await;
        // An empty map, and the ends.
        assert_eq!(self.read(3 + 6 + 2).await.len(), 11);
        handle[3..].to_vec()
    }
}

pub fn call(name: &str, arguments: &[u8]) -> Vec<u8> {
    let mut out = Writer::new();
    out.raw(&[0x80, 1, 0, 1]);
    out.bytes(name.as_bytes());
    out.i32(0);
    out.raw(arguments);
    out.into_bytes()
}

/// OpenSession of a client that knows a version.
pub fn open_session(version: i32) -> Vec<u8> {
    let mut out = Writer::new();
    out.structure(1, |out| out.i32_field(1, version));
    out.stop();
    call("OpenSession", &out.into_bytes())
}

/// A statement to be run in a session.
pub fn execute(handle: &[u8], sql: &str, run_async: bool) -> Vec<u8> {
    let mut out = Writer::new();
    out.structure(1, |out| {
        out.field(stoa_thrift::Kind::Struct, 1);
        out.raw(handle);
        out.text_field(2, sql);
        out.bool_field(4, run_async);
    });
    out.stop();
    call("ExecuteStatement", &out.into_bytes())
}
