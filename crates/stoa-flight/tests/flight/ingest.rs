//! Rows in: modes, types, durability, errors.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::Int32Type;
use arrow_array::{DictionaryArray, Int64Array, StringArray, StringViewArray, UInt64Array};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::{FlightDescriptor, PutResult};
use arrow_schema::{DataType, Field, Schema};
use futures::{StreamExt, TryStreamExt, stream};
use stoa_testkit::until;
use tonic::Code;

use crate::support::*;

#[tokio::test]
async fn modes_say_what_becomes_of_the_table() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let count = "SELECT count(*), min(id), max(id) FROM t";

    let missing = ingest(&mut client, into_table("t", APPEND), vec![people(1..3)]).await;
    is_error(&missing.unwrap_err(), Code::NotFound, &["public.t", "HINT", "42P01"]);
    let made = ingest(&mut client, into_table("t", CREATE), vec![people(1..3)]).await;
    assert_eq!(made.unwrap(), 2);
    let again = ingest(&mut client, into_table("t", CREATE), vec![people(1..3)]).await;
    is_error(&again.unwrap_err(), Code::AlreadyExists, &["public.t", "42P07"]);
    let added = ingest(&mut client, into_table("t", APPEND), vec![people(3..6), people(6..8)]);
    assert_eq!(added.await.unwrap(), 5);
    assert_eq!(shown(&mut client, count).await, ["7,1,7"]);
    ingest(&mut client, into_table("t", CREATE_APPEND), vec![people([8])]).await.unwrap();
    ingest(&mut client, into_table("u", CREATE_APPEND), vec![people([8])]).await.unwrap();
    assert_eq!(shown(&mut client, count).await, ["8,1,8"]);
    assert_eq!(shown(&mut client, "SELECT * FROM u").await, ["8,n8"]);

    // The same columns: fresh rows and those in files go alike.
    let replaced = ingest(&mut client, into_table("t", REPLACE), vec![people(20..23)]).await;
    assert_eq!(replaced.unwrap(), 3);
    assert_eq!(shown(&mut client, count).await, ["3,20,22"]);
    // Others: another table.
    let other = integers("n", &[1, 2]);
    assert_eq!(ingest(&mut client, into_table("t", REPLACE), vec![other]).await.unwrap(), 2);
    assert_eq!(shown(&mut client, "SELECT sum(n) FROM t").await, ["3"]);
    ingest(&mut client, into_table("t", APPEND), vec![integers("n", &[4])]).await.unwrap();
    assert_eq!(shown(&mut client, "SELECT sum(n) FROM t").await, ["7"]);
}

#[tokio::test]
async fn a_table_keeps_its_partitions_where_its_rows_are_replaced() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint, name text) PARTITIONED BY (bucket(4, id))").await;
    ingest(&mut client, into_table("t", APPEND), vec![people(0..100)]).await.unwrap();
    ingest(&mut client, into_table("t", REPLACE), vec![people(0..10)]).await.unwrap();
    assert_eq!(shown(&mut client, "SELECT count(*) FROM t").await, ["10"]);
    let made = shown(&mut client, "SHOW CREATE TABLE t").await.join(" ");
    assert!(made.contains("bucket(4"), "{made}");
}

