//! `POST /v1/file-columns?name=trips.csv.gz&cut=true`: columns for a table that a file is to be loaded into.
//!
//! The body is the beginning of a text file (`cut=true` where more follows), or the end of a Parquet file with its
//! footer. All other parameters are options of `stoa load`.
//!
//! ```json
//! {"format": "csv", "compression": "gzip", "columns": [{"name": "id", "type": "bigint"}]}
//! ```

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Query;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use serde_json::{Value, json};
use stoa_error::{Error, Result};
use stoa_query::file_columns;

use crate::asker::Asker;
use crate::parameters::checked;
use crate::problem::Problem;

pub(crate) async fn infer(
    _: Asker,
    parameters: Result<Query<BTreeMap<String, String>>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, Problem> {
    let mut options = checked(parameters)?;
    let name = options.remove("name").unwrap_or_else(|| "the file".to_owned());
    let is_cut = options.remove("cut").is_some_and(|cut| cut == "true");
    let sample = body.map_err(|rejection| {
        Error::invalid(rejection.body_text()).with_hint("send a part of the file, and cut=true")
    })?;
    let read = move || file_columns(&name, sample, is_cut, &options);
    let found = stoa_env::task::spawn_blocking(read).await;
    let found =
        found.map_err(|e| Error::internal("the reader broke off").with_source(e)).flatten()?;
    let columns = found.columns.iter().map(|(name, of)| json!({ "name": name, "type": of }));
    Ok(Json(json!({
        "format": found.format,
        "compression": found.compression,
        "columns": columns.collect::<Vec<_>>(),
    })))
}
