//! Executes a statement, up to the point where its rows or its data flow.

use std::sync::Arc;

use futures::StreamExt;
use stoa_error::{Error, Result};
use stoa_query::{Completion, CopyIn, Outcome, Prepared, ScalarValue, TransactionControl};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::command::{Command, items};
use crate::connection::{Connection, PORTALS_MAX, STATEMENTS_MAX};
use crate::portal::{Portal, PortalState};
use crate::scroll::{Direction, ScrollRows};
use crate::statement::{Parsed, Plan, SharedStatement, type_named, within};
use crate::transaction::{Then, Warning};
use crate::types::PgType;
use crate::unsent::UnsentRows;
use crate::wire::backend::Severity;
use crate::wire::stream::Stop;

/// What executing a statement led to.
pub(crate) enum Executed {
    /// There was no statement.
    Empty,
    /// Done, with this tag.
    Done(String),
    /// Rows to send.
    Rows(UnsentRows),
    /// Rows to send as lines of a COPY.
    CopyOut(UnsentRows, Vec<(String, String)>),
    /// Data to take in.
    CopyIn(CopyIn),
    /// Rows to send from a cursor, or to leave out.
    Fetch { cursor: String, direction: Direction, discard: bool },
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    /// Executes a statement with its parameters.
    pub(crate) async fn execute(
        &mut self,
        statement: &SharedStatement,
        parameters: Vec<ScalarValue>,
    ) -> Result<Executed, Stop> {
        self.transaction.check_usable(statement.transaction())?;
        match &statement.plan {
            Plan::Empty => Ok(Executed::Empty),
            Plan::Engine(prepared) => self.execute_prepared(prepared, parameters).await,
            Plan::Declare { name, options, query } => {
                self.check_cursor(name, options.hold)?;
                let Executed::Rows(rows) = self.execute_prepared(query, parameters).await? else {
                    return Err(Error::internal("a cursor's query returned no rows").into());
                };
                let state = match options.scroll {
                    true => PortalState::Scroll(Box::new(ScrollRows::new(rows))),
                    false => PortalState::Open(rows),
                };
                let portal = Portal {
                    statement: Arc::clone(statement),
                    formats: vec![i16::from(options.binary)],
                    state,
                    hold: options.hold,
                    is_committed: !self.transaction.in_block(),
                    _kept: None,
                };
                self.portals.insert(name.clone(), portal);
                Ok(Executed::Done("DECLARE CURSOR".to_owned()))
            }
            Plan::Command(command, text) => Box::pin(self.execute_command(command, text)).await,
        }
    }

    async fn execute_prepared(
        &mut self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
    ) -> Result<Executed, Stop> {
        let statement = prepared.statement();
        if let Some(control) = statement.transaction() {
            let controlled = self.transaction.control(control)?;
            if controlled.ended {
                self.end_portals(
                    controlled.then == Then::Run && *control == TransactionControl::Commit,
                );
            }
            self.warn(controlled.warning);
            let mut tag = controlled.tag.to_owned();
            match controlled.then {
                Then::Nothing => {}
                Then::RollBack => {
                    let stays = Box::pin(self.session.roll_back()).await;
                    self.warn(stays.map(|message| Warning::new("01000", message)));
                }
                Then::Run => {
                    // A commit is not to be given up half way because time is over.
                    let work = Box::pin(self.session.run_transaction(control));
                    let done = self.wire.watch(None, work).await??;
                    tag = self.completed(done);
                }
            }
            self.transaction.done(control);
            return Ok(Executed::Done(tag));
        }
        let deadline = self.deadline();
        let work = self.session.execute(prepared, parameters);
        let outcome = self.wire.watch(deadline, work).await??;
        if statement.is_set() {
            self.settings.renew(&self.session, &mut self.wire.output);
        }
        Ok(match outcome {
            Outcome::Done(completion) => Executed::Done(self.completed(completion)),
            Outcome::CopyIn(copy) => Executed::CopyIn(copy),
            Outcome::Rows(stream) => {
                let rows = UnsentRows::new(stream, statement.text(), prepared.schema())?;
                match statement.copy() {
                    Some(copy) => Executed::CopyOut(rows, copy.options.clone()),
                    None => Executed::Rows(rows),
                }
            }
        })
    }

