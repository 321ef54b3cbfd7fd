//! Bytes that no client sends: each gets an answer or the end of its connection, and others are served.

use std::time::Duration;

use stoa_hs2::HiveOptions;
use stoa_listen::Limits;
use stoa_thrift::Writer;

use crate::support::{Server, call, execute, open_session};

/// Whether a connection that begins so ends, with an answer that has the text.
async fn ends(server: &Server, bytes: &[u8], said: &str) {
    let mut client = server.connect().await;
    client.send(bytes).await;
    let rest = client.rest().await;
    let text = String::from_utf8_lossy(&rest);
    assert!(text.contains(said), "{bytes:?}: {text:?}");
}

#[tokio::test]
async fn what_is_no_message_ends_the_connection() {
    let options = HiveOptions { message_bytes_max: 1 << 20, ..HiveOptions::default() };
    let server = Server::start(options).await;
    // No transport begins so; TLS, where the server has none.
    ends(&server, b"\x00\x00\x00\x08", "").await;
    ends(&server, b"\x16\x03\x01\x02\x00", "").await;
    // SASL: another mechanism, a frame that is too long, a login that says nothing.
    ends(&server, b"\x01\x00\x00\x00\x06GSSAPI", "login by GSSAPI is not offered").await;
    ends(&server, b"\x01\x7f\xff\xff\xff", "longer than").await;
    ends(&server, b"\x01\x00\x00\x00\x05PLAIN\x05\x00\x00\x00\x02ab", "malformed SASL").await;
    // A frame after the login that is too long.
    ends(&server, b"\x01\x00\x00\x00\x05PLAIN\x02\x00\x00\x00\x04\0a\0b\x7f\xff\xff\xff", "\x05")
        .await;
    // Thrift: a length beyond the limit, one that is negative, a type that there is not.
    let long = call("OpenSession", b"\x0c\x00\x01\x0b\x00\x02\x7f\xff\xff\xff");
    ends(&server, &long, "the message is longer than 1048576 bytes").await;
    ends(&server, &call("OpenSession", b"\x0c\x00\x01\x0b\x00\x02\xff\xff\xff\xff"), "").await;
    ends(&server, &call("OpenSession", b"\x63\x00\x01"), "").await;
    ends(&server, &call("x", &b"\x0c\x00\x01".repeat(1000)), "").await;
    // HTTP: no call, no Thrift.
    ends(&server, b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "404 Not Found").await;
    let post = "POST /cliservice HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
        content-type: application/x-thrift\r\ncontent-length: 4\r\n\r\nabcd";
    ends(&server, post.as_bytes(), "400 Bad Request").await;
    server.connect().await.open().await;
    server.stop().await;
}

#[tokio::test]
async fn handles_versions_and_calls_that_are_wrong_are_answered() {
    let server = Server::start(HiveOptions::default()).await;
    let mut wire = server.connect().await;
    let mut handle = wire.open().await;
    wire.send(&execute(&handle, "SELECT 1", false)).await;
    assert!(wire.read(8).await.starts_with(&[0x80, 1, 0, 2]));
    // A secret that is not the session's.
    let last = handle.len() - 3;
    handle[last] ^= 1;
    let mut other = server.connect().await;
    other.send(&execute(&handle, "SELECT 1", false)).await;
    expect(&mut other, "Invalid SessionHandle").await;
    let mut out = Writer::new();
    out.structure(1, |_| {});
    out.stop();
    let nothing = out.into_bytes();
    for name in ["GetOperationStatus", "FetchResults", "CloseOperation", "GetResultSetMetadata"] {
        other.send(&call(name, &nothing)).await;
        expect(&mut other, "Invalid OperationHandle").await;
    }
    other.send(&call("GetLog", &nothing)).await;
    expect(&mut other, "Invalid method name: 'GetLog'").await;
    other.send(&call("GetDelegationToken", &nothing)).await;
    expect(&mut other, "Kerberos is not supported").await;
    other.send(&open_session(4)).await;
    expect(&mut other, "older than V6").await;
    server.stop().await;
}

async fn expect(client: &mut crate::support::Client, said: &str) {
    let mut text = String::new();
    while !text.contains(said) {
        let mut bytes = vec![0; 1024];
        let count = tokio::io::AsyncReadExt::read(&mut client.0, &mut bytes).await.unwrap();
        assert!(count > 0, "{text:?}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    // The ends of the answer's structs may come later.
    while !text.ends_with('\0') {
        let mut byte = [0];
        tokio::io::AsyncReadExt::read_exact(&mut client.0, &mut byte).await.unwrap();
        text.push(char::from(byte[0]));
    }
}

#[tokio::test]
async fn who_does_not_log_in_in_time_is_sent_away() {
    let limits = Limits { login_timeout: Duration::from_millis(50), ..Limits::default() };
    let server = Server::start(HiveOptions { limits, ..HiveOptions::default() }).await;
    for half in [&b""[..], b"\x01\x00\x00", b"\x80\x01\x00\x01\x00", b"POST /cliservice HT"] {
        let mut client = server.connect().await;
        client.send(half).await;
        assert_eq!(client.rest().await, b"", "{half:?}");
    }
    server.stop().await;
}
