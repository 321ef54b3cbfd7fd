//! Small statements about namespaces and tables.

use super::super::ast::{Compact, CompactKind, CompactTarget, IndexSet, Statement};
use super::super::cursor::{Cursor, Token};
use super::Result;

pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let of_table = cursor.accept("TABLE");
    if !of_table && !cursor.accept_any(&["NAMESPACE", "DATABASE"]) {
        return Err(cursor.expected_one_of("TABLE or NAMESPACE", &["TABLE", "NAMESPACE"]));
    }
    let if_exists = cursor.at_word("IF") && cursor.second_is_word("EXISTS");
    if if_exists {
        cursor.expect_all(&["IF", "EXISTS"])?;
    }
    if of_table {
        return Ok(Statement::DropTable { name: cursor.name("a table")?, if_exists });
    }
    Ok(Statement::DropNamespace { name: cursor.name("a namespace")?, if_exists })
}

pub(super) fn rename(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("TABLE")?;
    let from = cursor.name("a table")?;
    cursor.expect("TO")?;
    Ok(Statement::RenameTable { from, to: cursor.name("a new name")? })
}

pub(super) fn describe(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("TABLE")?;
    let with_ids = cursor.at_word("WITH") && cursor.second_is_word("IDS");
    if with_ids {
        cursor.expect_all(&["WITH", "IDS"])?;
    }
    Ok(Statement::DescribeTable { name: cursor.name("a table")?, with_ids })
}

pub(super) fn show(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept("TABLES") {
        return Ok(Statement::ShowTables);
    }
    if !cursor.accept("CREATE") {
        return Err(cursor.expected_one_of("TABLES or CREATE TABLE", &["TABLES", "CREATE"]));
    }
    cursor.expect("TABLE")?;
    Ok(Statement::ShowCreateTable(cursor.name("a table")?))
}

pub(super) fn compact(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let mut kind = None;
    if cursor.accept("TYPE") {
        cursor.skip_equals();
        kind = Some(compact_kind(cursor)?);
    }
    if cursor.accept("TABLE") {
        let name = cursor.name("a table")?;
        let row = match cursor.peek() {
            Token::Quoted(_) | Token::Number(_) => Some(cursor.literal("a row")?),
            _ => None,
        };
        let target = CompactTarget::Table { name, row };
        return Ok(Statement::Compact(Compact { kind, target }));
    }
    if !cursor.accept("RANGES") {
        return Err(cursor.expected("TABLE or RANGES"));
    }
    let mut ranges = vec![range_kind(cursor)?];
    while cursor.accept_symbol("|") {
        ranges.push(range_kind(cursor)?);
    }
    Ok(Statement::Compact(Compact { kind, target: CompactTarget::Ranges(ranges) }))
}

fn compact_kind(cursor: &mut Cursor<'_>) -> Result<CompactKind> {
    const KINDS: [(&str, CompactKind); 4] = [
        ("MINOR", CompactKind::Minor),
        ("MAJOR", CompactKind::Major),
        ("MERGING", CompactKind::Merging),
        ("GC", CompactKind::Gc),
    ];
    let found = KINDS.iter().find(|(word, _)| cursor.accept(word));
    found.map(|(_, kind)| *kind).ok_or_else(|| cursor.expected("MINOR, MAJOR, MERGING or GC"))
}

fn range_kind(cursor: &mut Cursor<'_>) -> Result<String> {
    const KINDS: [&str; 5] = ["ALL", "ROOT", "METADATA", "SYSTEM", "USER"];
    let found = KINDS.iter().find(|word| cursor.accept(word));
    let missing = || cursor.expected_one_of("ALL, ROOT, METADATA, SYSTEM or USER", &KINDS);
    found.map(|kind| (*kind).to_owned()).ok_or_else(missing)
}

pub(super) fn rebuild(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let indices = match () {
        () if cursor.accept("VALUE") => IndexSet::Value,
        () if cursor.accept("QUALIFIER") => IndexSet::Qualifier,
        () => IndexSet::All,
    };
    cursor.expect("INDICES")?;
    Ok(Statement::RebuildIndices { table: cursor.name("a table")?, indices })
}

pub(super) fn set(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("READONLY")?;
    cursor.skip_equals();
    let on = cursor.boolean().ok_or_else(|| cursor.expected("true or false"))?;
    Ok(Statement::SetReadonly(on))
}
