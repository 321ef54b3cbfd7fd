//! `file_access`: which files statements may name, in the real program.

use rustix::process::Signal;

use crate::harness::{Place, Server};

#[test]
fn a_shell_reads_files_unless_told_not_to() {
    let place = Place::new();
    place.write("rows.csv", "n\n1\n2\n");
    let copy = "COPY t FROM 'rows.csv'";
    let create = "CREATE TABLE t (n bigint)";
    let said = place.ok(&["sql", "--warehouse", "w", "-c", create, "-c", copy]);
    assert_eq!(said, "CREATE TABLE\nCOPY 2\n");
    let off = ["sql", "--warehouse", "w", "--file-access", "off", "-c", copy];
    let ran = place.run(&off);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("file_access is off"), "{}", ran.stderr);
    assert!(ran.stderr.contains("code: 42501\n"), "{}", ran.stderr);
    assert_eq!(place.query("SELECT count(*) FROM t"), "2\n");
}

#[test]
fn a_server_reads_files_of_named_folders_only() {
    let place = Place::new();
    std::fs::create_dir(place.path("in")).unwrap();
    place.write("in/rows.csv", "n\n1\n");
    place.write("rows.csv", "n\n2\n");
    let copy = |file: &str| format!("COPY t FROM '{}'", place.path(file).display());
    let status = |server: &Server, sql: &str| server.post_sql(sql).unwrap().0;

    let server = Server::start(&place, &[]);
    assert_eq!(status(&server, "CREATE TABLE t (n bigint)"), 200);
    assert_eq!(status(&server, &copy("in/rows.csv")), 403);
    server.signal(Signal::TERM);
    server.wait();

    let server = Server::start(&place, &["--file-access", "in"]);
    assert_eq!(status(&server, &copy("in/rows.csv")), 200);
    assert_eq!(status(&server, "COPY t FROM 'in/rows.csv'"), 200);
    assert_eq!(status(&server, &copy("rows.csv")), 403);
    assert_eq!(status(&server, "COPY t FROM '/etc/passwd'"), 403);
    assert_eq!(server.post_sql("SELECT sum(n) AS s FROM t").unwrap().1, "s\n2\n");
}

#[test]
fn a_folder_that_is_not_there_is_told_at_the_start() {
    let place = Place::new();
    let ports = ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "none"];
    let mut arguments = vec!["server", "--warehouse", "w", "--file-access", "missing"];
    arguments.extend(ports);
    let ran = place.run(&arguments);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("file_access names missing"), "{}", ran.stderr);
}
