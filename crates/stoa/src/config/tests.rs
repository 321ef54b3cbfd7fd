use std::path::Path;

use super::setting::Setting;
use super::settings::SETTINGS;
use super::*;

const MACHINE: Machine = Machine { memory_bytes: 8 << 30, processors: 4 };

fn setting(name: &str) -> &'static Setting {
    SETTINGS.iter().find(|s| s.name == name).unwrap()
}

/// Sources whose file, named so that no stoa.toml of the working directory is read, is in the
/// directory, which must outlive the use.
fn sources(
    file: Option<&str>,
    environment: &[(&str, &str)],
    flags: &[(&str, &str)],
) -> (tempfile::TempDir, Sources) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.toml");
    std::fs::write(&path, file.unwrap_or("")).unwrap();
    let sources = Sources {
        flags: flags.iter().map(|(n, v)| (setting(n), (*v).to_owned())).collect(),
        environment: environment.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect(),
        file: Some(path),
    };
    (dir, sources)
}

fn resolved(file: Option<&str>, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Resolved {
    let (_dir, sources) = sources(file, env, flags);
    resolve(&sources, &MACHINE).unwrap()
}

fn message(file: Option<&str>, env: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    let (dir, sources) = sources(file, env, flags);
    let error = resolve(&sources, &MACHINE).unwrap_err();
    let text = format!("{error}; {}", error.hint().unwrap_or(""));
    text.replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn flags_beat_environment_beats_file_beats_default() {
    let file = Some("http_port = 1\npg_port = 2\nmax_connections = 3\n");
    let env = [("STOA_HTTP_PORT", "10"), ("STOA_PG_PORT", "20")];
    let found = resolved(file, &env, &[("http_port", "100")]);
    let config = &found.config;
    assert_eq!((config.http_port, config.pg_port, config.max_connections), (100, 20, 3));
    assert_eq!(config.shutdown_grace_s, 10);
    assert!(found.is_flag("http_port") && !found.is_flag("pg_port"));
    let sources: Vec<_> = found.values.iter().map(|v| v.2.as_str()).collect();
    assert!(sources.contains(&"flag --http-port"));
    assert!(sources.contains(&"environment STOA_PG_PORT"));
    assert!(sources.iter().any(|s| s.ends_with(":3")), "{sources:?}");
}

#[test]
fn what_config_prints_reads_back_the_same() {
    let found = resolved(None, &[], &[("memory_limit", "2GiB"), ("insecure_listen", "true")]);
    let again = resolved(Some(&to_toml(&found)), &[], &[]);
    assert_eq!(format!("{:?}", again.config), format!("{:?}", found.config));
}

#[test]
fn defaults_follow_the_machine() {
    let config = resolved(None, &[], &[]).config;
    assert_eq!((config.memory_limit.0, config.num_executors.0), (4 << 30, 4));
}

#[test]
fn sizes_have_units() {
    let size = |text| resolved(None, &[], &[("memory_limit", text)]).config.memory_limit.0;
    assert_eq!(size("2GiB"), 2 << 30);
    assert_eq!(size("1.5 gib"), 3 << 29);
    assert_eq!(size("512MB"), 512_000_000);
    assert_eq!(size("104857600"), 104_857_600);
    assert_eq!(size("25%"), 2 << 30);
    for wrong in ["", "x", "2 apples", "1KiB", "200%", "-5MB", "1..5GB"] {
        let text = message(None, &[], &[("memory_limit", wrong)]);
        assert!(text.starts_with("flag --memory-limit: memory_limit = "), "{text}");
    }
}

#[test]
fn unknown_keys_are_errors_with_the_nearest_name() {
    assert_eq!(
        message(Some("\nhttp_prot = 1"), &[], &[]),
        "f.toml:2: unknown setting \"http_prot\"; did you mean http_port?"
    );
    assert_eq!(
        message(Some("colour = 'red'"), &[], &[]),
        "f.toml:1: unknown setting \"colour\"; `stoa config` lists all settings"
    );
    let environment = [("STOA_HTP_PORT", "1"), ("STOA_SERVICE_HOST", "x"), ("STOA_TOOLS", "/t")];
    let warnings = resolved(None, &environment, &[]).warnings;
    assert_eq!(
        warnings,
        ["environment variable STOA_HTP_PORT is not a setting; did you mean STOA_HTTP_PORT?"]
    );
}

#[test]
fn wrong_values_name_their_place() {
    assert_eq!(
        message(Some("pg_port = 70000"), &[], &[]),
        "f.toml:1: pg_port = \"70000\" must be a port, 0 to 65535; "
    );
    assert_eq!(
        message(None, &[("STOA_LISTEN", "somewhere")], &[]),
        "environment STOA_LISTEN: listen = \"somewhere\" must be an IP address such as 127.0.0.1 \
         or ::1; "
    );
    assert_eq!(
        message(None, &[], &[("log_level", "loud")]),
        "flag --log-level: log_level = \"loud\" must be one of off, error, warn, info, debug, \
         trace; "
    );
    assert!(
        message(Some("pg_port = [1]"), &[], &[]).starts_with("f.toml:1: pg_port must be a port")
    );
    assert!(message(Some("pg_port = = 1"), &[], &[]).starts_with("f.toml:1: not valid TOML"));
}

#[test]
fn the_table_s3_holds_what_begins_so() {
    let found = resolved(
        Some("http_port = 1\n[s3]\nendpoint = 'http://localhost:9000'\npath_style = true\n"),
        &[("STOA_S3_REGION", "eu-west-1")],
        &[],
    );
    let config = &found.config;
    assert_eq!(config.s3_endpoint.as_deref(), Some("http://localhost:9000"));
    assert_eq!(config.s3_region.as_deref(), Some("eu-west-1"));
    assert_eq!(config.s3_path_style.0, Some(true));
    assert_eq!(
        message(Some("[s3]\n\nendpont = 'x'"), &[], &[]),
        "f.toml:3: unknown setting \"s3_endpont\"; did you mean s3_endpoint?"
    );
    assert!(message(Some("[s4]\nx = 1"), &[], &[]).contains("unknown setting \"s4\""));
}

#[test]
fn secrets_are_not_shown() {
    let found = resolved(Some("[s3]\nsecret_access_key = 'hunter2'"), &[], &[]);
    assert_eq!(found.config.s3_secret_access_key.as_ref().unwrap().expose(), "hunter2");
    let shown = [to_toml(&found), to_json(&found).to_string(), format!("{found:?}")];
    for text in shown {
        assert!(!text.contains("hunter2") && text.contains("s3_secret_access_key"), "{text}");
    }
}

#[test]
fn the_password_of_a_catalog_is_not_shown() {
    let found = resolved(Some("catalog = 'postgres://stoa:hunter2@db/stoa'"), &[], &[]);
    assert_eq!(found.config.catalog, "postgres://stoa:hunter2@db/stoa");
    for text in [to_toml(&found), to_json(&found).to_string()] {
        assert!(!text.contains("hunter2") && text.contains("postgres://stoa:…@db/stoa"), "{text}");
    }
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let sources = Sources { file: Some("/nowhere/stoa.toml".into()), ..Sources::default() };
    let error = resolve(&sources, &MACHINE).unwrap_err();
    assert!(error.message().starts_with("cannot read configuration file /nowhere/stoa.toml"));
}

#[test]
fn the_reference_page_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let found = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        found == to_markdown(),
        "docs/configuration.md is not current; write it anew: \
         stoa config --markdown > docs/configuration.md"
    );
}

