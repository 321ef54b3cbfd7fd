//! `INSERT INTO t VALUES ('a0ee…')` into a column of UUIDs: the engine has no way from a text to one, so the text is
//! written as a cast.

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    AssignmentTarget, CastKind, DataType, Expr, Insert, ObjectName, SetExpr, Statement, Update,
    Value,
};

use crate::normalise;

/// The statement with casts of the texts for `uuids`, the columns of that type; `None` where there are none. `columns` are
/// those of the table, in order.
pub fn typed(
    statement: &EngineStatement,
    columns: &[String],
    uuids: &[String],
) -> Option<EngineStatement> {
    let EngineStatement::Statement(statement) = statement else { return None };
    let mut statement = statement.as_ref().clone();
    let is_changed = match &mut statement {
        Statement::Insert(insert) => in_rows(insert, columns, uuids),
        Statement::Update(update) => in_assignments(update, uuids),
        _ => false,
    };
    is_changed.then(|| EngineStatement::Statement(Box::new(statement)))
}

fn in_rows(insert: &mut Insert, columns: &[String], uuids: &[String]) -> bool {
    let listed: Vec<String> = match insert.columns.is_empty() {
        true => columns.to_vec(),
        false => insert.columns.iter().map(last_name).collect(),
    };
    let Some(source) = &mut insert.source else { return false };
    let SetExpr::Values(values) = source.body.as_mut() else { return false };
    let mut is_changed = false;
    for row in &mut values.rows {
        for (name, value) in listed.iter().zip(&mut row.content) {
            is_changed |= uuids.contains(name) && cast(value);
        }
    }
    is_changed
}

fn in_assignments(update: &mut Update, uuids: &[String]) -> bool {
    let mut is_changed = false;
    for assignment in &mut update.assignments {
        if let AssignmentTarget::ColumnName(name) = &assignment.target {
            is_changed |= uuids.contains(&last_name(name)) && cast(&mut assignment.value);
        }
    }
    is_changed
}

fn last_name(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(normalise).unwrap_or_default()
}

/// Casts a text; whether it is one.
fn cast(expr: &mut Expr) -> bool {
    let is_text =
        matches!(&*expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
    if is_text {
        let text = Box::new(expr.clone());
        let (kind, data_type) = (CastKind::Cast, DataType::Uuid);
        *expr = Expr::Cast { kind, expr: text, data_type, array: false, format: None };
    }
    is_text
}
