//! What is told to those who may not read: neither values nor names, and by functions nothing but the
//! truth.

use std::net::{IpAddr, Ipv4Addr};

use crate::guarded::{Home, code, open, said, shown};
use stoa_query::{Outcome, Session};

/// A table with rows in a file, and one in another schema.
async fn home() -> Home {
    let home = Home::new(&["ann", "bob"]).await;
    home.run("CREATE SCHEMA vault").await;
    home.run("CREATE TABLE visits (account bigint, clicks int, cost decimal(9,2), note text COMMENT 'hush')")
        .await;
    home.run("INSERT INTO visits VALUES (1, 2, 3.25, 'a'), (2, 3, 4.25, 'b'), (3, 4, 5.25, 'c')")
        .await;
    home.run("FLUSH TABLE visits").await;
    home.run("CREATE TABLE vault.ledger (pin text)").await;
    home
}

/// Statements that list names without naming any.
const LISTS: [&str; 16] = [
    "SHOW TABLES",
    "SHOW TABLES FROM vault",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM information_schema.columns",
    "SELECT * FROM information_schema.views",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM pg_tables",
    "SELECT * FROM pg_attribute",
    "SELECT * FROM pg_description",
    "SELECT relname, attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid",
    "SELECT relname FROM pg_class WHERE has_table_privilege(oid, 'SELECT')",
    "SELECT * FROM system.tables",
    "SELECT * FROM system.ingest",
    "SELECT * FROM system.grants",
    "SELECT * FROM system.queries",
    "SELECT * FROM information_schema.schemata",
];

