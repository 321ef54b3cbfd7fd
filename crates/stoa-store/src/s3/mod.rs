//! A bucket of S3, or of anything that speaks its protocol, as an object store.
//!
//! In: a bucket's name and [`S3Options`]. Out: a store whose requests are counted where they leave.
//!
//! Who tries again:
//!
//! | what fails | who | how |
//! |---|---|---|
//! | a request: 5xx, 429, 408, no connection, time-out | `object_store`, here | [`RETRIES`] times, waits from 100 ms to 5 s, 30 s in all |
//! | a body that breaks off | `object_store`, here | the rest is asked for, same limits |
//! | a list that breaks off | `stoa_external`, of directories | again, 5 s in all |
//! | a read that is slow | `stoa_rangeio` | a second request beside the first |
//! | put-if-absent whose answer is lost | [`crate::Location::put_new`] | again, twice; compares what is there |
//!
//! `stoa_rangeio` does not retry on these stores: two layers would multiply. Requests that must not
//! be sent twice (put-if-absent) are sent again only if the store has refused them.
//!
//! **Invariants:** a write is durable when the store has acknowledged it; no secret is in a log
//! line, an error or a `Debug` output.
//! Not here: settings, environment, `~/.aws` (the binary reads them).

mod counted;
mod explain;
mod options;

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use stoa_error::{Error, ErrorKind, Result};
use url::Url;

use self::counted::CountedConnector;
pub(crate) use self::explain::{explain, is_bare_404, is_lost};
pub use self::options::{Credentials, S3Options, Secret};
use crate::StoreMetrics;

/// Where nobody names a region; what other tools take, too.
const REGION_DEFAULT: &str = "us-east-1";

/// How often a request is sent again.
const RETRIES: usize = 8;

/// After that no request is sent again.
const RETRY_TIME: Duration = Duration::from_secs(30);

/// How often the first request to a bucket is sent again: a wrong name should be told soon.
const RETRIES_OF_PROBE: usize = 2;

/// A connection that is not there by then will not be.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// A request with its body; the largest are reads of 128 MiB, at 2 MB/s.
const REQUEST_TIME: Duration = Duration::from_secs(60);

/// How patient a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// For work.
    Usual,
    /// For looking whether the store can be used at all.
    Probe,
}

/// Opens `bucket`; sends nothing yet.
///
/// # Errors
/// `Invalid` for an endpoint that is none, or plain HTTP where that is not allowed; `Forbidden`
/// where there are no credentials.
pub(crate) fn open_bucket(
    bucket: &str,
    options: &S3Options,
    patience: Patience,
    metrics: &Arc<StoreMetrics>,
) -> Result<AmazonS3> {
    let endpoint = options.endpoint.as_deref().map(|text| endpoint(text, options)).transpose()?;
    let region = options.region.as_deref().unwrap_or(REGION_DEFAULT);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(region)
        .with_retry(retry(patience))
        .with_http_connector(CountedConnector::new(Arc::clone(metrics), options.prices));
    let mut client =
        ClientOptions::new().with_timeout(REQUEST_TIME).with_connect_timeout(CONNECT_TIME);
    let path_style = options.path_style.unwrap_or(endpoint.is_some() || bucket.contains('.'));
    builder = builder.with_virtual_hosted_style_request(!path_style);
    if let Some(mut endpoint) = endpoint {
        client = client.with_allow_http(endpoint.scheme() == "http");
        if !path_style {
            let host = format!("{bucket}.{}", endpoint.host_str().unwrap_or_default());
            endpoint.set_host(Some(&host)).map_err(|source| {
                Error::invalid(format!(
                    "s3_endpoint {endpoint} cannot have the bucket {bucket:?} before its host"
                ))
                .with_hint("set s3_path_style to true")
                .with_source(source)
            })?;
        }
        builder = builder.with_endpoint(endpoint.as_str().trim_end_matches('/'));
    }
    let builder = with_credentials(builder.with_client_options(client), bucket, options)?;
    builder.build().map_err(|source| {
        Error::new(ErrorKind::Invalid, format!("bucket {bucket:?} cannot be opened"))
            .with_source(source)
    })
}

fn retry(patience: Patience) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
        max_retries: match patience {
            Patience::Usual => RETRIES,
            Patience::Probe => RETRIES_OF_PROBE,
        },
        retry_timeout: RETRY_TIME,
    }
}

/// The endpoint as a URL. Plain HTTP goes to this machine only, unless it is allowed.
fn endpoint(text: &str, options: &S3Options) -> Result<Url> {
    let invalid = |why: &str| {
        Error::invalid(format!("s3_endpoint {text:?} {why}"))
            .with_hint("write it like https://s3.example.com or http://127.0.0.1:9000")
    };
    let url = Url::parse(text).map_err(|source| invalid("is no URL").with_source(source))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::invalid("s3_endpoint holds a user name or password")
            .with_hint("give the keys as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"));
    }
    match (url.scheme(), url.host_str()) {
        ("https", Some(_)) => Ok(url),
        ("http", Some(host)) if options.allow_http || is_this_machine(host) => Ok(url),
        ("http", Some(_)) => Err(Error::invalid(format!("s3_endpoint {text:?} is not encrypted"))
            .with_hint("use https://, or set s3_allow_http to true where the network is trusted")),
        _ => Err(invalid("is no HTTP address")),
    }
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

fn with_credentials(
    builder: AmazonS3Builder,
    bucket: &str,
    options: &S3Options,
) -> Result<AmazonS3Builder> {
    use AmazonS3ConfigKey as Key;
    Ok(match &options.credentials {
        Credentials::Keys { access_key_id, secret_access_key, session_token } => {
            let builder = builder
                .with_access_key_id(access_key_id)
                .with_secret_access_key(secret_access_key.expose());
            match session_token {
                Some(token) => builder.with_token(token.expose()),
                None => builder,
            }
        }
        Credentials::WebIdentity { token_file, role_arn, session_name } => {
            let builder = builder
                .with_config(Key::WebIdentityTokenFile, token_file)
                .with_config(Key::RoleArn, role_arn);
            match session_name {
                Some(name) => builder.with_config(Key::RoleSessionName, name),
                None => builder,
            }
        }
        Credentials::Task { relative_uri } => {
            builder.with_config(Key::ContainerCredentialsRelativeUri, relative_uri)
        }
        Credentials::Pod { full_uri, token_file } => builder
            .with_config(Key::ContainerCredentialsFullUri, full_uri)
            .with_config(Key::ContainerAuthorizationTokenFile, token_file),
        Credentials::Machine => builder,
        Credentials::Missing { why } => {
            return Err(Error::new(ErrorKind::Forbidden, format!("bucket {bucket:?}: {why}"))
                .with_hint(
                    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in \
                     ~/.aws/credentials (AWS_PROFILE), or s3_access_key_id and \
                     s3_secret_access_key in stoa.toml",
                ));
        }
    })
}

#[cfg(test)]
mod tests;
