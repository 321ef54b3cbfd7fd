//! What `POST /v1/sql` asks for: statements, parameters, and how to answer.
//!
//! In: headers, query string, body. Out: [`SqlRequest`]. The body is the SQL itself, or JSON:
//! `{"sql": "SELECT … WHERE account = $1", "parameters": [17], "namespace": "public"}`.

use axum::http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;
use stoa_error::{Error, Result};
use stoa_query::split_statements;

use crate::format::Format;
use crate::problem::Problem;

/// The parameters after `?` of `POST /v1/sql`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SqlParameters {
    /// Overrides `Accept`: json, ndjson, csv, arrow.
    format: Option<String>,
    /// Most rows to return; without it, all.
    max_rows: Option<u64>,
    /// Namespace of names without one.
    namespace: Option<String>,
    /// Who asks, for lists of queries; the `User-Agent` if not given.
    application: Option<String>,
    /// Whether the result stays on the server, for pages and downloads.
    #[serde(default)]
    keep: bool,
    /// The session in which the statements run; without it, one that ends with the request.
    session: Option<String>,
}

/// A checked request.
#[derive(Debug)]
pub(crate) struct SqlRequest {
    pub(crate) statements: Vec<StatementText>,
    pub(crate) parameters: Vec<Value>,
    pub(crate) namespace: Option<String>,
    pub(crate) application: String,
    pub(crate) format: Format,
    pub(crate) max_rows: u64,
    pub(crate) keep: bool,
    pub(crate) session: Option<String>,
}

/// One of the statements of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StatementText {
    pub(crate) text: String,
    /// Characters of the request's text before it.
    pub(crate) characters_before: usize,
}

impl StatementText {
    /// Makes the place of an error one in the request's whole text.
    pub(crate) fn place(&self, error: Error) -> Error {
        match error.position() {
            Some(position) => error.with_position(position + self.characters_before),
            None => error,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonBody {
    sql: String,
    #[serde(default)]
    parameters: Vec<Value>,
    namespace: Option<String>,
}

impl SqlRequest {
    /// # Errors
    /// Invalid: a body that is not text, not the JSON described, or holds no statement; an unknown
    /// format or parameter; parameters with more than one statement.
    pub(crate) fn read(
        parameters: SqlParameters,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Self, Problem> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let format = Format::choose(parameters.format.as_deref(), text(header::ACCEPT))?;
        let body = read_body(text(header::CONTENT_TYPE), body)?;
        let statements = statements(&body.sql);
        if statements.is_empty() {
            return Err(Error::invalid("the request holds no statement")
                .with_sqlstate("42601")
                .with_hint("send the SQL as the body, or as \"sql\" of a JSON body")
                .into());
        }
        if statements.len() > 1 && !body.parameters.is_empty() {
            return Err(Error::invalid("parameters go with one statement only")
                .with_sqlstate("42601")
                .with_detail(format!("the request holds {} statements", statements.len()))
                .into());
        }
        let namespace = parameters.namespace.or(body.namespace);
        if parameters.session.is_some() && namespace.is_some() {
            return Err(Error::invalid("a namespace does not go with a session")
                .with_hint("run SET search_path in the session")
                .into());
        }
        let application = parameters.application.as_deref().or(text(header::USER_AGENT));
        Ok(Self {
            statements,
            parameters: body.parameters,
            namespace,
            application: application.unwrap_or_default().chars().take(256).collect(),
            format,
            max_rows: parameters.max_rows.unwrap_or(u64::MAX),
            keep: parameters.keep,
            session: parameters.session,
        })
    }
}

/// Reads the body by its type. `curl --data` calls what it sends a form; it is taken as SQL.
fn read_body(content_type: Option<&str>, body: &[u8]) -> Result<JsonBody, Problem> {
    let media = content_type.and_then(|text| text.split(';').next()).unwrap_or("text/plain");
    match media.trim().to_ascii_lowercase().as_str() {
        "application/json" => serde_json::from_slice(body).map_err(|error| {
            Error::invalid(format!("the body is not the JSON expected: {error}"))
                .with_hint(r#"send {"sql": "SELECT …", "parameters": […]}"#)
                .into()
        }),
        "text/plain" | "application/sql" | "text/sql" | "application/x-www-form-urlencoded" => {
            let sql = std::str::from_utf8(body).map_err(|error| {
                Error::invalid(format!("the body is not UTF-8 from byte {}", error.valid_up_to()))
                    .with_sqlstate("22021")
            })?;
            Ok(JsonBody { sql: sql.to_owned(), parameters: Vec::new(), namespace: None })
        }
        other => Err(Problem::with_status(
            Error::invalid(format!("a body of type \"{other}\" is not understood"))
                .with_hint("use text/plain or application/json"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        )),
    }
}

fn statements(sql: &str) -> Vec<StatementText> {
    let mut searched = 0;
    let mut characters = 0;
    let mut statements = Vec::new();
    for text in split_statements(sql) {
        let Some(rest) = sql.get(searched..) else { break };
        let before = rest.find(text).unwrap_or(0);
        characters += rest.get(..before).map_or(0, |skipped| skipped.chars().count());
        statements.push(StatementText { text: text.to_owned(), characters_before: characters });
        characters += text.chars().count();
        searched += before + text.len();
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content_type: &str, body: &[u8]) -> Result<SqlRequest, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        SqlRequest::read(SqlParameters::default(), &headers, body)
    }

    #[test]
    fn statements_know_their_place_in_characters() {
        let statements = statements("SELECT 'ä;ö'; -- é\n;\n SELECT 1 ; SELECT 1");
        let places: Vec<_> =
            statements.iter().map(|s| (s.text.as_str(), s.characters_before)).collect();
        assert_eq!(places.first(), Some(&("SELECT 'ä;ö'", 0)));
        assert_eq!(places.last(), Some(&("SELECT 1", 33)));
        assert_eq!(places.len(), 3);
    }

    #[test]
    fn an_error_is_placed_in_the_whole_text() {
        let statement = StatementText { text: "SELEC 1".into(), characters_before: 10 };
        let error = statement.place(Error::invalid("no").with_position(1));
        assert_eq!(error.position(), Some(11));
        assert_eq!(statement.place(Error::invalid("no")).position(), None);
    }

    #[test]
    fn json_and_text_say_the_same() {
        let json = read("application/json", br#"{"sql":"SELECT $1","parameters":[1]}"#).unwrap();
        assert_eq!(json.parameters, [Value::from(1)]);
        let text = read("text/plain; charset=utf-8", b"SELECT $1").unwrap();
        assert_eq!(json.statements, text.statements);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let check =
            |content_type, body: &[u8]| assert!(read(content_type, body).is_err(), "{body:?}");
        check("application/json", br#"{"sq":"SELECT 1"}"#);
        check("application/json", b"SELECT 1");
        check("application/json", br#"{"sql":"SELECT $1; SELECT 2","parameters":[1]}"#);
        check("application/xml", b"SELECT 1");
        check("text/plain", b"SELECT '\xff'");
        check("text/plain", b" -- nothing\n;");
    }
}
