//! Rows into tables: `CommandStatementIngest`, and plain DoPut to a table's path.
//!
//! An ingest is one statement: all rows or none, in one answer at its end. A plain DoPut is a
//! stream of small writes: each batch is durable and visible when its own answer comes,
//! `{"rows": 1000}`, in the order in which they were sent; the next ones are taken meanwhile.

use std::sync::Arc;

use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use arrow_flight::{FlightDescriptor, PutResult};
use arrow_schema::SchemaRef;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use stoa_error::{Error, Result};
use stoa_query::{AppendTarget, BatchesIn, DATABASE, IfExists, IfMissing};
use tonic::Status;

use crate::client::Client;
use crate::status::status;

/// Batches of a plain DoPut that wait for the commit log at the same time.
const BATCHES_UNDER_WAY_MAX: usize = 8;

/// Carries out an ingest; returns how many rows are in the table now that were not.
///
/// # Errors
/// Options that are not known or not possible, and those of
/// [`Session::append`](stoa_query::Session::append).
pub(crate) async fn ingest(
    client: &Client,
    command: CommandStatementIngest,
    schema: SchemaRef,
    batches: BatchesIn,
) -> Result<u64> {
    let target = target(command)?;
    Ok(client.session.append(&target, schema, batches).await?.rows)
}

fn target(command: CommandStatementIngest) -> Result<AppendTarget> {
    if command.temporary {
        return Err(Error::unsupported("there are no temporary tables")
            .with_hint("make a table, and drop it when it is no longer needed"));
    }
    check_no_transaction(command.transaction_id.as_deref())?;
    check_catalog(command.catalog.as_deref())?;
    let (mut missing, mut exists) = (IfMissing::default(), IfExists::default());
    if let Some(options) = command.table_definition_options {
        missing = match options.if_not_exist() {
            TableNotExistOption::Create => IfMissing::Create,
            TableNotExistOption::Fail => IfMissing::Fail,
            TableNotExistOption::Unspecified => return Err(unspecified("does not exist")),
        };
        exists = match options.if_exists() {
            TableExistsOption::Fail => IfExists::Fail,
            TableExistsOption::Append => IfExists::Append,
            TableExistsOption::Replace => IfExists::Replace,
            TableExistsOption::Unspecified => return Err(unspecified("exists")),
        };
    }
    Ok(AppendTarget {
        namespace: command.schema.filter(|name| !name.is_empty()),
        table: command.table,
        missing,
        exists,
        options: command.options.into_iter().collect(),
    })
}

fn unspecified(when: &str) -> Error {
    Error::invalid(format!("the ingest does not say what to do if the table {when}"))
}

/// # Errors
/// Unsupported: the call is part of a transaction.
pub(crate) fn check_no_transaction(id: Option<&[u8]>) -> Result<()> {
    match id {
        None | Some([]) => Ok(()),
        Some(_) => Err(Error::unsupported("there are no transactions over Flight SQL")
            .with_hint("each statement commits by itself; leave autocommit on")),
    }
}

/// # Errors
/// Not found (3D000): another catalog than the one there is.
pub(crate) fn check_catalog(catalog: Option<&str>) -> Result<()> {
    match catalog {
        None | Some("" | DATABASE) => Ok(()),
        Some(other) => Err(Error::not_found(format!("catalog \"{other}\" does not exist"))
            .with_sqlstate("3D000")
            .with_hint(format!("the only catalog is \"{DATABASE}\""))),
    }
}

/// The table that a descriptor's path names: `table`, or `namespace`, `table`.
///
/// # Errors
/// Invalid: a path of no or more parts.
pub(crate) fn table_at(descriptor: &FlightDescriptor) -> Result<AppendTarget> {
    let (namespace, table) = match descriptor.path.as_slice() {
        [table] => (None, table),
        [namespace, table] => (Some(namespace.clone()), table),
        _ => {
            return Err(Error::invalid("the descriptor has neither a command nor a table's path")
                .with_hint("send a Flight SQL command, or the path [namespace, table]"));
        }
    };
    Ok(AppendTarget { namespace, table: table.clone(), ..AppendTarget::default() })
}

/// Carries out a plain DoPut.
pub(crate) fn put_batches(
    client: Arc<Client>,
    target: AppendTarget,
    schema: SchemaRef,
    batches: BatchesIn,
) -> BoxStream<'static, Result<PutResult, Status>> {
    let target = Arc::new(target);
    batches
        .map_ok(move |batch| {
            let (client, target) = (Arc::clone(&client), Arc::clone(&target));
            let schema = Arc::clone(&schema);
            async move {
                let one = stream::iter([Ok(batch)]).boxed();
                let completion = client.session.append(&target, schema, one).await?;
                let answer = format!("{{\"rows\": {}}}", completion.rows);
                Ok(PutResult { app_metadata: answer.into() })
            }
        })
        .try_buffered(BATCHES_UNDER_WAY_MAX)
        .map_err(|error: Error| status(&error))
        .boxed()
}
