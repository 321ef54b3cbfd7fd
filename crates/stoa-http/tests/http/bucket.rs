//! A bucket in memory that speaks as much of S3's protocol as a warehouse needs; signatures are not
//! looked at.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Response, Uri};
use bytes::Bytes;
use parking_lot::Mutex;
use stoa_query::EngineOptions;
use stoa_store::{Credentials, S3Options, Secret};
use tokio::net::TcpListener;

pub struct Bucket {
    pub endpoint: String,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    objects: Mutex<BTreeMap<String, Bytes>>,
    /// Method and path of each request, in order.
    asked: Mutex<Vec<String>>,
    /// Reads of data files that are still to be refused.
    to_refuse: Mutex<usize>,
}

impl Bucket {
    pub async fn start() -> Self {
        let inner = Arc::<Inner>::default();
        let shared = Arc::clone(&inner);
        let router = Router::new().fallback(move |request: Request| {
            let inner = Arc::clone(&shared);
            async move {
                let (parts, body) = request.into_parts();
                let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
                inner.answer(&parts.method, &parts.uri, &parts.headers, body)
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        stoa_env::task::spawn(async move { axum::serve(listener, router).await });
        Self { endpoint, inner }
    }

    /// Options of an engine whose warehouse is here, and whose catalog is in `directory`.
    pub fn warehouse(
        &self,
        directory: &tempfile::TempDir,
        options: EngineOptions,
    ) -> EngineOptions {
        let credentials = Credentials::Keys {
            access_key_id: "key".into(),
            secret_access_key: Secret::new("secret"),
            session_token: None,
        };
        let endpoint = Some(self.endpoint.clone());
        EngineOptions {
            warehouse: url::Url::parse("s3://bucket/warehouse").unwrap(),
            catalog: Some(directory.path().join("catalog.db").into()),
            s3: S3Options { endpoint, credentials, ..S3Options::default() },
            ..options
        }
    }

    /// Refuses the next reads of data files, so that they are sent again.
    pub fn refuse(&self, reads: usize) {
        *self.inner.to_refuse.lock() = reads;
    }

    /// What was asked since the last time: `GET /bucket/…`.
    pub fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.inner.asked.lock())
    }
}

impl Inner {
    fn answer(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Response<Body> {
        self.asked.lock().push(format!("{method} {uri}"));
        let key = uri.path().trim_start_matches("/bucket").trim_start_matches('/').to_owned();
        let query = uri.query().unwrap_or_default();
        match method.as_str() {
            "GET" if query.contains("list-type=2") => self.list(query),
            "GET" if key.ends_with(".orc") && self.refuses() => status(503),
            "GET" | "HEAD" => self.read(&key, headers, method == Method::HEAD),
            "PUT" if headers.contains_key("if-none-match") && self.has(&key) => status(412),
            "PUT" => {
                self.objects.lock().insert(key, body);
                status(200)
            }
            "DELETE" => {
                self.objects.lock().remove(&key);
                status(204)
            }
            other => panic!("the bucket does not know {other} {uri}"),
        }
    }

    fn has(&self, key: &str) -> bool {
        self.objects.lock().contains_key(key)
    }

    fn refuses(&self) -> bool {
        let mut left = self.to_refuse.lock();
        let refuses = *left > 0;
        *left = left.saturating_sub(1);
        refuses
    }

    fn read(&self, key: &str, headers: &HeaderMap, head_only: bool) -> Response<Body> {
        let Some(object) = self.objects.lock().get(key).cloned() else { return status(404) };
        let total = object.len();
        let range = headers.get("range").map(|range| range.to_str().unwrap());
        let Some(range) = range else {
            let body = if head_only { Body::empty() } else { Body::from(object) };
            return described(200).header("content-length", total).body(body).unwrap();
        };
        let (from, to) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let (from, end) = match from {
            "" => (total.saturating_sub(to.parse().unwrap()), total),
            from => (from.parse().unwrap(), to.parse::<usize>().map_or(total, |to| to + 1)),
        };
        let end = end.min(total);
        let said = format!("bytes {from}-{}/{total}", end - 1);
        described(206).header("content-range", said).body(object.slice(from..end).into()).unwrap()
    }

    fn list(&self, query: &str) -> Response<Body> {
        let prefix =
            url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "prefix");
        let prefix = prefix.map(|(_, prefix)| prefix.into_owned()).unwrap_or_default();
        let objects = self.objects.lock();
        let found = objects.iter().filter(|(key, _)| key.starts_with(&prefix));
        let contents: String = found
            .map(|(key, object)| {
                format!(
                    "<Contents><Key>{key}</Key><LastModified>2025-01-01T00:00:00.000Z</LastModified>\
                     <ETag>\"1\"</ETag><Size>{}</Size></Contents>",
                    object.len()
                )
            })
            .collect();
        let body = format!(
            "<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
        );
        described(200).body(body.into()).unwrap()
    }
}

fn described(status: u16) -> axum::http::response::Builder {
    Response::builder()
        .status(status)
        .header("etag", "\"1\"")
        .header("last-modified", "Wed, 01 Jan 2025 00:00:00 GMT")
}

fn status(status: u16) -> Response<Body> {
    described(status).body(Body::empty()).unwrap()
}
