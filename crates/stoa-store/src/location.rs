//! Locations: text to URL, and literal Iceberg locations to paths.
//!
//! Two spellings meet here. A *URL* (what a user gives) is percent-encoded. An *Iceberg location*
//! (what metadata files hold) is literal: other engines strip the scheme and use the rest as the
//! path as it stands, so a directory named `a%2Fb` appears as `a%2Fb`. [`literal_of`] turns the
//! first into the second; [`crate::Stores::open`] takes the first, [`crate::Stores::resolve`] the
//! second.

use std::path::Path as FsPath;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use percent_encoding::percent_decode_str;
use stoa_error::{Error, Result};
use stoa_rangeio::RangeReader;
use url::Url;

/// Where something lives: a store and the path inside it.
#[derive(Clone, Debug)]
pub struct Location {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// The path inside the store, literal.
    pub path: Path,
    /// Reads ranges of objects in the store; there is one per store and process, so that what it
    /// measures of the store is kept.
    pub reader: RangeReader,
    /// `file://` or `s3://bucket`.
    pub(crate) root: Arc<str>,
}

impl Location {
    /// The literal location of another object in the same store.
    pub fn literal_of(&self, path: &Path) -> String {
        format!("{}/{path}", self.root)
    }
}

/// Reads a location as a user writes it: `./dir`, `/dir`, `file:///dir`, `s3://bucket/dir`.
///
/// A relative path is taken from the current directory. A trailing slash is dropped. What follows
/// an S3 bucket is literal, as in other tools: `s3://bucket/a%20b` is not `s3://bucket/a b`.
///
/// # Errors
/// `Invalid` where the text is empty or no URL, names a remote host in a `file:` URL, no bucket or
/// somebody's keys in an `s3:` one.
pub fn parse_location(text: &str) -> Result<Url> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::invalid("the location is empty")
            .with_hint("give a directory such as ./stoa-data or a URL such as file:///var/stoa"));
    }
    if !has_scheme(text) {
        let absolute = std::path::absolute(FsPath::new(text)).map_err(|source| {
            Error::invalid(format!("cannot make {text:?} an absolute path")).with_source(source)
        })?;
        let clean = absolute.components().collect::<std::path::PathBuf>();
        return Url::from_file_path(&clean)
            .map_err(|()| Error::invalid(format!("{text:?} is not a usable path")));
    }
    if let Some((scheme, rest)) = text.split_once("://")
        && is_s3(scheme)
    {
        return parse_s3(rest);
    }
    let mut url = Url::parse(text).map_err(|source| {
        Error::invalid(format!("location {text:?} is not a URL")).with_source(source)
    })?;
    if url.scheme() == "file" && url.host_str().is_some_and(|host| !host.is_empty()) {
        return Err(Error::invalid(format!("location {text:?} names a host"))
            .with_hint("a local path in a URL starts with three slashes, as in file:///var/stoa"));
    }
    let trimmed = url.path().trim_end_matches('/').to_owned();
    url.set_path(if trimmed.is_empty() { "/" } else { &trimmed });
    Ok(url)
}

/// The schemes of S3 locations: `s3a` and `s3n` are Hadoop's.
pub(crate) fn is_s3(scheme: &str) -> bool {
    ["s3", "s3a", "s3n"].contains(&scheme)
}

