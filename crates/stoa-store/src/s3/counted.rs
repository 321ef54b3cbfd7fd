//! Counts requests where they leave: every page of a listing, every part, every retry.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    ReqwestConnector,
};
use parking_lot::Mutex;
use stoa_env::clock::monotonic;

use crate::charge::{self, Charge};
use crate::meter::RequestKind;
use crate::{Prices, StoreMetrics};

/// Failed requests that are remembered, to know a retry when one is seen.
const FAILED_MAX: usize = 4096;

/// Makes clients that count into shared metrics, and for whom requests are made.
#[derive(Debug)]
pub(super) struct CountedConnector {
    metrics: Arc<StoreMetrics>,
    prices: Prices,
}

impl CountedConnector {
    pub(super) fn new(metrics: Arc<StoreMetrics>, prices: Prices) -> Self {
        Self { metrics, prices }
    }
}

impl HttpConnector for CountedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        let (metrics, prices) = (Arc::clone(&self.metrics), self.prices);
        Ok(HttpClient::new(CountedService { client, metrics, prices, failed: Mutex::default() }))
    }
}

#[derive(Debug)]
struct CountedService {
    client: HttpClient,
    metrics: Arc<StoreMetrics>,
    prices: Prices,
    /// Requests that failed in a way that may pass and were not seen again yet.
    failed: Mutex<HashSet<u64>>,
}

#[async_trait]
impl HttpService for CountedService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // Credentials are asked for through the same connector; their price is nothing.
        if !is_for_the_store(&request) {
            return self.client.execute(request).await;
        }
        let counters = Counters { store: Arc::clone(&self.metrics), charge: charge::current() };
        let key = key_of(&request);
        if self.failed.lock().remove(&key) {
            counters.each(StoreMetrics::add_retry);
        }
        let kind = kind_of(&request);
        let sent = request.body().content_length() as u64;
        let started = monotonic();
        let answer = self.client.execute(request).await;
        let wait = started.elapsed();
        counters.each(|metrics| metrics.add_request(kind, sent, wait));
        if let Some(charge) = &counters.charge {
            charge.add_price(kind, &self.prices);
        }
        let failed = match &answer {
            Ok(response) => may_pass(response.status().as_u16()),
            Err(_) => true,
        };
        if failed {
            counters.each(StoreMetrics::add_error);
            let mut failures = self.failed.lock();
            if failures.len() >= FAILED_MAX {
                failures.clear();
            }
            failures.insert(key);
        }
        answer.map(|response| counters.count_body(kind, response))
    }
}

/// Where a request is counted.
struct Counters {
    store: Arc<StoreMetrics>,
    charge: Option<Arc<Charge>>,
}

impl Counters {
    fn each(&self, count: impl Fn(&StoreMetrics)) {
        count(&self.store);
        if let Some(charge) = &self.charge {
            count(charge.metrics());
        }
    }

    fn count_body(self, kind: RequestKind, response: HttpResponse) -> HttpResponse {
        if kind != RequestKind::Read {
            return response;
        }
        let (parts, body) = response.into_parts();
        let counted = body.map_frame(move |frame| {
            if let Some(bytes) = frame.data_ref() {
                self.each(|metrics| metrics.add_bytes_read(bytes.len() as u64));
            }
            frame
        });
        HttpResponse::from_parts(parts, HttpResponseBody::new(counted))
    }
}

/// Requests for credentials carry no such header.
fn is_for_the_store(request: &HttpRequest) -> bool {
    request.headers().contains_key("x-amz-content-sha256")
}

fn key_of(request: &HttpRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.method().as_str().hash(&mut hasher);
    request.uri().hash(&mut hasher);
    request.headers().get("range").map(|range| range.as_bytes()).hash(&mut hasher);
    hasher.finish()
}

/// What the price list calls it.
fn kind_of(request: &HttpRequest) -> RequestKind {
    let query = request.uri().query().unwrap_or_default();
    match request.method().as_str() {
        "GET" if query.contains("list-type=") => RequestKind::List,
        "GET" => RequestKind::Read,
        "HEAD" => RequestKind::Head,
        "DELETE" => RequestKind::Delete,
        "POST" if query.starts_with("delete") => RequestKind::Delete,
        _ => RequestKind::Write,
    }
}

/// The answers that are sent again.
fn may_pass(status: u16) -> bool {
    status >= 500 || status == 429 || status == 408
}
