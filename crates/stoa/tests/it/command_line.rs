//! Version, help, usage errors and exit codes.

use std::process::Command;

use crate::harness::Place;

#[test]
fn version_and_help_go_to_stdout() {
    let place = Place::new();
    assert_eq!(place.ok(&["--version"]), format!("stoa {}\n", env!("CARGO_PKG_VERSION")));
    let help = place.ok(&["--help"]);
    for part in
        ["server", "ready", "sql", "load", "table", "config", "completions", "man", "Examples:"]
    {
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
fn shells_complete_the_commands() {
    let place = Place::new();
    let completes = |shell: &str, parts: &[&str]| {
        let script = place.ok(&["completions", shell]);
        for part in parts {
            assert!(script.contains(part), "{shell}: {part}");
        }
        script
    };
    completes("zsh", &["#compdef stoa", "--http-port"]);
    completes("fish", &["complete -c stoa", "partition-by"]);
    let bash = completes("bash", &["--http-port", "complete -F _stoa"]);
    // Bash itself takes the script, and offers the commands that begin so.
    let file = place.write("stoa.bash", bash);
    let words =
        "COMP_WORDS=(stoa com); COMP_CWORD=1; _stoa stoa com stoa; echo \"${COMPREPLY[@]}\"";
    let script = format!("source '{}' && {words}", file.display());
    let offered = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&offered.stdout).trim(), "completions", "{offered:?}");
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    place.ok(&["man", "pages/man1"]);
    for (page, part) in [
        ("stoa.1", "report server"),
        ("stoa-load.1", "partition\\-by"),
        ("stoa-table-check.1", "checksums"),
    ] {
        let text = std::fs::read_to_string(place.path("pages/man1").join(page)).unwrap();
        assert!(text.contains(".TH") && text.contains(part), "{page}: {text}");
    }
    place.write("file", "");
    let ran = place.run(&["man", "file/man1"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("cannot write manual pages to file/man1"), "{}", ran.stderr);
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
