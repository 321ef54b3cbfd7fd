//! `DEFAULT`: what columns hold where a statement gives no value, and the keyword as a value.
//!
//! In: an INSERT, UPDATE or MERGE, and the defaults of its table's columns. Out: the same statement with the expressions in
//! the place of `DEFAULT`, and for the columns that it leaves out. Not here: where defaults are kept (`stoa-table`), and
//! whether an expression can be one (`stoa-query`).

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, Insert, MergeAction, MergeInsertExpr,
    MergeInsertKind, ObjectName, OnConflictAction, OnInsert, Parens, Query, SelectItem, SetExpr,
    Statement, TableFactor, TableObject, Value, Values,
};
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;
use stoa_error::{Error, Result};

use crate::identity::{Identity, NEXT_VALUE};
use crate::{Parsed, StatementKind, normalise, reread};

/// A column of the table: its name, and the text of its default.
pub type Column = (String, Option<String>);

/// The rows of a query that gets more columns; no table is called so.
const ROWS: &str = "\u{2063}rows";

/// Words that end the expression of a default: what else is said of a column.
const NEXT_CLAUSES: [&str; 9] = [
    "NOT",
    "NULL",
    "PRIMARY",
    "COMMENT",
    "UNIQUE",
    "CHECK",
    "REFERENCES",
    "GENERATED",
    "CONSTRAINT",
];

/// Reads the expression behind `DEFAULT`; gives its text. As in PostgreSQL, `NOT NULL` behind it is the column's.
pub(super) fn parse(parser: &mut Parser<'_>) -> Parsed<String> {
    let (mut text, mut depth) = (String::new(), 0_usize);
    loop {
        let token = parser.peek_token_no_skip().token;
        let begins = text.trim().is_empty();
        match &token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if depth > 0 => depth -= 1,
            Token::RParen | Token::RBracket | Token::EOF | Token::SemiColon => break,
            Token::Comma if depth == 0 => break,
            Token::Word(word)
                if depth == 0
                    && !begins
                    && word.quote_style.is_none()
                    && NEXT_CLAUSES.iter().any(|next| word.value.eq_ignore_ascii_case(next)) =>
            {
                break;
            }
            _ => {}
        }
        text.push_str(&token.to_string());
        parser.next_token_no_skip();
    }
    let text = text.trim();
    if text.is_empty() {
        let found = parser.peek_token();
        return parser.expected("an expression after DEFAULT", found);
    }
    Ok(text.to_owned())
}

