//! TLS: what it asks of the settings, and the shells over HTTPS.

use std::path::Path;

use rustix::process::Signal;
use stoa_testkit::{Authority, Certificate, Usage};

use crate::harness::{Place, Ran, Server, wait_for};

struct Secured {
    place: Place,
    authority: Authority,
    own: Certificate,
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

impl Secured {
    fn new() -> Self {
        let place = Place::new();
        let folder = place.path("tls");
        std::fs::create_dir(&folder).unwrap();
        let authority = Authority::new(&folder, "authority");
        let own = authority.issue("server", Usage::Server);
        Self { place, authority, own }
    }

    fn start(&self, more: &[&str]) -> Server {
        let mut arguments =
            vec!["--tls-cert", text(&self.own.cert), "--tls-key", text(&self.own.key)];
        arguments.extend(more);
        Server::start(&self.place, &arguments)
    }

    /// `stoa sql` at this address.
    fn ask(&self, url: &str, more: &[&str]) -> Ran {
        let mut arguments = vec!["sql", "--url", url, "--format", "csv", "--no-header"];
        arguments.extend(["-c", "SELECT 7"]);
        arguments.extend(more);
        self.place.run(&arguments)
    }
}

#[test]
fn the_shells_ask_an_encrypted_server() {
    let secured = Secured::new();
    let server = secured.start(&[]);
    assert_eq!(server.listening["tls"], true);
    let url = format!("https://localhost:{}", server.http_port());
    let trust = ["--tls-ca", text(secured.authority.cert())];
    let ran = secured.ask(&url, &trust);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "7"), "{}", ran.stderr);
    let hql = secured.place.run(&["hql", "--url", &url, trust[0], trust[1], "-e", "SHOW TABLES;"]);
    assert_eq!(hql.code, Some(0), "{}", hql.stderr);

    let ran = secured.ask(&url, &[]);
    assert_ne!(ran.code, Some(0));
    for part in ["error: no encrypted connection to https://", "UnknownIssuer", "--tls-ca FILE"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let ran = secured.ask(&url.replace("https", "http"), &[]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("error: this port speaks HTTPS"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: write https://"), "{}", ran.stderr);
    server.signal(Signal::TERM);
    let (status, log) = server.wait();
    assert!(status.success() && !log.contains("ERROR"), "{log}");
}

#[test]
fn the_shell_looks_for_an_encrypted_server_where_the_settings_say_so() {
    let secured = Secured::new();
    let server = secured.start(&[]);
    let port = server.http_port().to_string();
    let trust = text(secured.authority.cert());
    let mut command =
        secured.place.command(&["sql", "--http-port", &port, "--tls-ca", trust, "-c", "SELECT 7"]);
    command.env("STOA_TLS_CERT", &secured.own.cert);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_plain_server_does_not_speak_https() {
    let secured = Secured::new();
    let server = Server::start(&secured.place, &[]);
    assert_eq!(server.listening["tls"], false);
    let ran = secured.ask(&format!("https://localhost:{}", server.http_port()), &[]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("http:// in place of https://"), "{}", ran.stderr);
}

#[test]
fn clients_show_certificates_where_the_server_asks_for_them() {
    let secured = Secured::new();
    let issuer = Authority::new(&secured.place.path("tls"), "issuer");
    let known = issuer.issue("known", Usage::Client);
    let server = secured.start(&["--tls-client-ca", text(issuer.cert())]);
    let url = format!("https://localhost:{}", server.http_port());
    let trust = ["--tls-ca", text(secured.authority.cert())];
    let ran = secured.ask(&url, &trust);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    let mut all = trust.to_vec();
    all.extend(["--tls-client-cert", text(&known.cert), "--tls-client-key", text(&known.key)]);
    let ran = secured.ask(&url, &all);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "7"), "{}", ran.stderr);
}

#[test]
fn a_new_certificate_is_used_without_a_restart() {
    let secured = Secured::new();
    let server = secured.start(&[]);
    let url = format!("https://localhost:{}", server.http_port());
    let next_authority = Authority::new(&secured.place.path("tls"), "next_authority");
    let next = next_authority.issue("next", Usage::Server);
    let trust = ["--tls-ca", text(next_authority.cert())];
    assert_ne!(secured.ask(&url, &trust).code, Some(0));
    std::fs::rename(&next.key, &secured.own.key).unwrap();
    std::fs::rename(&next.cert, &secured.own.cert).unwrap();
    wait_for("the new certificate", || (secured.ask(&url, &trust).code == Some(0)).then_some(()));
}

#[test]
fn an_address_that_others_reach_needs_tls_and_logins() {
    let secured = Secured::new();
    let (cert, key) = (text(&secured.own.cert), text(&secured.own.key));
    let tls = ["--tls-cert", cert, "--tls-key", key];
    let refused = |more: &[&str], detail: &str, hint: &str| {
        let mut arguments = vec!["server", "--warehouse", "w", "--listen", "0.0.0.0"];
        arguments.extend([
            "--http-port",
            "0",
            "--pg-port",
            "0",
            "--flight-port",
            "0",
            "--hive-port",
            "none",
        ]);
        arguments.extend(more);
        let ran = secured.place.run(&arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert_eq!(
            ran.stderr,
            format!(
                "error: refusing to listen on 0.0.0.0\ndetail: {detail}\nhint: set {hint}, listen \
                 on 127.0.0.1, or add --insecure-listen if only trusted machines reach it\n\
                 code: 42501\n"
            )
        );
    };
    let read = "connections are not encrypted: passwords and rows can be read in transit";
    let open =
        "access_control is off: anyone who reaches this address can read and change everything";
    refused(&[], &format!("{read}; {open}"), "tls_cert and tls_key and access_control");
    refused(&["--access-control"], read, "tls_cert and tls_key");
    refused(&tls, open, "access_control");
    let server = secured.start(&["--listen", "0.0.0.0", "--access-control"]);
    let url = format!("https://localhost:{}", server.http_port());
    // Nobody is there to log in, which is said over an encrypted connection.
    let ran = secured.ask(&url, &["--tls-ca", text(secured.authority.cert())]);
    assert!(ran.stderr.contains("code: 28000"), "{}", ran.stderr);
}

#[test]
fn settings_that_need_each_other_and_files_that_cannot_be_used() {
    let secured = Secured::new();
    let (cert, key) = (text(&secured.own.cert), text(&secured.own.key));
    let said = |arguments: &[&str]| {
        let mut all = vec!["server", "--warehouse", "w", "--http-port", "0", "--pg-port", "0"];
        all.extend(["--flight-port", "0", "--hive-port", "none"]);
        all.extend(arguments);
        let ran = secured.place.run(&all);
        (ran.code, ran.stderr.lines().next().unwrap_or_default().to_owned())
    };
    let missing = |given: &str, needed: &str| {
        (Some(2), format!("error: {given} is set, and {needed} is not"))
    };
    assert_eq!(said(&["--tls-cert", cert]), missing("tls_cert", "tls_key"));
    assert_eq!(said(&["--tls-key", key]), missing("tls_key", "tls_cert"));
    assert_eq!(said(&["--tls-client-ca", cert]), missing("tls_client_ca", "tls_cert"));
    let (code, error) = said(&["--tls-cert", "none.crt", "--tls-key", key]);
    assert_eq!(code, Some(1));
    assert!(error.starts_with("error: tls_cert: cannot read none.crt: No such file"), "{error}");
    let (code, error) = said(&["--tls-cert", cert, "--tls-key", cert]);
    assert_eq!(code, Some(1));
    assert!(error.starts_with("error: tls_key: ") && error.contains("no private key"), "{error}");
}
