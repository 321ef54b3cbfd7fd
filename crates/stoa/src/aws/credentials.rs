//! Who asks: the first of AWS's usual sources that says something.

use stoa_store::{Credentials, Secret};

use super::Surroundings;
use super::profile::Profile;
use crate::config::Config;

/// Keys of a profile that is served by something that Stoa does not speak to.
const ELSEWHERE: [&str; 5] =
    ["sso_session", "sso_start_url", "credential_process", "source_profile", "credential_source"];

pub(super) fn credentials(
    config: &Config,
    around: &Surroundings<'_>,
    profile: &Profile,
) -> Credentials {
    from_settings(config)
        .or_else(|| from_variables(around))
        .or_else(|| web_identity(&|key| around.var(&format!("AWS_{}", key.to_uppercase()))))
        .or_else(|| from_profile(profile))
        .or_else(|| from_container(around))
        .unwrap_or_else(|| match around.var("AWS_EC2_METADATA_DISABLED").as_deref() {
            Some("true" | "TRUE" | "True") => missing("there are no credentials"),
            _ => Credentials::Machine,
        })
}

fn missing(why: impl Into<String>) -> Credentials {
    Credentials::Missing { why: why.into() }
}

fn from_settings(config: &Config) -> Option<Credentials> {
    match (&config.s3_access_key_id, &config.s3_secret_access_key) {
        (None, None) => None,
        (Some(id), Some(secret)) => Some(Credentials::Keys {
            access_key_id: id.clone(),
            secret_access_key: secret.clone(),
            session_token: None,
        }),
        (Some(_), None) => Some(missing("s3_access_key_id is set, s3_secret_access_key is not")),
        (None, Some(_)) => Some(missing("s3_secret_access_key is set, s3_access_key_id is not")),
    }
}

fn from_variables(around: &Surroundings<'_>) -> Option<Credentials> {
    let secret = around.var("AWS_SECRET_ACCESS_KEY");
    match (around.var("AWS_ACCESS_KEY_ID"), secret) {
        (None, None) => None,
        (Some(id), Some(secret)) => Some(keys(id, secret, around.var("AWS_SESSION_TOKEN"))),
        (Some(_), None) => Some(missing("AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not")),
        (None, Some(_)) => Some(missing("AWS_SECRET_ACCESS_KEY is set, AWS_ACCESS_KEY_ID is not")),
    }
}

fn keys(access_key_id: String, secret: String, session_token: Option<String>) -> Credentials {
    Credentials::Keys {
        access_key_id,
        secret_access_key: Secret::new(secret),
        session_token: session_token.map(Secret::new),
    }
}

fn web_identity(get: &dyn Fn(&str) -> Option<String>) -> Option<Credentials> {
    Some(Credentials::WebIdentity {
        token_file: get("web_identity_token_file")?,
        role_arn: get("role_arn")?,
        session_name: get("role_session_name"),
    })
}

fn from_profile(profile: &Profile) -> Option<Credentials> {
    if let Some(name) = profile.given.as_ref().filter(|_| !profile.exists) {
        return Some(missing(format!(
            "the profile {name:?} (AWS_PROFILE) is in neither ~/.aws/credentials nor ~/.aws/config"
        )));
    }
    let get = |key: &str| profile.get(key);
    let name = profile.given.as_deref().unwrap_or("default");
    match (get("aws_access_key_id"), get("aws_secret_access_key")) {
        (Some(id), Some(secret)) => return Some(keys(id, secret, get("aws_session_token"))),
        (Some(_), None) => {
            return Some(missing(format!("the profile {name:?} has no aws_secret_access_key")));
        }
        _ => {}
    }
    if let Some(found) = web_identity(&get) {
        return Some(found);
    }
    let key = ELSEWHERE.into_iter().find(|key| get(key).is_some())?;
    Some(missing(format!(
        "the profile {name:?} gets its keys by {key}, which Stoa does not do itself; \
         `eval \"$(aws configure export-credentials --profile {name} --format env)\"` sets them"
    )))
}

fn from_container(around: &Surroundings<'_>) -> Option<Credentials> {
    if let Some(relative_uri) = around.var("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
        return Some(Credentials::Task { relative_uri });
    }
    Some(Credentials::Pod {
        full_uri: around.var("AWS_CONTAINER_CREDENTIALS_FULL_URI")?,
        token_file: around.var("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")?,
    })
}
