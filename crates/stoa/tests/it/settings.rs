//! Flags > environment > file > defaults, in the real program.

use crate::harness::Place;

fn value_of(text: &str, name: &str) -> String {
    let start = format!("{name} = ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("{name} is not in\n{text}")).to_owned()
}

#[test]
fn each_source_beats_the_next() {
    let place = Place::new();
    place.write("stoa.toml", "http_port = 1001\npg_port = 1002\nmax_connections = 3\n");
    let mut command = place.command(&["config", "--http-port", "3001"]);
    command.env("STOA_HTTP_PORT", "2001").env("STOA_PG_PORT", "2002");
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert_eq!(value_of(&text, "http_port"), "3001  # flag --http-port");
    assert_eq!(value_of(&text, "pg_port"), "2002  # environment STOA_PG_PORT");
    assert_eq!(value_of(&text, "max_connections"), "3  # stoa.toml:3");
    assert_eq!(value_of(&text, "warehouse"), "\"./stoa-data\"  # default");
}

#[test]
fn the_printed_configuration_is_a_valid_file() {
    let place = Place::new();
    let printed = place.ok(&["config", "--memory-limit", "1GiB", "--spill-dir", "spill here"]);
    place.write("other.toml", &printed);
    let again = place.ok(&["config", "--config", "other.toml"]);
    assert_eq!(value_of(&again, "memory_limit"), "\"1GiB\"  # other.toml:18");
    assert!(value_of(&again, "spill_dir").starts_with("\"spill here\"  # other.toml"));
}

#[test]
fn wrong_settings_exit_2() {
    let place = Place::new();
    place.write("stoa.toml", "# mine\nhttp_prot = 1\n");
    let ran = place.run(&["config"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(
        ran.stderr,
        "error: stoa.toml:2: unknown setting \"http_prot\"\nhint: did you mean http_port?\n\
         code: 22023\n"
    );
    let ran = place.run(&["config", "--config", "none.toml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("error: cannot read configuration file none.toml: No such"));
}

#[test]
fn json_lists_every_setting_with_its_documentation() {
    let place = Place::new();
    let json: serde_json::Value = serde_json::from_str(&place.ok(&["config", "--json"])).unwrap();
    let settings = json["settings"].as_array().unwrap();
    assert!(settings.len() >= 10);
    assert!(settings.iter().all(|s| s["doc"].as_str().is_some_and(|doc| doc.len() > 10)));
    assert_eq!(settings[0]["environment"], "STOA_WAREHOUSE");
}