#[test]
fn pools_and_rules_may_be_tables() {
    let file = "[[pools]]\nname = 'batch'\nslots = 1\nmemory = '2GiB'\ntimeout = '10m'\n\
                read = '1.5GiB'\nqueue = 20\n[[pools]]\nname = 'slow ones'\n\
                [[workload_rules]]\napplication = 'Power BI'\nprotocol = 'http'\n\
                pool = 'slow ones'\n[[workload_rules]]\nuser = 'etl*'\npool = 'batch'\n";
    let found = resolved(Some(file), &[], &[]);
    let text = "batch slots=1 queue=20 memory=2GiB timeout=10m read=1.5GiB; \"slow ones\"";
    let rules = "application=\"Power BI\" protocol=http -> \"slow ones\"; user=etl* -> batch";
    let same = resolved(None, &[], &[("pools", text), ("workload_rules", rules)]);
    assert_eq!(found.config.pools, same.config.pools);
    assert_eq!(found.config.workload_rules, same.config.workload_rules);
    assert_eq!(found.config.workload_rules.0[0].application.as_deref(), Some("Power BI"));
    let again = resolved(Some(&to_toml(&found)), &[], &[]);
    assert_eq!(again.config.workload_rules, found.config.workload_rules);
    assert_eq!(again.config.pools, found.config.pools);
}

#[test]
fn wrong_tables_name_file_table_and_key() {
    for (file, expected) in [
        (
            "[[pools]]\nname = 'a'\nslot = 1",
            "f.toml:3: unknown key \"slot\" in [[pools]]; its keys are name, slots, queue, memory, \
             timeout, read",
        ),
        ("[[pools]]\nname = 'a'\nslots = '1'", "f.toml:3: slots in [[pools]] must be a number; "),
        ("[[pools]]\nname = 1", "f.toml:2: name in [[pools]] must be a text in quotes; "),
        ("\n[[pools]]\nslots = 1", "f.toml:2: [[pools]] needs the key name; "),
        ("pools = [1]", "f.toml:1: pools must be tables, as in [[pools]]; "),
        (
            "[[workload_rules]]\ngroup = 'x'",
            "f.toml:2: unknown key \"group\" in [[workload_rules]]; its keys are user, application, \
             protocol, pool",
        ),
        (
            "[[workload_rules]]\nuser = ''\npool = 'a'",
            "f.toml:2: user in [[workload_rules]] must not be empty; ",
        ),
    ] {
        assert_eq!(message(Some(file), &[], &[]), expected, "{file}");
    }
    let text = message(Some("[[pools]]\nname = 'a'\nmemory = 'much'"), &[], &[]);
    assert!(
        text.starts_with("f.toml:1: pools = ") && text.contains("memory=much of pool a"),
        "{text}"
    );
}

#[test]
fn the_example_of_pools_is_valid() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = std::fs::read_to_string(page).unwrap();
    let examples: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .filter(|example| example.contains("[[pools]]"))
        .collect();
    assert_eq!(examples.len(), 1);
    let config = resolved(Some(examples[0]), &[], &[]).config;
    assert_eq!((config.pools.0.len(), config.workload_rules.0.len()), (2, 3));
    assert_eq!(config.pools.0[1].name, "batch");
}
