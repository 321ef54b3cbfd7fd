//! One request on its way to the store behind, and its answer on the way back.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use stoa_env::timer::{self, sleep, sleep_until};
use stoa_error::{Error, Result};

use super::ProxyOptions;
use super::faults::Fault;

/// Bytes of an answer that are sent at once; the pace is kept between.
const PIECE_BYTES: usize = 64 << 10;

/// The store behind, seen through a slow network.
#[derive(Debug)]
pub(super) struct Upstream {
    client: reqwest::Client,
    base: String,
    latency: Duration,
    bandwidth: Option<f64>,
}

impl Upstream {
    pub(super) fn new(options: &ProxyOptions) -> Result<Self> {
        let client = reqwest::Client::builder().no_proxy().build();
        let client =
            client.map_err(|e| Error::internal("cannot make an HTTP client").with_source(e))?;
        Ok(Self {
            client,
            base: options.upstream.trim_end_matches('/').to_owned(),
            latency: options.latency,
            bandwidth: options.bandwidth,
        })
    }

    /// Sends a request on, and gives back its answer as `fault` leaves it.
    pub(super) async fn send(&self, request: Request, fault: Option<Fault>) -> Result<Response> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX)
            .await
            .map_err(|e| Error::unavailable("the client broke off").with_source(e))?;
        sleep(self.latency + self.time_of(body.len())).await;
        match fault {
            Some(Fault::SlowDown) => return Ok(refusal(503, "SlowDown")),
            Some(Fault::InternalError) => return Ok(refusal(500, "InternalError")),
            _ => {}
        }
        let is_head = parts.method == "HEAD";
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let failed = |e| Error::unavailable("the store behind does not answer").with_source(e);
        let sent = self
            .client
            .request(parts.method, format!("{}{path}", self.base))
            .headers(end_to_end(parts.headers))
            .body(body);
        let answer = sent.send().await.map_err(failed)?;
        let (status, headers) = (answer.status(), end_to_end(answer.headers().clone()));
        let bytes = answer.bytes().await.map_err(failed)?;
        Ok(match fault {
            // Without a body that breaks off, an answer to HEAD looks like a good one.
            Some(Fault::Lost) if is_head => refusal(500, "InternalError"),
            Some(Fault::Lost) => broken(Vec::new(), 1),
            Some(Fault::Truncated) if bytes.len() > 1 => {
                let half = bytes.slice(..bytes.len() / 2);
                with_head(broken(vec![half], bytes.len()), status, headers)
            }
            _ => with_head(self.paced(bytes), status, headers),
        })
    }

    fn time_of(&self, bytes: usize) -> Duration {
        let seconds = self.bandwidth.map_or(0.0, |bandwidth| bytes as f64 / bandwidth);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// `bytes` as a body that comes no faster than the bandwidth lets it.
    fn paced(&self, bytes: Bytes) -> Response {
        let Some(bandwidth) = self.bandwidth.filter(|_| !bytes.is_empty()) else {
            return Response::new(Body::from(bytes));
        };
        let started = timer::now();
        let pieces = stream::unfold((bytes, 0_usize), move |(mut rest, sent)| async move {
            if rest.is_empty() {
                return None;
            }
            let piece = rest.split_to(rest.len().min(PIECE_BYTES));
            let sent = sent + piece.len();
            let due = Duration::try_from_secs_f64(sent as f64 / bandwidth).unwrap_or_default();
            sleep_until(started + due).await;
            Some((Ok::<_, std::io::Error>(piece), (rest, sent)))
        });
        Response::new(Body::from_stream(pieces))
    }
}

/// Headers that are not only for one connection. `Host` stays: it is signed.
fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::EXPECT] {
        headers.remove(name);
    }
    headers
}

fn with_head(mut response: Response, status: StatusCode, headers: HeaderMap) -> Response {
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn refusal(status: u16, code: &str) -> Response {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    with_head(Response::new(Body::from(body)), status, HeaderMap::new())
}

/// An answer that says `length` bytes, sends `pieces` and ends its connection; without pieces not even
/// the head goes out.
pub(super) fn broken(pieces: Vec<Bytes>, length: usize) -> Response {
    let breaks = async {
        // What was written must be on its way before the connection ends.
        sleep(Duration::from_millis(5)).await;
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    };
    let at_once = pieces.is_empty();
    let end = match at_once {
        true => stream::once(async { Err(std::io::ErrorKind::ConnectionReset.into()) }).boxed(),
        false => stream::once(breaks).boxed(),
    };
    let body = Body::from_stream(stream::iter(pieces).map(Ok).chain(end));
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    response
}
