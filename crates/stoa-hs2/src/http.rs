//! The protocol over HTTP: a call is a POST to `/cliservice`.
//!
//! User and password come with each request (Basic). Requests of browsers are refused, whatever page they come from: Hive's
//! clients are none, and a page must not reach the server through its reader's browser.

use std::convert::Infallible;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use stoa_error::{Error, ErrorKind};
use stoa_listen::Guest;
use stoa_thrift::{Header, exception};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::peer::Peer;
use crate::service::Service;

/// Where calls are posted to.
const PATH: &str = "/cliservice";
/// What they are.
const THRIFT: &str = "application/x-thrift";
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Headers that only browsers send.
const OF_BROWSERS: [HeaderName; 2] = [ORIGIN, HeaderName::from_static("sec-fetch-site")];

/// Serves a connection until it ends, or `closing` turns true and no request is under way.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    socket: S,
    service: &Arc<Service>,
    guest: &Guest,
    mut closing: watch::Receiver<bool>,
) {
    let answer = service_fn(|request| {
        let (service, guest) = (Arc::clone(service), guest.clone());
        async move { Ok::<_, Infallible>(answer(request, &service, &guest).await) }
    });
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(socket), answer));
    tokio::select! {
        biased;
        ended = connection.as_mut() => return told(ended),
        _ = closing.wait_for(|closing| *closing) => connection.as_mut().graceful_shutdown(),
    }
    told(connection.await);
}

fn told(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "connection closed");
    }
}

async fn answer(
    request: Request<Incoming>,
    service: &Service,
    guest: &Guest,
) -> Response<Full<Bytes>> {
    if let Err((status, text)) = check(&request) {
        return refusal(status, text);
    }
    let mut peer = Peer::new(guest.address());
    if let Err(error) = log_in(request.headers(), service, &mut peer).await {
        return refused_login(&error);
    }
    // From here on it does not wait for a login; the next request will.
    let _busy = guest.begin();
    let body = Limited::new(request.into_body(), service.options.message_bytes_max).collect().await;
    let Ok(body) = body else {
        let text = "the body broke off, or is longer than a message may be";
        return refusal(StatusCode::PAYLOAD_TOO_LARGE, text);
    };
    match service.call(&body.to_bytes(), &mut peer).await {
        Ok(answer) => {
            let mut response = Response::new(Full::from(answer));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(THRIFT));
            response
        }
        Err(error) => refusal(StatusCode::BAD_REQUEST, error.message()),
    }
}

/// Whether the request is a call of one of Hive's clients.
fn check<B>(request: &Request<B>) -> Result<(), (StatusCode, &'static str)> {
    let headers = request.headers();
    if OF_BROWSERS.iter().any(|name| headers.contains_key(name)) {
        return Err((StatusCode::FORBIDDEN, "requests of browsers are refused"));
    }
    if request.uri().path().trim_end_matches('/') != PATH {
        return Err((
            StatusCode::NOT_FOUND,
            "HiveServer2 answers at /cliservice (httpPath=cliservice)",
        ));
    }
    if request.method() != Method::POST {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "calls of HiveServer2 are posted"));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().map(str::trim) {
        Some(kind) if kind.eq_ignore_ascii_case(THRIFT) => Ok(()),
        _ => Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/x-thrift")),
    }
}

async fn log_in(headers: &HeaderMap, service: &Service, peer: &mut Peer) -> Result<(), Error> {
    match credentials(headers) {
        Some((user, password)) => service.log_in(user, &password, peer).await,
        None if service.engine.asks_for_login() => {
            Err(Error::new(ErrorKind::Forbidden, "no user and password were given"))
        }
        None => Ok(()),
    }
}

fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, value) = value.trim().split_once(' ')?;
    let decoded =
        STANDARD.decode(value.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"));
    let text = String::from_utf8(decoded?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// The answer to whoever is not let in. Java's clients look at the status; PyHive does not, and takes the body for the
/// answer to its first call.
fn refused_login(error: &Error) -> Response<Full<Bytes>> {
    let status = match error.kind() {
        ErrorKind::Exhausted => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Forbidden => StatusCode::UNAUTHORIZED,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let first_call = Header { name: "OpenSession".to_owned(), sequence: 0 };
    let mut response = Response::new(Full::from(exception(&first_call, error.message())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(THRIFT));
    let challenge = HeaderValue::from_static("Basic realm=\"stoa\", charset=\"UTF-8\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

fn refusal(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("{text}\n")));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(&request.body(()).unwrap()).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn only_calls_of_hives_clients_pass() {
        let kind = ("content-type", THRIFT);
        assert_eq!(status("POST", "/cliservice", &[kind]), 200);
        assert_eq!(status("POST", "/cliservice/", &[kind]), 200);
        assert_eq!(status("GET", "/cliservice", &[kind]), 405);
        assert_eq!(status("POST", "/", &[kind]), 404);
        assert_eq!(status("POST", "/cliservice", &[("content-type", "text/plain")]), 415);
        assert_eq!(status("POST", "/cliservice", &[kind, ("origin", "http://localhost")]), 403);
        assert_eq!(status("POST", "/cliservice", &[kind, ("sec-fetch-site", "none")]), 403);
    }
}
