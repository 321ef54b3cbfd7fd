//! WHERE.
//!
//! ```text
//! conditions = group (AND group)*  |  condition (OR condition)*
//! group      = condition  |  '(' condition (OR condition)* ')'
//! ```
//! AND and OR side by side, without parentheses, mean different things to different readers and
//! are refused.

use super::super::ast::{
    CellExpr, ColumnCondition, Conditions, Interval, KeyCondition, Limit, ValueTest,
};
use super::super::cursor::{Cursor, Token};
use super::select::column;
use super::{Result, set_once};

/// One condition, or several of a kind of which one must hold.
enum Condition {
    Rows(Vec<Interval<String>>),
    Cells(Vec<Interval<CellExpr>>),
    RowRegexp(String),
    Time(Interval<String>),
    ValueRegexp(String),
    Columns(Vec<ColumnCondition>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Prefix,
    Matches,
}

pub(super) fn conditions(cursor: &mut Cursor<'_>) -> Result<Conditions> {
    let mut conditions = Conditions::default();
    let first = alternatives(cursor)?;
    let followed_by_or = cursor.at_word("OR");
    let first = or(cursor, first)?;
    take(cursor, first, &mut conditions)?;
    while cursor.at_word("AND") {
        if followed_by_or {
            return Err(mixed(cursor));
        }
        cursor.advance();
        let next = alternatives(cursor)?;
        if cursor.at_word("OR") {
            return Err(mixed(cursor));
        }
        take(cursor, next, &mut conditions)?;
    }
    Ok(conditions)
}

/// A condition, or several in parentheses.
fn alternatives(cursor: &mut Cursor<'_>) -> Result<Condition> {
    if !cursor.accept_symbol("(") {
        return condition(cursor);
    }
    let first = condition(cursor)?;
    let all = or(cursor, first)?;
    if cursor.at_word("AND") {
        return Err(mixed(cursor));
    }
    cursor.expect_symbol(")")?;
    Ok(all)
}

/// The conditions that follow `first` with OR, which must be of its kind.
fn or(cursor: &mut Cursor<'_>, first: Condition) -> Result<Condition> {
    let mut all = first;
    while cursor.at_word("OR") {
        cursor.advance();
        let next = alternatives(cursor)?;
        match (&mut all, next) {
            (Condition::Rows(all), Condition::Rows(next)) => all.extend(next),
            (Condition::Cells(all), Condition::Cells(next)) => all.extend(next),
            (Condition::Columns(all), Condition::Columns(next)) => all.extend(next),
            _ => {
                let text = "OR joins rows, or cells, or conditions on columns".to_owned();
                let hint = "use two SELECT statements".to_owned();
                return Err(cursor.error(text, Some(hint)));
            }
        }
    }
    Ok(all)
}

fn mixed(cursor: &Cursor<'_>) -> super::ParseError {
    let hint = "put the conditions joined by OR in parentheses".to_owned();
    cursor.error("AND and OR stand side by side".to_owned(), Some(hint))
}

fn take(cursor: &Cursor<'_>, found: Condition, into: &mut Conditions) -> Result<()> {
    match found {
        Condition::Rows(rows) => into.keys.push(KeyCondition::Rows(rows)),
        Condition::Cells(cells) => into.keys.push(KeyCondition::Cells(cells)),
        Condition::RowRegexp(text) => set_once(&mut into.row_regexp, text, "ROW REGEXP", cursor)?,
        Condition::Time(time) => set_once(&mut into.time, time, "TIMESTAMP", cursor)?,
        Condition::ValueRegexp(text) => {
            set_once(&mut into.value_regexp, text, "VALUE REGEXP", cursor)?;
        }
        Condition::Columns(columns) => {
            let is_group = columns.len() > 1;
            if into.any_column || (is_group && !into.columns.is_empty()) {
                let text = "conditions on columns are joined by AND or by OR, not both".to_owned();
                return Err(cursor.error(text, Some("use two SELECT statements".to_owned())));
            }
            into.any_column = is_group;
            into.columns.extend(columns);
        }
    }
    Ok(())
}

fn condition(cursor: &mut Cursor<'_>) -> Result<Condition> {
    if cursor.at_word("ROW") {
        cursor.advance();
        if cursor.accept("REGEXP") {
            return cursor.regexp().map(Condition::RowRegexp);
        }
        return rows(cursor, None);
    }
    if cursor.at_word("VALUE") && cursor.second_is_word("REGEXP") {
        cursor.expect_all(&["VALUE", "REGEXP"])?;
        return cursor.regexp().map(Condition::ValueRegexp);
    }
    if cursor.accept("TIMESTAMP") {
        return time(cursor, None);
    }
    if cursor.accept("CELL") {
        return cells(cursor, None);
    }
    if cursor.peek_second() == Token::Symbol("(") {
        return call(cursor);
    }
    match cursor.peek() {
        Token::Quoted(_) | Token::Number(_) => after_literal(cursor),
        _ => on_column(cursor),
    }
}

/// A condition that starts with a key or a time, or with a family in quotes.
fn after_literal(cursor: &mut Cursor<'_>) -> Result<Condition> {
    let follows = cursor.peek_second();
    if follows == Token::Symbol(",") {
        let key = cell(cursor)?;
        let relation = relation(cursor)?;
        cursor.expect("CELL")?;
        return cells(cursor, Some((key, relation)));
    }
    let is_column = matches!(follows, Token::Symbol(":" | "=^" | "=~" | "="));
    if is_column && matches!(cursor.peek(), Token::Quoted(_)) {
        return on_column(cursor);
    }
    let key = cursor.literal("a row, a timestamp or a column")?;
    let relation = relation(cursor)?;
    match () {
        () if cursor.accept("ROW") => rows(cursor, Some((key, relation))),
        () if cursor.accept("TIMESTAMP") => time(cursor, Some((key, relation))),
        () => Err(cursor.expected_one_of("ROW or TIMESTAMP", &["ROW", "TIMESTAMP"])),
    }
}

fn rows(cursor: &mut Cursor<'_>, left: Option<Side<String>>) -> Result<Condition> {
    let right = right_side(cursor, &left, |cursor| cursor.literal("a row"))?;
    Ok(Condition::Rows(vec![interval(cursor, left, right)?]))
}

fn time(cursor: &mut Cursor<'_>, left: Option<Side<String>>) -> Result<Condition> {
    let right = right_side(cursor, &left, |cursor| cursor.literal("a timestamp"))?;
    match interval(cursor, left, right)? {
        Interval::Prefix(_) => Err(cursor.error("a TIMESTAMP has no prefix".to_owned(), None)),
        interval => Ok(Condition::Time(interval)),
    }
}

fn cells(cursor: &mut Cursor<'_>, left: Option<Side<CellExpr>>) -> Result<Condition> {
    let right = right_side(cursor, &left, cell)?;
    Ok(Condition::Cells(vec![interval(cursor, left, right)?]))
}

/// A key and how it stands to what is asked for.
type Side<K> = (K, Relation);

/// What stands behind `ROW` and the like; nothing may, if something stands before it.
fn right_side<K>(
    cursor: &mut Cursor<'_>,
    left: &Option<Side<K>>,
    key: impl Fn(&mut Cursor<'_>) -> Result<K>,
) -> Result<Option<Side<K>>> {
    let at_relation = matches!(cursor.peek(), Token::Symbol("=" | "<" | "<=" | ">" | ">=" | "=^"));
    if left.is_some() && !at_relation {
        return Ok(None);
    }
    let relation = relation(cursor)?;
    Ok(Some((key(cursor)?, relation)))
}

fn cell(cursor: &mut Cursor<'_>) -> Result<CellExpr> {
    let row = cursor.literal("a row")?;
    cursor.expect_symbol(",")?;
    Ok(CellExpr { row, column: cursor.literal("a column")? })
}

fn interval<K>(
    cursor: &Cursor<'_>,
    left: Option<Side<K>>,
    right: Option<Side<K>>,
) -> Result<Interval<K>> {
    let wrong = || {
        let hint = "write X = k, X =^ k, or k < X < k with < or <=".to_owned();
        cursor.error("these relations make no interval".to_owned(), Some(hint))
    };
    // `k < X` says of X what `X > k` does.
    let left = left.map(|(key, relation)| (key, mirrored(relation)));
    let is_alone = left.is_none() || right.is_none();
    let (mut start, mut end) = (None, None);
    for (key, relation) in left.into_iter().chain(right) {
        let (slot, inclusive) = match relation {
            Relation::Equal if is_alone => return Ok(Interval::Equal(key)),
            Relation::Prefix if is_alone => return Ok(Interval::Prefix(key)),
            Relation::Greater => (&mut start, false),
            Relation::GreaterOrEqual => (&mut start, true),
            Relation::Less => (&mut end, false),
            Relation::LessOrEqual => (&mut end, true),
            _ => return Err(wrong()),
        };
        if slot.replace(Limit { key, inclusive }).is_some() {
            return Err(wrong());
        }
    }
    Ok(Interval::Between { start, end })
}

fn mirrored(relation: Relation) -> Relation {
    match relation {
        Relation::Less => Relation::Greater,
        Relation::LessOrEqual => Relation::GreaterOrEqual,
        Relation::Greater => Relation::Less,
        Relation::GreaterOrEqual => Relation::LessOrEqual,
        same => same,
    }
}

fn relation(cursor: &mut Cursor<'_>) -> Result<Relation> {
    let relation = match cursor.peek() {
        Token::Symbol("=") => Relation::Equal,
        Token::Symbol("<") => Relation::Less,
        Token::Symbol("<=") => Relation::LessOrEqual,
        Token::Symbol(">") => Relation::Greater,
        Token::Symbol(">=") => Relation::GreaterOrEqual,
        Token::Symbol("=^") => Relation::Prefix,
        Token::Symbol("=~") => Relation::Matches,
        _ => return Err(cursor.expected("=, <, <=, >, >= or =^")),
    };
    cursor.advance();
    if relation == Relation::Equal && cursor.accept_symbol("^") {
        return Ok(Relation::Prefix);
    }
    Ok(relation)
}

/// `REGEXP(cf, 're')` and `EXISTS(cf)`.
fn call(cursor: &mut Cursor<'_>) -> Result<Condition> {
    let is_regexp = cursor.at_word("REGEXP");
    if !is_regexp && !cursor.at_word("EXISTS") {
        return Err(cursor.expected_one_of("REGEXP or EXISTS", &["REGEXP", "EXISTS"]));
    }
    cursor.advance();
    cursor.expect_symbol("(")?;
    let column = column(cursor)?;
    let mut test = ValueTest::Exists;
    if is_regexp {
        cursor.expect_symbol(",")?;
        test = ValueTest::Regexp(cursor.regexp()?);
    }
    cursor.expect_symbol(")")?;
    Ok(Condition::Columns(vec![ColumnCondition { column, test }]))
}

fn on_column(cursor: &mut Cursor<'_>) -> Result<Condition> {
    const WORDS: [&str; 6] = ["ROW", "CELL", "TIMESTAMP", "VALUE", "REGEXP", "EXISTS"];
    if !matches!(cursor.peek(), Token::Word(_) | Token::Quoted(_)) {
        return Err(cursor.expected_one_of("a condition", &WORDS));
    }
    let column = column(cursor)?;
    let test = match relation(cursor)? {
        Relation::Equal => ValueTest::Equal(cursor.literal("a value")?),
        Relation::Prefix => ValueTest::Prefix(cursor.literal("a value")?),
        Relation::Matches => ValueTest::Regexp(cursor.regexp()?),
        _ => {
            let hint = "a column can be compared with =, =^ and =~".to_owned();
            let text = "values have no order in HQL".to_owned();
            return Err(cursor.error(text, Some(hint)));
        }
    };
    Ok(Condition::Columns(vec![ColumnCondition { column, test }]))
}
