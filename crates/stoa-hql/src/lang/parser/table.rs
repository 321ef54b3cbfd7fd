//! CREATE and ALTER.

use super::super::ast::{Statement, TableChange, TableSource};
use super::super::cursor::{Cursor, Token};
use super::{Result, list, set_once};
use crate::schema::{
    AlterAction, FamilyDefinition, FamilyOptions, GroupDefinition, GroupOptions, IndexDefinition,
    TableDefinitions, TableOptions, TimeOrder,
};

const CODECS: [&str; 6] = ["bmz", "lzo", "quicklz", "snappy", "zlib", "none"];
const FILTERS: [&str; 3] = ["rows", "rows+cols", "none"];
const OPTIONS: [&str; 10] = [
    "MAX_VERSIONS",
    "TTL",
    "TIME_ORDER",
    "COUNTER",
    "REPLICATION",
    "BLOCKSIZE",
    "COMPRESSOR",
    "BLOOMFILTER",
    "IN_MEMORY",
    "GROUP_COMMIT_INTERVAL",
];

pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept_any(&["NAMESPACE", "DATABASE"]) {
        return create_namespace(cursor);
    }
    if !cursor.accept("TABLE") {
        return Err(cursor.expected_one_of("TABLE or NAMESPACE", &["TABLE", "NAMESPACE"]));
    }
    let name = cursor.name("a table")?;
    let source = match () {
        () if cursor.accept("LIKE") => TableSource::Like(cursor.name("a table")?),
        () if cursor.accept("WITH") => TableSource::SchemaFile(cursor.literal("a file")?),
        () => {
            let definitions = definitions(cursor)?;
            TableSource::Definitions(definitions, table_options(cursor)?)
        }
    };
    Ok(Statement::CreateTable { name, source })
}

fn create_namespace(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let mut if_not_exists = accept_if_not_exists(cursor)?;
    let name = cursor.name("a namespace")?;
    if_not_exists |= accept_if_not_exists(cursor)?;
    Ok(Statement::CreateNamespace { name, if_not_exists })
}

fn accept_if_not_exists(cursor: &mut Cursor<'_>) -> Result<bool> {
    let found = cursor.at_word("IF") && cursor.second_is_word("NOT");
    if found {
        cursor.expect_all(&["IF", "NOT", "EXISTS"])?;
    }
    Ok(found)
}

pub(super) fn alter(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("TABLE")?;
    let name = cursor.name("a table")?;
    if cursor.accept("WITH") {
        let change = TableChange::SchemaFile(cursor.literal("a file")?);
        return Ok(Statement::AlterTable { name, change });
    }
    let mut actions = vec![alter_action(cursor)?];
    while matches!(cursor.peek(), Token::Word(_)) {
        actions.push(alter_action(cursor)?);
    }
    Ok(Statement::AlterTable { name, change: TableChange::Actions(actions) })
}

fn alter_action(cursor: &mut Cursor<'_>) -> Result<AlterAction> {
    const ACTIONS: [&str; 4] = ["ADD", "MODIFY", "DROP", "RENAME"];
    match () {
        () if cursor.accept("ADD") => Ok(AlterAction::Add(definitions(cursor)?)),
        () if cursor.accept("MODIFY") => Ok(AlterAction::Modify(definitions(cursor)?)),
        () if cursor.accept("DROP") => alter_drop(cursor),
        () if cursor.accept("RENAME") => alter_rename(cursor),
        () => Err(cursor.expected_one_of("ADD, MODIFY, DROP or RENAME COLUMN FAMILY", &ACTIONS)),
    }
}

fn alter_drop(cursor: &mut Cursor<'_>) -> Result<AlterAction> {
    let families = |cursor: &mut Cursor<'_>| list(cursor, |c| c.name("a column family"));
    if cursor.accept("QUALIFIER") {
        cursor.expect("INDEX")?;
        return Ok(AlterAction::DropQualifierIndex(families(cursor)?));
    }
    if cursor.accept("VALUE") {
        cursor.expect("INDEX")?;
        return Ok(AlterAction::DropValueIndex(families(cursor)?));
    }
    if cursor.accept("INDEX") {
        return Ok(AlterAction::DropValueIndex(families(cursor)?));
    }
    Ok(AlterAction::DropFamilies(families(cursor)?))
}

