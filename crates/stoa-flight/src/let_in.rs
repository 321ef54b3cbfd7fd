//! Calls are let in before any of their messages is read.
//!
//! tonic reads the message of a call before it asks who calls, up to the largest message there may be,
//! for as many calls as a connection may have. So where clients must log in, whoever had no password
//! could have the server keep gigabytes. Here the call's header decides: without a client that may call,
//! the answer goes out at once. The client that is found goes along with the call, so that its password
//! is not checked twice.
//!
//! In: calls. Out: those that were let in, with their client; or a status. Calls that need no client
//! carry next to nothing, and may not carry more ([`OPEN_BYTES_MAX`]).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::body::Body;
use tonic::codegen::{Bytes, Service, http};
use tonic::server::NamedService;
use tonic::{Request, Status};

use crate::clients::{LetInClient, Sender};
use crate::connection::ConnectionState;
use crate::state::FlightSql;

/// Calls that say nothing about data: whoever makes them logs in by them, or is told what there is.
const OPEN_CALLS: [&str; 4] = ["Handshake", "ListActions", "ListFlights", "DoExchange"];
/// Bytes that such a call may carry.
const OPEN_BYTES_MAX: u64 = 16 << 10;

/// A service whose calls have a client that may call.
#[derive(Clone)]
pub(crate) struct LetIn<S> {
    inner: S,
    flight: FlightSql,
}

impl<S> LetIn<S> {
    pub(crate) fn new(inner: S, flight: FlightSql) -> Self {
        Self { inner, flight }
    }
}

impl<S: NamedService> NamedService for LetIn<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for LetIn<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let name = request.uri().path().rsplit('/').next().unwrap_or_default();
        if OPEN_CALLS.contains(&name) {
            let request = request.map(|body| Body::new(ShortBody { body, read: 0 }));
            return self.inner.call(request).boxed();
        }
        let (mut inner, flight) = (self.inner.clone(), self.flight.clone());
        async move {
            match let_in(&flight, request).await {
                Ok(request) => inner.call(request).await,
                Err(status) => Ok(status.into_http()),
            }
        }
        .boxed()
    }
}

async fn let_in(
    flight: &FlightSql,
    request: http::Request<Body>,
) -> Result<http::Request<Body>, Status> {
    let (parts, body) = request.into_parts();
    let mut head = http::Request::from_parts(parts, ());
    if flight.engine().asks_for_login() {
        let client = flight.clients().of(sender(&head)?).await?;
        head.extensions_mut().insert(LetInClient(client));
    }
    if let Some(connection) = head.extensions().get::<ConnectionState>() {
        connection.guest.known();
    }
    Ok(head.map(|()| body))
}

/// Who sends a call, as its header says.
fn sender(head: &http::Request<()>) -> Result<Sender, Status> {
    let mut call = Request::new(());
    *call.metadata_mut() = tonic::metadata::MetadataMap::from_headers(head.headers().clone());
    if let Some(connection) = head.extensions().get::<ConnectionState>() {
        call.extensions_mut().insert(connection.clone());
    }
    Sender::of(&call)
}

/// A body that breaks off where it becomes long.
struct ShortBody {
    body: Body,
    read: u64,
}

impl HttpBody for ShortBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            self.read = self.read.saturating_add(bytes);
        }
        if self.read > OPEN_BYTES_MAX {
            let text = "the call carries more than calls of its kind may\nSQLSTATE: 54000";
            return Poll::Ready(Some(Err(Status::invalid_argument(text))));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
