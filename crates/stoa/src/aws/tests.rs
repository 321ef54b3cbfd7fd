use std::collections::BTreeMap;

use stoa_store::Credentials;

use super::*;
use crate::config::{Machine, Sources, resolve};

const CREDENTIALS: &str = "
[default]
aws_access_key_id = AKDEFAULT
aws_secret_access_key = of#default  # a comment

[reports]
aws_access_key_id=AKREPORTS
aws_secret_access_key=ofreports
aws_session_token=token
";

const CONFIG: &str = "
[default]
region = us-west-2

[profile reports]
region = eu-west-1
services = local
s3 =
  addressing_style = virtual

[profile sso]
sso_session = corp

[profile role]
role_arn = arn:aws:iam::1:role/r
web_identity_token_file = /token

[services local]
s3 =
  endpoint_url = https://s3.local
";

/// Options from variables, and settings as in stoa.toml; the files are those above, in /home.
fn found(variables: &[(&str, &str)], settings: &str) -> S3Options {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stoa.toml");
    std::fs::write(&file, settings).unwrap();
    let sources = Sources { file: Some(file), ..Sources::default() };
    let config = resolve(&sources, &Machine::here()).unwrap().config;
    let variables: BTreeMap<_, _> = variables.iter().copied().collect();
    let variable = |name: &str| variables.get(name).map(|value| (*value).to_owned());
    let read = |path: &Path| match path.to_str().unwrap() {
        "/home/.aws/credentials" => Some(CREDENTIALS.to_owned()),
        "/home/.aws/config" => Some(CONFIG.to_owned()),
        _ => None,
    };
    options(&config, &Surroundings { variable: &variable, file: &read })
}

/// Who asks, in a word.
fn who(variables: &[(&str, &str)], settings: &str) -> String {
    match found(variables, settings).credentials {
        Credentials::Keys { access_key_id, secret_access_key, session_token } => {
            let token = session_token.map_or("", |_| "+token");
            format!("{access_key_id}/{}{token}", secret_access_key.expose())
        }
        Credentials::WebIdentity { token_file, role_arn, .. } => format!("{role_arn} {token_file}"),
        Credentials::Task { relative_uri } => relative_uri,
        Credentials::Pod { full_uri, .. } => full_uri,
        Credentials::Machine => "machine".to_owned(),
        Credentials::Missing { why } => format!("missing: {why}"),
    }
}

const HOME: (&str, &str) = ("HOME", "/home");

#[test]
fn the_first_source_of_credentials_wins() {
    let variables = [("AWS_ACCESS_KEY_ID", "AKENV"), ("AWS_SECRET_ACCESS_KEY", "ofenv"), HOME];
    let settings = "[s3]\naccess_key_id = 'AKSET'\nsecret_access_key = 'ofset'";
    assert_eq!(who(&variables, settings), "AKSET/ofset");
    assert_eq!(who(&variables, ""), "AKENV/ofenv");
    assert_eq!(who(&[HOME], ""), "AKDEFAULT/of#default");
    assert_eq!(who(&[HOME, ("AWS_PROFILE", "reports")], ""), "AKREPORTS/ofreports+token");
    let role = "arn:aws:iam::1:role/r /token";
    assert_eq!(who(&[HOME, ("AWS_PROFILE", "role")], ""), role);
    let web = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"), ("AWS_ROLE_ARN", "r"), HOME];
    assert_eq!(who(&web, ""), "r /t");
    assert_eq!(who(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x")], ""), "/v2/x");
    assert_eq!(who(&[], ""), "machine");
}

#[test]
fn what_is_missing_is_named() {
    let check = |variables: &[(&str, &str)], settings: &str, what: &str| {
        let who = who(variables, settings);
        assert!(who.starts_with("missing: ") && who.contains(what), "{who}");
    };
    check(&[HOME, ("AWS_PROFILE", "nowhere")], "", "\"nowhere\"");
    check(&[HOME, ("AWS_PROFILE", "sso")], "", "export-credentials --profile sso");
    check(&[("AWS_ACCESS_KEY_ID", "x")], "", "AWS_SECRET_ACCESS_KEY is not");
    check(&[], "s3_secret_access_key = 'x'", "s3_access_key_id is not");
    check(&[("AWS_EC2_METADATA_DISABLED", "true")], "", "no credentials");
}

#[test]
fn endpoint_region_and_style_follow_the_same_order() {
    let profile = found(&[HOME, ("AWS_PROFILE", "reports")], "");
    assert_eq!(profile.endpoint.as_deref(), Some("https://s3.local"));
    assert_eq!(profile.region.as_deref(), Some("eu-west-1"));
    assert_eq!(profile.path_style, Some(false));
    assert_eq!(found(&[HOME], "").region.as_deref(), Some("us-west-2"));

    let variables = [
        ("AWS_ENDPOINT_URL", "https://all"),
        ("AWS_ENDPOINT_URL_S3", "https://s3"),
        ("AWS_DEFAULT_REGION", "r2"),
        ("AWS_REGION", "r1"),
    ];
    let options = found(&variables, "");
    assert_eq!(options.endpoint.as_deref(), Some("https://s3"));
    assert_eq!(options.region.as_deref(), Some("r1"));
    let options =
        found(&variables, "[s3]\nendpoint = 'https://mine'\nregion = 'r0'\npath_style = true");
    assert_eq!(options.endpoint.as_deref(), Some("https://mine"));
    assert_eq!(options.region.as_deref(), Some("r0"));
    assert_eq!(options.path_style, Some(true));
}