/// The table whose columns a statement may leave out, or give their defaults.
pub fn table_of(statement: &EngineStatement) -> Option<&ObjectName> {
    let EngineStatement::Statement(statement) = statement else { return None };
    let relation = match statement.as_ref() {
        Statement::Insert(insert) if insert.partitioned.is_none() => match &insert.table {
            TableObject::TableName(name) => return Some(name),
            _ => return None,
        },
        Statement::Update(update) => &update.table.relation,
        Statement::Merge(merge) => &merge.table,
        _ => return None,
    };
    match relation {
        TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
}

/// The statement with all values that it leaves to defaults; `None` if it leaves none. `columns` are all of the table, in
/// order.
///
/// # Errors
/// `Internal` for a default that cannot be read.
pub fn fill(statement: &EngineStatement, columns: &[Column]) -> Result<Option<EngineStatement>> {
    let EngineStatement::Statement(old) = statement else { return Ok(None) };
    let filling = Filling { columns };
    let mut new = match old.as_ref() {
        Statement::Insert(insert) if !filling.is_complete(insert) => old.clone(),
        Statement::Insert(_) => return Ok(None),
        Statement::Update(_) | Statement::Merge(_) => old.clone(),
        _ => return Ok(None),
    };
    match new.as_mut() {
        Statement::Insert(insert) => filling.insert(insert)?,
        Statement::Update(update) => filling.assign(&mut update.assignments)?,
        Statement::Merge(merge) => {
            for clause in &mut merge.clauses {
                match &mut clause.action {
                    MergeAction::Insert(insert) => filling.merge_insert(insert)?,
                    MergeAction::Update(update) => filling.assign(&mut update.assignments)?,
                    MergeAction::Delete { .. } => {}
                }
            }
        }
        _ => {}
    }
    Ok((new != *old).then_some(EngineStatement::Statement(new)))
}

/// Refuses values for columns that are `GENERATED ALWAYS`.
///
/// # Errors
/// 428C9, naming the column.
pub fn refuse_given(statement: &EngineStatement, columns: &[Column]) -> Result<()> {
    let is_always = |name: &str| {
        let default =
            columns.iter().find(|(of, _)| of == name).and_then(|(_, text)| text.as_deref());
        default.and_then(Identity::of_default).is_some_and(|(identity, _)| identity.is_always)
    };
    if !columns.iter().any(|(name, _)| is_always(name)) {
        return Ok(());
    }
    let EngineStatement::Statement(statement) = statement else { return Ok(()) };
    let filling = Filling { columns };
    let row = |names: &[String], values: &[Expr]| {
        let given = names
            .iter()
            .zip(values)
            .find(|(name, value)| is_always(name) && !is_given_by_default(value));
        given.map_or(Ok(()), |(name, _)| Err(given_always("insert a non-DEFAULT value into", name)))
    };
    let assigned = |assignments: &[Assignment]| {
        for assignment in assignments.iter().filter(|one| !is_given_by_default(&one.value)) {
            if let AssignmentTarget::ColumnName(name) = &assignment.target
                && is_always(&last_part(name))
            {
                return Err(given_always("update", &last_part(name)));
            }
        }
        Ok(())
    };
    match statement.as_ref() {
        Statement::Insert(insert) => {
            if let Some(OnInsert::OnConflict(conflict)) = &insert.on
                && let OnConflictAction::DoUpdate(update) = &conflict.action
            {
                assigned(&update.assignments)?;
            }
            let Some(source) = &insert.source else { return Ok(()) };
            match source.body.as_ref() {
                SetExpr::Values(values) => {
                    let names = filling.listed(&insert.columns, width(source));
                    values.rows.iter().try_for_each(|values| row(&names, &values.content))
                }
                body => {
                    let width = match body {
                        SetExpr::Select(select) => Some(select.projection.len()),
                        _ => None,
                    };
                    // What was filled in before stands last.
                    let filled = |name: &str| match body {
                        SetExpr::Select(select) => select.projection.iter().any(|item| {
                            matches!(item, SelectItem::ExprWithAlias { expr, alias }
                                if alias.value == name && is_given_by_default(expr))
                        }),
                        _ => false,
                    };
                    let names = filling.listed(&insert.columns, width);
                    match names.iter().find(|name| is_always(name) && !filled(name)) {
                        Some(name) => Err(given_always("insert a non-DEFAULT value into", name)),
                        None => Ok(()),
                    }
                }
            }
        }
        Statement::Update(update) => assigned(&update.assignments),
        Statement::Merge(merge) => {
            merge.clauses.iter().try_for_each(|clause| match &clause.action {
                MergeAction::Insert(insert) => match &insert.kind {
                    MergeInsertKind::Values(values) => {
                        let width = values.rows.first().map(|row| row.content.len());
                        let names = filling.listed(&insert.columns, width);
                        values.rows.iter().try_for_each(|values| row(&names, &values.content))
                    }
                    MergeInsertKind::Row => Ok(()),
                },
                MergeAction::Update(update) => assigned(&update.assignments),
                MergeAction::Delete { .. } => Ok(()),
            })
        }
        _ => Ok(()),
    }
}

/// Whether a value is the keyword, or the number that was put in its place.
fn is_given_by_default(value: &Expr) -> bool {
    let is_number =
        |expr: &Expr| matches!(expr, Expr::Function(call) if last_part(&call.name) == NEXT_VALUE);
    is_default(value) || matches!(value, Expr::Nested(inner) if is_number(inner))
}

fn given_always(what: &str, column: &str) -> Error {
    let message = match what {
        "update" => format!("column \"{column}\" can only be updated to DEFAULT"),
        _ => format!("cannot {what} column \"{column}\""),
    };
    Error::invalid(message)
        .with_sqlstate("428C9")
        .with_detail(format!(
            "Column \"{column}\" is an identity column defined as GENERATED ALWAYS."
        ))
        .with_hint("leave the column out, or write DEFAULT")
}

struct Filling<'a> {
    columns: &'a [Column],
}

