//! What is answered to which messages, in which order.

use crate::common::raw::{Answer, RawClient, bind, describe, execute, message, parse, query, sync};
use crate::common::{Server, within};
use stoa_pgwire::ServeOptions;
use stoa_query::EngineOptions;
use stoa_testkit::ENDLESS;

#[tokio::test]
async fn encryption_is_refused_and_the_connection_goes_on() {
    let server = Server::start().await;
    let mut client = RawClient::silent(server.port).await;
    for code in [80_877_103_i32, 80_877_104] {
        client.send_bytes(&[&8_i32.to_be_bytes()[..], &code.to_be_bytes()].concat()).await;
        assert_eq!(client.byte().await, b'N');
    }
    client.startup(&[("user", "me")]).await;
    let answers = client.until('Z').await;
    let status = |name: &str| {
        answers
            .iter()
            .find(|a| a.kind == 'S' && a.body.starts_with(name.as_bytes()))
            .map(|a| String::from_utf8(a.body[name.len() + 1..a.body.len() - 1].to_vec()).unwrap())
    };
    assert_eq!(status("server_encoding").as_deref(), Some("UTF8"));
    assert_eq!(status("integer_datetimes").as_deref(), Some("on"));
    assert!(status("server_version").unwrap().starts_with("16."));
}

#[tokio::test]
async fn wrong_starts_are_told_so() {
    let server = Server::start().await;
    for (parameters, sqlstate) in [
        (&[("user", "me"), ("database", "sales")][..], "3D000"),
        (&[("database", "stoa")][..], "28000"),
        (&[("user", "me"), ("replication", "database")][..], "0A000"),
        (&[("user", "me"), ("client_encoding", "LATIN1")][..], "22023"),
    ] {
        let mut client = RawClient::silent(server.port).await;
        client.startup(parameters).await;
        let answers = client.until('E').await;
        let error = answers.last().unwrap();
        assert_eq!(error.field(b'S').as_deref(), Some("FATAL"));
        assert_eq!(error.field(b'C').as_deref(), Some(sqlstate));
        assert_eq!(client.next().await, None);
    }
    let mut client = RawClient::silent(server.port).await;
    client.send_bytes(b"GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.until('E').await[0].field(b'C').as_deref(), Some("08P01"));
}

#[tokio::test]
async fn simple_queries_answer_statement_by_statement() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query("SELECT 1; SELECT 'a' WHERE false;")]).await;
    assert_eq!(client.kinds().await, "TDCTCZ");
    client.send(&[query(" -- nothing\n;")]).await;
    assert_eq!(client.kinds().await, "IZ");
    client.send(&[query("SELECT 1; SELECT * FROM nothing; SELECT 2")]).await;
    let answers = client.until('Z').await;
    let kinds: String = answers.iter().map(|answer| answer.kind).collect();
    assert_eq!(kinds, "TDCEZ");
    assert_eq!(answers[3].field(b'C').as_deref(), Some("42P01"));
}

#[tokio::test]
async fn an_error_points_into_the_whole_message() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query("SELECT 'ä';   SELEC 1")]).await;
    let answers = client.until('Z').await;
    let error = answers.iter().find(|answer| answer.kind == 'E').unwrap();
    assert_eq!(error.field(b'C').as_deref(), Some("42601"));
    let position: usize = error.field(b'P').unwrap().parse().unwrap();
    assert!((15..=22).contains(&position), "{position}");
}

#[tokio::test]
async fn the_extended_protocol_answers_each_message() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client
        .send(&[
            parse("s", "SELECT $1::int + 1 AS n", &[]),
            describe(b'S', "s"),
            bind("", "s", &[Some("41")]),
            describe(b'P', ""),
            execute("", 0),
            sync(),
        ])
        .await;
    let answers = client.until('Z').await;
    let kinds: String = answers.iter().map(|answer| answer.kind).collect();
    assert_eq!(kinds, "1tT2TDCZ");
    assert!(answers[5].body.ends_with(b"42"));
    client.send(&[bind("", "s", &[None]), execute("", 0), sync()]).await;
    assert_eq!(client.kinds().await, "2DCZ");
    client.send(&[message(b'C', b"Ss\0"), bind("", "s", &[None]), sync()]).await;
    let answers = client.until('Z').await;
    assert_eq!(answers[1].field(b'C').as_deref(), Some("26000"));
}

