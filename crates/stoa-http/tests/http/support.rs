//! A server on a free port, and requests to it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;
use stoa_http::{HttpOptions, serve_with};
use stoa_query::{Engine, EngineOptions, Outcome, SessionOptions};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub struct Server {
    pub engine: Arc<Engine>,
    pub url: String,
    client: Client,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<stoa_error::Result<()>>,
    _warehouse: TempDir,
}

impl Server {
    pub async fn start() -> Self {
        Self::start_with(HttpOptions::default()).await
    }

    pub async fn start_with(options: HttpOptions) -> Self {
        Self::start_engine(options, |options| options).await
    }

    /// Starts an engine as `change` wants it.
    pub async fn start_engine(
        options: HttpOptions,
        change: impl FnOnce(EngineOptions) -> EngineOptions,
    ) -> Self {
        let warehouse = tempfile::tempdir().unwrap();
        let url = url_of(&warehouse);
        let engine_options = EngineOptions { threads: 2, ..EngineOptions::new(url) };
        let engine = Engine::open(change(engine_options)).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        let serving = serve_with(listener, Arc::clone(&engine), options, shutdown);
        let running = stoa_env::task::spawn(serving);
        let client = Client::builder().no_proxy().build().unwrap();
        Self { engine, url, client, stop: Some(stop), running, _warehouse: warehouse }
    }

    /// One that asks for logins, with a plain role `ann` and a superuser `bob`, both with the password `pencil`.
    pub async fn guarded() -> Self {
        let guard = |options| EngineOptions { access_control: true, ..options };
        let server = Self::start_engine(HttpOptions::default(), guard).await;
        server.trusted("CREATE USER ann PASSWORD 'pencil'").await;
        server.trusted("CREATE USER bob SUPERUSER PASSWORD 'pencil'").await;
        server
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub async fn get_json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }

    /// Posts SQL as text; `path` may carry parameters.
    pub async fn post(&self, path: &str, sql: &str) -> Response {
        let request = self.request(Method::POST, path).header("content-type", "text/plain");
        request.body(sql.to_owned()).send().await.unwrap()
    }

    /// Runs SQL that must go well; the JSON document.
    pub async fn sql(&self, sql: &str) -> Value {
        let response = self.post("/v1/sql", sql).await;
        let status = response.status();
        let document: Value = response.json().await.unwrap();
        assert_eq!(status, 200, "{sql}: {document}");
        document
    }

    /// Runs a statement as somebody who may do everything.
    pub async fn trusted(&self, sql: &str) {
        let trusted = SessionOptions { is_trusted: true, ..SessionOptions::default() };
        if let Outcome::Rows(rows) = self.engine.session(trusted).sql(sql).await.unwrap() {
            rows.collect().await.unwrap();
        }
    }

    /// Tells the server to stop.
    pub fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// Waits until the server has ended.
    pub async fn ended(self) {
        let ended = stoa_env::timer::timeout(Duration::from_secs(20), self.running).await;
        ended.expect("the server ends").unwrap().unwrap();
    }
}

fn url_of(dir: &TempDir) -> url::Url {
    url::Url::from_directory_path(dir.path()).unwrap()
}
