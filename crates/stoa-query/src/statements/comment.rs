//! `COMMENT ON TABLE | VIEW | COLUMN`.

use std::collections::BTreeMap;

use stoa_catalog::TableIdent;
use stoa_error::{Condition, Result};
use stoa_sql::CommentStatement;
use stoa_table::{TableChange, VIEW_COMMENT, ViewChange};

use crate::session::Session;
use crate::session::outcome::Completion;
use crate::tables::view::StoredView;

/// The property of tables that is their comment.
const COMMENT: &str = "comment";

/// Sets or removes a comment.
pub(crate) async fn run(session: &Session, statement: &CommentStatement) -> Result<Completion> {
    let ident = session.table_ident(&statement.name)?;
    match session.data.warehouse().table(&ident).await {
        Err(error) if error.is(Condition::WrongObjectType) => {
            on_view(session, &ident, statement).await?;
        }
        table => {
            let table = table?;
            session.caller.must_own(&table)?;
            let text = statement.text.clone();
            let change = match (&statement.column, text) {
                (Some(column), comment) => {
                    TableChange::SetColumnComment { column: column.clone(), comment }
                }
                (None, Some(text)) => {
                    TableChange::SetProperties(BTreeMap::from([(COMMENT.to_owned(), text)]))
                }
                (None, None) => TableChange::UnsetProperties(vec![COMMENT.to_owned()]),
            };
            table.alter(vec![change]).await?;
        }
    }
    Ok(Completion::of("COMMENT"))
}

async fn on_view(
    session: &Session,
    ident: &TableIdent,
    statement: &CommentStatement,
) -> Result<()> {
    let warehouse = session.data.warehouse();
    let view = StoredView::new(warehouse.view(ident).await?)?;
    session.caller.must_own(&view)?;
    let text = statement.text.clone();
    let change = match &statement.column {
        Some(column) => ViewChange::ColumnComments(BTreeMap::from([(column.clone(), text)])),
        None => ViewChange::Properties(BTreeMap::from([(VIEW_COMMENT.to_owned(), text)])),
    };
    warehouse.alter_view(&view.view, &change).await.map(drop)
}
