//! Keeps other web sites out.
//!
//! Unless clients must log in (`asker`), whoever reaches the port may do everything; and a browser that
//! has logged in does so again by itself. The port is on loopback, but a browser on the same machine
//! carries requests of any page it shows. Two tricks matter:
//!
//! - **Cross-site requests**: another page posts to `http://localhost:15002`. Browsers say so in
//!   `Origin` and `Sec-Fetch-Site`; only the console's own origin passes.
//! - **DNS rebinding**: another page's name is made to point at 127.0.0.1, so that its requests look
//!   same-origin. The `Host` header still holds that name; on loopback only loopback names pass.
//!
//! Programs that are no browsers send no `Origin`; they pass.

use std::net::IpAddr;

use axum::http::{HeaderMap, Method, Uri, header};
use stoa_error::{Error, ErrorKind, Result};

/// Which `Host` names are ours.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// Whether the listener can be reached from this machine only.
    loopback: bool,
    /// Names that are allowed besides loopback's, in lower case, without port.
    allowed_hosts: Vec<String>,
}

impl Guard {
    pub(crate) fn new(listener: IpAddr, allowed_hosts: &[String]) -> Self {
        Self {
            loopback: listener.is_loopback(),
            allowed_hosts: allowed_hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
        }
    }

    /// # Errors
    /// Forbidden: the request comes from another web site, or through a foreign name.
    pub(crate) fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        let text = |name| headers.get(name).and_then(|value: &_| value.to_str().ok());
        let host = text(header::HOST).or_else(|| uri.authority().map(|a| a.as_str()));
        if let Some(host) = host {
            self.check_host(host)?;
        }
        if headers.contains_key(header::ORIGIN) {
            check_origin(text(header::ORIGIN).unwrap_or("null"), host)?;
        }
        let navigation = method == Method::GET
            && text(header::HeaderName::from_static("sec-fetch-mode")) == Some("navigate");
        match text(header::HeaderName::from_static("sec-fetch-site")) {
            Some(site @ ("cross-site" | "same-site")) if !navigation => Err(foreign(format!(
                "request from another web site (sec-fetch-site: {site}) refused"
            ))),
            _ => Ok(()),
        }
    }

    fn check_host(&self, host: &str) -> Result<()> {
        let name = without_port(host).to_ascii_lowercase();
        if !self.loopback || is_loopback_name(&name) || self.allowed_hosts.contains(&name) {
            return Ok(());
        }
        Err(foreign(format!("host \"{name}\" refused: this server answers on loopback names only"))
            .with_hint("use http://localhost or http://127.0.0.1 with the server's port"))
    }
}

fn check_origin(origin: &str, host: Option<&str>) -> Result<()> {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let same = authority.zip(host).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b));
    if same { Ok(()) } else { Err(foreign(format!("request from origin \"{origin}\" refused"))) }
}

fn foreign(message: String) -> Error {
    Error::new(ErrorKind::Forbidden, message)
}

/// `[::1]:80` → `::1`, `localhost:80` → `localhost`.
fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn is_loopback_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, headers: &[(&'static str, &'static str)], passes: bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let result = guard.check(&Method::POST, &Uri::from_static("/v1/sql"), &map);
        assert_eq!(result.is_ok(), passes, "{headers:?}: {result:?}");
    }

    #[test]
    fn loopback_names_pass_and_rebound_names_do_not() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), &["Stoa.Test".to_owned()]);
        check(&guard, &[], true);
        for host in ["localhost:15002", "127.0.0.1", "127.1.2.3:1", "[::1]:15002", "stoa.test:1"] {
            check(&guard, &[("host", host)], true);
        }
        for host in ["evil.example", "evil.example:15002", "localhost.evil.example", "10.0.0.1"] {
            check(&guard, &[("host", host)], false);
        }
    }

    #[test]
    fn another_origin_does_not_pass_wherever_we_listen() {
        for listener in ["127.0.0.1", "0.0.0.0"] {
            let guard = Guard::new(listener.parse().unwrap(), &[]);
            let host = ("host", "localhost:15002");
            check(&guard, &[host, ("origin", "http://localhost:15002")], true);
            check(&guard, &[host, ("origin", "http://localhost:3000")], false);
            check(&guard, &[host, ("origin", "http://evil.example")], false);
            check(&guard, &[host, ("origin", "null")], false);
            check(&guard, &[host, ("sec-fetch-site", "same-origin")], true);
            check(&guard, &[host, ("sec-fetch-site", "none")], true);
            check(&guard, &[host, ("sec-fetch-site", "same-site")], false);
            check(&guard, &[host, ("sec-fetch-site", "cross-site")], false);
        }
    }

    #[test]
    fn names_of_the_network_pass_where_we_listen_to_it() {
        let guard = Guard::new("0.0.0.0".parse().unwrap(), &[]);
        check(&guard, &[("host", "reports.example:15002")], true);
    }
}