#[tokio::test]
async fn an_ingest_without_rows_makes_the_table_all_the_same() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let none = people([]);
    assert_eq!(ingest(&mut client, into_table("t", CREATE), vec![none.clone()]).await.unwrap(), 0);
    assert_eq!(shown(&mut client, "SELECT count(*) FROM t").await, ["0"]);
    assert_eq!(ingest(&mut client, into_table("t", APPEND), vec![none.clone()]).await.unwrap(), 0);
    ingest(&mut client, into_table("t", APPEND), vec![people([1])]).await.unwrap();
    assert_eq!(ingest(&mut client, into_table("t", REPLACE), vec![none]).await.unwrap(), 0);
    assert_eq!(shown(&mut client, "SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test]
async fn columns_match_by_name_and_types_become_the_tables() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let create = "CREATE TABLE t (a bigint NOT NULL, b text, c decimal(10, 2), d timestamp)";
    run(&mut client, create).await;
    let words: DictionaryArray<Int32Type> = ["x", "y", "x"].into_iter().collect();
    let rows = batch(vec![
        ("d", Arc::new(StringViewArray::from(vec![Some("2025-01-02 03:04:05"), None, None]))),
        ("B", Arc::new(words)),
        ("c", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("a", Arc::new(UInt64Array::from(vec![10, 20, 30]))),
    ]);
    assert_eq!(ingest(&mut client, into_table("t", APPEND), vec![rows]).await.unwrap(), 3);
    assert_eq!(
        shown(&mut client, "SELECT a, b, c, d FROM t ORDER BY a LIMIT 2").await,
        ["10,x,1.00,2025-01-02T03:04:05", "20,y,2.00,"]
    );

    let mut fails = async |rows: RecordBatch, parts: &[&str]| {
        let error = ingest(&mut client, into_table("t", APPEND), vec![rows]).await.unwrap_err();
        is_error(&error, Code::InvalidArgument, parts);
    };
    let a = || Arc::new(Int64Array::from(vec![Some(1), None]));
    fails(batch(vec![("a", a())]), &["\"b\"", "missing_columns", "42703"]).await;
    let text = || Arc::new(StringArray::from(vec!["1", "x"]));
    fails(
        batch(vec![("a", text()), ("b", text()), ("c", text()), ("d", text())]),
        &["row 2", "\"a\"", "\"x\"", "22P02"],
    )
    .await;
    let all = |n: i64| {
        let n = || Arc::new(Int64Array::from(vec![n]));
        let none = Arc::new(StringArray::from(vec![None::<&str>]));
        batch(vec![("a", n()), ("b", none.clone()), ("c", n()), ("d", none)])
    };
    fails(all(1 << 40), &["row 1", "\"c\"", "1099511627776", "22003"]).await;

    let mut filled = into_table("t", APPEND);
    filled.options.insert("missing_columns".to_owned(), "null".to_owned());
    let a = batch(vec![("a", Arc::new(Int64Array::from(vec![7])))]);
    assert_eq!(ingest(&mut client, filled, vec![a.clone()]).await.unwrap(), 1);
    let mut unknown = into_table("t", APPEND);
    unknown.options.insert("mising_columns".to_owned(), "null".to_owned());
    let error = ingest(&mut client, unknown, vec![a]).await.unwrap_err();
    is_error(&error, Code::InvalidArgument, &["mising_columns"]);
    assert_eq!(shown(&mut client, "SELECT count(*) FROM t").await, ["4"]);
}

#[tokio::test]
async fn names_are_taken_as_they_are() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE SCHEMA \"Sales\"").await;
    let mut command = into_table("My \"Table\"", CREATE);
    command.schema = Some("Sales".to_owned());
    command.catalog = Some("stoa".to_owned());
    ingest(&mut client, command.clone(), vec![people([1])]).await.unwrap();
    let sql = "SELECT id FROM \"Sales\".\"My \"\"Table\"\"\"";
    assert_eq!(shown(&mut client, sql).await, ["1"]);

    command.catalog = Some("other".to_owned());
    let error = ingest(&mut client, command.clone(), vec![people([1])]).await.unwrap_err();
    is_error(&error, Code::NotFound, &["catalog \"other\"", "3D000"]);
    command.catalog = None;
    command.schema = Some("nowhere".to_owned());
    let error = ingest(&mut client, command.clone(), vec![people([1])]).await.unwrap_err();
    is_error(&error, Code::NotFound, &["nowhere", "3F000"]);
    let transaction = Some(vec![1].into());
    let part = arrow_flight::sql::CommandStatementIngest {
        transaction_id: transaction,
        ..into_table("t", CREATE)
    };
    let error = ingest(&mut client, part, vec![people([1])]).await.unwrap_err();
    is_error(&error, Code::Unimplemented, &["transaction"]);
    let temporary =
        arrow_flight::sql::CommandStatementIngest { temporary: true, ..into_table("t", CREATE) };
    let error = ingest(&mut client, temporary, vec![people([1])]).await.unwrap_err();
    is_error(&error, Code::Unimplemented, &["temporary"]);
}

