//! Requests that break off do not end as if they were complete.
//!
//! tonic takes a request stream that its client cancelled for one that has ended. An ingest would
//! commit the rows that had come by then; so the cancellation is given another name on its way in. And
//! the lengths of its messages are taken from a budget (`message_bytes`).

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::{Code, Status};

use crate::message_bytes::{MessageBytes, Meter};

/// A service whose calls see that their request broke off.
#[derive(Clone)]
pub(crate) struct WholeRequests<S> {
    inner: S,
    bytes: MessageBytes,
}

impl<S> WholeRequests<S> {
    pub(crate) fn new(inner: S, bytes: MessageBytes) -> Self {
        Self { inner, bytes }
    }
}

impl<S: NamedService> NamedService for WholeRequests<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Service<http::Request<Body>>> Service<http::Request<Body>> for WholeRequests<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let meter = self.bytes.meter();
        self.inner.call(request.map(|body| Body::new(WholeBody { body, meter })))
    }
}

struct WholeBody {
    body: Body,
    meter: Meter,
}

impl HttpBody for WholeBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            self.meter.take(data)?;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(not_cancelled)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn not_cancelled(status: Status) -> Status {
    match status.code() {
        Code::Cancelled => Status::aborted("the client cancelled the call"),
        _ => status,
    }
}
