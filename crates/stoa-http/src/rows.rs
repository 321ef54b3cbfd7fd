//! `POST /v1/tables/{namespace}/{table}/rows`: adds the rows of the body.
//!
//! The body is NDJSON, CSV, TSV, an Arrow IPC stream or a Parquet file, as its `Content-Type` says; it is parsed as it
//! comes, but for Parquet, which is kept on disk until its end is there. All rows are added, or none. The answer comes when they are durable and visible:
//!
//! ```json
//! {"table": "public.t", "rows": 2, "elapsed_ms": 1.25}
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use futures::StreamExt;
use serde_json::{Value, json};
use stoa_env::clock;
use stoa_error::{Error, Result};
use stoa_query::{CopyIn, Outcome};

use crate::app::App;
use crate::asker::Asker;
use crate::parameters::{checked, checked_path};
use crate::problem::Problem;

/// Content types and the formats that they are.
const FORMATS: [(&str, &str); 7] = [
    ("application/x-ndjson", "ndjson"),
    ("application/ndjson", "ndjson"),
    ("application/jsonl", "ndjson"),
    ("text/csv", "csv"),
    ("text/tab-separated-values", "tsv"),
    ("application/vnd.apache.arrow.stream", "arrow"),
    ("application/vnd.apache.parquet", "parquet"),
];

pub(crate) async fn add(
    State(app): State<Arc<App>>,
    asker: Asker,
    path: Result<Path<(String, String)>, PathRejection>,
    parameters: Result<Query<BTreeMap<String, String>>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let began = clock::monotonic();
    let (namespace, table) = checked_path(path)?;
    let mut options = checked(parameters)?;
    if !options.contains_key("format") {
        options.insert("format".to_owned(), format_of(&headers)?.to_owned());
    }
    // Files have a header more often than not; COPY from a PostgreSQL client, never.
    options.entry("header".to_owned()).or_insert_with(|| "true".to_owned());
    if let Some(compression) = compression_of(&headers)? {
        options.entry("compression".to_owned()).or_insert_with(|| compression.to_owned());
    }
    let _flight = app.flights.start()?;
    let session = asker.session(&app.engine);
    let name = format!("{}.{}", quoted(&namespace), quoted(&table));
    let outcome = session.sql(&copy_statement(&name, &options)).await?;
    let Outcome::CopyIn(copy) = outcome else {
        return Err(Error::internal("COPY FROM STDIN wants no rows").into());
    };
    let rows = send(copy, body).await?;
    let elapsed_ms = began.elapsed().as_secs_f64() * 1000.0;
    Ok(Json(
        json!({ "table": format!("{namespace}.{table}"), "rows": rows, "elapsed_ms": elapsed_ms }),
    ))
}

async fn send(mut copy: CopyIn, body: Body) -> Result<u64> {
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(chunk) => copy.send(chunk).await?,
            Err(error) => return Err(copy.abort(&format!("the body broke off: {error}")).await),
        }
    }
    Ok(copy.finish().await?.rows)
}

/// The options of a load, as the parameters of the request give them.
fn copy_statement(table: &str, options: &BTreeMap<String, String>) -> String {
    let option = |(name, value): (&String, &String)| {
        format!("{} '{}'", quoted(name), value.replace('\'', "''"))
    };
    let options: Vec<String> = options.iter().map(option).collect();
    format!("COPY {table} FROM STDIN WITH ({})", options.join(", "))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn format_of(headers: &HeaderMap) -> Result<&'static str> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let given = given.unwrap_or_default();
    let media_type = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let found = FORMATS.iter().find(|(name, _)| *name == media_type);
    found.map(|(_, format)| *format).ok_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
        Error::invalid(format!("rows cannot be read from content type {given:?}"))
            .with_sqlstate("22023")
            .with_hint(format!("send one of {}, or set ?format=", known.join(", ")))
    })
}

fn compression_of(headers: &HeaderMap) -> Result<Option<&'static str>> {
    let Some(encoding) = headers.get(header::CONTENT_ENCODING) else { return Ok(None) };
    match encoding.to_str() {
        Ok("gzip") => Ok(Some("gzip")),
        Ok("zstd") => Ok(Some("zstd")),
        Ok("identity") => Ok(None),
        _ => Err(Error::invalid(format!("content encoding {encoding:?} is not known"))
            .with_hint("send gzip, zstd, or nothing")),
    }
}
