//! Temporary tables and views: those of one session.
//!
//! ```text
//! CREATE TEMP TABLE t ─► schema pg_temp_<log>_<number>, made with the first one ─► t means pg_temp_….t here
//!                            └─ dropped when the session has ended, or when the server starts again
//! ```
//! They are tables like others, in a schema that only their session is told of. **Invariants:** a name of theirs
//! goes before one of the search path, in all statements; nobody else's statement reads or changes them; plans and
//! answers are not shared with sessions that have others ([`Session::options_context`]).

use std::sync::{Arc, Weak};

use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::ObjectName;
use stoa_catalog::TableIdent;
use stoa_error::{Error, ErrorKind, Result};
use stoa_semantics::errors::from_datafusion;
use stoa_sql::identity::Identity;
use stoa_sql::name_parts;
use stoa_sql::temporary::{OWN, is_temporary, qualify};
use stoa_sql::time_travel;
use stoa_table::Table;

use super::{Planner, Session};
use crate::engine::Engine;
use crate::tables::temporary::Temporary;

/// None so far, for a new session.
pub(super) fn none(engine: &Arc<Engine>) -> Temporary {
    let of = Arc::downgrade(engine);
    let drop_later = move |schema: String| {
        // What is left when the server ends goes when it starts again.
        let engine = Weak::upgrade(&of).filter(|engine| !engine.is_closing());
        let Some(engine) = engine else { return };
        let executors = engine.executors().clone();
        drop(executors.spawn(async move {
            if let Err(error) = engine.drop_temporary(schema.clone()).await {
                tracing::warn!(schema, %error, "cannot drop the temporary tables of a session that ended");
            }
        }));
    };
    Temporary::none(engine.temporary_prefix(), Box::new(drop_later))
}

impl Planner {
    /// With what depends on the temporary tables of a session.
    pub(super) fn with_temporary(mut self, temporary: &Temporary) -> Self {
        if let Some(own) = temporary.context() {
            self.context = format!("{}\ntemporary {own}", self.context).into();
        }
        self
    }
}

impl Session {
    /// A statement with the schema of temporary tables before their names, and with times of earlier versions as the
    /// session's time zone has them; `None` where it has neither.
    ///
    /// # Errors
    /// 0A000 for temporary tables of other sessions.
    pub(crate) fn with_temporary_names(
        &self,
        statement: &EngineStatement,
        text: &str,
    ) -> Result<Option<EngineStatement>> {
        let own = &self.temporary;
        let names_temporary = !own.is_empty() || names_temporary_schema(text);
        if !names_temporary && !time_travel::may_be_in(text) {
            return Ok(None);
        }
        let mut qualified = statement.clone();
        let has_times = time_travel::replace_times(&mut qualified, &|time| {
            self.micros_of(time).map(|us| us.to_string())
        })?;
        if !names_temporary {
            return Ok(has_times.then_some(qualified));
        }
        let found = qualify(&mut qualified, own.schema(), &|name| own.has(name));
        match found.other {
            Some(other) if !self.options.is_trusted => Err(of_other_session(&other)),
            _ => Ok((found.any || has_times).then_some(qualified)),
        }
    }

    /// A time as it is written in this session, in microseconds since 1970-01-01 UTC.
    ///
    /// # Errors
    /// What is no time (22007).
    pub(crate) fn micros_of(&self, time: &str) -> Result<i64> {
        if let Ok(micros) = time.parse::<i64>() {
            return Ok(micros);
        }
        let zone = self.setting("timezone")?;
        stoa_semantics::read_time(time, &zone).map_err(from_datafusion)
    }

    /// The temporary table that a name means, if it means one.
    ///
    /// # Errors
    /// 0A000 for those of other sessions.
    pub(super) fn temporary_ident(&self, parts: &[String]) -> Result<Option<TableIdent>> {
        let schema = self.temporary.schema();
        match parts {
            [name] if self.temporary.has(name) => Ok(Some(TableIdent::new(schema, name))),
            [own, name] if own == OWN => Ok(Some(TableIdent::new(schema, name))),
            [other, _] if is_temporary(other) && other != schema && !self.options.is_trusted => {
                Err(of_other_session(other))
            }
            _ => Ok(None),
        }
    }

    /// Where a table or view comes that is created.
    ///
    /// # Errors
    /// 42P16 for temporary ones with another schema; the catalog's, where the schema for them cannot be made.
    pub(crate) async fn ident_to_create(
        &self,
        name: &ObjectName,
        is_temporary: bool,
    ) -> Result<TableIdent> {
        let parts = name_parts(name)?;
        let named = match parts.as_slice() {
            [name] if is_temporary => name,
            [schema, name] if schema == OWN => name,
            _ if is_temporary => {
                let what = "cannot create temporary relation in non-temporary schema";
                return Err(Error::invalid(what)
                    .with_sqlstate("42P16")
                    .with_hint("leave out the schema: temporary tables have one of their own"));
            }
            _ => return self.permanent_ident(name),
        };
        let (warehouse, schema) = (self.data.warehouse(), self.temporary.schema());
        if !self.temporary.is_made() {
            // Before it is made, so that it is dropped whatever becomes of this.
            self.temporary.note_made();
            match warehouse.create_namespace(schema, &Default::default()).await {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => self.tell_schema(),
            }
        }
        Ok(TableIdent::new(schema, named))
    }

