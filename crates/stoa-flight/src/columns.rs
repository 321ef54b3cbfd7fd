//! Columns of a result as bytes.

use arrow_flight::{IpcMessage, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::Schema;
use bytes::Bytes;
use stoa_error::{Error, Result};

/// A schema as an encapsulated IPC message.
pub(crate) fn encode(schema: &Schema) -> Result<Bytes> {
    let options = IpcWriteOptions::default();
    let message: Result<IpcMessage, _> = SchemaAsIpc::new(schema, &options).try_into();
    let IpcMessage(bytes) =
        message.map_err(|e| Error::internal("a schema cannot be encoded").with_source(e))?;
    Ok(bytes)
}