async fn lists(session: &Session) -> String {
    let mut all = String::new();
    for sql in LISTS {
        all.push_str(&said(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_for_those_who_have_a_right() {
    let home = home().await;
    let bob = home.session_of("bob");
    let seen = lists(&bob).await;
    for name in ["visits", "account", "clicks", "note", "hush", "ledger", "pin"] {
        // A column of PostgreSQL's own may have such a name within another.
        let alone = |c: char| !c.is_alphanumeric() && c != '_';
        assert!(!seen.split(alone).any(|word| word == name), "{name}: {seen}");
    }
    // A grant on one column shows the table and that column.
    home.run("GRANT SELECT (account) ON visits TO bob").await;
    let seen = lists(&bob).await;
    assert!(seen.contains("visits") && seen.contains("account"), "{seen}");
    for name in ["clicks", "hush", "ledger"] {
        assert!(!seen.contains(name), "{name}: {seen}");
    }
    let described = said(&bob, "DESCRIBE visits").await.unwrap();
    assert!(described.contains("account") && !described.contains("clicks"), "{described}");
    assert_eq!(code(&bob, "SHOW CREATE TABLE visits").await, "42501");
    // Who writes must know where to.
    home.run("GRANT INSERT ON visits TO bob").await;
    let seen = lists(&bob).await;
    assert!(seen.contains("clicks") && seen.contains("note"), "{seen}");
    assert_eq!(code(&bob, "SHOW CREATE TABLE visits").await, "ok");
    // Superusers see all.
    home.run("ALTER ROLE bob SUPERUSER").await;
    let seen = lists(&bob).await;
    assert!(seen.contains("ledger") && seen.contains("pin"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_is_only_prepared_tells_no_columns() {
    let home = home().await;
    let ann = home.session_of("ann");
    for sql in [
        "SELECT * FROM visits",
        "SELECT * FROM visits WHERE account = 1",
        "SELECT * FROM visits WHERE false",
        "SELECT nothing FROM visits",
        "SELECT account, sum(clicks) FROM visits WHERE account = 1 GROUP BY account",
        "INSERT INTO visits (nothing) VALUES (1)",
        "INSERT INTO visits VALUES (1, 2, 3, 'x')",
        "UPDATE visits SET nothing = 1",
        "DELETE FROM visits AS v WHERE v.nothing = 1",
        "COPY visits TO STDOUT",
        "COPY visits (nothing) FROM STDIN",
        "WITH w AS (SELECT * FROM visits) SELECT 1",
        "EXPLAIN SELECT nothing FROM visits",
    ] {
        // Templates of others are known the third time.
        for _ in 0..3 {
            let prepared = match ann.parse(sql).await {
                Ok(mut statements) => ann.prepare(statements.swap_remove(0), Vec::new()).await,
                Err(error) => Err(error),
            };
            let told = match prepared {
                Ok(prepared) => {
                    let columns = format!("{:?}", prepared.schema());
                    let error = ann.execute(&prepared, Vec::new()).await.map(drop).unwrap_err();
                    format!("{columns} {error:?}")
                }
                Err(error) => format!("{error:?}"),
            };
            assert!(told.contains("42501"), "{sql}: {told}");
            for name in ["clicks", "cost", "note"] {
                assert!(sql.contains(name) || !told.contains(name), "{sql}: {told}");
            }
            let _ = said(&home.root, sql).await;
        }
    }
    // A name that a query makes itself is no table's.
    assert_eq!(code(&ann, "WITH visits AS (SELECT 1 AS n) SELECT n FROM visits").await, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_rows_match_is_not_told_to_who_may_not_read() {
    let home = home().await;
    home.run("CREATE TABLE parts (n int, pin int) PARTITIONED BY (pin)").await;
    home.run("INSERT INTO parts VALUES (1, 7)").await;
    home.run("FLUSH TABLE parts").await;
    for table in ["visits", "parts"] {
        home.run(&format!("GRANT INSERT, UPDATE, DELETE ON {table} TO ann")).await;
    }
    let ann = home.session_of("ann");
    // Some of which there are, and some that no file can hold.
    for value in ["1", "4", "1000000"] {
        for sql in [
            format!("DELETE FROM visits WHERE cost > {value}"),
            format!("DELETE FROM visits AS v WHERE v.cost > {value}"),
            format!("UPDATE visits SET clicks = 0 WHERE cost > {value}"),
            format!(
                "MERGE INTO visits USING (SELECT {value} AS x) s ON cost = x WHEN MATCHED THEN DELETE"
            ),
            format!(
                "MERGE INTO visits USING (SELECT {value} AS x) s ON cost = x WHEN NOT MATCHED THEN INSERT (account) VALUES (x)"
            ),
            format!("INSERT OVERWRITE parts PARTITION (pin = {value}) SELECT 1"),
        ] {
            assert_eq!(code(&ann, &sql).await, "42501", "{sql}");
        }
    }
    home.run("GRANT SELECT (account, clicks) ON visits TO ann").await;
    for value in ["1", "1000000"] {
        let sql = format!("DELETE FROM visits WHERE cost > {value}");
        assert_eq!(code(&ann, &sql).await, "42501", "{sql}");
    }
    let rows = said(&home.root, "SELECT count(*) FROM visits").await.unwrap();
    assert!(rows.contains('3'), "{rows}");
    home.run("GRANT SELECT ON visits TO ann").await;
    assert_eq!(code(&ann, "DELETE FROM visits WHERE cost > 1000000").await, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_moved_and_given_away_as_in_postgresql() {
    let home = home().await;
    home.run("CREATE ROLE team").await;
    home.run("ALTER TABLE visits OWNER TO ann").await;
    home.run("GRANT SELECT ON SCHEMA vault TO bob").await;
    let ann = home.session_of("ann");
    for sql in [
        "ALTER TABLE visits RENAME TO vault.visits",
        "ALTER TABLE visits OWNER TO bob",
        "ALTER TABLE visits OWNER TO team",
    ] {
        assert_eq!(code(&ann, sql).await, "42501", "{sql}");
    }
    assert_eq!(code(&ann, "ALTER TABLE visits OWNER TO nobody").await, "42704");
    assert_eq!(code(&ann, "ALTER TABLE visits OWNER TO ann").await, "ok");
    assert_eq!(code(&ann, "ALTER TABLE visits RENAME TO calls").await, "ok");
    assert_eq!(code(&ann, "ALTER TABLE calls RENAME TO public.visits").await, "ok");
    home.run("GRANT team TO ann").await;
    assert_eq!(code(&ann, "ALTER TABLE visits OWNER TO team").await, "ok");
    assert_eq!(code(&ann, "ALTER TABLE visits RENAME TO calls").await, "ok");
    home.run("ALTER TABLE calls RENAME TO vault.visits").await;
    home.run("ALTER TABLE vault.visits OWNER TO bob").await;
    assert_eq!(code(&ann, "SELECT account FROM vault.visits").await, "42501");
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_tell_who_may_what() {
    let home = home().await;
    home.run("CREATE ROLE readers").await;
    home.run("GRANT readers TO ann").await;
    home.run("GRANT SELECT (account, clicks), INSERT ON visits TO readers").await;
    home.run("GRANT SELECT ON SCHEMA vault TO bob").await;
    let ann = home.session_of("ann");
    for (call, expected) in [
        ("has_table_privilege('visits', 'SELECT')", "false"),
        ("has_table_privilege('visits', 'INSERT')", "true"),
        ("has_table_privilege('public.visits', 'delete, insert')", "true"),
        ("has_table_privilege('visits', 'INSERT WITH GRANT OPTION')", "false"),
        ("has_table_privilege('\"visits\"', 'TRUNCATE')", "false"),
        ("has_table_privilege('vault.ledger', 'SELECT')", "false"),
        ("has_table_privilege('bob', 'vault.ledger', 'SELECT')", "true"),
        ("has_table_privilege('readers', 'visits', 'INSERT')", "true"),
        ("has_table_privilege('pg_class', 'SELECT')", "true"),
        ("has_table_privilege('pg_catalog.pg_class', 'INSERT')", "false"),
        ("has_any_column_privilege('visits', 'SELECT')", "true"),
        ("has_any_column_privilege('vault.ledger', 'SELECT')", "false"),
        ("has_column_privilege('visits', 'clicks', 'SELECT')", "true"),
        ("has_column_privilege('visits', 'cost', 'SELECT')", "false"),
        ("has_column_privilege('visits', 2, 'SELECT')", "true"),
        ("has_column_privilege('visits', 3, 'SELECT')", "false"),
        ("has_column_privilege('visits', 'cost', 'INSERT')", "true"),
        ("has_schema_privilege('vault', 'USAGE')", "true"),
        ("has_schema_privilege('vault', 'CREATE')", "false"),
        ("has_database_privilege('stoa', 'CONNECT')", "true"),
        ("has_database_privilege('stoa', 'CREATE')", "false"),
        ("has_function_privilege('sum', 'EXECUTE')", "true"),
        ("pg_has_role('readers', 'MEMBER')", "true"),
        ("pg_has_role('bob', 'USAGE')", "false"),
        ("pg_has_role('bob', 'readers', 'USAGE')", "false"),
    ] {
        for name in [call.to_owned(), format!("pg_catalog.{call}")] {
            let sql = format!("SELECT {name} AS answer");
            let answer = said(&ann, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            assert!(answer.contains(expected), "{sql}: {answer}");
        }
    }
    let by_oid = "SELECT has_table_privilege(oid, 'INSERT') AS answer FROM pg_class WHERE relname = 'visits'";
    assert!(said(&ann, by_oid).await.unwrap().contains("true"));
    for (call, sqlstate) in [
        ("has_table_privilege('nothing', 'SELECT')", "42P01"),
        ("has_table_privilege('nobody', 'visits', 'SELECT')", "42704"),
        ("has_table_privilege('visits', 'READ')", "22023"),
        ("has_column_privilege('visits', 'nothing', 'SELECT')", "42703"),
        ("has_schema_privilege('nowhere', 'USAGE')", "3F000"),
    ] {
        assert_eq!(code(&ann, &format!("SELECT {call}")).await, sqlstate, "{call}");
    }
    // What changes holds for the next execution of a statement that is prepared.
    let statement =
        ann.parse("SELECT has_table_privilege('visits', 'DELETE') AS may").await.unwrap();
    let prepared = ann.prepare(statement.into_iter().next().unwrap(), Vec::new()).await.unwrap();
    let answer = async || match ann.execute(&prepared, Vec::new()).await.unwrap() {
        Outcome::Rows(rows) => format!("{:?}", rows.collect().await.unwrap()[0].column(0)),
        _ => panic!("no rows"),
    };
    assert!(answer().await.contains("false"));
    home.run("GRANT DELETE ON visits TO ann").await;
    assert!(answer().await.contains("true"));
    // Superusers may do everything; nobody is asked who owns the files.
    home.run("ALTER ROLE ann SUPERUSER").await;
    for privilege in ["SELECT", "TRUNCATE", "TRIGGER"] {
        let sql = format!("SELECT has_table_privilege('vault.ledger', '{privilege}')");
        assert!(said(&ann, &sql).await.unwrap().contains("true"), "{sql}");
        assert!(said(&home.root, &sql).await.unwrap().contains("true"), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_not_there_looks_like_one_on_every_server_of_the_catalog() {
    let home = Home::new(&["ann"]).await;
    let other = open(home.path(), "log2").await;
    for role in ["ann", "nobody", "nobody else"] {
        let (one, _) = home.engine.login_secret(role).await.unwrap();
        let (two, _) = other.login_secret(role).await.unwrap();
        assert_eq!(one.salt(), two.salt(), "{role}");
        assert_eq!((one.iterations(), one.salt().len()), (two.iterations(), 16));
        assert_eq!(one.iterations().get(), 4096);
    }
    let salt = async |role: &str| other.login_secret(role).await.unwrap().0.salt().to_vec();
    assert_ne!(salt("nobody").await, salt("nobody else").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_clients_need_enough_iterations() {
    let home = Home::new(&["ann"]).await;
    let ann = home.session_of("ann");
    let key = format!("{}=", "A".repeat(43));
    for (iterations, expected) in
        [(1, "22023"), (4095, "22023"), (1_000_001, "22023"), (4096, "ok"), (10_000, "ok")]
    {
        let secret = format!("SCRAM-SHA-256${iterations}:c2FsdHNhbHRzYWx0c2E=${key}:{key}");
        let sql = format!("ALTER ROLE ann PASSWORD '{secret}'");
        assert_eq!(code(&ann, &sql).await, expected, "{iterations}");
    }
    // What is meant as a secret is no password.
    assert_eq!(code(&ann, "ALTER ROLE ann PASSWORD 'SCRAM-SHA-256$4096:x'").await, "22023");
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_not_guessed_at_will() {
    let home = Home::new(&["ann", "bob"]).await;
    let engine = &home.engine;
    let here = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    let there = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));
    // All at the same time.
    let guesses: Vec<String> = (0..64).map(|n| format!("guess {n}")).collect();
    let tries = guesses.iter().map(|guess| engine.log_in_from("ann", guess, here));
    let codes: Vec<&str> = futures::future::join_all(tries)
        .await
        .into_iter()
        .map(|tried| tried.unwrap_err().sqlstate())
        .collect();
    let looked_at = codes.iter().filter(|code| **code == "28P01").count();
    // Ten are free; each after them stands for a pause twice as long as the one before.
    assert!((11..20).contains(&looked_at), "{codes:?}");
    assert!(codes.iter().all(|code| ["28P01", "53400"].contains(code)), "{codes:?}");
    // Others are let in.
    engine.log_in_from("ann", "pencil", there).await.unwrap();
    engine.log_in_from("bob", "pencil", here).await.unwrap();
    // The same wrong password with each request is one failure.
    for _ in 0..50 {
        let error = engine.log_in_from("bob", "brush", there).await.unwrap_err();
        assert_eq!(error.sqlstate(), "28P01");
    }
    engine.log_in_from("bob", "pencil", there).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_in_no_list_of_statements() {
    let home = Home::new(&["ann"]).await;
    let ann = home.session_of("ann");
    for sql in [
        "EXPLAIN ALTER ROLE ann PASSWORD 'brush'",
        "PREPARE p AS ALTER ROLE ann PASSWORD 'brush'",
        "CREATE USER eve IDENTIFIED BY 'brush'",
        "CREATE USER eve IDENTIFIED BY brush",
        "ALTER ROLE ann PASSWORD $$brush$$",
        "ALTER ROLE ann PASWORD 'brush'",
        "ALTER ROLE ann PASSWORD \"brush\"",
        "ALTER ROLE ann PASSWORD 'x' 'brush'",
        "/* PASSWORD 'brush' */ SELECT 1",
        "SELECT 1; ALTER ROLE ann PASSWORD 'brush' NOLOGIN SUPERUSER",
    ] {
        for session in [&ann, &home.root] {
            let _ = said(session, sql).await;
        }
    }
    let queries = "SELECT sql, error FROM system.queries";
    let shapes = "SELECT sql FROM system.query_shapes";
    let seen = shown(&home.root, queries).await + &shown(&home.root, shapes).await;
    assert!(seen.contains("IDENTIFIED BY"), "{seen}");
    assert!(!seen.contains("brush"), "{seen}");
}
