//! Rows out: types, streaming, cancelling, errors.

use arrow_array::cast::AsArray;
use arrow_flight::sql::{ActionCancelQueryRequest, ProstMessageExt};
use arrow_flight::{Action, CancelFlightInfoRequest, FlightDescriptor, Ticket};
use arrow_schema::DataType;
use futures::TryStreamExt;
use prost::Message;
use stoa_testkit::{ENDLESS, until};
use tonic::{Code, IntoRequest};

use crate::support::*;

#[tokio::test]
async fn statements_run_and_give_their_rows() {
    let server = Server::start().await;
    let mut client = server.client().await;
    assert_eq!(shown(&mut client, "SELECT 1 + 1 AS n, 'a' AS b").await, ["2,a"]);
    // The type is that of all branches.
    let sql =
        "SELECT CASE WHEN 1 = 2 THEN 0 ELSE 1.5 END AS r, CASE WHEN true THEN 0 ELSE 1.5 END AS z";
    assert_eq!(shown(&mut client, sql).await, ["1.5,0.0"]);
    assert_eq!(run(&mut client, "CREATE TABLE t (id bigint, name text)").await, 0);
    assert_eq!(run(&mut client, "INSERT INTO t VALUES (1, 'a'), (2, NULL)").await, 2);
    // A statement without rows runs also where rows are asked for, and once.
    assert_eq!(query(&mut client, "INSERT INTO t VALUES (3, 'c')").await.unwrap().len(), 0);
    assert_eq!(shown(&mut client, "SELECT * FROM t ORDER BY id").await, ["1,a", "2,", "3,c"]);
    assert_eq!(run(&mut client, "DELETE FROM t WHERE id > 1").await, 2);
    let several = "INSERT INTO t VALUES (4, 'd'); SELECT 7; SELECT count(*) FROM t";
    assert_eq!(shown(&mut client, several).await, ["2"]);
    assert_eq!(run(&mut client, "SELECT 1").await, 0);
    assert_eq!(query(&mut client, "").await.unwrap().len(), 0);
    assert_eq!(shown(&mut client, "SHOW TABLES").await.len(), 1);
    assert_eq!(shown(&mut client, "COPY t (name) TO STDOUT").await.len(), 2);
}

#[tokio::test]
async fn errors_have_code_message_and_hint() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let mut check = async |sql: &str, code, parts: &[&str]| {
        is_error(&query(&mut client, sql).await.unwrap_err(), code, parts);
        is_error(
            &from_flight(client.execute_update(sql.to_owned(), None).await.unwrap_err()),
            code,
            parts,
        );
    };
    check("SELEC 1", Code::InvalidArgument, &["syntax error", "SQLSTATE: 42601"]).await;
    check("SELECT * FROM nope", Code::NotFound, &["public.nope", "HINT: SHOW TABLES", "42P01"])
        .await;
    check("SELECT 1 / 0 FROM generate_series(1, 2)", Code::InvalidArgument, &["22012"]).await;
    check("COPY nope FROM STDIN", Code::NotFound, &["nope"]).await;
    check("SELECT $1 + 1", Code::InvalidArgument, &["1 parameters", "08P01"]).await;
    run(&mut client, "CREATE TABLE t (id bigint)").await;
    let copy = query(&mut client, "COPY t FROM STDIN").await.unwrap_err();
    is_error(&copy, Code::Unimplemented, &["COPY", "ingest"]);
}

#[tokio::test]
async fn the_columns_told_are_those_that_come() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let sql = "SELECT arrow_cast('x', 'Utf8View') AS v, arrow_cast('y', 'Dictionary(Int32, Utf8)') AS d, \
               arrow_cast(make_array('z'), 'List(Utf8View)') AS l, 1.5 AS n, now() AS t";
    let info = client.execute(sql.to_owned(), None).await.unwrap();
    let told = info.clone().try_decode_schema().unwrap();
    assert_eq!(told.field(0).data_type(), &DataType::Utf8);
    assert_eq!(told.field(1).data_type(), &DataType::Utf8);
    assert!(
        matches!(told.field(2).data_type(), DataType::List(item) if item.data_type() == &DataType::Utf8)
    );
    let batches = fetch(&mut client, info).await.unwrap();
    assert_eq!(batches[0].schema().as_ref(), &told);

    let command =
        arrow_flight::sql::CommandStatementQuery { query: sql.to_owned(), transaction_id: None };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let answer = client.inner_mut().get_schema(descriptor.into_request()).await.unwrap();
    let described: arrow_schema::Schema = (&answer.into_inner()).try_into().unwrap();
    assert_eq!(described, told);
}