    /// Sends what a completion says besides its tag.
    pub(crate) fn completed(&mut self, completion: Completion) -> String {
        for notice in &completion.notices {
            self.wire.output.notice(Severity::Notice, "00000", notice, "");
        }
        completion.tag
    }

    async fn execute_command(&mut self, command: &Command, text: &str) -> Result<Executed, Stop> {
        let done = |tag: &str| Ok(Executed::Done(tag.to_owned()));
        match command {
            Command::Fetch { name, direction, discard } => {
                self.cursor(name)?;
                let (direction, discard) = (*direction, *discard);
                Ok(Executed::Fetch { cursor: name.clone(), direction, discard })
            }
            Command::Close { name } => {
                match name {
                    Some(name) => {
                        self.cursor(name)?;
                        self.portals.remove(name);
                    }
                    None => self.portals.clear(),
                }
                done("CLOSE CURSOR")
            }
            Command::Prepare { name, types, statement } => {
                if self.statements.contains_key(name) {
                    return Err(duplicate_statement(name).into());
                }
                let declared = types.iter().map(|name| type_named(name));
                let declared = declared.collect::<Result<Vec<_>>>()?;
                let parsed = Parsed::new(&self.session, statement, &declared).await;
                let parsed = parsed.map_err(|error| within(error, text, statement))?;
                self.keep_statement(name.clone(), parsed)?;
                done("PREPARE")
            }
            Command::Execute { name, arguments } => {
                let statement = self.statement(name)?;
                let Plan::Engine(prepared) = &statement.plan else {
                    let message = format!("statement \"{name}\" cannot be run by EXECUTE");
                    return Err(Error::unsupported(message).into());
                };
                let parameters =
                    self.evaluate(name, arguments, text, &statement.parameter_types).await?;
                self.execute_prepared(prepared, parameters).await
            }
            Command::Deallocate { name } => match name {
                Some(name) => {
                    self.statement(name)?;
                    self.statements.remove(name);
                    done("DEALLOCATE")
                }
                None => {
                    self.statements.clear();
                    done("DEALLOCATE ALL")
                }
            },
            Command::DiscardAll => self.discard_all().await,
            Command::Declare { .. } => {
                Err(Error::internal("a cursor was declared without its query").into())
            }
        }
    }

    async fn discard_all(&mut self) -> Result<Executed, Stop> {
        if self.transaction.in_block() {
            let message = "DISCARD ALL cannot run inside a transaction block";
            return Err(Error::invalid(message).with_sqlstate("25001").into());
        }
        self.statements.clear();
        self.portals.clear();
        self.session.sql("DISCARD ALL").await?;
        self.settings.renew(&self.session, &mut self.wire.output);
        Ok(Executed::Done("DISCARD ALL".to_owned()))
    }

