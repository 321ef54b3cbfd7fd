//! Tickets and prepared statements that reach another daemon than the one that gave them.
//!
//! ```text
//! DoGet(ticket of A) ─► B ── redeem? ─► A: is it this user's, unused, not expired? ─► text, settings, values
//!                       └─ plans it again, checks rights again, and runs it ◄──────────┘
//! ```
//!
//! The daemon that gave a handle decides what it is worth; the one that was asked does the work. **Invariants:** a
//! ticket is redeemed once, on whichever daemon. Values that are bound to a statement are kept by the daemon that gave
//! its handle, so that it does not matter which one runs it. Where a statement would mean something else in another
//! session, it is refused.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use prost::Message;
use stoa_error::{Error, Result};
use stoa_query::BatchesIn;

use crate::client::Client;
use crate::columns::encode;
use crate::handles::Handle;
use crate::prepared::{BOUND_BYTES_MAX, PreparedStatement, too_many_values};
use crate::query::{Cancelled, Moved, Query, unknown_ticket};
use crate::question::{
    CancelAnswer, Definition, Question, Setting, What, read, read_batches, write_batches,
    write_values,
};
use crate::state::{FlightSql, unknown_statement};

impl FlightSql {
    /// From now on, other daemons are answered.
    pub(crate) fn answer_others(&self) {
        let service = self.clone();
        self.engine().answer_about_tickets(move |question| {
            let service = service.clone();
            async move { service.answer(read(question)?).await }.boxed()
        });
    }

    /// The handle of a query that is here: one of another daemon's is fetched first.
    ///
    /// # Errors
    /// The ticket is not this client's, unknown, expired or redeemed before; planning here failed.
    pub(crate) async fn ticket_here(
        &self,
        handle: &[u8],
        client: &Client,
    ) -> Result<Option<Handle>> {
        let Some(handle) = Handle::read(handle) else { return Ok(None) };
        if self.queries().get(handle).is_some() {
            return Ok(Some(handle));
        }
        let Some(answer) = self.ask(What::Redeem, handle, client, Bytes::new()).await? else {
            return Ok(None);
        };
        let statement = self.defined(read(answer)?, client).await?;
        let query = statement.query().ok_or_else(unknown_ticket)?;
        self.keep_query_as(handle, query)?;
        Ok(Some(handle))
    }

    /// A prepared statement of this client, of whichever daemon.
    ///
    /// # Errors
    /// NotFound: there is none, or no more; planning here failed.
    pub(crate) async fn statement(
        &self,
        bytes: &[u8],
        client: &Client,
    ) -> Result<Arc<PreparedStatement>> {
        let here = self.statement_here(bytes, client);
        let Some(handle) = Handle::read(bytes).filter(|_| here.is_err()) else { return here };
        match self.ask(What::Statement, handle, client, Bytes::new()).await? {
            Some(answer) => self.defined(read(answer)?, client).await.map(Arc::new),
            None => here,
        }
    }

    /// Binds values to a prepared statement of this client, where that is.
    ///
    /// # Errors
    /// Those of [`PreparedStatement::bind`]; NotFound.
    pub(crate) async fn bind(
        &self,
        bytes: &[u8],
        client: &Client,
        schema: &Schema,
        mut batches: BatchesIn,
    ) -> Result<()> {
        let here = self.statement_here(bytes, client);
        let handle = match here {
            Ok(statement) => return statement.bind(schema, batches).await,
            Err(unknown) => Handle::read(bytes).ok_or(unknown)?,
        };
        let (mut all, mut size) = (Vec::new(), 0);
        while let Some(batch) = batches.try_next().await? {
            size += batch.get_array_memory_size();
            if size > BOUND_BYTES_MAX {
                return Err(too_many_values());
            }
            all.push(batch);
        }
        let values = write_batches(schema, &all)?;
        let bound = self.ask(What::Bind, handle, client, values).await?;
        bound.map(drop).ok_or_else(unknown_statement)
    }

    /// Forgets a prepared statement of this client, if there is one.
    pub(crate) async fn close_statement(&self, bytes: &[u8], client: &Client) {
        let Some(handle) = Handle::read(bytes) else { return };
        if self.statement_here(bytes, client).is_ok() {
            return self.forget_statement(handle);
        }
        if let Err(error) = self.ask(What::Close, handle, client, Bytes::new()).await {
            tracing::debug!(%error, "a prepared statement of another daemon is not closed");
        }
    }

    /// Cancels a query of this client, wherever it is; `None` if there is no such query.
    ///
    /// # Errors
    /// The daemon that has it does not answer.
    pub(crate) async fn cancel_query(
        &self,
        handle: Handle,
        client: &Client,
    ) -> Result<Option<Cancelled>> {
        if let Some(cancelled) = self.cancel_query_here(handle, &client.user) {
            return Ok(Some(cancelled));
        }
        let moved = self.moved().get(handle).filter(|moved| moved.user == client.user);
        let daemon = moved.map_or(handle.daemon(), |moved| moved.daemon);
        let question = self.question(What::Cancel, handle, &client.user, Bytes::new());
        match self.engine().ask_about_ticket(daemon, question).await? {
            Some(answer) => Ok(cancelled(&read(answer)?)),
            None => Ok(None),
        }
    }

    /// Asks the daemon that gave a handle; `None` if that is this one, or is gone.
    async fn ask(
        &self,
        what: What,
        handle: Handle,
        client: &Client,
        values: Bytes,
    ) -> Result<Option<Bytes>> {
        let question = self.question(what, handle, &client.user, values);
        self.engine().ask_about_ticket(handle.daemon(), question).await
    }

