//! The `.slt` files of `stoa-query/tests/slt` over each protocol of a real server: every file on a
//! server of its own with an empty warehouse. What a file is, and how it says what a protocol cannot
//! have, is told in `stoa_testkit::slt`.

mod flight;
mod http;
mod postgres;

use std::sync::Arc;

use stoa_testkit::slt::{Protocol, folder, run};

use crate::harness::{Place, Server};

/// Runs a file on a new server over the protocol that `reach` gives of it.
async fn run_on_server(name: &str, reach: impl FnOnce(&Server) -> Arc<dyn Protocol>) {
    let place = Place::new();
    let files = place.path("files");
    std::fs::create_dir(&files).unwrap();
    let server = Server::start(&place, &["--file-access", "files"]);
    let protocol = reach(&server);
    let ran = run(&folder().join(format!("{name}.slt")), &protocol, &files).await;
    if let Err(failures) = ran {
        panic!("{failures}");
    }
}
