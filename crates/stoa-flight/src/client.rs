//! A client: who calls, and the session that its calls run in.

use std::sync::Arc;

use stoa_query::Session;

/// A session and its user.
pub(crate) struct Client {
    pub(crate) session: Arc<Session>,
    pub(crate) user: String,
    /// What the client calls itself.
    pub(crate) application: String,
}