/// `bucket/prefix` as a URL with the scheme `s3`.
fn parse_s3(rest: &str) -> Result<Url> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.contains('@') {
        // Not repeated in the message: it may hold a secret.
        return Err(Error::invalid("the location holds keys before the bucket's name")
            .with_hint("give keys as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if bucket.is_empty() || !bucket.chars().all(allowed) {
        return Err(Error::invalid(format!("location s3://{rest} names no bucket"))
            .with_hint("write s3://bucket/prefix"));
    }
    let literal = prefix.trim_end_matches('/').replace('%', "%25");
    let encoded = literal.replace('?', "%3F").replace('#', "%23");
    Url::parse(&format!("s3://{bucket}/{encoded}")).map_err(|source| {
        Error::invalid(format!("location s3://{rest} is not a URL")).with_source(source)
    })
}

/// The literal Iceberg location of `url`, without a trailing slash: percent-encoding undone, as
/// other engines expect.
///
/// # Errors
/// `Invalid` where a `file:` URL is no local path or not UTF-8.
pub fn literal_of(url: &Url) -> Result<String> {
    if is_s3(url.scheme()) {
        let bucket = url.host_str().unwrap_or_default();
        let path = percent_decode_str(url.path()).decode_utf8().map_err(|source| {
            Error::invalid(format!("location {url} is not UTF-8")).with_source(source)
        })?;
        return Ok(format!("s3://{bucket}{}", path.trim_end_matches('/')));
    }
    if url.scheme() != "file" {
        return Ok(url.as_str().trim_end_matches('/').to_owned());
    }
    let path = url
        .to_file_path()
        .map_err(|()| Error::invalid(format!("location {url} is not a local path")))?;
    let text =
        path.to_str().ok_or_else(|| Error::invalid(format!("location {url} is not UTF-8")))?;
    Ok(format!("file://{}", text.trim_end_matches('/')))
}

/// Splits a literal location into scheme, authority and absolute path (with its first slash).
/// `/dir` and Hadoop's `file:/dir` count as local.
pub(crate) fn split_literal(text: &str) -> Result<(&str, &str, &str)> {
    if text.starts_with('/') {
        return Ok(("file", "", text));
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let slash = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(slash);
        return Ok((scheme, authority, path));
    }
    match text.strip_prefix("file:") {
        Some(path) if path.starts_with('/') => Ok(("file", "", path)),
        _ => Err(Error::invalid(format!("location {text:?} has no scheme"))
            .with_hint("an Iceberg location is absolute, such as file:///var/stoa/t")),
    }
}

fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, url: &str) {
        assert_eq!(parse_location(text).unwrap().as_str(), url, "{text}");
    }

    #[test]
    fn paths_and_urls_become_urls() {
        check("/var/stoa/", "file:///var/stoa");
        check("/var/my data", "file:///var/my%20data");
        check("file:///var/stoa/", "file:///var/stoa");
        check("s3://bucket/a/b/", "s3://bucket/a/b");
        check("s3a://bucket", "s3://bucket/");
        check("s3://bucket/a b%20?", "s3://bucket/a%20b%2520%3F");
        let relative = parse_location("./x/y").unwrap();
        assert!(relative.as_str().ends_with("/x/y") && !relative.as_str().contains("/./"));
    }

    #[test]
    fn literal_locations_are_not_encoded() {
        let url = parse_location("/var/my data%2F").unwrap();
        assert_eq!(literal_of(&url).unwrap(), "file:///var/my data%2F");
    }

    #[test]
    fn s3_locations_are_literal_all_the_way() {
        for (text, literal) in [
            ("s3://bucket/a b/ü%20#1/", "s3://bucket/a b/ü%20#1"),
            ("s3a://my_bucket.x", "s3://my_bucket.x"),
        ] {
            assert_eq!(literal_of(&parse_location(text).unwrap()).unwrap(), literal);
        }
    }

    #[test]
    fn both_spellings_of_local_locations_split() {
        assert_eq!(split_literal("file:/a/b").unwrap(), ("file", "", "/a/b"));
        assert_eq!(split_literal("file:///a/b").unwrap(), ("file", "", "/a/b"));
        assert_eq!(split_literal("/a/b").unwrap(), ("file", "", "/a/b"));
        assert_eq!(split_literal("s3://k/a").unwrap(), ("s3", "k", "/a"));
        assert!(split_literal("a/b").is_err());
    }

    #[test]
    fn what_is_no_location_is_refused() {
        assert!(parse_location(" ").is_err());
        assert!(parse_location("file://host/x").is_err());
        assert!(parse_location("s3:///x").is_err());
        let error = parse_location("s3://key:hunter2@bucket/x").unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}
