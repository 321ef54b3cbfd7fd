//! A server on a new warehouse, and clients of it.
#![allow(dead_code)] // each test file uses its part

pub mod raw;

use std::sync::Arc;
use std::time::Duration;

use stoa_pgwire::ServeOptions;
use stoa_query::{Engine, EngineOptions};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls};

/// A running server; stops when dropped.
pub struct Server {
    pub port: u16,
    pub engine: Arc<Engine>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    _warehouse: TempDir,
}

impl Server {
    pub async fn start() -> Self {
        Self::start_with(ServeOptions::default()).await
    }

    pub async fn start_with(options: ServeOptions) -> Self {
        Self::start_engine(options, |options| options).await
    }

    /// Starts an engine as `change` wants it.
    pub async fn start_as(change: impl FnOnce(EngineOptions) -> EngineOptions) -> Self {
        Self::start_engine(ServeOptions::default(), change).await
    }

    async fn start_engine(
        options: ServeOptions,
        change: impl FnOnce(EngineOptions) -> EngineOptions,
    ) -> Self {
        let warehouse = tempfile::tempdir().unwrap();
        let url = url::Url::from_directory_path(warehouse.path()).unwrap();
        let engine = Engine::open(change(EngineOptions::new(url))).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel();
        let serving_engine = Arc::clone(&engine);
        let serving = stoa_env::task::spawn(async move {
            let stopped = async { drop(stopped.await) };
            stoa_pgwire::serve_with(listener, serving_engine, options, stopped).await.unwrap();
        });
        Self { port, engine, stop: Some(stop), serving: Some(serving), _warehouse: warehouse }
    }

    /// Asks the server to stop.
    pub fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the server has stopped.
    pub async fn stopped(&mut self) {
        within(self.serving.take().unwrap()).await.unwrap();
    }

    pub fn config(&self) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user("me").dbname("stoa");
        config
    }

    pub async fn connect(&self) -> Client {
        let (client, connection) = self.config().connect(NoTls).await.unwrap();
        stoa_env::task::spawn(connection);
        client
    }

    /// Waits until as many queries run.
    pub async fn until_running(&self, queries: usize) {
        within(async {
            while self.engine.queries().running_count() != queries {
                stoa_env::timer::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }
}

/// Fails a test that waits for what does not come.
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    stoa_env::timer::timeout(Duration::from_secs(60), work).await.expect("waited too long")
}
