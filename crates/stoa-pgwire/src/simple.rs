//! The simple protocol: one message holds any number of statements, all values are text.

use std::sync::Arc;
use std::time::Instant;

use stoa_error::Error;
use stoa_query::split_statements;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::Connection;
use crate::encode::RowEncoder;
use crate::execute::Executed;
use crate::format::Format;
use crate::portal::PortalState;
use crate::scroll::Direction;
use crate::statement::{Parsed, SharedStatement, rows_tag};
use crate::wire::stream::Stop;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    /// Runs the statements one after another; the first error ends the message.
    pub(crate) async fn simple_query(&mut self, sql: &str) -> Result<(), Stop> {
        // The unnamed statement and portal do not outlive a simple query.
        self.statements.remove("");
        self.portals.remove("");
        let texts = split_statements(sql);
        if texts.is_empty() {
            self.wire.output.empty_query();
        }
        for text in texts {
            match self.simple_statement(text).await {
                Ok(()) => {}
                Err(Stop::Gone) => return Err(Stop::Gone),
                Err(Stop::Failed(error)) => {
                    self.report(&error, characters_before(sql, text));
                    break;
                }
            }
        }
        if !self.transaction.in_block() {
            self.portals.retain(|_, portal| portal.hold);
        }
        self.ready();
        self.wire.flush().await
    }

    async fn simple_statement(&mut self, text: &str) -> Result<(), Stop> {
        let deadline = self.deadline();
        let statement = match self.recent.find(text, &self.session) {
            Some(statement) => statement,
            None => self.planned(text, deadline).await?,
        };
        match self.execute(&statement, Vec::new()).await? {
            Executed::Empty => self.wire.output.empty_query(),
            Executed::Done(tag) => self.wire.output.command_complete(&tag),
            Executed::Rows(mut rows) => {
                let schema = rows.schema();
                let formats = vec![Format::Text; schema.fields().len()];
                let encoder = RowEncoder::new(schema, formats, self.settings.style);
                self.wire.output.row_description(&encoder);
                let sent = rows.send(&mut self.wire, &encoder, usize::MAX, deadline).await?;
                self.wire.output.command_complete(&rows_tag(text, sent.rows));
            }
            Executed::CopyOut(rows, options) => {
                Box::pin(self.copy_out(rows, &options, deadline)).await?;
            }
            Executed::CopyIn(copy) => Box::pin(self.copy_in(copy)).await?,
            Executed::Fetch { cursor, direction, discard } => {
                let portal = self.portal(&cursor)?;
                let Some(schema) = portal.state.schema() else { return self.fetched(0, discard) };
                let formats = Format::spread(&portal.formats, schema.fields().len())?;
                let encoder = RowEncoder::new(schema, formats, self.settings.style);
                if !discard {
                    self.wire.output.row_description(&encoder);
                }
                Box::pin(self.fetch(&cursor, direction, discard, &encoder)).await?;
            }
        }
        Ok(())
    }

    async fn planned(
        &mut self,
        text: &str,
        deadline: Option<Instant>,
    ) -> Result<SharedStatement, Stop> {
        match self.wire.watch(deadline, Parsed::new(&self.session, text, &[])).await? {
            Ok(parsed) => {
                let statement = Arc::new(parsed);
                self.recent.keep(text, &statement);
                Ok(statement)
            }
            Err(error) => {
                // In a failed block the statement may refer to what is not there.
                self.transaction.check_usable(None)?;
                Err(error.into())
            }
        }
    }

    /// Moves a cursor.
    pub(crate) async fn fetch(
        &mut self,
        cursor: &str,
        direction: Direction,
        discard: bool,
        encoder: &RowEncoder,
    ) -> Result<(), Stop> {
        let deadline = self.deadline();
        let sent = match self.portals.get_mut(cursor).map(|portal| &mut portal.state) {
            Some(PortalState::Scroll(rows)) => {
                let encoder = (!discard).then_some(encoder);
                rows.fetch(direction, &mut self.wire, &self.session, encoder, deadline).await?
            }
            Some(PortalState::Open(rows)) => {
                let (skipped, count) = direction.forward().ok_or_else(only_forward)?;
                rows.skip(&mut self.wire, skipped, deadline).await?;
                match discard {
                    true => rows.skip(&mut self.wire, count, deadline).await?.rows,
                    false => rows.send(&mut self.wire, encoder, count, deadline).await?.rows,
                }
            }
            _ => 0,
        };
        self.fetched(sent, discard)
    }

    fn fetched(&mut self, rows: u64, discard: bool) -> Result<(), Stop> {
        let command = if discard { "MOVE" } else { "FETCH" };
        self.wire.output.command_complete(&format!("{command} {rows}"));
        Ok(())
    }
}

fn only_forward() -> Error {
    Error::invalid("cursor can only scan forward")
        .with_sqlstate("55000")
        .with_hint("Declare it with SCROLL option to enable backward scan.")
}

/// Characters of `sql` before its part `text`.
fn characters_before(sql: &str, text: &str) -> usize {
    let bytes = (text.as_ptr() as usize).saturating_sub(sql.as_ptr() as usize);
    sql.get(..bytes).map_or(0, |before| before.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_of_the_whole_message() {
        let sql = "SELECT 'ä'; SELEC 1";
        assert_eq!(characters_before(sql, &sql[13..]), 12);
    }
}