#[tokio::test]
async fn a_stream_that_breaks_off_leaves_nothing() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint, name text)").await;
    let running = || server.engine.queries().running_count();
    // Which of its parts the server hears of first is a matter of chance.
    for _ in 0..20 {
        let mut leaving = server.client().await;
        let call = stoa_env::task::spawn(async move {
            let unending = stream::iter([Ok(people(0..10))]).chain(stream::pending());
            leaving.execute_ingest(into_table("t", APPEND), unending).await
        });
        until("the call is there", || running() == 1).await;
        call.abort();
        until("the call has ended", || running() == 0).await;
    }
    assert_eq!(shown(&mut client, "SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test]
async fn few_rows_go_through_the_log_and_many_become_files() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint, name text)").await;
    let fresh = |server: &Server| {
        let tables = server.engine.ingest().unwrap().status().tables;
        tables.iter().map(|table| table.fresh_rows).sum::<u64>()
    };
    ingest(&mut client, into_table("t", APPEND), vec![people(0..1000)]).await.unwrap();
    assert_eq!(fresh(&server), 1000);
    // More than 16 MiB: at least 16 bytes a row.
    let many: Vec<_> = (0..24).map(|n| people(n * 50_000..(n + 1) * 50_000)).collect();
    assert_eq!(ingest(&mut client, into_table("t", APPEND), many).await.unwrap(), 1_200_000);
    assert_eq!(fresh(&server), 1000);
    assert_eq!(shown(&mut client, "SELECT count(*) FROM t").await, ["1201000"]);
    assert_eq!(shown(&mut client, "SELECT count(DISTINCT id) FROM t").await, ["1200000"]);
}

#[tokio::test]
async fn acknowledged_rows_are_there_once_after_a_crash() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint, name text)").await;
    for start in 0..20 {
        let rows = people(start * 10..(start + 1) * 10);
        assert_eq!(ingest(&mut client, into_table("t", APPEND), vec![rows]).await.unwrap(), 10);
    }
    drop(client);
    let server = server.restart().await;
    let mut client = server.client().await;
    let sums = "SELECT count(*), count(DISTINCT id), sum(id) FROM t";
    assert_eq!(shown(&mut client, sums).await, ["200,200,19900"]);
}

#[tokio::test]
async fn a_plain_put_answers_each_batch() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint, name text)").await;
    let put = async |client: &mut Client, path: Vec<&str>, batches: Vec<RecordBatch>| {
        let path = path.into_iter().map(str::to_owned).collect();
        let messages = FlightDataEncoderBuilder::new()
            .with_flight_descriptor(Some(FlightDescriptor::new_path(path)))
            .build(stream::iter(batches.into_iter().map(Ok)))
            .map(Result::unwrap);
        let answers = client.do_put(messages).await.map_err(from_flight)?;
        answers.try_collect::<Vec<PutResult>>().await
    };
    let answers = put(&mut client, vec!["public", "t"], vec![people(0..5), people(5..7)]).await;
    let answers = answers.unwrap();
    let texts: Vec<_> = answers.iter().map(|answer| answer.app_metadata.as_ref()).collect();
    assert_eq!(texts, [b"{\"rows\": 5}", b"{\"rows\": 2}"]);
    assert_eq!(shown(&mut client, "SELECT count(*) FROM t").await, ["7"]);

    put(&mut client, vec!["t"], vec![people([9])]).await.unwrap();
    let wrong = put(&mut client, vec!["t"], vec![people([10]), integers("n", &[1])]).await;
    assert!(wrong.is_err());
    let error = put(&mut client, vec!["nowhere"], vec![people([1])]).await.unwrap_err();
    is_error(&error, Code::NotFound, &["nowhere", "42P01"]);
    let error = put(&mut client, vec!["a", "b", "c"], vec![people([1])]).await.unwrap_err();
    is_error(&error, Code::InvalidArgument, &["path"]);
}

#[tokio::test]
async fn types_of_a_new_table_are_those_that_are_stored() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let schema = Schema::new(vec![
        Field::new("small", DataType::Int8, false),
        Field::new("view", DataType::Utf8View, true),
        Field::new("half", DataType::Duration(arrow_schema::TimeUnit::Second), true),
    ]);
    let none = RecordBatch::new_empty(Arc::new(schema.clone()));
    let error = ingest(&mut client, into_table("t", CREATE), vec![none]).await.unwrap_err();
    is_error(&error, Code::Unimplemented, &["\"half\""]);
    let stored = schema.project(&[0, 1]).unwrap();
    let none = RecordBatch::new_empty(Arc::new(stored));
    ingest(&mut client, into_table("t", CREATE), vec![none]).await.unwrap();
    let listed = "SELECT data_type FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position";
    assert_eq!(shown(&mut client, listed).await, ["integer", "text"]);
}
