//! The live stream: what it says is what the polled requests say; rights, ends and sizes of it.

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use stoa_env::timer;

use crate::support::Server;

/// What a page may receive.
const BYTES_EACH_MAX: usize = 10_000;

/// A client of a stream: the documents as they are after all changes so far.
struct Reader {
    response: Response,
    decoder: zstd::stream::write::Decoder<'static, Vec<u8>>,
    documents: HashMap<String, Value>,
    /// Received, as compressed.
    bytes: usize,
    ended: Option<Value>,
}

impl Reader {
    async fn open(server: &Server, path: &str, role: Option<&str>) -> Self {
        let response = ask(server, path, role).await;
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["content-encoding"], "zstd");
        let decoder = zstd::stream::write::Decoder::new(Vec::new()).unwrap();
        Self { response, decoder, documents: HashMap::new(), bytes: 0, ended: None }
    }

    /// The topics of the next update; none at the end.
    async fn update(&mut self) -> Vec<String> {
        let mut text = String::new();
        // A large update may arrive in several parts.
        while !text.ends_with("\n\n") {
            let next = timer::timeout(Duration::from_secs(20), self.response.chunk()).await;
            let Some(chunk) = next.expect("an update arrives").unwrap() else { break };
            self.bytes += chunk.len();
            self.decoder.write_all(&chunk).unwrap();
            self.decoder.flush().unwrap();
            text += &String::from_utf8(std::mem::take(self.decoder.get_mut())).unwrap();
        }
        let mut topics = Vec::new();
        for event in text.split("\n\n").filter(|event| !event.is_empty() && *event != ":") {
            let (topic, data) = event.split_once('\n').unwrap();
            let topic = topic.strip_prefix("event: ").unwrap().to_owned();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            if topic == "end" {
                self.ended = Some(data);
                continue;
            }
            let old = self.documents.remove(&topic).unwrap_or_default();
            self.documents.insert(topic.clone(), applied(old, &data));
            topics.push(topic);
        }
        topics
    }

    /// Reads updates until something is so.
    async fn until(&mut self, what: &str, holds: impl Fn(&HashMap<String, Value>) -> bool) {
        for _ in 0..20 {
            if holds(&self.documents) {
                return;
            }
            assert!(self.ended.is_none(), "{what}: ended with {:?}", self.ended);
            self.update().await;
        }
        panic!("waited in vain: {what}: {:?}", self.documents);
    }

    /// Reads to the end; the last event.
    async fn end(mut self) -> Value {
        while self.ended.is_none() {
            self.update().await;
        }
        // The compression has an end, and then the body.
        let rest = async { while self.response.chunk().await.unwrap().is_some() {} };
        timer::timeout(Duration::from_secs(20), rest).await.expect("the answer ends");
        self.ended.unwrap()
    }
}

async fn ask(server: &Server, path: &str, role: Option<&str>) -> Response {
    let mut request = server.request(Method::GET, path).header("accept-encoding", "zstd");
    if let Some(role) = role {
        request = request.basic_auth(role, Some("pencil"));
    }
    request.send().await.unwrap()
}

/// As `docs/openapi.yaml` says that changes are to be read.
fn applied(old: Value, change: &Value) -> Value {
    if let Some(value) = change.get("v") {
        return value.clone();
    }
    if let Some(items) = change["l"].as_array() {
        let old = old.as_array().unwrap();
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let mut list = Vec::new();
        for item in items {
            match item {
                Value::Array(run) => {
                    list.extend_from_slice(&old[number(&run[0])..][..number(&run[1])])
                }
                item if item.get("i").is_some() => {
                    list.push(applied(old[number(&item["i"])].clone(), &item["c"]));
                }
                item => list.push(item["v"].clone()),
            }
        }
        return list.into();
    }
    let mut object = old.as_object().unwrap().clone();
    for name in change["d"].as_array().into_iter().flatten() {
        object.remove(name.as_str().unwrap()).unwrap();
    }
    for (name, change) in change["m"].as_object().unwrap() {
        let value = applied(object.get(name).cloned().unwrap_or_default(), change);
        object.insert(name.clone(), value);
    }
    object.into()
}

