//! Who answers the shell's statements: a server, or an engine in this process.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::stream::BoxStream;
use stoa_error::Result;
use stoa_query::CopyIn;

use super::local::LocalBackend;
use super::remote::RemoteBackend;

/// One of the two.
pub enum Backend {
    /// An engine in this process.
    Local(LocalBackend),
    /// A server, over HTTP.
    Remote(RemoteBackend),
}

/// What a statement gave back.
pub(super) enum Reply {
    Rows {
        schema: SchemaRef,
        batches: BoxStream<'static, Result<RecordBatch>>,
    },
    Done {
        tag: String,
        notices: Vec<String>,
    },
    /// It waits for rows.
    CopyIn(Box<CopyIn>),
}

impl Backend {
    /// Runs one statement. Dropping the future or the rows cancels it.
    pub(super) async fn run(&self, statement: &str) -> Result<Reply> {
        match self {
            Self::Local(backend) => backend.run(statement).await,
            Self::Remote(backend) => backend.run(statement).await,
        }
    }

    /// Cancels what runs now.
    pub(super) fn cancel(&self) {
        if let Self::Local(backend) = self {
            backend.cancel();
        }
        // A server notices that the request is dropped.
    }

    /// Ends what is ours.
    pub(super) async fn close(&self) {
        if let Self::Local(backend) = self {
            backend.close().await;
        }
    }

    /// Where this is, for people.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Local(backend) => format!("warehouse {}", backend.warehouse()),
            Self::Remote(backend) => format!("server {}", backend.url()),
        }
    }
}