#[tokio::test]
async fn after_an_error_all_is_silent_until_sync() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client
        .send(&[
            parse("", "SELECT * FROM nothing", &[]),
            bind("", "", &[]),
            execute("", 0),
            query("SELECT 1"),
            sync(),
        ])
        .await;
    assert_eq!(client.kinds().await, "EZ");
    client.send(&[query("SELECT 1")]).await;
    assert_eq!(client.kinds().await, "TDCZ");
}

/// The next answers, one per letter of `kinds`: a wait for one that does not come fails.
async fn expect(client: &mut RawClient, kinds: &str) -> Vec<Answer> {
    let mut answers = Vec::new();
    for kind in kinds.chars() {
        let answer = client.next().await.expect("the connection ended");
        assert_eq!(answer.kind, kind, "of {kinds}: {:?}", answer.field(b'M'));
        answers.push(answer);
    }
    answers
}

#[tokio::test]
async fn an_error_is_sent_before_the_sync() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query("CREATE TABLE t (i INT NOT NULL)")]).await;
    client.kinds().await;
    let flush = || message(b'H', b"");
    let insert = "INSERT INTO t VALUES ($1)";
    for (messages, kinds, code) in [
        (vec![parse("", "SELEC 1", &[]), flush()], "E", "42601"),
        (vec![parse("", "SELEC 1", &[])], "E", "42601"),
        (vec![parse("", "SELECT * FROM nothing", &[]), flush()], "E", "42P01"),
        (vec![parse("", insert, &[]), bind("", "", &[]), flush()], "1E", "08P01"),
        (vec![parse("", insert, &[]), bind("", "", &[Some("x")]), flush()], "1E", "22P02"),
        (vec![parse("", insert, &[]), bind("", "", &[None]), execute("", 0)], "12E", "23502"),
        (vec![describe(b'S', "none"), flush()], "E", "26000"),
        (vec![describe(b'P', "none"), flush()], "E", "34000"),
        (vec![execute("none", 0), flush()], "E", "34000"),
        (vec![message(b'B', b"p\0\0\0"), flush()], "E", "08P01"),
    ] {
        client.send(&messages).await;
        let answers = expect(&mut client, kinds).await;
        assert_eq!(answers.last().unwrap().field(b'C').as_deref(), Some(code));
        // Nothing is done, and a Flush brings nothing, until the Sync.
        client.send(&[parse("", "SELECT 1", &[]), flush(), query("SELECT 1"), sync()]).await;
        assert_eq!(client.kinds().await, "Z");
    }
}

#[tokio::test]
async fn a_bad_line_ends_a_copy_before_its_end() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query("CREATE TABLE t (i INT)")]).await;
    client.kinds().await;
    client.send(&[query("COPY t FROM STDIN")]).await;
    expect(&mut client, "G").await;
    client.send(&[message(b'd', b"1\nx\n")]).await;
    let answers = expect(&mut client, "EZ").await;
    assert_eq!(answers[0].field(b'C').as_deref(), Some("22P02"));
    let copy = [parse("", "COPY t FROM STDIN", &[]), bind("", "", &[]), execute("", 0), sync()];
    client.send(&copy).await;
    expect(&mut client, "12G").await;
    client.send(&[message(b'd', b"1\nx\n")]).await;
    expect(&mut client, "E").await;
    client.send(&[message(b'd', b"2\n"), message(b'c', b""), sync()]).await;
    expect(&mut client, "Z").await;
    client.send(&[query("SELECT count(*) FROM t")]).await;
    assert!(client.until('Z').await[1].body.ends_with(b"0"));
}