impl Filling<'_> {
    /// Whether an INSERT gives a value to each column that has a default, and none by DEFAULT.
    fn is_complete(&self, insert: &Insert) -> bool {
        let Some(source) = &insert.source else { return false };
        let has_default = match source.body.as_ref() {
            SetExpr::Values(values) => {
                values.rows.iter().any(|row| row.content.iter().any(is_default))
            }
            _ => false,
        };
        let sets_default = match &insert.on {
            Some(OnInsert::OnConflict(conflict)) => match &conflict.action {
                OnConflictAction::DoUpdate(update) => {
                    update.assignments.iter().any(|assignment| is_default(&assignment.value))
                }
                OnConflictAction::DoNothing => false,
            },
            _ => false,
        };
        !has_default
            && !sets_default
            && self.missing(&self.listed(&insert.columns, width(source))).next().is_none()
    }

    /// The columns that get values; all those of the first `width` where none are named.
    fn listed(&self, named: &[ObjectName], width: Option<usize>) -> Vec<String> {
        if named.is_empty() {
            let width = width.unwrap_or(self.columns.len());
            return self.columns.iter().take(width).map(|(name, _)| name.clone()).collect();
        }
        named.iter().map(last_part).collect()
    }

    /// Columns with a default that are not listed.
    fn missing<'a>(&'a self, listed: &'a [String]) -> impl Iterator<Item = (&'a str, &'a str)> {
        let columns = self.columns.iter().filter(|(name, _)| !listed.contains(name));
        columns.filter_map(|(name, default)| Some((name.as_str(), default.as_deref()?)))
    }

    fn insert(&self, insert: &mut Insert) -> Result<()> {
        if let Some(OnInsert::OnConflict(conflict)) = &mut insert.on
            && let OnConflictAction::DoUpdate(update) = &mut conflict.action
        {
            self.assign(&mut update.assignments)?;
        }
        let Some(source) = &mut insert.source else {
            // DEFAULT VALUES: a row that names the first column, and leaves the others out.
            let Some((first, _)) = self.columns.first() else { return Ok(()) };
            insert.columns = vec![object_name(first)];
            let mut query = query_of("VALUES (DEFAULT)")?;
            if let SetExpr::Values(values) = query.body.as_mut() {
                values.value_keyword = false;
            }
            insert.source = Some(Box::new(query));
            return self.insert(insert);
        };
        let mut listed = self.listed(&insert.columns, width(source));
        let is_plain =
            source.with.is_none() && source.order_by.is_none() && source.limit_clause.is_none();
        match source.body.as_mut() {
            SetExpr::Values(values) if is_plain => self.values(values, &mut listed)?,
            _ => self.query(source, &mut listed)?,
        }
        if listed.len() > insert.columns.len() {
            insert.columns = listed.iter().map(|name| object_name(name)).collect();
        }
        Ok(())
    }

    fn merge_insert(&self, insert: &mut MergeInsertExpr) -> Result<()> {
        let MergeInsertKind::Values(values) = &mut insert.kind else { return Ok(()) };
        let width = values.rows.first().map(|row| row.content.len());
        let mut listed = self.listed(&insert.columns, width);
        let before = listed.len();
        self.values(values, &mut listed)?;
        if listed.len() > before {
            insert.columns = listed.iter().map(|name| object_name(name)).collect();
        }
        Ok(())
    }

    /// Puts defaults into rows, and adds those of the columns that are not listed.
    fn values(&self, values: &mut Values, listed: &mut Vec<String>) -> Result<()> {
        let width = listed.len();
        if values.rows.iter().any(|row| row.content.len() != width) {
            // The planner says so.
            return Ok(());
        }
        let added: Vec<(String, Expr)> = self
            .missing(listed)
            .map(|(name, text)| Ok((name.to_owned(), expr_of(text)?)))
            .collect::<Result<_>>()?;
        for Parens { content: row, .. } in &mut values.rows {
            for (place, value) in row.iter_mut().enumerate().filter(|(_, value)| is_default(value))
            {
                *value = self.default_of(&listed[place])?;
            }
            row.extend(added.iter().map(|(_, expr)| expr.clone()));
        }
        listed.extend(added.into_iter().map(|(name, _)| name));
        Ok(())
    }

    /// Adds the defaults of the columns that are not listed to the rows of a query.
    fn query(&self, source: &mut Query, listed: &mut Vec<String>) -> Result<()> {
        let added: Vec<(String, Expr)> = self
            .missing(listed)
            .map(|(name, text)| Ok((name.to_owned(), expr_of(text)?)))
            .collect::<Result<_>>()?;
        if added.is_empty() {
            return Ok(());
        }
        let mut outer = query_of(&format!("SELECT \"{ROWS}\".* FROM (SELECT 1) AS \"{ROWS}\""))?;
        let unreadable = || Error::internal("a query around the rows of an INSERT is not read");
        let SetExpr::Select(select) = outer.body.as_mut() else { return Err(unreadable()) };
        let from = select.from.first_mut().ok_or_else(unreadable)?;
        let TableFactor::Derived { subquery, .. } = &mut from.relation else {
            return Err(unreadable());
        };
        std::mem::swap(subquery.as_mut(), source);
        for (name, expr) in added {
            let alias = Ident::with_quote('"', name.clone());
            select.projection.push(SelectItem::ExprWithAlias { expr, alias });
            listed.push(name);
        }
        *source = outer;
        Ok(())
    }

    fn assign(&self, assignments: &mut [Assignment]) -> Result<()> {
        for assignment in assignments.iter_mut().filter(|one| is_default(&one.value)) {
            if let AssignmentTarget::ColumnName(name) = &assignment.target {
                assignment.value = self.default_of(&last_part(name))?;
            }
        }
        Ok(())
    }

    /// The default of a column; NULL where it has none.
    fn default_of(&self, column: &str) -> Result<Expr> {
        let known = self.columns.iter().find(|(name, _)| name == column);
        match known.and_then(|(_, default)| default.as_deref()) {
            Some(text) => expr_of(text),
            None => Ok(Expr::Value(Value::Null.into())),
        }
    }
}

