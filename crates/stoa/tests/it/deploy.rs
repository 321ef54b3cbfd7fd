//! The files in `deploy/` and `packaging/` name only flags, settings and files that there are. They are not run here: that
//! needs systemd (`clients/package` has it) or containers.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::Place;

const UNIT: &str = include_str!("../../../../deploy/stoa.service");
const COMPOSE: &str = include_str!("../../../../deploy/compose.yaml");

const MONITORING: &str = include_str!("../../../../deploy/monitoring/compose.yaml");
const PROMETHEUS: &str = include_str!("../../../../deploy/monitoring/prometheus.yml");
const PACKAGED_SETTINGS: &str = include_str!("../../../../packaging/stoa.toml");

/// All flags of `stoa server`, with their dashes.
fn flags(place: &Place) -> BTreeSet<String> {
    let help = place.ok(&["server", "--help"]);
    let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

/// The flags that a command has, from its lines or its words.
fn named<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let flags = words.filter_map(|word| {
        let word = word.trim().trim_start_matches("- ");
        word.starts_with("--").then(|| word.split('=').next().unwrap_or(word))
    });
    flags.collect()
}

#[test]
fn every_flag_is_one_that_the_server_has() {
    let place = Place::new();
    let known = flags(&place);
    assert!(known.contains("--peer-port"), "{known:?}");
    let command = UNIT.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    // The lines between the command of the daemons and what follows.
    let (_, daemons) = COMPOSE.split_once("- server\n").unwrap();
    let (daemons, _) = daemons.split_once("healthcheck:").unwrap();
    for (file, flags) in [
        ("stoa.service", named(command.split_whitespace())),
        ("compose.yaml", named(daemons.lines())),
    ] {
        assert!(!flags.is_empty(), "{file}");
        for flag in flags {
            assert!(known.contains(flag), "{file} has {flag}, which is not in {known:?}");
        }
    }
}

#[test]
fn the_daemons_of_the_compose_file_have_valid_settings() {
    let place = Place::new();
    let (_, daemons) = COMPOSE.split_once("- server\n").unwrap();
    let (daemons, _) = daemons.split_once("healthcheck:").unwrap();
    let arguments = daemons.lines().filter_map(|line| line.trim().strip_prefix("- "));
    // `stoa config` takes the flags of the server, and checks their values.
    let mut all = vec!["config", "--json"];
    all.extend(arguments);
    let json: Value = serde_json::from_str(&place.ok(&all)).unwrap();
    let value = |name: &str| {
        let settings = json["settings"].as_array().unwrap();
        settings.iter().find(|setting| setting["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!(value("commit_log"), "s3://stoa/logs");
    assert_eq!(value("peer_port").to_string().trim_matches('"'), "15004");
}

#[test]
fn settings_that_the_files_name_are_there() {
    let place = Place::new();
    let json: Value = serde_json::from_str(&place.ok(&["config", "--json"])).unwrap();
    let settings = json["settings"].as_array().unwrap();
    let variables: BTreeSet<&str> =
        settings.iter().map(|setting| setting["environment"].as_str().unwrap()).collect();
    for word in UNIT.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        assert!(!word.starts_with("STOA_") || variables.contains(word), "{word}");
    }
}

#[test]
fn settings_of_packages_are_valid_also_those_in_comments() {
    let place = Place::new();
    // Prose has blanks before its equals signs, settings do not begin with one.
    let all: String = PACKAGED_SETTINGS
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting) if setting.split(' ').nth(1) == Some("=") => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    for text in [PACKAGED_SETTINGS, &all] {
        place.write("packaged.toml", text);
        let shown = place.ok(&["config", "--json", "--config", "packaged.toml"]);
        assert!(shown.contains("/var/lib/stoa/warehouse"), "{shown}");
    }
    assert_eq!(all.matches("_port = ").count(), 4, "{all}");
}

#[test]
fn monitoring_names_this_version_and_files_that_are_there() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(MONITORING.contains(&format!("stoa:{version}}}")), "{MONITORING}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring");
    let mut files = 0;
    for line in MONITORING.lines() {
        let mounted = line.trim().strip_prefix("- .").and_then(|rest| rest.split(':').next());
        if let Some(file) = mounted {
            files += 1;
            assert!(folder.join(format!(".{file}")).is_file(), "{line}");
        }
    }
    assert_eq!(files, 5, "{MONITORING}");
    let known = flags(&Place::new());
    let (_, command) = MONITORING.split_once("command: [server, ").unwrap();
    assert!(known.contains(command.split(']').next().unwrap()), "{command}");
}

/// Ports of the server inside containers are those that it listens on.
#[test]
fn ports_are_those_of_the_server() {
    let place = Place::new();
    let json: Value = serde_json::from_str(&place.ok(&["config", "--json"])).unwrap();
    let settings = json["settings"].as_array().unwrap();
    let own: BTreeSet<String> = settings
        .iter()
        .filter(|setting| setting["name"].as_str().unwrap().ends_with("_port"))
        .map(|setting| setting["value"].to_string().trim_matches('"').to_owned())
        .collect();
    assert!(own.contains("15002") && own.contains("5433"), "{own:?}");
    // Of HiveServer2, the setting is `auto`; the help names the port.
    let help = place.ok(&["server", "--help"]);
    // Prometheus', Grafana's.
    let others = ["9090", "3000"];
    let mut seen = 0;
    for text in [COMPOSE, MONITORING] {
        for line in text.lines().filter(|line| line.trim().starts_with("ports:")) {
            for mapped in line.split('"').filter(|part| part.starts_with("127.0.0.1:")) {
                let inside = mapped.rsplit(':').next().unwrap();
                let is_known = own.contains(inside) || help.contains(inside);
                assert!(is_known || others.contains(&inside), "{mapped}: {own:?}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 10, "{seen} ports");
    let (_, target) = PROMETHEUS.split_once("targets: [\"stoa:").unwrap();
    assert!(own.contains(target.split('"').next().unwrap()), "{target}");
}

/// What a parser that is not ours says of the YAML, where there is one.
#[test]
fn yaml_is_yaml() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let files: Vec<_> = crate::harness::files_below(&root)
        .into_iter()
        .filter(|file| file.extension().is_some_and(|end| end == "yaml" || end == "yml"))
        .collect();
    assert!(files.len() >= 5, "{files:?}");
    let program = "import sys\ntry:\n import yaml\nexcept ImportError:\n sys.exit(3)\n\
                   for name in sys.argv[1:]: assert isinstance(yaml.safe_load(open(name)), dict), name";
    let Ok(ran) = Command::new("python3").args(["-c", program]).args(&files).output() else {
        println!("skipped: no python3");
        return;
    };
    if ran.status.code() == Some(3) {
        println!("skipped: no module yaml");
        return;
    }
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// What systemd says of the unit, where it is installed.
#[test]
fn systemd_understands_the_unit() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_stoa");
    let unit = UNIT.replace("/usr/local/bin/stoa ", &format!("{program} "));
    assert_ne!(unit, UNIT);
    let file = place.write("stoa.service", unit);
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&file).output() else {
        println!("skipped: no systemd-analyze");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    // Units of the machine itself may have their own faults.
    let about: Vec<&str> = said.lines().filter(|line| line.contains("stoa.service")).collect();
    assert!(about.is_empty(), "{said}");
}