    fn question(&self, what: What, handle: Handle, user: &str, values: Bytes) -> Bytes {
        let asker = self.engine().daemon_number();
        let (what, handle, user) = (what as i32, handle.bytes(), user.to_owned());
        Question { what, handle, user, asker, values }.encode_to_vec().into()
    }

    /// Plans a statement as the daemon that gave its handle has, in a session of its own.
    async fn defined(&self, definition: Definition, client: &Client) -> Result<PreparedStatement> {
        let client = self.clients().like(client);
        for Setting { name, value } in &definition.settings {
            client.session.begin_with(name, value)?;
        }
        let statement = PreparedStatement::new(Arc::new(client), &definition.sql).await?;
        if encode(&statement.schema())? != definition.columns {
            let message = "the columns of the statement are no longer those that were announced";
            return Err(Error::unsupported(message).with_hint("ask for the query again"));
        }
        let (schema, batches) = read_batches(&definition.values)?;
        statement.bind(&schema, stream::iter(batches.into_iter().map(Ok)).boxed()).await?;
        Ok(statement)
    }

    /// Answers another daemon.
    async fn answer(&self, question: Question) -> Result<Bytes> {
        let handle = Handle::read(&question.handle);
        let handle = handle.filter(|handle| handle.daemon() == self.engine().daemon_number());
        match (question.what(), handle) {
            (What::Redeem, handle) => {
                self.give_away(handle.ok_or_else(unknown_ticket)?, &question).map(encoded)
            }
            (What::Statement, Some(_)) => {
                let statement = self.statement_of(&question.handle, &question.user)?;
                statement.definition().map(encoded)
            }
            (What::Bind, Some(_)) => {
                let statement = self.statement_of(&question.handle, &question.user)?;
                let (schema, batches) = read_batches(&question.values)?;
                let batches = stream::iter(batches.into_iter().map(Ok)).boxed();
                statement.bind(&schema, batches).await.map(|()| Bytes::new())
            }
            (What::Close, Some(handle)) => {
                if self.statement_of(&question.handle, &question.user).is_ok() {
                    self.forget_statement(handle);
                }
                Ok(Bytes::new())
            }
            (What::Login, Some(handle)) => self.clients().login_for_another(handle).map(encoded),
            (What::Login, None) => Err(unknown_ticket()),
            (What::Logout, _) => {
                Handle::read(&question.handle)
                    .into_iter()
                    .for_each(|handle| self.clients().close_here(handle));
                Ok(Bytes::new())
            }
            (What::Cancel, _) => self.cancel_for(&question).await.map(encoded),
            (What::Nothing, _) => {
                Err(Error::unsupported("this daemon does not know such a question about a ticket"))
            }
            (What::Statement | What::Bind | What::Close, None) => Err(unknown_statement()),
        }
    }

    /// The query of a ticket, for another daemon; this one does not run it any more.
    fn give_away(&self, handle: Handle, question: &Question) -> Result<Definition> {
        let query = self.queries().get(handle);
        let query = query.filter(|query| query.client().user == question.user);
        let query = query.ok_or_else(unknown_ticket)?;
        let definition = query.definition()?;
        query.take()?;
        self.queries().remove(handle);
        let moved = Moved { user: question.user.clone(), daemon: question.asker };
        self.moved().insert_as(handle, moved);
        Ok(definition)
    }

    /// Cancels a query that is here, or was given away; whoever asks has looked at its own.
    async fn cancel_for(&self, question: &Question) -> Result<CancelAnswer> {
        let handle = Handle::read(&question.handle).ok_or_else(unknown_ticket)?;
        let here = self.cancel_query_here(handle, &question.user);
        let moved = self.moved().get(handle).filter(|moved| moved.user == question.user);
        match (here, moved) {
            (None, Some(moved)) if moved.daemon != question.asker => {
                let further = self.question(What::Cancel, handle, &question.user, Bytes::new());
                let answer = self.engine().ask_about_ticket(moved.daemon, further).await?;
                answer.map_or_else(|| Ok(CancelAnswer::default()), read)
            }
            (here, _) => Ok(CancelAnswer {
                was_there: here.is_some(),
                had_begun: here == Some(Cancelled::Begun),
            }),
        }
    }
}

impl Query {
    /// All that another daemon needs to run it.
    ///
    /// # Errors
    /// 0A000 where it would mean something else in another session.
    fn definition(&self) -> Result<Definition> {
        define(self.client(), self.sql(), &self.schema(), self.values())
    }
}

impl PreparedStatement {
    /// All that another daemon needs to run it, with the values that are bound.
    ///
    /// # Errors
    /// 0A000 where it would mean something else in another session.
    fn definition(&self) -> Result<Definition> {
        define(self.client(), self.sql(), &self.schema(), &self.bound().rows)
    }
}

fn define(
    client: &Client,
    sql: &str,
    columns: &SchemaRef,
    values: &[Vec<stoa_query::ScalarValue>],
) -> Result<Definition> {
    let settings = client.session.settings_for_another()?;
    let settings = settings.into_iter().map(|(name, value)| Setting { name, value });
    Ok(Definition {
        sql: sql.to_owned(),
        settings: settings.collect(),
        columns: encode(columns)?,
        values: write_values(values)?,
    })
}

fn cancelled(answer: &CancelAnswer) -> Option<Cancelled> {
    answer.was_there.then_some(match answer.had_begun {
        true => Cancelled::Begun,
        false => Cancelled::Done,
    })
}

fn encoded(message: impl Message) -> Bytes {
    message.encode_to_vec().into()
}
