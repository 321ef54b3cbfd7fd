//! The history of figures outlives a server that is killed, and what is wrong with its file stops no start.

use std::path::PathBuf;

use rustix::process::Signal;

use crate::harness::{Place, Server, files_below, wait_for};

/// The samples of a second, as CSV.
fn samples(server: &Server) -> Vec<String> {
    let sql = "SELECT * FROM system.history WHERE step_s = 1 ORDER BY at";
    let (status, body) = server.post_sql(sql).unwrap();
    assert_eq!(status, 200, "{body}");
    body.lines().skip(1).map(str::to_owned).collect()
}

fn with_samples(server: &Server, count: usize) -> Vec<String> {
    wait_for("samples come", || Some(samples(server)).filter(|samples| samples.len() >= count))
}

fn ring(place: &Place) -> PathBuf {
    let all = files_below(&place.path("w"));
    let mut rings = all.into_iter().filter(|file| file.ends_with("history/history-0.ring"));
    rings.next().expect("there is a file")
}

#[test]
fn a_killed_server_leaves_its_history() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let before = with_samples(&server, 3);
    server.signal(Signal::KILL);
    server.wait();
    let server = Server::start(&place, &[]);
    let after = samples(&server);
    // The last one may have been on its way to the file.
    assert_eq!(after[..before.len() - 1], before[..before.len() - 1]);
    server.signal(Signal::TERM);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("WARN"), "{log}");
}

#[test]
fn a_torn_or_foreign_file_costs_a_warning_and_no_start() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let before = with_samples(&server, 3);
    server.signal(Signal::KILL);
    server.wait();
    let ring = ring(&place);
    let whole = std::fs::read(&ring).unwrap();
    // All places that hold something, the first one torn.
    let mut torn = whole.clone();
    let first = 64 + torn[64..].iter().position(|byte| *byte != 0).unwrap();
    torn[first + 20..first + 40].fill(0xff);
    std::fs::write(&ring, torn).unwrap();
    let server = Server::start(&place, &[]);
    let after = samples(&server);
    assert!(after.len() >= before.len() - 2, "{} of {}", after.len(), before.len());
    server.signal(Signal::TERM);
    let (_, log) = server.wait();
    assert!(log.contains("WARN") && log.contains("was damaged: it is left out"), "{log}");

    std::fs::write(&ring, b"a file of somebody else").unwrap();
    let server = Server::start(&place, &[]);
    with_samples(&server, 1);
    server.signal(Signal::TERM);
    let (_, log) = server.wait();
    assert!(log.contains("it was put aside"), "{log}");
    let aside = ring.with_extension("unreadable");
    assert_eq!(std::fs::read(aside).unwrap(), b"a file of somebody else");
    assert_eq!(std::fs::metadata(&ring).unwrap().len(), whole.len() as u64, "it does not grow");
}