    /// Makes a table or view that was created one's own.
    ///
    /// # Errors
    /// The catalog's.
    pub(crate) async fn created(&self, ident: &TableIdent, uuid: uuid::Uuid) -> Result<()> {
        if ident.namespace != self.temporary.schema() {
            return Ok(());
        }
        if self.caller.is_asked() {
            let rights = self.gate.rights();
            rights.catalog().set_owner(uuid, &self.options.user).await?;
            rights.refresh().await?;
        }
        self.temporary.add(&ident.name);
        self.renew_context();
        Ok(())
    }

    /// Notes that a table of one's own is dropped when the transaction ends: at once, outside of a block.
    ///
    /// # Errors
    /// Those of [`Self::end_temporary`].
    pub(crate) async fn drop_at_end(&self, ident: &TableIdent) -> Result<()> {
        self.temporary.ends(&ident.name);
        match self.block.is_open() {
            true => Ok(()),
            false => self.end_temporary().await,
        }
    }

    /// Drops the tables that end with the transaction.
    ///
    /// # Errors
    /// The catalog's.
    pub(crate) async fn end_temporary(&self) -> Result<()> {
        for name in self.temporary.take_ending() {
            let ident = TableIdent::new(self.temporary.schema(), name);
            match self.data.warehouse().table(&ident).await {
                Ok(table) => self.drop_only(&table, true).await?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            self.dropped(&ident);
        }
        Ok(())
    }

    /// Drops this table, and no other of its name, with its rights and its fresh rows.
    ///
    /// # Errors
    /// The catalog's.
    pub(crate) async fn drop_only(&self, table: &Table, purge: bool) -> Result<()> {
        self.data.warehouse().drop_only(table, purge).await?;
        self.gate.rights().catalog().forget_table(table.uuid()).await?;
        for text in table.defaults().values() {
            let sequence = Identity::of_default(text).and_then(|(_, id)| id.parse().ok());
            if let Some(sequence) = sequence {
                self.data.warehouse().catalog().drop_sequence(sequence).await?;
            }
        }
        self.data.reports().forget_table(table);
        self.data.forget_rows(table).await;
        Ok(())
    }

    /// Forgets a table or view that is gone, or has another name.
    pub(crate) fn dropped(&self, ident: &TableIdent) {
        if ident.namespace == self.temporary.schema() && self.temporary.remove(&ident.name) {
            self.renew_context();
        }
    }

    /// Notes another name of a table or view.
    pub(crate) fn renamed(&self, from: &TableIdent, to: &TableIdent) {
        if from.namespace == self.temporary.schema() {
            self.temporary.remove(&from.name);
            self.temporary.add(&to.name);
            self.renew_context();
        }
    }

    /// Whether a schema is that of this session's temporary tables.
    pub(crate) fn is_own_temporary(&self, schema: &str) -> bool {
        schema == self.temporary.schema()
    }

    /// Drops all of them, as `DISCARD TEMP` does.
    ///
    /// # Errors
    /// The catalog's.
    pub(crate) async fn discard_temporary(&self) -> Result<()> {
        if !self.temporary.is_made() {
            return Ok(());
        }
        self.engine.drop_temporary(self.temporary.schema().to_owned()).await?;
        self.temporary.clear();
        self.renew_context();
        Ok(())
    }

    /// Lets `pg_my_temp_schema()` tell the schema.
    fn tell_schema(&self) {
        let mut planner = self.planner.lock();
        let mut state = (*planner.state).clone();
        // It takes functions.
        let _ = stoa_pg_catalog::set_temporary_schema(&mut state, self.temporary.schema());
        planner.state = Arc::new(state);
    }

    fn renew_context(&self) {
        let mut planner = self.planner.lock();
        let renewed = Planner::new((*planner.state).clone(), &self.engine);
        *planner = renewed.with_temporary(&self.temporary);
    }
}

/// Whether a statement's text could name the schema of temporary tables.
fn names_temporary_schema(text: &str) -> bool {
    text.as_bytes().windows(OWN.len()).any(|word| word.eq_ignore_ascii_case(OWN.as_bytes()))
}

fn of_other_session(schema: &str) -> Error {
    Error::unsupported(format!("cannot access temporary tables of other sessions ({schema})"))
        .with_hint("pg_temp is the schema of your own")
}
