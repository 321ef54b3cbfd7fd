//! The console's files, part of the binary.
//!
//! The page names its files below `/a/` and a hash of all of them, so that a browser asks for each only once per
//! version of the server, and for all at the same time. Without the hash they are there, too.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use stoa_error::Error;

use crate::problem::Problem;

/// Only what came from this server runs, and nothing may put the console in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct Asset {
    path: &'static str,
    content: &'static [u8],
    etag: String,
}

macro_rules! assets {
    ($($path:literal),* $(,)?) => {
        vec![$(Asset::new($path, include_bytes!(concat!("../../../console", $path)))),*]
    };
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    assets![
        "/index.html",
        "/favicon.svg",
        "/css/base.css",
        "/css/layout.css",
        "/css/pages.css",
        "/css/parts.css",
        "/css/results.css",
        "/js/api.js",
        "/js/chart-marks.js",
        "/js/charts.js",
        "/js/cluster-page.js",
        "/js/code.js",
        "/js/column-statistics.js",
        "/js/columns-editor.js",
        "/js/completion.js",
        "/js/confirm.js",
        "/js/create-table.js",
        "/js/daemon-lines.js",
        "/js/details.js",
        "/js/dom.js",
        "/js/download.js",
        "/js/editor.js",
        "/js/first-steps.js",
        "/js/format-sql.js",
        "/js/format.js",
        "/js/grid.js",
        "/js/highlight.js",
        "/js/history-dialog.js",
        "/js/history.js",
        "/js/hive-sessions.js",
        "/js/home-charts.js",
        "/js/home.js",
        "/js/latency-tables.js",
        "/js/listing.js",
        "/js/live-stream.js",
        "/js/live.js",
        "/js/log-filter.js",
        "/js/main.js",
        "/js/names.js",
        "/js/pages.js",
        "/js/pager.js",
        "/js/parameters.js",
        "/js/paths.js",
        "/js/picture.js",
        "/js/pins.js",
        "/js/plan.js",
        "/js/progress.js",
        "/js/queries-page.js",
        "/js/query-plan.js",
        "/js/ranges.js",
        "/js/result-chart.js",
        "/js/results.js",
        "/js/row-order.js",
        "/js/samples.js",
        "/js/series.js",
        "/js/shape-text.js",
        "/js/shapes-page.js",
        "/js/show-sql.js",
        "/js/size-chart.js",
        "/js/sql-dialog.js",
        "/js/sql-names.js",
        "/js/sql-tokens.js",
        "/js/statements.js",
        "/js/storage.js",
        "/js/tab-bar.js",
        "/js/tab-sessions.js",
        "/js/table-dialogs.js",
        "/js/table-files.js",
        "/js/tables-page.js",
        "/js/tables.js",
        "/js/tabs.js",
        "/js/theme-boot.js",
        "/js/time-axis.js",
        "/js/top.js",
        "/js/uploads.js",
        "/vendor/codemirror.js",
        "/vendor/codemirror-licences.txt",
    ]
});

/// A script that is no module.
const BEFORE_PAINT: &str = "/js/theme-boot.js";

/// What all files are together.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = DefaultHasher::new();
    ASSETS.iter().for_each(|asset| asset.etag.hash(&mut hasher));
    format!("{:016x}", hasher.finish())
});

/// The page, with files named by their version, and modules to be loaded at once.
static PAGE: LazyLock<Asset> = LazyLock::new(|| {
    let index = ASSETS.iter().find(|asset| asset.path == "/index.html");
    let text = index.and_then(|index| std::str::from_utf8(index.content).ok()).unwrap_or_default();
    // The one that runs before the first paint is no module: it would be asked for twice.
    let is_module = |asset: &&Asset| asset.path.starts_with("/js/") && asset.path != BEFORE_PAINT;
    let scripts = ASSETS.iter().filter(is_module);
    let preloads: String = scripts
        .map(|asset| format!("<link rel=\"modulepreload\" href=\"{}\">\n    ", asset.path))
        .collect();
    let page = text.replace("<script type=", &format!("{preloads}<script type="));
    let page = page.replace("=\"/css/", &format!("=\"/a/{}/css/", *VERSION));
    let page = page.replace("=\"/js/", &format!("=\"/a/{}/js/", *VERSION));
    Asset::new("/index.html", page.leak().as_bytes())
});

