//! What one server keeps from call to call: sessions, prepared statements, queries.

use std::sync::Arc;

use stoa_error::{Error, Result};
use stoa_query::{Engine, Kept};

use crate::client::Client;
use crate::clients::Clients;
use crate::handles::{Handle, Handles};
use crate::options::FlightOptions;
use crate::prepared::PreparedStatement;
use crate::query::{Cancelled, Moved, Query};

/// What one server keeps; clones share all.
#[derive(Clone)]
pub(crate) struct FlightSql(Arc<Shared>);

struct Shared {
    clients: Clients,
    statements: Handles<PreparedStatement>,
    queries: Arc<Handles<Query>>,
    /// Queries that other daemons run.
    moved: Handles<Moved>,
}

impl FlightSql {
    pub(crate) fn new(engine: Arc<Engine>, options: &FlightOptions) -> Self {
        let idle_max = options.idle_max;
        Self(Arc::new(Shared {
            clients: Clients::new(engine, options.max_sessions, idle_max),
            statements: Handles::new(options.max_statements, idle_max),
            queries: Arc::new(Handles::new(options.max_statements, idle_max)),
            moved: Handles::new(options.max_statements, idle_max),
        }))
    }

    pub(crate) fn forget_idle(&self) {
        self.0.clients.forget_idle();
        self.0.statements.forget_idle();
        self.0.queries.forget_idle();
        self.0.moved.forget_idle();
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.0.clients
    }

    /// Keeps a statement under a handle.
    ///
    /// # Errors
    /// It takes too much memory (53200).
    pub(crate) fn keep_statement(&self, mut statement: PreparedStatement) -> Result<Handle> {
        let kept = self.make_room(statement.client(), statement.bytes())?;
        statement.keep(kept);
        Ok(self.0.statements.insert(self.engine().daemon_number(), statement))
    }

    /// Keeps a query under a ticket.
    ///
    /// # Errors
    /// It takes too much memory (53200).
    pub(crate) fn keep_query(&self, mut query: Query) -> Result<Handle> {
        let kept = self.make_room(query.client(), query.bytes())?;
        query.keep(kept);
        Ok(self.0.queries.insert(self.engine().daemon_number(), query))
    }

    /// Keeps a query under the ticket that another daemon gave.
    ///
    /// # Errors
    /// It takes too much memory (53200).
    pub(crate) fn keep_query_as(&self, handle: Handle, mut query: Query) -> Result<()> {
        let kept = self.make_room(query.client(), query.bytes())?;
        query.keep(kept);
        self.0.queries.insert_as(handle, query);
        Ok(())
    }

    /// Room for what a client keeps; what it did not use for longest goes for it.
    fn make_room(&self, client: &Arc<Client>, bytes: usize) -> Result<Kept> {
        let (queries, statements) = (&self.0.queries, &self.0.statements);
        loop {
            let full = match client.session.keep(bytes) {
                Ok(kept) => return Ok(kept),
                Err(full) => full,
            };
            let is_gone = queries.remove_oldest(|query| Arc::ptr_eq(query.client(), client))
                || statements.remove_oldest(|kept| Arc::ptr_eq(kept.client(), client));
            if !is_gone {
                return Err(full);
            }
        }
    }

    /// Forgets a prepared statement that is here.
    pub(crate) fn forget_statement(&self, handle: Handle) {
        self.0.statements.remove(handle);
    }

    /// Cancels a query of this role that is here; `None` if there is no such query.
    pub(crate) fn cancel_query_here(&self, handle: Handle, user: &str) -> Option<Cancelled> {
        let query = self.0.queries.get(handle).filter(|query| query.client().user == user)?;
        let cancelled = query.cancel(self.0.clients.engine().queries());
        if cancelled == Cancelled::Done {
            self.0.queries.remove(handle);
        }
        Some(cancelled)
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.0.clients.engine()
    }

    /// Queries whose rows were not fetched yet.
    pub(crate) fn queries(&self) -> &Arc<Handles<Query>> {
        &self.0.queries
    }

    /// Queries whose rows other daemons give.
    pub(crate) fn moved(&self) -> &Handles<Moved> {
        &self.0.moved
    }

    /// A prepared statement of this client that is here.
    ///
    /// # Errors
    /// NotFound: there is none, or no more.
    pub(crate) fn statement_here(
        &self,
        handle: &[u8],
        client: &Client,
    ) -> Result<Arc<PreparedStatement>> {
        self.statement_of(handle, &client.user)
    }

    /// As [`Self::statement_here`], by the role's name.
    ///
    /// # Errors
    /// As [`Self::statement_here`].
    pub(crate) fn statement_of(&self, handle: &[u8], user: &str) -> Result<Arc<PreparedStatement>> {
        Handle::read(handle)
            .and_then(|handle| self.0.statements.get(handle))
            .filter(|statement| statement.client().user == user)
            .ok_or_else(unknown_statement)
    }
}

pub(crate) fn unknown_statement() -> Error {
    Error::not_found("the prepared statement is not known, was closed, or has expired")
        .with_sqlstate("26000")
        .with_hint("prepare it again")
}
