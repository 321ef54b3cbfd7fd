//! Clients of `/v1/live` that do not read: what they have missed is not kept for them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use stoa_env::clock::monotonic;

use crate::harness::{Place, Server, wait_for};

const STREAMS: usize = 20;
/// Without a bound, what these miss in the time of the test is a hundred megabytes.
const GROWTH_BYTES_MAX: u64 = 32 << 20;

/// Statements of new shapes of some kilobytes each, at least so many and for so many seconds. All
/// that are known are more than an operating system keeps for a connection.
fn work(server: &Server, mark: &str, least: u64, seconds: u64) {
    let begin = monotonic();
    let mut number = 0;
    while number < least || begin.elapsed() < Duration::from_secs(seconds) {
        // Names, as literals are no part of a shape.
        let columns: Vec<String> = (0..7)
            .map(|n| format!("{n} AS {}", format!("{mark}{number}_{n}").repeat(40)))
            .collect();
        let sql = format!("SELECT 0 AS {mark}{number}, {}", columns.join(", "));
        assert_eq!(server.post_sql(&sql).unwrap().0, 200);
        number += 1;
    }
}

/// A connection on which the operating system keeps little for a client that does not read. Still less would make it slow
/// to read: half of a segment is to fit.
fn connect_narrow(port: u16) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    socket.connect(&SocketAddr::from(([127, 0, 0, 1], port)).into()).unwrap();
    socket.into()
}

fn resident_bytes(server: &Server) -> u64 {
    let pid = server.listening["pid"].as_u64().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

#[cfg(target_os = "linux")]
#[test]
fn a_client_that_does_not_read_costs_no_memory_and_goes_on_with_what_is_new() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    // As many shapes as are counted.
    work(&server, "warm", 1100, 0);
    let request =
        "GET /v1/live?status=0&queries=256&shapes=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut streams: Vec<TcpStream> = (0..STREAMS)
        .map(|_| {
            let mut stream = connect_narrow(server.http_port());
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    // Each comes to hold one update that it cannot send.
    work(&server, "first", 500, 20);
    let before = resident_bytes(&server);
    work(&server, "second", 300, 12);
    let grown = resident_bytes(&server).saturating_sub(before);
    println!("{} MiB more for {STREAMS} streams that nobody reads", grown >> 20);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more");

    // Who reads again gets what is new.
    assert_eq!(server.post_sql("SELECT 1 AS the_very_last").unwrap().0, 200);
    let mut stream = streams.remove(0);
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (mut text, mut part) = (String::new(), vec![0; 1 << 16]);
    wait_for("what is new arrives", || {
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "the stream has ended");
        text.push_str(&String::from_utf8_lossy(&part[..read]));
        text.contains("AS the_very_last").then_some(())
    });
}