impl Asset {
    fn new(path: &'static str, content: &'static [u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        Self { path, content, etag: format!("\"{:016x}\"", hasher.finish()) }
    }

    fn content_type(&self) -> &'static str {
        match self.path.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("txt") => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }
}

/// Answers with a file of the console, or says that there is nothing.
pub(crate) async fn file(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let (path, is_this_version) = unversioned(uri.path());
    let found = match path {
        "/" | "/index.html" => Some(&*PAGE),
        path => ASSETS.iter().find(|asset| asset.path == path),
    };
    match found {
        Some(asset) if method == Method::GET || method == Method::HEAD => {
            send(asset, &headers, is_this_version)
        }
        Some(_) => Problem::with_status(
            Error::invalid(format!("{method} is not possible on {path}")),
            StatusCode::METHOD_NOT_ALLOWED,
        )
        .into_response(),
        // In a browser, the console says so.
        None if is_looked_at(&method, path, &headers) => {
            let mut page = send(&PAGE, &HeaderMap::new(), false);
            *page.status_mut() = StatusCode::NOT_FOUND;
            page
        }
        None => Problem::from(
            Error::not_found(format!("there is nothing at {path}"))
                .with_hint("the console is at /, the API below /v1"),
        )
        .into_response(),
    }
}

/// A path without its version, and whether that is the one that is here. A page of another version gets the files as
/// they are now.
fn unversioned(path: &str) -> (&str, bool) {
    let versioned = path.strip_prefix("/a/").and_then(|rest| rest.split_at_checked(VERSION.len()));
    match versioned {
        Some((version, path)) if path.starts_with('/') => (path, version == *VERSION),
        _ => (path, false),
    }
}

/// Whether somebody has this address in the browser's bar.
fn is_looked_at(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let takes_pages = accept.is_some_and(|accept| accept.contains("text/html"));
    method == Method::GET && takes_pages && !path.starts_with("/v1/")
}

fn send(asset: &'static Asset, headers: &HeaderMap, is_this_version: bool) -> Response {
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let known = known.is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == asset.etag));
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => asset.content.into_response(),
    };
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(header::CONTENT_TYPE, asset.content_type());
    set(header::ETAG, &asset.etag);
    // The page itself is asked for again each time: a new server has a new console.
    let caching = if is_this_version { "private, max-age=31536000, immutable" } else { "no-cache" };
    set(header::CACHE_CONTROL, caching);
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_console_is_in_the_binary() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console");
        let mut there = BTreeSet::from(["/index.html".to_owned(), "/favicon.svg".to_owned()]);
        for folder in ["css", "js", "vendor"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let name = entry.unwrap().file_name().to_string_lossy().into_owned();
                // Types are for those who work on it.
                if !name.ends_with(".d.ts") {
                    there.insert(format!("/{folder}/{name}"));
                }
            }
        }
        let here: BTreeSet<String> = ASSETS.iter().map(|asset| asset.path.to_owned()).collect();
        assert_eq!(here, there);
    }

    #[test]
    fn scripts_import_only_files_that_are_here() {
        for asset in ASSETS.iter().filter(|asset| asset.path.starts_with("/js/")) {
            let text = std::str::from_utf8(asset.content).unwrap();
            for part in text.split("from \"./").skip(1) {
                let name = part.split('"').next().unwrap();
                let path = format!("/js/{name}");
                assert!(ASSETS.iter().any(|other| other.path == path), "{}: {path}", asset.path);
            }
        }
    }
}
