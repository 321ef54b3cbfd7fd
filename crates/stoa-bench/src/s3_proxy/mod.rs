//! A slow and unreliable S3: a proxy in front of any S3 endpoint.
//!
//! In: requests for S3, whatever their signatures. Out: the answers of the store behind, later,
//! slower, and some of them broken:
//!
//! | fault | what the client sees | what the store has done |
//! |---|---|---|
//! | error | 503 `SlowDown` or 500 `InternalError`, in turn | nothing |
//! | lost | the connection ends without an answer | the request |
//! | truncated | the body ends in its middle | the request |
//!
//! `GET /-/counts` (no bucket is called `-`) answers with what went through, as JSON.
//!
//! **Invariants:** requests and answers pass as they are, the `Host` header too, so signatures stay
//! valid. Which requests fail is a pure function of the seed and the order of arrival.
//! Not here: a store; `clients/s3` puts one behind.

mod counts;
mod faults;
mod forward;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use stoa_error::{Error, Result};
use tokio::net::TcpListener;

use self::counts::Counts;
use self::faults::Faults;
use self::forward::Upstream;

/// Path of the counters.
const COUNTS: &str = "/-/counts";

/// How slow and how unreliable.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// The store behind, `http://host:port`.
    pub upstream: String,
    /// Wait before each request is sent on.
    pub latency: Duration,
    /// Bytes per second of each request's body and of each answer's; `None` = no limit.
    pub bandwidth: Option<f64>,
    /// Share of requests that are answered with an error, 0 to 1.
    pub errors: f64,
    /// Share of requests whose answer is lost, 0 to 1.
    pub lost: f64,
    /// Share of reads whose body breaks off, 0 to 1.
    pub truncated: f64,
    /// Decides which.
    pub seed: u64,
}

impl Default for ProxyOptions {
    /// S3 from the same region: 30 ms, 90 MB/s a connection, no faults.
    fn default() -> Self {
        Self {
            upstream: "http://127.0.0.1:9000".to_owned(),
            latency: Duration::from_millis(30),
            bandwidth: Some(90e6),
            errors: 0.0,
            lost: 0.0,
            truncated: 0.0,
            seed: 0,
        }
    }
}

/// A proxy that listens.
pub struct Proxy {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<ProxyState>,
}

struct ProxyState {
    upstream: Upstream,
    faults: Faults,
    counts: Counts,
}

impl Proxy {
    /// Listens on loopback; port 0 takes a free one.
    ///
    /// # Errors
    /// `Unavailable` where the port cannot be had; `Invalid` for shares beyond 0 to 1.
    pub async fn bind(options: &ProxyOptions, port: u16) -> Result<Self> {
        let unavailable = |source| {
            Error::unavailable(format!("cannot listen on 127.0.0.1:{port}")).with_source(source)
        };
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(unavailable)?;
        let address = listener.local_addr().map_err(unavailable)?;
        let state = ProxyState {
            upstream: Upstream::new(options)?,
            faults: Faults::new(options)?,
            counts: Counts::default(),
        };
        Ok(Self { listener, address, state: Arc::new(state) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` is there.
    ///
    /// # Errors
    /// `Unavailable` where listening fails.
    pub async fn serve(self, end: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let router = Router::new().fallback(handle).with_state(self.state);
        let served = axum::serve(self.listener, router).with_graceful_shutdown(end);
        served.await.map_err(|e| Error::unavailable("the proxy stopped").with_source(e))
    }
}

async fn handle(State(state): State<Arc<ProxyState>>, request: Request) -> Response {
    if request.uri().path() == COUNTS {
        return state.counts.response();
    }
    let is_read = request.method() == "GET";
    let fault = state.faults.next(is_read);
    state.counts.request(request.method().as_str(), fault);
    match state.upstream.send(request, fault).await {
        Ok(answer) => answer,
        Err(error) => {
            eprintln!("s3-proxy: {}", error.message_with_sources());
            forward::broken(Vec::new(), 1)
        }
    }
}

#[cfg(test)]
mod tests;
