//! Version, help, usage errors and exit codes.

use crate::harness::Place;

#[test]
fn version_and_help_go_to_stdout() {
    let place = Place::new();
    assert_eq!(place.ok(&["--version"]), format!("stoa {}\n", env!("CARGO_PKG_VERSION")));
    let help = place.ok(&["--help"]);
    for part in ["server", "sql", "load", "table", "config", "figures", "bench", "Examples:"] {
        assert!(help.contains(part), "{part} is not in\n{help}");
    }
    for command in [
        &["server"][..],
        &["sql"],
        &["load"],
        &["table", "check"],
        &["table", "clean"],
        &["config"],
        &["figures"],
        &["bench", "report"],
        &["bench", "generate"],
    ] {
        let mut arguments = command.to_vec();
        arguments.push("--help");
        assert!(place.ok(&arguments).contains("Usage: stoa"), "{command:?}");
    }
}

#[test]
fn a_wrong_command_line_exits_2_and_says_what_is_right() {
    let place = Place::new();
    let check = |arguments: &[&str], expected: &str| {
        let ran = place.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    };
    check(&["serve"], "'server'");
    check(&["catalgo"], "a similar subcommand exists: 'catalog'");
    check(&["server", "--htp-port", "1"], "a similar argument exists: '--http-port'");
    check(&["load", "a.csv"], "--into");
    check(&["server", "--pg-port", "x"], "flag --pg-port: pg_port = \"x\" must be a port");
    check(&["load", "a.csv", "--into", "t", "--quote", "long"], "expected one ASCII character");
    check(&["table", "clean", "--older-than", "soon"], "write a time such as 30s");
}

#[test]
fn figures_are_printed_as_the_documents_have_them() {
    let place = Place::new();
    let page = include_str!("../../../../docs/figures.md");
    assert_eq!(place.ok(&["figures", "--markdown"]), page);
    assert_eq!(place.ok(&["figures"]), page);
    let schemas = include_str!("../../../../docs/openapi.yaml");
    assert!(schemas.contains(&place.ok(&["figures", "--openapi"])));
    let types = include_str!("../../../../console/js/api.js");
    assert!(types.contains(&place.ok(&["figures", "--types"])));
}

#[test]
fn closed_output_is_no_error() {
    let place = Place::new();
    let mut command = place.command(&["config", "--markdown"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