#[tokio::test]
async fn a_copy_that_is_cancelled_ends_at_once() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query("CREATE TABLE t (i INT)")]).await;
    client.kinds().await;
    client.send(&[query("COPY t FROM STDIN")]).await;
    expect(&mut client, "G").await;
    let running = server.engine.queries().running();
    let copies = running.iter().filter(|query| query.sql.starts_with("COPY t FROM"));
    let ids: Vec<u64> = copies.map(|query| query.id).collect();
    assert_eq!(ids.len(), 1);
    assert!(server.engine.queries().cancel(ids[0]));
    let answers = expect(&mut client, "EZ").await;
    assert_eq!(answers[0].field(b'C').as_deref(), Some("57014"));
}

#[tokio::test]
async fn a_copy_whose_table_goes_is_an_error() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    let mut other = RawClient::connect(server.port).await;
    for (changes, code) in
        [("DROP TABLE t", "42P01"), ("DROP TABLE t; CREATE TABLE t (i INT)", "40001")]
    {
        other.send(&[query("CREATE TABLE IF NOT EXISTS t (i INT)")]).await;
        other.kinds().await;
        client.send(&[query("COPY t FROM STDIN")]).await;
        expect(&mut client, "G").await;
        client.send(&[message(b'd', b"1\n")]).await;
        other.send(&[query(changes)]).await;
        other.kinds().await;
        client.send(&[message(b'd', b"2\n"), message(b'c', b"")]).await;
        let answers = expect(&mut client, "EZ").await;
        assert_eq!(answers[0].field(b'C').as_deref(), Some(code));
    }
}

#[tokio::test]
async fn a_prepared_insert_goes_where_its_name_says() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    let mut other = RawClient::connect(server.port).await;
    other.send(&[query("CREATE TABLE t (i INT)")]).await;
    other.kinds().await;
    client.send(&[parse("s", "INSERT INTO t VALUES ($1)", &[23]), sync()]).await;
    client.kinds().await;
    let insert = [bind("", "s", &[Some("7")]), execute("", 0), sync()];
    for (changes, kinds) in [
        ("SELECT 1", "2CZ"),
        ("DROP TABLE t; CREATE TABLE t (i INT)", "2CZ"),
        ("ALTER TABLE t RENAME TO u; CREATE TABLE t (i INT)", "2CZ"),
        ("DROP TABLE t", "2EZ"),
        ("CREATE TABLE t (i BIGINT)", "2CZ"),
    ] {
        other.send(&[query(changes)]).await;
        other.kinds().await;
        client.send(&insert).await;
        assert_eq!(client.kinds().await, kinds, "{changes}");
        if kinds == "2CZ" {
            other.send(&[query("SELECT count(*) FROM t")]).await;
            assert!(other.until('Z').await[1].body.ends_with(b"1"), "{changes}");
        }
    }
}

#[tokio::test]
async fn a_portal_goes_on_where_it_stopped() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client
        .send(&[
            query("BEGIN"),
            parse("", "SELECT value FROM generate_series(1, 5) AS s(value) ORDER BY value", &[]),
            bind("p", "", &[]),
            execute("p", 2),
            sync(),
        ])
        .await;
    assert_eq!(client.kinds().await, "CZ");
    assert_eq!(client.kinds().await, "12DDsZ");
    client.send(&[execute("p", 2), execute("p", 2), execute("p", 2), sync()]).await;
    let answers = client.until('Z').await;
    let kinds: String = answers.iter().map(|answer| answer.kind).collect();
    assert_eq!(kinds, "DDsDCCZ");
    assert!(answers[3].body.ends_with(b"5"));
    assert_eq!(answers[4].body, b"SELECT 1\0");
    client.send(&[query("COMMIT"), execute("p", 1), sync()]).await;
    assert_eq!(client.kinds().await, "CZ");
    let answers = client.until('Z').await;
    assert_eq!(answers[0].field(b'C').as_deref(), Some("34000"));
}

