//! Recursive descent, one function per rule of the grammar.

mod admin;
mod conditions;
mod load;
mod select;
mod table;
mod write;

use super::ParseError;
use super::ast::{ClusterCommand, Statement};
use super::cursor::{Cursor, Token};

type Result<T> = std::result::Result<T, ParseError>;

/// The words a statement can start with.
const VERBS: [&str; 26] = [
    "ALTER",
    "BALANCE",
    "CLOSE",
    "COMPACT",
    "CREATE",
    "DELETE",
    "DESCRIBE",
    "DROP",
    "DUMP",
    "EXISTS",
    "GET",
    "HEAPCHECK",
    "HELP",
    "INSERT",
    "LOAD",
    "QUIT",
    "REBUILD",
    "RENAME",
    "SELECT",
    "SET",
    "SHOW",
    "SHUTDOWN",
    "STATUS",
    "STOP",
    "USE",
    "WAIT",
];

/// Parses one statement, with or without its semicolon.
///
/// # Errors
/// Where the text stops being a statement, and what was expected there.
pub fn parse(text: &str) -> std::result::Result<Statement, ParseError> {
    let mut cursor = Cursor::new(text);
    let statement = statement(&mut cursor)?;
    cursor.finish()?;
    Ok(statement)
}

fn statement(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let verb = match cursor.peek() {
        Token::Word(word) => word.to_ascii_uppercase(),
        Token::Symbol("?") => "HELP".to_owned(),
        _ => return Err(cursor.expected("a statement")),
    };
    let unknown = cursor.expected_one_of("a statement", &VERBS);
    cursor.advance();
    match verb.as_str() {
        "USE" => Ok(Statement::Use(cursor.name("a namespace")?)),
        "CREATE" => table::create(cursor),
        "ALTER" => table::alter(cursor),
        "DROP" => admin::drop(cursor),
        "RENAME" => admin::rename(cursor),
        "EXISTS" => {
            cursor.expect("TABLE")?;
            Ok(Statement::ExistsTable(cursor.name("a table")?))
        }
        "DESCRIBE" => admin::describe(cursor),
        "SHOW" => admin::show(cursor),
        "GET" => cursor.expect("LISTING").map(|()| Statement::GetListing),
        "INSERT" => write::insert(cursor),
        "DELETE" => write::delete(cursor),
        "SELECT" => select::select(cursor),
        "LOAD" => load::load(cursor),
        "DUMP" => select::dump(cursor),
        "COMPACT" => admin::compact(cursor),
        "REBUILD" => admin::rebuild(cursor),
        "SET" => admin::set(cursor),
        "STATUS" => Ok(Statement::Status),
        "WAIT" => {
            cursor.expect_all(&["FOR", "MAINTENANCE"]).map(|()| Statement::WaitForMaintenance)
        }
        "CLOSE" => Ok(Statement::Close),
        "HELP" => Ok(Statement::Help(cursor.take_rest().to_owned())),
        "BALANCE" => Ok(cluster(ClusterCommand::Balance, cursor)),
        "STOP" => Ok(cluster(ClusterCommand::Stop, cursor)),
        "SHUTDOWN" => Ok(cluster(ClusterCommand::Shutdown, cursor)),
        "HEAPCHECK" => Ok(cluster(ClusterCommand::Heapcheck, cursor)),
        "UPDATE" => Err(ParseError {
            hint: Some("INSERT a cell again to write a newer version".to_owned()),
            ..unknown
        }),
        _ => Err(unknown),
    }
}

fn cluster(command: ClusterCommand, cursor: &mut Cursor<'_>) -> Statement {
    Statement::Cluster { command, arguments: cursor.take_rest().to_owned() }
}

/// Sets an option that may be given once.
fn set_once<T>(slot: &mut Option<T>, value: T, what: &str, cursor: &Cursor<'_>) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(cursor.error(format!("{what} is given twice"), None)),
    }
}

/// `( a, b, … )`, where the last comma may be followed by nothing.
fn list<T>(
    cursor: &mut Cursor<'_>,
    mut item: impl FnMut(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    cursor.expect_symbol("(")?;
    let mut items = Vec::new();
    while !cursor.accept_symbol(")") {
        items.push(item(cursor)?);
        if !cursor.accept_symbol(",") {
            cursor.expect_symbol(")")?;
            break;
        }
    }
    Ok(items)
}

/// `FS='c'`: one byte, or `\t`.
fn field_separator(cursor: &mut Cursor<'_>) -> Result<u8> {
    cursor.skip_equals();
    let wrong = cursor.error(
        "a field separator is one ASCII character".to_owned(),
        Some("for instance FS=',' or FS='\\t'".to_owned()),
    );
    let text = cursor.literal("a field separator")?;
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, 0 | b'\n' | b'\r' | b'\\') => Ok(*byte),
        _ => Err(wrong),
    }
}
