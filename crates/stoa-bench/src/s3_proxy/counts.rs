//! What went through a proxy.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::response::Response;
use parking_lot::Mutex;
use serde_json::json;

use super::faults::Fault;

/// Requests by method, faults by kind.
#[derive(Debug, Default)]
pub(super) struct Counts {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    methods: BTreeMap<String, u64>,
    faults: BTreeMap<&'static str, u64>,
}

impl Counts {
    pub(super) fn request(&self, method: &str, fault: Option<Fault>) {
        let mut inner = self.inner.lock();
        *inner.methods.entry(method.to_owned()).or_default() += 1;
        let name = match fault {
            None => return,
            Some(Fault::SlowDown | Fault::InternalError) => "error",
            Some(Fault::Lost) => "lost",
            Some(Fault::Truncated) => "truncated",
        };
        *inner.faults.entry(name).or_default() += 1;
    }

    pub(super) fn response(&self) -> Response {
        let inner = self.inner.lock();
        let counts = json!({
            "requests": inner.methods.values().sum::<u64>(),
            "methods": inner.methods,
            "faults": inner.faults,
        });
        Response::new(Body::from(counts.to_string()))
    }
}
