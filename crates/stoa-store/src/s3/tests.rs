//! Against a tiny HTTP server that answers from a script; no network.

use std::collections::VecDeque;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Response, StatusCode};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use parking_lot::Mutex;
use stoa_env::task;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::{Charge, Prices, Stores, also_charged, charged, from_object_store, parse_location};

/// What was asked: method, path with query, headers.
type Asked = Arc<Mutex<Vec<(String, String, HeaderMap)>>>;

struct Script {
    endpoint: String,
    asked: Asked,
}

/// Answers requests with `answers`, in order, then with 500.
async fn serve(answers: Vec<Response<Body>>) -> Script {
    let asked = Asked::default();
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let seen = Arc::clone(&asked);
    let router = Router::new().fallback(move |request: Request| {
        let (seen, answers) = (Arc::clone(&seen), Arc::clone(&answers));
        async move {
            let (parts, body) = request.into_parts();
            axum::body::to_bytes(body, usize::MAX).await.unwrap();
            seen.lock().push((parts.method.to_string(), parts.uri.to_string(), parts.headers));
            answers.lock().pop_front().unwrap_or_else(|| answer(500, ""))
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    task::spawn(async move { axum::serve(listener, router).await });
    Script { endpoint, asked }
}

fn answer(status: u16, body: &str) -> Response<Body> {
    Response::builder()
        .status(StatusCode::from_u16(status).unwrap())
        .header("etag", "\"1\"")
        .header("last-modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        .body(Body::from(body.to_owned()))
        .unwrap()
}

/// Writes each of `answers` to a connection of its own, as it is, then closes it; gives back the
/// endpoint and what was asked.
async fn serve_raw(answers: Vec<String>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&asked);
    task::spawn(async move {
        for answer in answers {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(connection.read_u8().await.unwrap());
            }
            seen.lock().push(String::from_utf8(head).unwrap());
            connection.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (endpoint, asked)
}

fn options(endpoint: &str) -> S3Options {
    S3Options {
        endpoint: Some(endpoint.to_owned()),
        credentials: Credentials::Keys {
            access_key_id: "AKEXAMPLE".into(),
            secret_access_key: Secret::new("hunter2"),
            session_token: None,
        },
        ..S3Options::default()
    }
}

fn refused(answer: Result<AmazonS3>) -> Error {
    answer.unwrap_err()
}

fn open(options: &S3Options) -> Result<AmazonS3> {
    open_bucket("bucket", options, Patience::Usual, &Arc::default())
}

#[tokio::test]
async fn requests_are_retried_and_counted_where_they_leave() {
    let script = serve(vec![
        answer(503, "<Error><Code>SlowDown</Code></Error>"),
        answer(200, "0123456789"),
        answer(200, ""),
        answer(404, ""),
    ])
    .await;
    let stores = Stores::with_s3(options(&script.endpoint));
    let place = stores.resolve("s3a://bucket/a/b").unwrap();
    let bytes = place.store.get(&place.path).await.unwrap().bytes().await.unwrap();
    assert_eq!(bytes, "0123456789");
    place.store.put(&place.path, "abc".into()).await.unwrap();
    let missing = place.store.head(&place.path).await.unwrap_err();
    assert_eq!(from_object_store("x", missing).kind(), ErrorKind::NotFound);

    let asked: Vec<String> =
        script.asked.lock().iter().map(|(method, uri, _)| format!("{method} {uri}")).collect();
    assert_eq!(
        asked,
        ["GET /bucket/a/b", "GET /bucket/a/b", "PUT /bucket/a/b", "HEAD /bucket/a/b"]
    );
    let usage = stores.usage().remove(0);
    assert_eq!(usage.store, "s3://bucket");
    let totals = usage.totals;
    assert_eq!((totals.reads, totals.writes, totals.heads, totals.lists), (2, 1, 1, 0));
    assert_eq!((totals.errors, totals.retries), (1, 1));
    assert_eq!((totals.bytes_read, totals.bytes_written), (10, 3));
    assert!((usage.dollars - Prices::default().dollars(&totals)).abs() < 1e-12);
    assert!(usage.dollars > 0.0);
}

#[tokio::test]
async fn requests_are_counted_for_whom_they_are_made() {
    let answers = (0..5).map(|_| answer(200, "0123456789"));
    let script = serve([answer(503, "")].into_iter().chain(answers).collect()).await;
    let stores = Stores::with_s3(options(&script.endpoint));
    let place = stores.resolve("s3://bucket/a").unwrap();
    let get = || async { place.store.get(&place.path).await.unwrap().bytes().await.unwrap() };
    let (one, other) = (Arc::<Charge>::default(), Arc::<Charge>::default());
    charged(Arc::clone(&one), get()).await;
    let nested = charged(Arc::clone(&other), async {
        let (store, path) = (Arc::clone(&place.store), place.path.clone());
        let put = async move { store.put(&path, "abc".into()).await.unwrap() };
        task::spawn(also_charged(put)).await.unwrap();
        place.store.head(&place.path).await.unwrap()
    });
    charged(Arc::clone(&one), nested).await;
    get().await;

    let (first, second) = (one.charged(), other.charged());
    assert_eq!((first.totals.reads, first.totals.retries, first.totals.errors), (2, 1, 1));
    assert_eq!((first.totals.bytes_read, first.totals.requests()), (10, 2));
    assert_eq!((second.totals.writes, second.totals.heads, second.totals.bytes_written), (1, 1, 3));
    assert!((first.dollars - 0.8e-6).abs() < 1e-15, "{first:?}");
    assert!((second.dollars - 5.4e-6).abs() < 1e-15, "{second:?}");
    assert_eq!(stores.totals().requests(), 5, "the store counts all of them");
    one.add(&other);
    assert_eq!(one.charged(), first.plus(&second));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_continued() {
    let head = "etag: \"1\"\r\nlast-modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n";
    let (endpoint, asked) = serve_raw(vec![
        format!("HTTP/1.1 200 OK\r\n{head}content-length: 10\r\n\r\n0123"),
        format!(
            "HTTP/1.1 206 Partial Content\r\n{head}content-length: 6\r\n\
             content-range: bytes 4-9/10\r\n\r\n456789"
        ),
    ])
    .await;
    let store = open(&options(&endpoint)).unwrap();
    let bytes = store.get(&Path::from("a")).await.unwrap().bytes().await.unwrap();
    assert_eq!(bytes, "0123456789");
    assert!(asked.lock()[1].contains("range: bytes=4-9"), "{:?}", asked.lock());
}

#[tokio::test]
async fn put_if_absent_says_so_and_is_answered() {
    let script = serve(vec![answer(412, "")]).await;
    let store = open(&options(&script.endpoint)).unwrap();
    let put = store.put_opts(&Path::from("a"), "x".into(), PutMode::Create.into()).await;
    assert!(matches!(put, Err(object_store::Error::AlreadyExists { .. })), "{put:?}");
    assert_eq!(script.asked.lock()[0].2.get("if-none-match").unwrap(), "*");
}

#[tokio::test]
async fn a_put_whose_answer_is_lost_is_not_taken_for_somebody_elses() {
    let there = answer(200, "mine");
    let head = Response::builder()
        .header("etag", "\"1\"")
        .header("last-modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        .header("content-length", 4)
        .body(Body::empty())
        .unwrap();
    let script = serve(vec![answer(503, ""), answer(412, ""), head, there]).await;
    let stores = Stores::with_s3(options(&script.endpoint));
    stores.resolve("s3://bucket/a").unwrap().put_new(&"mine".into()).await.unwrap();

    let other = Response::builder()
        .header("last-modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        .header("content-length", 5)
        .body(Body::empty())
        .unwrap();
    let script = serve(vec![answer(412, ""), other]).await;
    let stores = Stores::with_s3(options(&script.endpoint));
    let refused = stores.resolve("s3://bucket/a").unwrap().put_new(&"mine".into()).await;
    assert!(matches!(refused, Err(object_store::Error::AlreadyExists { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_put_that_broke_off_is_sent_again() {
    let (endpoint, asked) = serve_raw(vec![
        String::new(),
        "HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 0\r\n\r\n".to_owned(),
    ])
    .await;
    let stores = Stores::with_s3(options(&endpoint));
    stores.resolve("s3://bucket/a").unwrap().put_new(&"mine".into()).await.unwrap();
    assert_eq!(asked.lock().len(), 2);
}

async fn probe(status: u16, body: &str) -> Error {
    let answers = (0..=RETRIES_OF_PROBE).map(|_| answer(status, body)).collect();
    let script = serve(answers).await;
    let stores = Stores::with_s3(options(&script.endpoint));
    stores.probe(&parse_location("s3://bucket/w").unwrap()).await.unwrap_err()
}

#[tokio::test]
async fn probing_tells_what_is_wrong() {
    let cases = [
        (404, "<Code>NoSuchBucket</Code>", ErrorKind::NotFound, "there is no such bucket"),
        (404, "", ErrorKind::NotFound, "there is no such bucket"),
        (
            403,
            "<Code>InvalidAccessKeyId</Code>",
            ErrorKind::Forbidden,
            "does not know the access key",
        ),
        (403, "<Code>AccessDenied</Code>", ErrorKind::Forbidden, "access is denied"),
        (
            400,
            "<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>",
            ErrorKind::Invalid,
            "eu-west-1",
        ),
        (301, "", ErrorKind::Invalid, "another region"),
        (503, "<Code>SlowDown</Code>", ErrorKind::Unavailable, "slow down"),
    ];
    for (status, body, kind, what) in cases {
        let error = probe(status, body).await;
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(error.message().contains(what) && error.hint().is_some(), "{error:?}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn nobody_at_the_endpoint_is_told_soon() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let stores = Stores::with_s3(options(&endpoint));
    let error = stores.probe(&parse_location("s3://bucket").unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("nobody listens"), "{}", error.message());
}

#[test]
fn endpoints_are_checked() {
    let with = |endpoint: &str, allow_http| S3Options { allow_http, ..options(endpoint) };
    assert!(open(&with("https://s3.example.com", false)).is_ok());
    assert!(open(&with("http://localhost:9000", false)).is_ok());
    assert!(open(&with("http://s3.example.com", true)).is_ok());
    let plain = refused(open(&with("http://s3.example.com", false)));
    assert!(plain.hint().unwrap().contains("s3_allow_http"));
    for wrong in ["s3.example.com", "ftp://x", "https://key:hunter2@x", ""] {
        let error = refused(open(&with(wrong, true)));
        assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong}");
    }
    let error = refused(open(&with("https://key:hunter2@x", true)));
    assert!(!format!("{error:?}").contains("hunter2"));
}

#[test]
fn no_credentials_say_why() {
    let credentials = Credentials::Missing { why: "the profile x is not there".into() };
    let error = refused(open(&S3Options { credentials, ..S3Options::default() }));
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.message().contains("the profile x"), "{error:?}");
}

#[test]
fn the_bucket_stands_in_path_or_host() {
    let url = |options: &S3Options| {
        format!("{:?}", open(options).unwrap())
            .split("bucket_endpoint: \"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .to_owned()
    };
    let own = options("https://s3.example.com:9000/");
    assert_eq!(url(&own), "https://s3.example.com:9000/bucket");
    assert_eq!(
        url(&S3Options { path_style: Some(false), ..own }),
        "https://bucket.s3.example.com:9000"
    );
    let amazon = S3Options { endpoint: None, region: Some("eu-west-1".into()), ..options("") };
    assert_eq!(url(&amazon), "https://bucket.s3.eu-west-1.amazonaws.com");
    assert_eq!(
        url(&S3Options { path_style: Some(true), ..amazon }),
        "https://s3.eu-west-1.amazonaws.com/bucket"
    );
}

#[test]
fn secrets_are_not_shown() {
    let stores = Stores::with_s3(options("https://x"));
    let place = stores.resolve("s3://bucket/a").unwrap();
    for text in [format!("{stores:?}"), format!("{place:?}"), format!("{:?}", options("https://x"))]
    {
        assert!(text.contains("AKEXAMPLE") || text.contains("bucket"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