    /// The values of an argument list, evaluated by the engine, as the types of the parameters.
    ///
    /// # Errors
    /// 42601 for another number of arguments, and those of the casts.
    async fn evaluate(
        &mut self,
        name: &str,
        arguments: &str,
        text: &str,
        types: &[PgType],
    ) -> Result<Vec<ScalarValue>, Stop> {
        // As in PostgreSQL: nobody asks for them.
        if types.is_empty() {
            return Ok(Vec::new());
        }
        let list = arguments;
        let arguments = items(list);
        if arguments.len() != types.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let detail =
                format!("Expected {} parameters but got {}.", types.len(), arguments.len());
            return Err(Error::invalid(message).with_sqlstate("42601").with_detail(detail).into());
        }
        // The end of a line ends a comment.
        let cast = |(argument, of): (&&str, &PgType)| match of {
            PgType::Unknown => format!("({argument}\n)"),
            of => format!("({argument}\n)::{}", of.name()),
        };
        let values: Vec<_> = arguments.iter().zip(types).map(cast).collect();
        let query = format!("{SELECT}{}", values.join(", "));
        let evaluated = self.session.sql(&query).await;
        let evaluated =
            evaluated.map_err(|error| in_arguments(error, &query, text, list, &arguments))?;
        let Outcome::Rows(mut rows) = evaluated else {
            return Err(Error::internal("an argument list gave no row").into());
        };
        let mut values = Vec::new();
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            for column in batch.columns().iter().filter(|column| !column.is_empty()) {
                values.push(ScalarValue::try_from_array(column, 0).map_err(|source| {
                    Error::internal("an argument has no value").with_source(source)
                })?);
            }
        }
        Ok(values)
    }

    fn check_cursor(&self, name: &str, hold: bool) -> Result<()> {
        if !hold && !self.transaction.in_block() {
            return Err(Error::invalid("DECLARE CURSOR can only be used in transaction blocks")
                .with_sqlstate("25P01")
                .with_hint("send BEGIN first, or declare it WITH HOLD"));
        }
        if self.portals.contains_key(name) {
            return Err(Error::already_exists(format!("cursor \"{name}\" already exists"))
                .with_sqlstate("42P03"));
        }
        self.check_portal_room()
    }

    pub(crate) fn check_portal_room(&self) -> Result<()> {
        if self.portals.len() < PORTALS_MAX {
            return Ok(());
        }
        Err(Error::new(
            stoa_error::ErrorKind::Exhausted,
            format!("this connection has {PORTALS_MAX} open portals"),
        )
        .with_sqlstate("53400")
        .with_hint("close those that are done"))
    }

    /// Keeps a prepared statement.
    ///
    /// # Errors
    /// There are too many (53400), or they are too large together (53200).
    pub(crate) fn keep_statement(&mut self, name: String, mut parsed: Parsed) -> Result<()> {
        if self.statements.len() >= STATEMENTS_MAX && !self.statements.contains_key(&name) {
            return Err(Error::new(
                stoa_error::ErrorKind::Exhausted,
                format!("this connection has {STATEMENTS_MAX} prepared statements"),
            )
            .with_sqlstate("53400")
            .with_hint("deallocate those that are not needed"));
        }
        // The unnamed one is gone with the next.
        if !name.is_empty() {
            parsed.kept = Some(self.session.keep(parsed.bytes().saturating_add(name.len()))?);
        }
        self.statements.insert(name, Arc::new(parsed));
        Ok(())
    }

    /// The prepared statement `name`.
    pub(crate) fn statement(&self, name: &str) -> Result<SharedStatement> {
        self.statements.get(name).map(Arc::clone).ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            Error::not_found(message).with_sqlstate("26000")
        })
    }

    /// Ends the portals of a transaction. Cursors WITH HOLD stay if it is committed.
    fn end_portals(&mut self, is_commit: bool) {
        self.portals.retain(|_, portal| portal.hold && (is_commit || portal.is_committed));
        self.portals.values_mut().for_each(|portal| portal.is_committed = true);
    }

    /// The cursor `name`, which a statement names.
    fn cursor(&self, name: &str) -> Result<()> {
        if self.portals.contains_key(name) {
            return Ok(());
        }
        Err(Error::not_found(format!("cursor \"{name}\" does not exist"))
            .with_sqlstate("34000")
            .with_hint("cursors end with their transaction, unless they are declared WITH HOLD"))
    }

    /// The portal or cursor `name`.
    pub(crate) fn portal(&mut self, name: &str) -> Result<&mut Portal> {
        self.portals.get_mut(name).ok_or_else(|| {
            Error::not_found(format!("portal \"{name}\" does not exist"))
                .with_sqlstate("34000")
                .with_hint("portals end with their transaction; send BEGIN to keep them longer")
        })
    }
}

pub(crate) fn duplicate_statement(name: &str) -> Error {
    Error::already_exists(format!("prepared statement \"{name}\" already exists"))
        .with_sqlstate("42P05")
}

/// What evaluates a list of arguments begins with it.
const SELECT: &str = "SELECT ";

/// An error that points into the `query` that evaluates `arguments`, pointing into the statement that has their `list`.
///
/// In the query, each argument stands alone on a line behind a parenthesis.
fn in_arguments(error: Error, query: &str, text: &str, list: &str, arguments: &[&str]) -> Error {
    let Some(position) = error.position() else { return error };
    let Some(before_list) = text.rfind(list) else { return error };
    let mut begin = SELECT.len();
    for argument in arguments {
        // Behind the comma and the parenthesis.
        let Some(found) = query.get(begin..).and_then(|rest| rest.find(argument)) else {
            return error;
        };
        let (start, end) = (begin + found, begin + found + argument.len());
        let before = query.get(..start).map_or(0, |before| before.chars().count());
        let offset = argument.as_ptr() as usize - list.as_ptr() as usize;
        let there = text.get(..before_list + offset).map_or(0, |there| there.chars().count());
        if position > before && position <= before + argument.chars().count() {
            return error.with_position(there + position - before);
        }
        begin = end;
    }
    error
}
