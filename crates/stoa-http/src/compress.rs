//! Answers compressed for clients that ask for it: `Accept-Encoding: zstd` or `gzip`.
//!
//! In: a response and what its client takes. Out: the response, compressed chunk by chunk: each chunk of the body can
//! be read as soon as it arrives. **Invariant:** a body that breaks off has no end in its compressed form either; an
//! answer needs the memory of one chunk more.
//!
//! Not here: compressed requests (`rows`).

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body::{Body as _, Frame, SizeHint};

/// Shorter bodies are sent as they are.
const BYTES_MIN: u64 = 1024;
/// How far back a stream of updates is compressed by what was sent before, as a power of two: 128 KiB.
const LIVE_WINDOW_LOG: u32 = 17;
/// Little effort: what counts is the time until the rows are there.
const ZSTD_LEVEL: i32 = 1;

/// A way to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Zstd,
    Gzip,
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The best that a client takes; `None` if it takes none.
    fn taken_by(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(header::ACCEPT_ENCODING).iter();
        let lists: Vec<String> =
            values.filter_map(|value| value.to_str().ok()).map(str::to_ascii_lowercase).collect();
        let takes = |coding: &Self| {
            lists.iter().flat_map(|list| list.split(',')).any(|entry| {
                let mut parts = entry.split(';').map(str::trim);
                let is_meant = parts.next() == Some(coding.name());
                let weight = parts.find_map(|part| part.strip_prefix("q="));
                is_meant && weight.is_none_or(|weight| weight.parse().is_ok_and(|q: f32| q > 0.0))
            })
        };
        [Self::Zstd, Self::Gzip].into_iter().find(takes)
    }
}

/// Compresses the answer to a request, if its client takes that and it is worth it.
pub(crate) async fn compressed(request: Request, next: Next) -> Response {
    let coding = Coding::taken_by(request.headers());
    let response = next.run(request).await;
    match coding.filter(|_| is_worth_it(&response)) {
        Some(coding) => compress(response, coding),
        None => response,
    }
}

fn is_worth_it(response: &Response) -> bool {
    let headers = response.headers();
    let is_text = |kind: &str| {
        ["text/", "application/json", "application/x-ndjson", "application/javascript"]
            .iter()
            .chain(&["application/vnd.apache.arrow", "application/openmetrics", "image/svg"])
            .any(|prefix| kind.starts_with(prefix))
    };
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_small = response.body().size_hint().upper().is_some_and(|bytes| bytes < BYTES_MIN);
    !headers.contains_key(header::CONTENT_ENCODING) && kind.is_some_and(is_text) && !is_small
}

fn compress(response: Response, coding: Coding) -> Response {
    let (mut parts, body) = response.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let is_live = kind.is_some_and(|kind| kind == "text/event-stream");
    let encoder = match Encoder::new(coding, is_live) {
        Ok(encoder) => encoder,
        Err(error) => {
            tracing::warn!(%error, "an answer is sent as it is");
            return Response::from_parts(parts, body);
        }
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    let name = HeaderValue::from_static(coding.name());
    parts.headers.insert(header::CONTENT_ENCODING, name);
    parts.headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    Response::from_parts(parts, Body::new(CompressedBody { body, encoder: Some(encoder) }))
}

enum Encoder {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Encoder {
    /// Streams that stay open for hours get less memory.
    fn new(coding: Coding, is_live: bool) -> io::Result<Self> {
        Ok(match coding {
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                if is_live {
                    encoder.window_log(LIVE_WINDOW_LOG)?;
                }
                Self::Zstd(encoder)
            }
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast())),
        })
    }

    /// The compressed form of `data`, as far as it goes: all of it can be read.
    fn write(&mut self, data: &[u8]) -> io::Result<Bytes> {
        let out = match self {
            Self::Zstd(encoder) => {
                encoder.write_all(data)?;
                encoder.flush()?;
                encoder.get_mut()
            }
            Self::Gzip(encoder) => {
                encoder.write_all(data)?;
                encoder.flush()?;
                encoder.get_mut()
            }
        };
        Ok(Bytes::from(std::mem::take(out)))
    }

    /// What is left, and the end.
    fn finish(self) -> io::Result<Bytes> {
        Ok(Bytes::from(match self {
            Self::Zstd(encoder) => encoder.finish()?,
            Self::Gzip(encoder) => encoder.finish()?,
        }))
    }
}