fn alter_rename(cursor: &mut Cursor<'_>) -> Result<AlterAction> {
    cursor.expect_all(&["COLUMN", "FAMILY"])?;
    cursor.expect_symbol("(")?;
    let from = cursor.name("a column family")?;
    cursor.expect_symbol(",")?;
    let to = cursor.name("a new name")?;
    cursor.expect_symbol(")")?;
    Ok(AlterAction::RenameFamily { from, to })
}

fn definitions(cursor: &mut Cursor<'_>) -> Result<TableDefinitions> {
    let mut definitions = TableDefinitions::default();
    list(cursor, |cursor| definition(cursor, &mut definitions))?;
    Ok(definitions)
}

fn definition(cursor: &mut Cursor<'_>, definitions: &mut TableDefinitions) -> Result<()> {
    let names_follow = matches!(cursor.peek_second(), Token::Word(_) | Token::Quoted(_));
    if cursor.at_word("INDEX") && names_follow {
        cursor.advance();
        let family = cursor.name("a column family")?;
        definitions.indices.push(IndexDefinition { family, of_qualifiers: false });
        return Ok(());
    }
    if cursor.at_word("QUALIFIER") && cursor.second_is_word("INDEX") {
        cursor.expect_all(&["QUALIFIER", "INDEX"])?;
        let family = cursor.name("a column family")?;
        definitions.indices.push(IndexDefinition { family, of_qualifiers: true });
        return Ok(());
    }
    if cursor.at_word("ACCESS") && cursor.second_is_word("GROUP") {
        definitions.groups.push(group(cursor)?);
        return Ok(());
    }
    let name = cursor.name("a column family, INDEX, QUALIFIER INDEX or ACCESS GROUP")?;
    let mut options = FamilyOptions::default();
    while family_option(cursor, &mut options)? {}
    if matches!(cursor.peek(), Token::Word(_)) {
        return Err(cursor.expected_one_of("an option, \",\" or \")\"", &OPTIONS));
    }
    definitions.families.push(FamilyDefinition { name, options });
    Ok(())
}

/// Options may stand before the families, as in 2008, and behind them (reference §1.1).
fn group(cursor: &mut Cursor<'_>) -> Result<GroupDefinition> {
    cursor.expect_all(&["ACCESS", "GROUP"])?;
    let mut group = GroupDefinition {
        name: cursor.name("an access group")?,
        families: Vec::new(),
        options: GroupOptions::default(),
        family_defaults: FamilyOptions::default(),
    };
    loop {
        if cursor.at_symbol("(") {
            group.families.extend(list(cursor, |c| c.name("a column family"))?);
            continue;
        }
        let known = group_option(cursor, &mut group.options)?
            || family_option(cursor, &mut group.family_defaults)?;
        if known {
            continue;
        }
        if matches!(cursor.peek(), Token::Word(_)) {
            return Err(cursor.expected_one_of("an option, \",\" or \")\"", &OPTIONS));
        }
        return Ok(group);
    }
}

fn table_options(cursor: &mut Cursor<'_>) -> Result<TableOptions> {
    let mut options = TableOptions::default();
    loop {
        if cursor.accept("GROUP_COMMIT_INTERVAL") {
            cursor.skip_equals();
            let ms = cursor.number("milliseconds")?;
            let slot = &mut options.group_commit_interval_ms;
            set_once(slot, ms, "GROUP_COMMIT_INTERVAL", cursor)?;
            continue;
        }
        let known = group_option(cursor, &mut options.group)?
            || family_option(cursor, &mut options.family)?;
        if !known {
            break;
        }
    }
    match cursor.peek() {
        Token::Word(_) => Err(cursor.expected_one_of("a table option", &OPTIONS)),
        _ => Ok(options),
    }
}