#[tokio::test]
async fn cursors_and_portals_are_one() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query("DECLARE c CURSOR FOR SELECT 1")]).await;
    assert_eq!(client.until('Z').await[0].field(b'C').as_deref(), Some("25P01"));
    client
        .send(&[
            query("BEGIN; DECLARE c CURSOR FOR SELECT value FROM generate_series(1, 9) AS s(value) ORDER BY 1"),
            describe(b'P', "c"),
            sync(),
            query("FETCH 2 FROM c; MOVE 5 FROM c; FETCH ALL FROM c; CLOSE c; COMMIT"),
        ])
        .await;
    assert_eq!(client.kinds().await, "CCZ");
    assert_eq!(client.kinds().await, "TZ");
    assert_eq!(client.kinds().await, "TDDCCTDDCCCZ");
}

#[tokio::test]
async fn the_transaction_state_follows_the_statements() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    for (sql, state) in [
        ("BEGIN", b'T'),
        ("SELECT 1", b'T'),
        ("SAVEPOINT a", b'T'),
        ("SELECT * FROM nothing", b'E'),
        ("SELECT 1", b'E'),
        ("ROLLBACK TO a", b'T'),
        ("SELECT * FROM nothing", b'E'),
        ("COMMIT", b'I'),
    ] {
        client.send(&[query(sql)]).await;
        let answers = client.until('Z').await;
        assert_eq!(answers.last().unwrap().body, [state], "{sql}");
    }
}

#[tokio::test]
async fn copy_in_takes_data_and_late_data_is_dropped() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query("CREATE TABLE t (i INT, s TEXT)")]).await;
    client.kinds().await;
    let copy = query("COPY t FROM STDIN");
    client
        .send(&[
            copy.clone(),
            message(b'd', b"1\ta\n2"),
            message(b'd', b"\t\\N\n"),
            message(b'c', b""),
        ])
        .await;
    let answers = client.until('Z').await;
    assert_eq!(answers[0].kind, 'G');
    assert_eq!(answers[1].body, b"COPY 2\0");

    client.send(&[copy.clone(), message(b'd', b"3\tc\n"), message(b'f', b"no more\0")]).await;
    let answers = client.until('Z').await;
    assert_eq!(answers[1].field(b'C').as_deref(), Some("57014"));

    client
        .send(&[
            copy,
            message(b'd', b"x\tc\n"),
            message(b'c', b""),
            query("SELECT count(*) FROM t"),
        ])
        .await;
    let kinds = client.kinds().await;
    assert!(kinds.starts_with("GE"), "{kinds}");
    let answers = client.until('Z').await;
    assert!(answers[1].body.ends_with(b"2"));
}

#[tokio::test]
async fn copy_out_sends_lines() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client
        .send(&[query("COPY (SELECT 1 AS a, NULL AS b) TO STDOUT WITH (FORMAT csv, HEADER true)")])
        .await;
    let answers = client.until('Z').await;
    let kinds: String = answers.iter().map(|answer| answer.kind).collect();
    assert_eq!(kinds, "HddcCZ");
    assert_eq!(answers[2].body, b"1,\n");
}