/// How many values the rows of VALUES have; `None` for other queries.
fn width(source: &Query) -> Option<usize> {
    match source.body.as_ref() {
        SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        _ => None,
    }
}

/// Whether a value is the keyword.
fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none()
        && ident.value.eq_ignore_ascii_case("default"))
}

fn last_part(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(normalise).unwrap_or_default()
}

fn object_name(column: &str) -> ObjectName {
    ObjectName::from(vec![Ident::with_quote('"', column)])
}

/// The expression of a text, as it would mean in a query.
///
/// # Errors
/// `Internal` where it is none.
fn expr_of(text: &str) -> Result<Expr> {
    let unreadable = || Error::internal(format!("the default {text:?} of a column is not read"));
    let kind = crate::parse_plan(&format!("SELECT {text}"), |_| Ok(None))?;
    let StatementKind::Plan(statement) = kind else { return Err(unreadable()) };
    let EngineStatement::Statement(statement) = *statement else { return Err(unreadable()) };
    let Statement::Query(query) = *statement else { return Err(unreadable()) };
    let SetExpr::Select(mut select) = *query.body else { return Err(unreadable()) };
    match (select.projection.pop(), select.projection.is_empty()) {
        (Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }), true) => {
            // As one operand, whatever stands around it.
            Ok(Expr::Nested(Box::new(expr)))
        }
        _ => Err(unreadable()),
    }
}

fn query_of(text: &str) -> Result<Query> {
    reread::query(text).map_err(|e| Error::internal("a query is not read").with_source(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(sql: &str, columns: &[(&str, Option<&str>)]) -> String {
        let StatementKind::Plan(statement) = crate::parse_plan(sql, |_| Ok(None)).unwrap() else {
            panic!("{sql}")
        };
        let columns: Vec<Column> = columns
            .iter()
            .map(|(name, text)| ((*name).to_owned(), text.map(str::to_owned)))
            .collect();
        fill(&statement, &columns).unwrap().map_or("-".to_owned(), |filled| filled.to_string())
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let table = [("a", None), ("b", Some("1 + 1")), ("c", None)];
        let check = |sql: &str, expected: &str| assert_eq!(filled(sql, &table), expected, "{sql}");
        check(
            "INSERT INTO t (a) VALUES (1), (2)",
            "INSERT INTO t (\"a\", \"b\") VALUES (1, (1 + 1)), (2, (1 + 1))",
        );
        check("INSERT INTO t VALUES (1)", "INSERT INTO t (\"a\", \"b\") VALUES (1, (1 + 1))");
        check(
            "INSERT INTO t VALUES (1, DEFAULT, DEFAULT)",
            "INSERT INTO t (\"a\", \"b\", \"c\") VALUES (1, (1 + 1), NULL)",
        );
        check(
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO t (\"a\", \"b\") VALUES (NULL, (1 + 1))",
        );
        check("UPDATE t SET b = DEFAULT, a = DEFAULT", "UPDATE t SET b = (1 + 1), a = NULL");
        check(
            "INSERT INTO t (c) SELECT x FROM u",
            "INSERT INTO t (\"c\", \"b\") SELECT \"\u{2063}rows\".*, (1 + 1) AS \"b\" FROM (SELECT x FROM u) AS \"\u{2063}rows\"",
        );
        for sql in [
            "INSERT INTO t VALUES (1, 2, 3)",
            "INSERT INTO t (b) VALUES (1)",
            "INSERT INTO t (b, a) VALUES (1)",
            "INSERT INTO t SELECT * FROM u",
            "UPDATE t SET b = 1",
            "SELECT 1",
        ] {
            check(sql, "-");
        }
    }
}