fn family_option(cursor: &mut Cursor<'_>, options: &mut FamilyOptions) -> Result<bool> {
    if cursor.accept_any(&["MAX_VERSIONS", "MAX_REVISIONS", "REVS"]) {
        cursor.skip_equals();
        let versions = cursor.number("a number of versions")?;
        set_once(&mut options.max_versions, versions, "MAX_VERSIONS", cursor)?;
    } else if cursor.accept("TTL") {
        cursor.skip_equals();
        let seconds = duration_s(cursor)?;
        set_once(&mut options.ttl_s, seconds, "TTL", cursor)?;
    } else if cursor.accept("TIME_ORDER") {
        cursor.skip_equals();
        let order = match () {
            () if cursor.accept("ASC") => TimeOrder::NewestFirst,
            () if cursor.accept("DESC") => TimeOrder::OldestFirst,
            () => return Err(cursor.expected("ASC or DESC")),
        };
        set_once(&mut options.time_order, order, "TIME_ORDER", cursor)?;
    } else if cursor.accept("COUNTER") {
        cursor.skip_equals();
        let counter = cursor.boolean().unwrap_or(true);
        set_once(&mut options.counter, counter, "COUNTER", cursor)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// A number and its unit, seconds if there is none; months have 30 days.
fn duration_s(cursor: &mut Cursor<'_>) -> Result<u64> {
    const UNITS: [(&[&str], u64); 6] = [
        (&["MONTHS", "MONTH"], 30 * 86_400),
        (&["WEEKS", "WEEK"], 7 * 86_400),
        (&["DAYS", "DAY"], 86_400),
        (&["HOURS", "HOUR"], 3_600),
        (&["MINUTES", "MINUTE"], 60),
        (&["SECONDS", "SECOND"], 1),
    ];
    let number: u64 = cursor.number("a duration")?;
    let unit = UNITS.iter().find(|(words, _)| cursor.accept_any(words));
    let seconds = number.checked_mul(unit.map_or(1, |(_, seconds)| *seconds));
    seconds.ok_or_else(|| cursor.error("the duration is too long".to_owned(), None))
}

fn group_option(cursor: &mut Cursor<'_>, options: &mut GroupOptions) -> Result<bool> {
    if cursor.accept("REPLICATION") {
        cursor.skip_equals();
        let copies = cursor.number("a number of copies")?;
        set_once(&mut options.replication, copies, "REPLICATION", cursor)?;
    } else if cursor.accept("BLOCKSIZE") {
        cursor.skip_equals();
        let bytes = cursor.number("a number of bytes")?;
        set_once(&mut options.block_size, bytes, "BLOCKSIZE", cursor)?;
    } else if cursor.accept("COMPRESSOR") {
        let codec = specification(cursor, "a codec", &CODECS)?;
        set_once(&mut options.compressor, codec, "COMPRESSOR", cursor)?;
    } else if cursor.accept("BLOOMFILTER") {
        let filter = specification(cursor, "a Bloom filter", &FILTERS)?;
        set_once(&mut options.bloom_filter, filter, "BLOOMFILTER", cursor)?;
    } else if cursor.accept("IN_MEMORY") {
        cursor.skip_equals();
        let in_memory = cursor.boolean().unwrap_or(true);
        set_once(&mut options.in_memory, in_memory, "IN_MEMORY", cursor)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// A name of `known` and its options in quotes, or the name as a word.
fn specification(cursor: &mut Cursor<'_>, what: &str, known: &[&str]) -> Result<String> {
    cursor.skip_equals();
    let choice = known.join(", ");
    let wrong = cursor.error(format!("expected {what}: one of {choice}"), None);
    let text = cursor.name(what)?;
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_known = known.iter().any(|name| name.eq_ignore_ascii_case(first));
    if is_known && !text.contains(['"', '\n']) { Ok(text) } else { Err(wrong) }
}