#[tokio::test]
async fn a_large_result_comes_in_small_messages_and_a_slow_client_is_waited_for() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let sql = "SELECT n, n * 2 AS m, 'text ' || n AS t FROM generate_series(1, 2000000) AS s(n)";
    let info = client.execute(sql.to_owned(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let mut rows = client.do_get(ticket).await.unwrap();
    let first = rows.try_next().await.unwrap().unwrap();
    // What the client does not take is not made: of two million rows only what fits on the way.
    let made = || server.engine.queries().running().first().map_or(0, |query| query.rows);
    assert!(made() < 1_500_000, "{}", made());
    let (mut count, mut sum) = (0, 0);
    let mut next = Some(first);
    while let Some(batch) = next {
        assert!(batch.get_array_memory_size() <= 4 << 20);
        count += batch.num_rows();
        sum += batch
            .column(0)
            .as_primitive::<arrow_array::types::Int32Type>()
            .values()
            .iter()
            .map(|n| i64::from(*n))
            .sum::<i64>();
        next = rows.try_next().await.unwrap();
    }
    assert_eq!((count, sum), (2_000_000, 2_000_000 * 2_000_001 / 2));
    until("the query has ended", || server.engine.queries().running_count() == 0).await;
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_query() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let info = client.execute(ENDLESS.to_owned(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let fetching = stoa_env::task::spawn(async move {
        let mut rows = client.do_get(ticket).await.unwrap();
        rows.try_next().await.unwrap();
    });
    let running = || server.engine.queries().running();
    until("it runs", || !running().is_empty()).await;
    assert_eq!(running()[0].protocol, "flight");
    fetching.abort();
    until("it ends", || running().is_empty()).await;
}

#[tokio::test]
async fn a_query_is_cancelled_by_its_info() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let running = || server.engine.queries().running_count();
    for old in [false, true] {
        let info = client.execute(ENDLESS.to_owned(), None).await.unwrap();
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        let mut rows = client.do_get(ticket).await.unwrap();
        until("it runs", || running() == 1).await;
        let action = match old {
            false => {
                let request = CancelFlightInfoRequest { info: Some(info) };
                Action::new("CancelFlightInfo", request.encode_to_vec())
            }
            true => {
                let request = ActionCancelQueryRequest { info: info.encode_to_vec().into() };
                Action::new("CancelQuery", request.as_any().encode_to_vec())
            }
        };
        let mut answers = client.do_action(action.into_request()).await.unwrap();
        assert!(answers.message().await.unwrap().is_some());
        let error = from_flight(rows.try_next().await.unwrap_err());
        is_error(&error, Code::Cancelled, &["cancel", "57014"]);
        assert_eq!(running(), 0);
    }
    assert_eq!(server.engine.queries().totals().cancelled, 2);

    // One that was not fetched yet never runs.
    let info = client.execute("SELECT 1".to_owned(), None).await.unwrap();
    let cancel = CancelFlightInfoRequest { info: Some(info.clone()) };
    let action = || Action::new("CancelFlightInfo", cancel.encode_to_vec());
    client.do_action(action().into_request()).await.unwrap();
    let error = fetch(&mut client, info).await.unwrap_err();
    is_error(&error, Code::NotFound, &["ticket"]);
    let error = from_flight(client.do_action(action().into_request()).await.unwrap_err());
    is_error(&error, Code::NotFound, &["query"]);
}

#[tokio::test]
async fn a_ticket_works_once_and_for_its_user() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let info = client.execute("SELECT 1".to_owned(), None).await.unwrap();
    let mut other = server.client().await;
    let token = other.handshake("other", "").await.unwrap();
    other.set_token(String::from_utf8(token.to_vec()).unwrap());
    let error = fetch(&mut other, info.clone()).await.unwrap_err();
    is_error(&error, Code::NotFound, &["ticket"]);
    assert_eq!(lines(&fetch(&mut client, info.clone()).await.unwrap()), ["1"]);
    let error = fetch(&mut client, info).await.unwrap_err();
    is_error(&error, Code::NotFound, &["ticket", "26000"]);
    let made_up = client.do_get(Ticket::new(vec![7; 40])).await.unwrap_err();
    is_error(&from_flight(made_up), Code::InvalidArgument, &["08P01"]);
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_ended() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "SET statement_timeout = 50").await;
    let error = query(&mut client, ENDLESS).await.unwrap_err();
    is_error(&error, Code::DeadlineExceeded, &["statement timeout", "57014"]);
    let running = || server.engine.queries().running_count();
    until("it ends", || running() == 0).await;
    // Without the bound, which anything may exceed on a busy machine.
    assert_eq!(shown(&mut server.client().await, "SELECT 1").await, ["1"]);
}

#[tokio::test]
async fn a_table_is_fetched_by_its_path() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint)").await;
    run(&mut client, "INSERT INTO t VALUES (1)").await;
    let path = FlightDescriptor::new_path(vec!["public".to_owned(), "t".to_owned()]);
    let info = client.inner_mut().get_flight_info(path.into_request()).await.unwrap();
    assert_eq!(lines(&fetch(&mut client, info.into_inner()).await.unwrap()), ["1"]);
}

#[tokio::test]
async fn no_statement_writes_or_reads_a_file() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (a bigint)").await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.csv");
    let copy =
        format!("EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{}' STORED AS CSV", file.display());
    is_error(
        &query(&mut client, &copy).await.unwrap_err(),
        Code::Unimplemented,
        &["COPY to a file"],
    );
    assert!(client.prepare(copy, None).await.is_err());
    assert!(!file.exists());
    std::fs::write(&file, "a\n1\n").unwrap();
    let read = format!("COPY t FROM '{}'", file.display());
    is_error(
        &query(&mut client, &read).await.unwrap_err(),
        Code::PermissionDenied,
        &["file_access"],
    );
    assert_eq!(shown(&mut client, "SELECT count(*) FROM t").await, ["0"]);
}
