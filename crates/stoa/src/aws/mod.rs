//! How to reach S3, as users of AWS's tools expect it.
//!
//! In: Stoa's settings, `AWS_*` variables, `~/.aws/credentials` and `~/.aws/config`. Out:
//! [`S3Options`]. A setting beats a variable, a variable the profile:
//!
//! | what | first that is there |
//! |---|---|
//! | endpoint | `s3_endpoint`, `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, the profile's |
//! | region | `s3_region`, `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's |
//! | keys | `s3_access_key_id`, `AWS_ACCESS_KEY_ID`, `AWS_WEB_IDENTITY_TOKEN_FILE`, the profile's keys or web identity, ECS, EKS Pod Identity, EC2 |
//!
//! Nothing fails here: what is missing is told when a bucket is opened.
//! Not here: asking for tokens (`object_store` does, and renews them).

mod credentials;
mod profile;

use std::path::{Path, PathBuf};

use stoa_store::{Prices, S3Options};

use self::credentials::credentials;
use self::profile::Profile;
use crate::config::Config;

/// Where variables and files come from.
struct Surroundings<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    file: &'a dyn Fn(&Path) -> Option<String>,
}

impl Surroundings<'_> {
    /// A variable that is set to something.
    fn var(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }
}

/// Options for S3 from settings, environment and `~/.aws` of this process.
#[allow(clippy::disallowed_methods)] // This is the binary; the names are those of AWS's tools.
pub fn s3_options(config: &Config) -> S3Options {
    let variable = |name: &str| std::env::var(name).ok();
    let file = |path: &Path| std::fs::read_to_string(path).ok();
    options(config, &Surroundings { variable: &variable, file: &file })
}

fn options(config: &Config, around: &Surroundings<'_>) -> S3Options {
    let profile = profile(around);
    let endpoint = config
        .s3_endpoint
        .clone()
        .or_else(|| around.var("AWS_ENDPOINT_URL_S3"))
        .or_else(|| around.var("AWS_ENDPOINT_URL"))
        .or_else(|| profile.endpoint());
    let region = config
        .s3_region
        .clone()
        .or_else(|| around.var("AWS_REGION"))
        .or_else(|| around.var("AWS_DEFAULT_REGION"))
        .or_else(|| profile.get("region"));
    S3Options {
        endpoint,
        region,
        credentials: credentials(config, around, &profile),
        path_style: config.s3_path_style.0.or_else(|| profile.path_style()),
        allow_http: config.s3_allow_http,
        prices: Prices { reads: config.s3_read_price.0, writes: config.s3_write_price.0 },
    }
}

/// The profile in use.
fn profile(around: &Surroundings<'_>) -> Profile {
    let given = around.var("AWS_PROFILE").or_else(|| around.var("AWS_DEFAULT_PROFILE"));
    let home = around.var("HOME").map(PathBuf::from);
    let text = |variable: &str, name: &str| {
        let path = around.var(variable).map(PathBuf::from);
        let path = path.or_else(|| home.as_ref().map(|home| home.join(".aws").join(name)));
        path.and_then(|path| (around.file)(&path)).unwrap_or_default()
    };
    let keys = text("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let settings = text("AWS_CONFIG_FILE", "config");
    Profile::find(given, &keys, &settings)
}

#[cfg(test)]
mod tests;
