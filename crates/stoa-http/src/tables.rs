//! `GET /v1/tables` and `GET /v1/tables/{namespace}/{table}`: what there is.

use std::sync::Arc;

use arrow_schema::Field;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use futures::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stoa_error::Result;
use stoa_query::{Session, sql_type};
use stoa_table::{FIELD_ID_KEY, SnapshotInfo, Table, TableIdent};

use crate::app::App;
use crate::asker::Asker;
use crate::parameters::{checked, checked_path};
use crate::problem::{self, Problem};

/// Tables whose metadata is read at the same time.
const READS_AT_ONCE: usize = 8;
/// Snapshots in a table's description, newest first, where nobody says how many.
const SNAPSHOTS_DEFAULT: usize = 100;

/// All namespaces with their tables. A table whose metadata cannot be read is listed with its `error`,
/// for those who may see all.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    asker: Asker,
) -> Result<Json<Value>, Problem> {
    Ok(Json(read(&app, &asker).await?))
}

/// The list, of what `asker` may see.
pub(crate) async fn read(app: &App, asker: &Asker) -> Result<Value> {
    let session = asker.session(&app.engine);
    let mut namespaces = Vec::new();
    let mut all = app.engine.tables().await?;
    for name in app.engine.namespaces().await? {
        let idents: Vec<_> = all.extract_if(.., |table| table.namespace == name).collect();
        let tables: Vec<Value> = stream::iter(idents)
            .map(|ident| entry(app, &session, ident))
            .buffered(READS_AT_ONCE)
            .filter_map(std::future::ready)
            .collect()
            .await;
        namespaces.push(json!({ "name": name, "tables": tables }));
    }
    Ok(json!({ "namespaces": namespaces }))
}

/// A table; `None` where the session's user may not read anything of it.
async fn entry(app: &App, session: &Session, ident: TableIdent) -> Option<Value> {
    let sees_all = session.may_everything().await.unwrap_or_default();
    Some(match app.engine.warehouse().table(&ident).await {
        Ok(table) => {
            session.may_see_table(&table).await.ok()?;
            Value::Object(summary(app, &table))
        }
        Err(_) if !sees_all => return None,
        Err(error) => json!({
            "name": ident.name, "kind": null, "comment": null, "rows": null, "fresh_rows": 0,
            "bytes": null, "files": null,
            "partitioned_by": [], "sorted_by": [], "committed_unix_ms": null,
            "error": problem::to_json(&error),
        }),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DescribeParameters {
    /// Most snapshots to list, the newest.
    #[serde(default = "snapshots_default")]
    snapshots: usize,
}

fn snapshots_default() -> usize {
    SNAPSHOTS_DEFAULT
}

/// One table in full.
pub(crate) async fn describe(
    State(app): State<Arc<App>>,
    asker: Asker,
    path: Result<Path<(String, String)>, PathRejection>,
    parameters: Result<Query<DescribeParameters>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let (namespace, name) = checked_path(path)?;
    let most = checked(parameters)?.snapshots;
    let table = app.engine.warehouse().table(&TableIdent::new(namespace, name)).await?;
    let session = asker.session(&app.engine);
    session.may_see_table(&table).await?;
    let current = table.current_snapshot().map(|snapshot| snapshot.id);
    let schema = table.schema();
    let known = session.known_columns(&table, &schema);
    let columns = known.iter().filter_map(|place| schema.fields().get(*place));
    let columns: Vec<Value> = columns.map(|field| column(field)).collect();
    let snapshots: Vec<Value> =
        table.snapshots().iter().rev().take(most).map(|info| snapshot(info, current)).collect();
    let mut members = summary(&app, &table);
    members.insert("namespace".into(), table.ident().namespace.as_str().into());
    members.insert("location".into(), table.location().into());
    members.insert("metadata_location".into(), table.metadata_location().into());
    members.insert("columns".into(), columns.into());
    members.insert("properties".into(), json!(table.properties()));
    members.insert("snapshots_total".into(), table.snapshots().len().into());
    members.insert("snapshots".into(), snapshots.into());
    Ok(Json(Value::Object(members)))
}

/// What the list says about a table. Sums come from the snapshot's summary, so no file is read;
/// they are `null` where its writer left them out. Rows that are in no file yet are counted in
/// `rows`, and by themselves in `fresh_rows`.
fn summary(app: &App, table: &Table) -> Map<String, Value> {
    let status = app.engine.table_status(table);
    let all = [
        ("name", json!(table.ident().name)),
        ("kind", json!(status.kind)),
        ("comment", json!(status.comment)),
        ("rows", json!(status.rows)),
        ("fresh_rows", json!(status.fresh_rows)),
        ("bytes", json!(status.bytes)),
        ("files", json!(status.files)),
        ("partitioned_by", json!(status.partitioned_by)),
        ("sorted_by", json!(status.sorted_by)),
        ("committed_unix_ms", json!(status.committed_unix_ms)),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn column(field: &Field) -> Value {
    let id = field.metadata().get(FIELD_ID_KEY).and_then(|text| text.parse::<i32>().ok());
    json!({
        "id": id,
        "name": field.name(),
        "type": sql_type(field.data_type()),
        "nullable": field.is_nullable(),
        "comment": field.metadata().get(COMMENT_KEY),
    })
}

/// Where a column's comment is kept among its field's metadata.
const COMMENT_KEY: &str = "comment";

/// Ids are text: they are random 63-bit numbers, which JavaScript would round.
fn snapshot(snapshot: &SnapshotInfo, current: Option<i64>) -> Value {
    json!({
        "id": snapshot.id.to_string(),
        "parent_id": snapshot.parent_id.map(|id| id.to_string()),
        "committed_unix_ms": snapshot.timestamp_ms,
        "operation": snapshot.operation,
        "current": Some(snapshot.id) == current,
        "summary": snapshot.summary,
    })
}