/// A body on its way through an encoder.
struct CompressedBody {
    body: Body,
    /// `None` after the end.
    encoder: Option<Encoder>,
}

impl http_body::Body for CompressedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.encoder.is_none() {
            // Bodies need not bear to be asked after their end.
            return Poll::Ready(None);
        }
        let framed =
            |written: io::Result<Bytes>| written.map(Frame::data).map_err(axum::Error::new);
        match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => match (frame.into_data(), &mut self.encoder) {
                (Ok(data), Some(encoder)) => Poll::Ready(Some(framed(encoder.write(&data)))),
                (Ok(data), None) => Poll::Ready(Some(Ok(Frame::data(data)))),
                (Err(frame), _) => Poll::Ready(Some(Ok(frame))),
            },
            Some(Err(error)) => {
                self.encoder = None;
                Poll::Ready(Some(Err(error)))
            }
            None => Poll::Ready(self.encoder.take().map(|encoder| framed(encoder.finish()))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use futures::{StreamExt, stream};

    use super::*;

    fn taken(value: &str) -> Option<Coding> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, value.parse().unwrap());
        Coding::taken_by(&headers)
    }

    #[test]
    fn the_best_that_a_client_takes_is_used() {
        assert_eq!(taken("gzip, deflate, br, zstd"), Some(Coding::Zstd));
        assert_eq!(taken("GZIP;q=0.5"), Some(Coding::Gzip));
        assert_eq!(taken("zstd;q=0, gzip"), Some(Coding::Gzip));
        assert_eq!(taken("identity, br"), None);
        assert_eq!(Coding::taken_by(&HeaderMap::new()), None);
    }

    async fn sent(coding: Coding, chunks: Vec<Result<&'static str, io::Error>>) -> (Vec<u8>, bool) {
        // One that must not be asked after its end.
        let next = |mut chunks: std::vec::IntoIter<_>| async move {
            chunks.next().map(|chunk| (chunk, chunks))
        };
        let body = Body::from_stream(stream::unfold(chunks.into_iter(), next));
        let response = compress(Response::new(body), coding);
        assert_eq!(response.headers()[header::CONTENT_ENCODING], coding.name());
        let mut frames = response.into_body().into_data_stream();
        let (mut all, mut is_whole) = (Vec::new(), true);
        while let Some(frame) = frames.next().await {
            match frame {
                Ok(bytes) => all.extend_from_slice(&bytes),
                Err(_) => is_whole = false,
            }
        }
        (all, is_whole)
    }

    fn read(coding: Coding, bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        match coding {
            Coding::Zstd => zstd::stream::read::Decoder::new(bytes)?.read_to_string(&mut text)?,
            Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_string(&mut text)?,
        };
        Ok(text)
    }

    #[tokio::test]
    async fn what_is_compressed_can_be_read() {
        for coding in [Coding::Zstd, Coding::Gzip] {
            let (bytes, is_whole) = sent(coding, vec![Ok("one "), Ok("two "), Ok("three")]).await;
            assert!(is_whole);
            assert_eq!(read(coding, &bytes).unwrap(), "one two three");
        }
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_has_no_end() {
        for coding in [Coding::Zstd, Coding::Gzip] {
            let broken = vec![Ok("one "), Err(io::Error::other("gone"))];
            let (bytes, is_whole) = sent(coding, broken).await;
            assert!(!is_whole);
            assert!(read(coding, &bytes).is_err());
        }
    }
}
