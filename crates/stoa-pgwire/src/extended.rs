//! The extended protocol: statements are parsed, bound, described and executed one by one.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use stoa_error::{Condition, Error, Place, Result};
use stoa_query::ScalarValue;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::command::Command;
use crate::connection::Connection;
use crate::encode::RowEncoder;
use crate::execute::{Executed, duplicate_statement};
use crate::format::Format;
use crate::portal::{Portal, PortalState};
use crate::statement::{Parsed, Plan, rows_tag};
use crate::types::PgType;
use crate::types::decode::parameter;
use crate::wire::frontend::{Bind, violation};
use crate::wire::stream::Stop;

/// A portal without its values.
const PORTAL_BYTES: usize = 1 << 10;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    /// `Parse`
    pub(crate) async fn parse(
        &mut self,
        name: String,
        sql: &str,
        types: &[u32],
    ) -> Result<(), Stop> {
        if name.is_empty() {
            self.statements.remove("");
        } else if self.statements.contains_key(&name) {
            return Err(duplicate_statement(&name).into());
        }
        let declared = types.iter().map(|oid| declared_type(*oid)).collect::<Result<Vec<_>>>()?;
        let deadline = self.deadline();
        let planning = Parsed::new(&self.session, sql, &declared);
        let parsed = match self.wire.watch(deadline, planning).await? {
            Ok(parsed) => parsed,
            Err(error) => {
                self.transaction.check_usable(None)?;
                return Err(error.into());
            }
        };
        self.transaction.check_usable(parsed.transaction())?;
        self.keep_statement(name, parsed)?;
        self.wire.output.parse_complete();
        Ok(())
    }

    /// `Bind`
    pub(crate) fn bind(&mut self, bind: Bind) -> Result<(), Stop> {
        let statement = self.statement(&bind.statement)?;
        self.transaction.check_usable(statement.transaction())?;
        if bind.portal.is_empty() {
            self.portals.remove("");
        } else if self.portals.contains_key(&bind.portal) {
            let message = format!("portal \"{}\" already exists", bind.portal);
            return Err(Error::already_exists(message).with_sqlstate("42P03").into());
        }
        self.check_portal_room()?;
        let parameters = self.parameters(&statement, &bind)?;
        if let Some(schema) = statement.row_schema() {
            Format::spread(&bind.result_formats, schema.fields().len())?;
        }
        // The unnamed one is gone with the next.
        let kept = match bind.portal.is_empty() {
            true => None,
            false => Some(self.session.keep(bytes_of(&bind, &statement))?),
        };
        let portal = Portal {
            statement,
            formats: bind.result_formats,
            state: PortalState::Bound(parameters),
            hold: false,
            is_committed: false,
            _kept: kept,
        };
        self.portals.insert(bind.portal, portal);
        self.wire.output.bind_complete();
        Ok(())
    }

    fn parameters(&self, statement: &Parsed, bind: &Bind) -> Result<Vec<ScalarValue>> {
        let types = &statement.parameter_types;
        if types.len() != bind.parameters.len() {
            return Err(violation(format!(
                "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                bind.parameters.len(),
                bind.statement,
                types.len()
            )));
        }
        let formats = Format::spread(&bind.parameter_formats, types.len())?;
        let zone = self.settings.style.zone;
        let values = types.iter().zip(formats).zip(&bind.parameters).enumerate();
        values
            .map(|(index, ((of, format), bytes))| {
                let value = parameter(*of, format, bytes.as_deref(), zone);
                value.map_err(|error| error.at(Place::Parameter(index + 1)))
            })
            .collect()
    }

    /// `Describe` of a statement
    pub(crate) fn describe_statement(&mut self, name: &str) -> Result<(), Stop> {
        let statement = self.statement(name)?;
        let types: Vec<u32> = statement.parameter_types.iter().map(|of| of.oid()).collect();
        self.wire.output.parameter_description(&types);
        self.describe(self.rows_of(&statement), &[])
    }

    /// `Describe` of a portal
    pub(crate) fn describe_portal(&mut self, name: &str) -> Result<(), Stop> {
        let portal = self.portal(name)?;
        let formats = portal.formats.clone();
        let schema = match portal.state.schema() {
            Some(schema) => Some(schema),
            None => {
                let statement = Arc::clone(&portal.statement);
                self.rows_of(&statement)
            }
        };
        self.describe(schema, &formats)
    }

    fn describe(&mut self, schema: Option<SchemaRef>, formats: &[i16]) -> Result<(), Stop> {
        match schema {
            None => self.wire.output.no_data(),
            Some(schema) => {
                let encoder = self.encoder(schema, formats)?;
                self.wire.output.row_description(&encoder);
            }
        }
        Ok(())
    }

    fn encoder(&self, schema: SchemaRef, formats: &[i16]) -> Result<RowEncoder> {
        let formats = Format::spread(formats, schema.fields().len())?;
        Ok(RowEncoder::new(schema, formats, self.settings.style))
    }

    /// The columns a statement sends, also those it takes from a cursor or another statement.
    fn rows_of(&self, statement: &Parsed) -> Option<SchemaRef> {
        match &statement.plan {
            Plan::Command(Command::Fetch { name, discard: false, .. }, _) => {
                self.portals.get(name)?.state.schema()
            }
            Plan::Command(Command::Execute { name, .. }, _) => {
                self.statements.get(name)?.row_schema()
            }
            _ => statement.row_schema(),
        }
    }

    /// `Execute`
    pub(crate) async fn execute_portal(&mut self, name: &str, rows_max: usize) -> Result<(), Stop> {
        let portal = self.portal(name)?;
        if let PortalState::Bound(parameters) = &mut portal.state {
            let parameters = std::mem::take(parameters);
            portal.state = PortalState::Ended;
            let statement = Arc::clone(&portal.statement);
            let formats = portal.formats.clone();
            match self.execute(&statement, parameters).await? {
                Executed::Empty => {
                    self.wire.output.empty_query();
                    return Ok(());
                }
                Executed::Done(tag) => {
                    self.wire.output.command_complete(&tag);
                    return Ok(());
                }
                Executed::CopyOut(rows, options) => {
                    let deadline = self.deadline();
                    return Box::pin(self.copy_out(rows, &options, deadline)).await;
                }
                Executed::CopyIn(copy) => return Box::pin(self.copy_in(copy)).await,
                Executed::Fetch { cursor, direction, discard } => {
                    let schema = self.portal(&cursor)?.state.schema();
                    let schema = schema.unwrap_or_else(|| Arc::new(arrow_schema::Schema::empty()));
                    let encoder = self.encoder(schema, &formats)?;
                    return Box::pin(self.fetch(&cursor, direction, discard, &encoder)).await;
                }
                Executed::Rows(rows) => {
                    if let Some(portal) = self.portals.get_mut(name) {
                        portal.state = PortalState::Open(rows);
                    }
                }
            }
        }
        self.send_rows(name, rows_max).await
    }

    async fn send_rows(&mut self, name: &str, rows_max: usize) -> Result<(), Stop> {
        let deadline = self.deadline();
        let style = self.settings.style;
        let portal = self.portals.get_mut(name);
        let Some(Portal { formats, state: state @ PortalState::Open(_), .. }) = portal else {
            let message = format!("portal \"{name}\" cannot be run");
            return Err(Error::invalid(message).with_sqlstate("55000").into());
        };
        let PortalState::Open(rows) = state else { return Ok(()) };
        let schema = rows.schema();
        let formats = Format::spread(formats, schema.fields().len())?;
        let encoder = RowEncoder::new(schema, formats, style);
        let sent = match rows.send(&mut self.wire, &encoder, rows_max, deadline).await {
            Ok(sent) => sent,
            Err(stop) => {
                *state = PortalState::Ended;
                return Err(stop);
            }
        };
        if sent.ended {
            self.wire.output.command_complete(&rows_tag(&rows.text, sent.rows));
        } else {
            self.wire.output.portal_suspended();
        }
        Ok(())
    }

    /// `Close` of a statement; one that does not exist is no error.
    pub(crate) fn close_statement(&mut self, name: &str) -> Result<(), Stop> {
        self.statements.remove(name);
        self.wire.output.close_complete();
        Ok(())
    }

    /// `Close` of a portal; one that does not exist is no error.
    pub(crate) fn close_portal(&mut self, name: &str) -> Result<(), Stop> {
        self.portals.remove(name);
        self.wire.output.close_complete();
        Ok(())
    }
}

/// About how many bytes a portal takes, with a statement that may have no name of its own any more.
fn bytes_of(bind: &Bind, statement: &Parsed) -> usize {
    let values = bind.parameters.iter().flatten().map(|value| value.len().saturating_mul(2));
    let own = if statement.kept.is_some() { 0 } else { statement.bytes() };
    let each = bind.parameters.len().saturating_mul(size_of::<ScalarValue>());
    values.fold(own.saturating_add(each).saturating_add(PORTAL_BYTES), usize::saturating_add)
}

/// 0 and `unknown` leave the type to the plan.
fn declared_type(oid: u32) -> Result<Option<PgType>> {
    match PgType::from_oid(oid) {
        Some(PgType::Unknown) => Ok(None),
        Some(of) => Ok(Some(of)),
        None if oid == 0 => Ok(None),
        None => Err(Error::unsupported(format!("parameter type with OID {oid} is not supported"))
            .with_condition(Condition::UndefinedObject)
            .with_hint("leave the type open (OID 0), or cast the parameter to text")),
    }
}
