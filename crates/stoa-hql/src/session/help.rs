//! What HELP prints.

/// The statements, and what each is for.
const TOPICS: [(&str, &str, &str); 25] = [
    (
        "ALTER TABLE",
        "changes column families, access groups and indices",
        "ALTER TABLE name (ADD (definition, …) | MODIFY (definition, …) | DROP (family, …)\n\
      \x20 | DROP [VALUE] INDEX (family, …) | DROP QUALIFIER INDEX (family, …)\n\
      \x20 | RENAME COLUMN FAMILY (old, new))+\n\
      ALTER TABLE name WITH 'schema.xml'",
    ),
    (
        "COMPACT",
        "merges the files of a table",
        "COMPACT [TYPE=MINOR|MAJOR|MERGING|GC] TABLE name ['row']\n\
      COMPACT [TYPE=…] RANGES ALL|ROOT|METADATA|SYSTEM|USER",
    ),
    ("CREATE NAMESPACE", "creates a namespace", "CREATE NAMESPACE name [IF NOT EXISTS]"),
    (
        "CREATE TABLE",
        "creates a table",
        "CREATE TABLE name (definition, …) option*\n\
      CREATE TABLE name LIKE other | WITH 'schema.xml'\n\
      \x20 definition: family [MAX_VERSIONS n] [TTL duration] [TIME_ORDER ASC|DESC] [COUNTER]\n\
      \x20   | INDEX family | QUALIFIER INDEX family | ACCESS GROUP name (family, …) option*",
    ),
    (
        "DELETE",
        "deletes cells of a row",
        "DELETE * | column, … FROM table WHERE ROW = 'row' [TIMESTAMP t | VERSION t]",
    ),
    ("DESCRIBE TABLE", "prints the schema as XML", "DESCRIBE TABLE [WITH IDS] name"),
    ("DROP NAMESPACE", "drops an empty namespace", "DROP NAMESPACE [IF EXISTS] name"),
    ("DROP TABLE", "drops a table with its cells", "DROP TABLE [IF EXISTS] name"),
    (
        "DUMP TABLE",
        "prints cells with timestamps, to be loaded again",
        "DUMP TABLE name [COLUMNS column, …] [WHERE condition AND …]\n\
      \x20 [MAX_VERSIONS n] [INTO FILE 'f[.gz]'] [NO_TIMESTAMPS] [NO_ESCAPE] [FS='c'] [BUCKETS n]",
    ),
    ("EXISTS TABLE", "prints whether a table exists", "EXISTS TABLE name"),
    ("GET LISTING", "lists the tables and namespaces here", "GET LISTING"),
    ("HELP", "prints this", "HELP [statement]"),
    (
        "INSERT",
        "writes cells",
        "INSERT INTO table VALUES ([timestamp,] row, 'family[:qualifier]', value), …\n\
      \x20 row and value may be GUID()",
    ),
    (
        "LOAD DATA INFILE",
        "loads a file",
        "LOAD DATA INFILE option* 'file[.gz]' INTO TABLE name | INTO FILE 'file'\n\
      \x20 option: ROW_KEY_COLUMN=a+b | TIMESTAMP_COLUMN=c | HEADER_FILE='f' | FS='c'\n\
      \x20   | ROW_UNIQUIFY_CHARS=n | DUP_KEY_COLS | IGNORE_UNKNOWN_COLUMNS\n\
      \x20   | SINGLE_CELL_FORMAT | NO_ESCAPE | NO_LOG",
    ),
    (
        "REBUILD INDICES",
        "accepted; results never depend on indices",
        "REBUILD [VALUE|QUALIFIER] INDICES table",
    ),
    ("RENAME TABLE", "gives a table another name", "RENAME TABLE name TO other"),
    (
        "SELECT",
        "prints cells",
        "SELECT [CELLS] * | column, … FROM table [WHERE condition AND …] option*\n\
      \x20 column: family | family:qualifier | family:^prefix | family:/regexp/ | family:*\n\
      \x20 condition: [k <] ROW < k | ROW =^ p | ROW REGEXP 're' | [r,c <] CELL < r,c\n\
      \x20   | [t <] TIMESTAMP < t | VALUE REGEXP 're' | column = v | column =^ p\n\
      \x20   | column =~ /re/ | EXISTS(column) | (condition OR condition …)\n\
      \x20 option: MAX_VERSIONS n | LIMIT n | OFFSET n | CELL_LIMIT n | CELL_OFFSET n\n\
      \x20   | CELL_LIMIT_PER_FAMILY n | INTO FILE 'f[.gz]' | FS='c' | DISPLAY_TIMESTAMPS\n\
      \x20   | DISPLAY_REVISIONS | KEYS_ONLY | NO_ESCAPE | RETURN_DELETES\n\
      \x20   | SCAN_AND_FILTER_ROWS | NO_CACHE",
    ),
    ("SET", "refuses writes, or allows them again", "SET READONLY=true|false"),
    ("SHOW CREATE TABLE", "prints the statement that creates a table", "SHOW CREATE TABLE name"),
    ("SHOW TABLES", "lists the tables here", "SHOW TABLES"),
    ("STATUS", "prints whether the store responds", "STATUS"),
    ("USE", "opens another namespace", "USE name"),
    ("WAIT FOR MAINTENANCE", "waits until compactions are done", "WAIT FOR MAINTENANCE"),
    ("CLOSE", "accepted; there is nothing to close", "CLOSE"),
    (
        "SHELL",
        "commands of the shell",
        "quit | \\q, exit [code], help | ? | \\h, print | \\p (the statement so far),\n\
      clear | \\c (discard it), source FILE | . FILE, system COMMAND | \\! COMMAND, pause SECONDS",
    ),
];

/// The text about a statement; about all of them if the topic is empty or not known.
pub(crate) fn text(topic: &str) -> String {
    let topic = topic.trim().trim_end_matches(';').to_ascii_uppercase();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let topic = words(&topic);
    let found: Vec<_> = TOPICS
        .iter()
        .filter(|(name, ..)| !topic.is_empty() && (*name == topic || starts_with(name, &topic)))
        .collect();
    if found.is_empty() {
        let line = |(name, what, _): &(&str, &str, &str)| format!("{name:.<24} {what}\n");
        let lines: String = TOPICS.iter().map(line).collect();
        return format!("\nStatements end with ';'. HELP statement describes one.\n\n{lines}\n");
    }
    let entry =
        |(name, what, grammar): &&(&str, &str, &str)| format!("\n{name} {what}\n\n{grammar}\n");
    let entries: String = found.iter().map(entry).collect();
    format!("{entries}\n")
}

/// Whether the first words of `name` are `topic`.
fn starts_with(name: &str, topic: &str) -> bool {
    name.strip_prefix(topic).is_some_and(|rest| rest.starts_with(' '))
}
