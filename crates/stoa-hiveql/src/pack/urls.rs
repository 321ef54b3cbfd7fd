//! Parts of URLs.

use percent_encoding::percent_decode_str;

use super::value::Value;
use super::{Function, makes_text, maybe, strict, text};

pub(super) static FUNCTIONS: &[Function] = &[
    strict("hive_parse_url", (2, 3), makes_text, |v| {
        let (url, part) = (text(v, 0)?, text(v, 1)?);
        let key = v.get(2).map(Value::text).transpose()?.flatten();
        Ok(maybe(parse(&url, &part, key.as_deref())))
    }),
    strict("hive_url_decode", (1, 1), makes_text, |v| {
        let plus = text(v, 0)?.replace('+', " ");
        Ok(maybe(percent_decode_str(&plus).decode_utf8().ok()))
    }),
];

/// `HOST`, `PATH`, `QUERY`, `REF`, `PROTOCOL`, `AUTHORITY`, `FILE` or `USERINFO` of a URL; a key of its query.
fn parse(url: &str, part: &str, key: Option<&str>) -> Option<String> {
    let (protocol, rest) = url.split_once("://")?;
    let is_protocol = !protocol.is_empty()
        && protocol.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !is_protocol {
        return None;
    }
    let (rest, reference) = match rest.split_once('#') {
        Some((rest, reference)) => (rest, Some(reference)),
        None => (rest, None),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, file) = rest.split_at(end);
    let (path, query) = match file.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (file, None),
    };
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let host = host
        .rsplit_once(':')
        .filter(|(_, port)| port.chars().all(|c| c.is_ascii_digit()))
        .map_or(host, |(host, _)| host);
    if let Some(key) = key {
        if part != "QUERY" {
            return None;
        }
        let mut pairs = query?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        return pairs.find(|(name, _)| *name == key).map(|(_, value)| value.to_owned());
    }
    let found = match part {
        "HOST" => Some(host),
        "PATH" => Some(path),
        "QUERY" => query,
        "REF" => reference,
        "PROTOCOL" => Some(protocol),
        "FILE" => Some(file),
        "AUTHORITY" => Some(authority),
        "USERINFO" => user,
        _ => None,
    };
    found.map(str::to_owned)
}