#[tokio::test]
async fn binary_copies_say_so_and_are_all_or_nothing() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query("CREATE TABLE t (i INT, s TEXT)")]).await;
    client.kinds().await;
    let header = [&b"PGCOPY\n\xff\r\n\0"[..], &[0; 8]].concat();
    let row = [&[0, 2, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 1][..], b"a"].concat();
    let formats = [1, 0, 2, 0, 1, 0, 1];
    let done = message(b'c', b"");
    for (rest, code) in [
        (&[0xff, 0xff, 0][..], "22P04"),
        (&[0, 3][..], "22P04"),
        (&[0, 2, 0, 0, 0, 4, 0][..], "22P04"),
        (&[0, 2, 0xff, 0xff, 0xff, 0xfe][..], "22P04"),
        (&[0, 2, 0, 0, 0, 2, 0, 7, 0xff, 0xff, 0xff, 0xff][..], "22P03"),
        (&[0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0xff][..], "22021"),
        (&[0, 2, 0x7f, 0xff, 0xff, 0xff][..], "54000"),
    ] {
        client.send(&[query("COPY t FROM STDIN (FORMAT binary)")]).await;
        let answers = expect(&mut client, "G").await;
        assert_eq!(answers[0].body, formats);
        let data = message(b'd', &[&header[..], &row, rest].concat());
        client.send(&[data, done.clone()]).await;
        let answers = expect(&mut client, "EZ").await;
        assert_eq!(answers[0].field(b'C').as_deref(), Some(code));
        let text = answers[0].field(b'M').unwrap();
        assert!(text.contains("stdin row 2"), "{text}");
    }
    client.send(&[query("COPY t FROM STDIN BINARY")]).await;
    expect(&mut client, "G").await;
    client.send(&[message(b'd', b"7\ta\n"), done.clone()]).await;
    let answers = expect(&mut client, "EZ").await;
    assert_eq!(answers[0].field(b'C').as_deref(), Some("22P04"));
    client.send(&[query("SELECT count(*) FROM t")]).await;
    assert!(client.until('Z').await[1].body.ends_with(b"0"));

    client.send(&[query("COPY BINARY t (s, i) FROM STDIN")]).await;
    expect(&mut client, "G").await;
    let swapped = [&[0, 2, 0, 0, 0, 1][..], b"a", &[0, 0, 0, 4, 0, 0, 0, 7]].concat();
    let data = [header.clone(), swapped, vec![0xff, 0xff]].concat();
    client.send(&[message(b'd', &data), done]).await;
    let answers = expect(&mut client, "CZ").await;
    assert_eq!(answers[0].body, b"COPY 1\0");

    client.send(&[query("COPY t TO STDOUT (FORMAT binary)")]).await;
    let answers = expect(&mut client, "HddcCZ").await;
    assert_eq!(answers[0].body, formats);
    assert_eq!(answers[1].body, [header, row].concat());
    assert_eq!(answers[2].body, [0xff, 0xff]);
    client.send(&[query("COPY t TO STDOUT (FORMAT binary, DELIMITER ';')")]).await;
    let answers = expect(&mut client, "EZ").await;
    assert_eq!(answers[0].field(b'C').as_deref(), Some("42601"));
}

#[tokio::test]
async fn damaged_messages_are_errors() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client
        .send(&[message(b'B', b"p\0s\0\0"), sync(), message(b'Q', b"SELECT 1"), query("SELECT 1")])
        .await;
    assert_eq!(client.kinds().await, "EZ");
    assert_eq!(client.kinds().await, "EZ");
    assert_eq!(client.kinds().await, "TDCZ");
    client.send(&[message(b'?', b"")]).await;
    assert_eq!(client.next().await.unwrap().field(b'S').as_deref(), Some("FATAL"));
    assert_eq!(client.next().await, None);
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_query() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query(ENDLESS)]).await;
    server.until_running(1).await;
    drop(client);
    server.until_running(0).await;
}

#[tokio::test]
async fn a_statement_timeout_ends_a_query() {
    let server = Server::start().await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query("SET statement_timeout = 20"), query(ENDLESS)]).await;
    client.kinds().await;
    let answers = client.until('E').await;
    assert_eq!(answers.last().unwrap().field(b'C').as_deref(), Some("57014"));
    client.until('Z').await;
    // However slow the machine is, from here on.
    client.send(&[query("SET statement_timeout = 0"), query("SELECT 1")]).await;
    client.kinds().await;
    assert_eq!(client.kinds().await, "TDCZ");
}