fn texts(queries: &Value) -> Vec<&str> {
    queries.as_array().unwrap().iter().map(|query| query["sql"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn it_ends_up_with_what_the_polled_requests_say() {
    let server = Server::start().await;
    server.sql("CREATE TABLE old (n bigint)").await;
    let mut reader =
        Reader::open(&server, "/v1/live?status=0&queries=256&shapes=50&tables=1&hive=true", None)
            .await;
    reader.update().await;
    for n in 0..20 {
        server.sql(&format!("SELECT {n} AS n, 'quick'")).await;
    }
    server.sql("CREATE TABLE new (n bigint)").await;
    server.sql("DROP TABLE old").await;
    server.sql("INSERT INTO new VALUES (1), (2)").await;
    reader
        .until("the tables are there", |all| {
            all["tables"]["namespaces"].to_string().contains("\"rows\":2")
        })
        .await;
    reader
        .until("the statements are there", |all| {
            texts(&all["queries"]["recent"]).iter().any(|sql| sql.starts_with("INSERT"))
        })
        .await;
    // Without statements in between, nothing of these changes any more.
    reader.update().await;
    reader.update().await;
    let of = |topic: &str| &reader.documents[topic];
    assert_eq!(*of("tables"), server.get_json("/v1/tables").await);
    assert_eq!(*of("queries"), server.get_json("/v1/queries?recent=256").await);
    assert_eq!(*of("shapes"), server.get_json("/v1/shapes?most=50").await);
    assert_eq!(of("hive")["sessions"], server.get_json("/api/v1/sessions").await);
    let status = server.get_json("/v1/status").await;
    for group in
        ["version", "warehouse", "totals", "executors", "log", "ingest", "pools", "started_unix_ms"]
    {
        assert_eq!(of("status")[group], status[group], "{group}");
    }
}

#[tokio::test]
async fn an_update_is_small_whatever_the_server_answers() {
    const UPDATES: usize = 6;
    let server = Server::start().await;
    let path = "/v1/live?status=0&queries=256&tables=15&hive=true";
    // Texts of all kinds, so that they compress badly, and many more than a page can show.
    let answer_many = async |round: usize| {
        for n in 0..300 {
            let words = format!("{:x}", (round * 1000 + n + 1) * 7_919_777 * 104_729);
            server.sql(&format!("SELECT {n} AS \"c{words}\", '{}'", words.repeat(n % 9))).await;
        }
    };
    answer_many(0).await;
    let mut reader = Reader::open(&server, path, None).await;
    reader.update().await;
    let first = reader.bytes;
    for round in 1..=UPDATES {
        answer_many(round).await;
        reader.update().await;
    }
    let each = (reader.bytes - first) / UPDATES;
    println!("first {first} bytes, then {each} with each update");
    assert!(each < BYTES_EACH_MAX, "{each} bytes with each update");
    assert!(first < 10 * BYTES_EACH_MAX, "{first} bytes at first");
    assert_eq!(reader.documents["queries"]["recent"].as_array().unwrap().len(), 256);
    // Where nothing happens, next to nothing is sent.
    reader.update().await;
    reader.update().await;
    let before = reader.bytes;
    for _ in 0..3 {
        reader.update().await;
    }
    let idle = (reader.bytes - before) / 3;
    println!("idle: {idle} bytes with each update");
    // The machine's own figures change every second.
    assert!(idle < BYTES_EACH_MAX / 5, "{idle} bytes with each update while nothing runs");
}

#[tokio::test]
async fn failures_and_the_slowest_are_among_what_is_shown() {
    let server = Server::start().await;
    let mut reader = Reader::open(&server, "/v1/live?queries=256", None).await;
    reader.update().await;
    let failing = server.post("/v1/sql", "SELECT 1 / 0 AS failing").await;
    assert_ne!(failing.status(), StatusCode::OK);
    for n in 0..100 {
        server.sql(&format!("SELECT {n} AS quick")).await;
    }
    server
        .sql("SELECT count(*) AS slow FROM generate_series(1, 3000000) AS s(n) WHERE n % 7 = 3")
        .await;
    for n in 100..200 {
        server.sql(&format!("SELECT {n} AS quick")).await;
    }
    for part in ["failing", "AS slow", "SELECT 199 AS quick"] {
        let is_there = |all: &HashMap<String, Value>| {
            texts(&all["queries"]["recent"]).iter().any(|sql| sql.contains(part))
        };
        reader.until(part, is_there).await;
    }
}

#[tokio::test]
async fn rights_hold_while_it_is_open() {
    let server = Server::guarded().await;
    for sql in ["CREATE TABLE secret (n bigint)", "GRANT SELECT ON secret TO ann"] {
        server.trusted(sql).await;
    }
    let as_role = async |role: &str, sql: &str| {
        let request = server.request(Method::POST, "/v1/sql").basic_auth(role, Some("pencil"));
        request.header("content-type", "text/plain").body(sql.to_owned()).send().await.unwrap()
    };
    as_role("ann", "SELECT 'from ann'").await;
    as_role("bob", "SELECT 'from bob'").await;
    let path = "/v1/live?status=0&queries=100&shapes=50&tables=1";
    let (mut ann, mut bob) = (
        Reader::open(&server, path, Some("ann")).await,
        Reader::open(&server, path, Some("bob")).await,
    );
    ann.update().await;
    bob.update().await;
    let is_told =
        |reader: &Reader, what: &str| reader.documents["queries"].to_string().contains(what);
    assert!(is_told(&bob, "from ann") && is_told(&bob, "from bob"));
    assert!(is_told(&ann, "from ann") && !is_told(&ann, "from bob"));
    assert_eq!(ann.documents["shapes"]["error"]["code"], "42501");
    assert!(
        bob.documents["shapes"]["shapes"].to_string().contains("from")
            || bob.documents["shapes"]["known"].as_u64() > Some(0)
    );
    let has_secret =
        |all: &HashMap<String, Value>| all["tables"].to_string().contains("\"secret\"");
    assert!(has_secret(&ann.documents));
    // A right that is taken away takes effect with the next update, for what was sent before, too.
    server.trusted("REVOKE SELECT ON secret FROM ann").await;
    ann.until("the table is gone", |all| !has_secret(all)).await;
    server.trusted("ALTER USER bob NOSUPERUSER").await;
    bob.until("others' statements are gone", |all| {
        !all["queries"].to_string().contains("from ann")
    })
    .await;
    assert!(is_told(&bob, "from bob"));
    bob.until("shapes are gone", |all| all["shapes"]["error"]["code"] == "42501").await;
    as_role("ann", "SELECT 'later from ann'").await;
    ann.until("her own are told", |all| all["queries"].to_string().contains("later from ann"))
        .await;
    bob.update().await;
    assert!(!is_told(&bob, "later from ann"));
    // And back.
    server.trusted("ALTER USER bob SUPERUSER").await;
    bob.until("shapes are back", |all| all["shapes"]["known"].is_u64()).await;
    // A password that is changed, and a role that is dropped, end it.
    server.trusted("ALTER USER ann PASSWORD 'crayon'").await;
    assert_eq!(ann.end().await["error"]["kind"], "forbidden");
    server.trusted("DROP USER bob").await;
    assert_eq!(bob.end().await["error"]["kind"], "forbidden");
    assert_eq!(ask(&server, path, Some("ann")).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn whoever_signs_out_gets_no_more() {
    let server = Server::guarded().await;
    let (mut ann, mut bob) = (
        Reader::open(&server, "/v1/live?status=0", Some("ann")).await,
        Reader::open(&server, "/v1/live?status=0", Some("bob")).await,
    );
    ann.update().await;
    bob.update().await;
    let signed_out = ask(&server, "/v1/sign-out?role=ann", Some("ann")).await;
    assert_eq!(signed_out.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(ann.end().await["error"]["message"], "the role has signed out");
    assert_eq!(bob.update().await, ["status"]);
}

#[tokio::test]
async fn nobody_gets_it_without_a_password_or_from_another_site() {
    let server = Server::guarded().await;
    assert_eq!(ask(&server, "/v1/live?status=0", None).await.status(), StatusCode::UNAUTHORIZED);
    let open = Server::start().await;
    let foreign =
        open.request(Method::GET, "/v1/live?status=0").header("origin", "http://evil.example");
    assert_eq!(foreign.send().await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn its_number_is_bounded_and_bad_parameters_are_errors() {
    let server = Server::start().await;
    for (path, part) in [
        ("/v1/live", "without a topic"),
        ("/v1/live?stats=0", "unknown field"),
        ("/v1/live?log=failed", "filter of the log"),
        ("/v1/live?log={\"state\":1}", "filter of the log"),
    ] {
        let response = server.get(path).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path}");
        let error: Value = response.json().await.unwrap();
        assert!(error.to_string().contains(part), "{path}: {error}");
        assert_ne!(error["error"]["hint"], json!(null), "{path}");
    }
    let mut open = Vec::new();
    for _ in 0..128 {
        open.push(server.get("/v1/live?status=0").await);
    }
    let refused = server.get("/v1/live?status=0").await;
    assert!(refused.headers().contains_key("retry-after"));
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["code"], "53300");
    // Other requests are answered; and a client that goes leaves its place.
    server.sql("SELECT 1").await;
    drop(open);
    for _ in 0..100 {
        if server.get("/v1/live?status=0").await.status() == StatusCode::OK {
            return;
        }
        timer::sleep(Duration::from_millis(100)).await;
    }
    panic!("places are not given back");
}

#[tokio::test]
async fn a_server_that_ends_says_so() {
    let mut server = Server::start().await;
    let mut reader = Reader::open(&server, "/v1/live?status=0", None).await;
    reader.update().await;
    server.stop();
    assert_eq!(reader.end().await["error"]["code"], "57P01");
    server.ended().await;
}
