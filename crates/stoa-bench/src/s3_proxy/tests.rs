use axum::body::Body;
use stoa_env::clock::monotonic;
use stoa_env::task;

use super::faults::Fault;
use super::*;

/// The address of a store that answers with the request's body, or with `0123456789`.
async fn echo() -> String {
    let router = Router::new().fallback(|request: Request| async {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let host = parts.headers.get("host").cloned().unwrap();
        let body = if body.is_empty() { "0123456789".into() } else { body };
        Response::builder().header("x-host", host).body(Body::from(body)).unwrap()
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    task::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

async fn proxy(options: ProxyOptions) -> String {
    let upstream = echo().await;
    let options = ProxyOptions { upstream, ..options };
    let proxy = Proxy::bind(&options, 0).await.unwrap();
    let url = format!("http://{}", proxy.address());
    task::spawn(proxy.serve(std::future::pending()));
    url
}

fn fast() -> ProxyOptions {
    ProxyOptions { latency: Duration::ZERO, bandwidth: None, ..ProxyOptions::default() }
}

#[tokio::test]
async fn requests_pass_as_they_are() {
    let url = proxy(fast()).await;
    let client = reqwest::Client::new();
    let answer = client.put(format!("{url}/b/a%20b?x=1")).body("abc").send().await.unwrap();
    assert_eq!(answer.headers()["x-host"].to_str().unwrap(), url.trim_start_matches("http://"));
    assert_eq!(answer.text().await.unwrap(), "abc");
}

#[tokio::test]
async fn latency_and_bandwidth_are_kept() {
    let latency = Duration::from_millis(30);
    let url = proxy(ProxyOptions { latency, bandwidth: Some(1e6), ..fast() }).await;
    let started = monotonic();
    let client = reqwest::Client::new();
    let answer = client.put(&url).body(vec![7; 100_000]).send().await.unwrap();
    assert_eq!(answer.bytes().await.unwrap().len(), 100_000);
    // There and back, 100 ms each, after the latency.
    assert!(started.elapsed() >= Duration::from_millis(230), "{:?}", started.elapsed());
}

#[tokio::test]
async fn faults_look_as_they_should() {
    let get = |url: String| async move { reqwest::get(format!("{url}/b/k")).await };
    let refused = get(proxy(ProxyOptions { errors: 1.0, ..fast() }).await).await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.text().await.unwrap().contains("<Code>SlowDown</Code>"));

    let url = proxy(ProxyOptions { lost: 1.0, ..fast() }).await;
    assert!(get(url.clone()).await.is_err());
    let head = reqwest::Client::new().head(proxy(ProxyOptions { lost: 1.0, ..fast() }).await);
    assert!(!head.send().await.is_ok_and(|answer| answer.status().is_success()));
    let counts = reqwest::get(format!("{url}{COUNTS}")).await.unwrap().text().await.unwrap();
    assert!(counts.contains("\"lost\":1") && counts.contains("\"GET\":1"), "{counts}");

    let cut = get(proxy(ProxyOptions { truncated: 1.0, ..fast() }).await).await.unwrap();
    assert_eq!(cut.content_length(), Some(10));
    assert!(cut.bytes().await.is_err());
}

#[tokio::test]
async fn shares_are_kept_and_the_seed_decides() {
    let faults = |seed| {
        let options = ProxyOptions { errors: 0.1, lost: 0.1, truncated: 0.1, seed, ..fast() };
        let faults = Faults::new(&options).unwrap();
        (0..10_000).map(|_| faults.next(true)).collect::<Vec<_>>()
    };
    let first = faults(1);
    assert_eq!(first, faults(1));
    assert_ne!(first, faults(2));
    let lost = first.iter().filter(|fault| **fault == Some(Fault::Lost)).count();
    assert!((900..1100).contains(&lost), "{lost}");
    assert!(Faults::new(&ProxyOptions { errors: 0.7, lost: 0.7, ..fast() }).is_err());
}