#[tokio::test]
async fn clients_beyond_the_limit_are_refused() {
    let options = ServeOptions { max_connections: 1, ..ServeOptions::default() };
    let server = Server::start_with(options).await;
    let first = RawClient::connect(server.port).await;
    let mut second = RawClient::silent(server.port).await;
    second.startup(&[("user", "me")]).await;
    let answers = second.until('E').await;
    assert_eq!(answers[0].field(b'C').as_deref(), Some("53300"));
    drop(first);
    within(async {
        loop {
            let mut third = RawClient::silent(server.port).await;
            third.startup(&[("user", "me")]).await;
            if third.next().await.is_some_and(|answer| answer.kind == 'R') {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn shutdown_ends_idle_clients_and_lets_statements_finish() {
    let mut server = Server::start().await;
    let mut idle = RawClient::connect(server.port).await;
    let mut busy = RawClient::connect(server.port).await;
    busy.send(&[parse("", "SELECT 1", &[]), message(b'H', b"")]).await;
    assert_eq!(busy.next().await.unwrap().kind, '1');
    server.stop();
    assert_eq!(idle.next().await.unwrap().field(b'C').as_deref(), Some("57P01"));
    assert_eq!(idle.next().await, None);
    busy.send(&[bind("", "", &[]), execute("", 0), sync()]).await;
    assert_eq!(busy.kinds().await, "2DCZ");
    assert_eq!(busy.next().await.unwrap().field(b'C').as_deref(), Some("57P01"));
    server.stopped().await;
}

#[tokio::test]
async fn shutdown_cancels_what_outlasts_the_grace() {
    let grace = std::time::Duration::from_millis(20);
    let options = ServeOptions { shutdown_grace: grace, ..ServeOptions::default() };
    let mut server = Server::start_with(options).await;
    let mut client = RawClient::connect(server.port).await;
    client.send(&[query(ENDLESS)]).await;
    server.until_running(1).await;
    server.stop();
    let answers = client.until('E').await;
    assert_eq!(answers.last().unwrap().field(b'C').as_deref(), Some("57014"));
    server.stopped().await;
}

#[tokio::test]
async fn what_a_connection_keeps_is_bounded_in_bytes() {
    // 64 MiB for all, a quarter of that for one.
    let options = |options| EngineOptions { memory_limit_bytes: 128 << 20, ..options };
    let server = Server::start_as(options).await;
    let mut client = RawClient::connect(server.port).await;

    // Values bound to portals.
    let value = "x".repeat(1 << 20);
    client.send(&[query("BEGIN"), parse("s", "SELECT $1::text", &[]), sync()]).await;
    client.until('Z').await;
    client.until('Z').await;
    let mut portals = 0;
    let refused = loop {
        client.send(&[bind(&format!("p{portals}"), "s", &[Some(&value)]), sync()]).await;
        let answers = client.until('Z').await;
        match answers[0].kind {
            '2' => portals += 1,
            _ => break answers[0].field(b'C'),
        }
    };
    assert_eq!(refused.as_deref(), Some("53200"));
    assert!((4..16).contains(&portals), "{portals}");
    assert!(server.engine.kept_bytes() >= portals << 20);
    client.send(&[query("ROLLBACK")]).await;
    client.until('Z').await;

    // Statements under names; those of other clients go on.
    let columns: Vec<String> = (0..1000).map(|column| format!("{column} AS c{column}")).collect();
    let wide = format!("SELECT {}", columns.join(", "));
    let mut statements = 0;
    let refused = loop {
        client.send(&[parse(&format!("w{statements}"), &wide, &[]), sync()]).await;
        let answers = client.until('Z').await;
        match answers[0].kind {
            '1' => statements += 1,
            _ => break answers[0].field(b'M'),
        }
    };
    assert!(refused.is_some_and(|message| message.contains("bytes of prepared statements")));
    assert!((4..200).contains(&statements), "{statements}");
    let mut other = RawClient::connect(server.port).await;
    other.send(&[parse("w", &wide, &[]), sync()]).await;
    assert_eq!(other.kinds().await, "1Z");
    client.send(&[query("DEALLOCATE ALL"), parse("w0", &wide, &[]), sync()]).await;
    assert_eq!(client.kinds().await, "CZ");
    assert_eq!(client.kinds().await, "1Z");
    drop((client, other));
    while server.engine.kept_bytes() > 0 {
        stoa_env::timer::sleep(std::time::Duration::from_millis(1)).await;
    }
}
