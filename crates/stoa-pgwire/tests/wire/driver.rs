//! A driver (tokio-postgres) against a server: values, prepared statements, COPY, cancel.

use std::pin::pin;

use crate::common::{Server, within};
use futures::{SinkExt, StreamExt, TryStreamExt};
use stoa_testkit::ENDLESS;
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{NoTls, SimpleQueryMessage};

#[tokio::test]
async fn values_go_in_and_come_out_in_binary() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (i INT, l BIGINT, f DOUBLE PRECISION, r REAL, s TEXT, b BYTEA, ok BOOLEAN)",
        )
        .await
        .unwrap();
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7)").await.unwrap();
    let types =
        [Type::INT4, Type::INT8, Type::FLOAT8, Type::FLOAT4, Type::TEXT, Type::BYTEA, Type::BOOL];
    assert_eq!(insert.params(), types);
    let bytes = &[0_u8, 255][..];
    let written =
        client.execute(&insert, &[&1_i32, &2_i64, &0.1_f64, &1.5_f32, &"ä", &bytes, &true]).await;
    assert_eq!(written.unwrap(), 1);
    let nulls = client
        .execute(
            &insert,
            &[
                &None::<i32>,
                &None::<i64>,
                &None::<f64>,
                &None::<f32>,
                &None::<&str>,
                &None::<&[u8]>,
                &None::<bool>,
            ],
        )
        .await;
    assert_eq!(nulls.unwrap(), 1);
    let rows = client.query("SELECT * FROM t ORDER BY i NULLS LAST", &[]).await.unwrap();
    assert_eq!(rows.len(), 2);
    let row = &rows[0];
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i64>(1)), (1, 2));
    assert_eq!((row.get::<_, f64>(2), row.get::<_, f32>(3)), (0.1, 1.5));
    assert_eq!((row.get::<_, &str>(4), row.get::<_, &[u8]>(5)), ("ä", bytes));
    assert!(row.get::<_, bool>(6));
    assert_eq!(rows[1].get::<_, Option<&str>>(4), None);
}

#[tokio::test]
async fn rows_have_the_type_of_all_branches() {
    let server = Server::start().await;
    let client = server.connect().await;
    let case = "SELECT CASE WHEN 1 = 2 THEN 0 ELSE 1.5 END AS r";
    let union = "SELECT 1 AS x UNION ALL SELECT 2.5 ORDER BY x";
    for sql in [case, union, "SELECT 1.0 / 3 AS r", "SELECT avg(n) AS a FROM (VALUES (1)) v(n)"] {
        let described = client.prepare(sql).await.unwrap();
        assert_eq!(described.columns()[0].type_(), &Type::NUMERIC, "{sql}");
    }
    let texts = async |sql: &str| -> Vec<String> {
        let messages = client.simple_query(sql).await.unwrap();
        let row = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
            _ => None,
        };
        messages.iter().filter_map(row).collect()
    };
    assert_eq!(texts(case).await, ["1.5"]);
    assert_eq!(texts(union).await, ["1.0", "2.5"]);
    assert_eq!(texts("SELECT 1.0 / 3").await, ["0.33333333333333333333"]);
    assert_eq!(texts("SELECT NULL UNION ALL SELECT 1 ORDER BY 1").await, ["1", "NULL"]);
    let out = client.copy_out(&format!("COPY ({union}) TO STDOUT")).await.unwrap();
    let out: Vec<_> = pin!(out).map(|chunk| chunk.unwrap()).collect().await;
    assert_eq!(out.concat(), b"1.0\n2.5\n");
    let error = client.prepare("SELECT 1 UNION ALL SELECT 'x'").await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "22P02");
}

#[tokio::test]
async fn columns_have_the_types_that_the_catalog_says() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (a BOOLEAN, b INT, c BIGINT, d REAL, e DOUBLE PRECISION, \
             f DECIMAL(10, 2), g TEXT, h BYTEA, i DATE, k TIMESTAMP, l TIMESTAMPTZ, \
             m INT[], n TEXT[], o UUID)",
        )
        .await
        .unwrap();
    let described = client.prepare("SELECT * FROM t").await.unwrap();
    let described: Vec<u32> = described.columns().iter().map(|c| c.type_().oid()).collect();
    let catalog = client
        .simple_query(
            "SELECT atttypid FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
             WHERE relname = 't' AND attnum > 0 ORDER BY attnum",
        )
        .await
        .unwrap();
    let catalog: Vec<u32> = catalog
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap().parse().unwrap()),
            _ => None,
        })
        .collect();
    assert_eq!(described, catalog);
}

#[tokio::test]
async fn arrays_are_parameters() {
    let server = Server::start().await;
    let client = server.connect().await;
    let row = client
        .query_one(
            "SELECT count(*) FROM generate_series(1, 10) AS s(value) WHERE value = ANY($1)",
            &[&vec![2_i32, 4, 99]],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 2);
    let row = client.query_one("SELECT ARRAY['a', NULL]", &[]).await.unwrap();
    assert_eq!(row.get::<_, Vec<Option<&str>>>(0), [Some("a"), None]);
}

#[tokio::test]
async fn portals_are_fetched_in_parts() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction
        .bind(
            "SELECT value FROM generate_series(1, 99999) AS s(value) ORDER BY value LIMIT $1",
            &[&10_000_i64],
        )
        .await
        .unwrap();
    let mut next = 1_i32;
    loop {
        let rows = transaction.query_portal(&portal, 3000).await.unwrap();
        for row in &rows {
            assert_eq!(row.get::<_, i32>(0), next);
            next += 1;
        }
        if rows.len() < 3000 {
            break;
        }
    }
    assert_eq!(next, 10_001);
    // One query, however often it was fetched.
    assert_eq!(server.engine.queries().totals().started, 1);
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn large_results_arrive_whole() {
    let server = Server::start().await;
    let client = server.connect().await;
    let rows = client
        .query_raw(
            "SELECT value, repeat('x', 100) FROM generate_series(1, 200000) AS s(value) ORDER BY value",
            Vec::<i32>::new(),
        )
        .await
        .unwrap();
    let mut rows = pin!(rows);
    let mut sum = 0;
    while let Some(row) = rows.try_next().await.unwrap() {
        assert_eq!(row.get::<_, &str>(1).len(), 100);
        sum += i64::from(row.get::<_, i32>(0));
    }
    assert_eq!(sum, 200_000 * 200_001 / 2);
}

#[tokio::test]
async fn copy_goes_both_ways() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (i INT, s TEXT)").await.unwrap();
    let sink = client.copy_in("COPY t FROM STDIN").await.unwrap();
    let mut sink = pin!(sink);
    for i in 0..1000 {
        sink.send(bytes::Bytes::from(format!("{i}\trow {i}\n"))).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), 1000);
    let out = client.copy_out("COPY (SELECT * FROM t ORDER BY i) TO STDOUT").await.unwrap();
    let chunks: Vec<_> = pin!(out).map(|chunk| chunk.unwrap()).collect().await;
    let text = String::from_utf8(chunks.concat()).unwrap();
    assert_eq!(text.lines().count(), 1000);
    assert!(text.starts_with("0\trow 0\n1\trow 1\n"));
}

#[tokio::test]
async fn binary_copy_goes_both_ways() {
    let server = Server::start().await;
    let client = server.connect().await;
    let columns = "i INT, l BIGINT, f DOUBLE PRECISION, s TEXT, b BYTEA, ok BOOLEAN, a BIGINT[]";
    client.batch_execute(&format!("CREATE TABLE t ({columns})")).await.unwrap();
    client.batch_execute(&format!("CREATE TABLE u ({columns})")).await.unwrap();
    // As drivers learn the types: from a query of the table.
    let types = client.prepare("SELECT * FROM t").await.unwrap();
    let types: Vec<Type> = types.columns().iter().map(|c| c.type_().clone()).collect();
    let sink = client.copy_in("COPY t FROM STDIN WITH (FORMAT binary)").await.unwrap();
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    for i in 0..1000_i32 {
        let (text, array) = (format!("row {i}"), vec![Some(i64::from(i)), None]);
        let bytes = (i % 2 == 0).then(|| vec![0_u8, 255]);
        let values: [&(dyn ToSql + Sync); 7] =
            [&i, &i64::MIN, &0.1, &text, &bytes, &(i % 3 == 0), &array];
        writer.as_mut().write(&values).await.unwrap();
    }
    assert_eq!(writer.finish().await.unwrap(), 1000);

    let query = "COPY (SELECT * FROM t ORDER BY i) TO STDOUT (FORMAT binary)";
    let out = client.copy_out(query).await.unwrap();
    let rows: Vec<_> =
        BinaryCopyOutStream::new(out, &types).map(|row| row.unwrap()).collect().await;
    assert_eq!(rows.len(), 1000);
    assert_eq!(rows[7].get::<i32>(0), 7);
    assert_eq!(rows[7].get::<f64>(2), 0.1);
    assert_eq!(rows[7].get::<&str>(3), "row 7");
    assert_eq!(rows[7].get::<Option<&[u8]>>(4), None);
    assert_eq!(rows[7].get::<Vec<Option<i64>>>(6), [Some(7), None]);

    // What comes out goes in as it is.
    let out = client.copy_out(query).await.unwrap();
    let out: Vec<_> = pin!(out).map(|chunk| chunk.unwrap()).collect().await;
    let mut sink = pin!(client.copy_in("COPY BINARY u FROM STDIN").await.unwrap());
    for chunk in out {
        sink.send(chunk).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), 1000);
    let columns = "i, l, f, s, b, ok";
    let left = format!("SELECT {columns} FROM t EXCEPT SELECT {columns} FROM u");
    let left = client.query_one(&format!("SELECT count(*) FROM ({left}) AS x"), &[]).await;
    assert_eq!(left.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn a_running_query_is_cancelled() {
    let server = Server::start().await;
    let client = server.connect().await;
    let token = client.cancel_token();
    let running = stoa_env::task::spawn(async move {
        let result = client.simple_query(ENDLESS).await;
        (client, result)
    });
    server.until_running(1).await;
    token.cancel_query(NoTls).await.unwrap();
    let (client, result) = within(running).await.unwrap();
    assert_eq!(result.unwrap_err().code().unwrap().code(), "57014");
    client.simple_query("SELECT 1").await.unwrap();
}

#[tokio::test]
async fn errors_carry_what_is_known() {
    let server = Server::start().await;
    let client = server.connect().await;
    let error = client.query("SELECT * FROM nothing", &[]).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "42P01");
    assert!(error.message().contains("nothing"));
    client.query("SELECT 1", &[]).await.unwrap();
}

#[tokio::test]
async fn settings_are_the_connections_own() {
    let server = Server::start().await;
    let (one, other) = (server.connect().await, server.connect().await);
    one.batch_execute("SET TimeZone = 'Asia/Tokyo'").await.unwrap();
    let zone = async |client: &tokio_postgres::Client| {
        let messages = client.simple_query("SHOW TimeZone").await.unwrap();
        messages.into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
    };
    assert_eq!(zone(&one).await.as_deref(), Some("Asia/Tokyo"));
    assert_eq!(zone(&other).await.as_deref(), Some("UTC"));
    one.batch_execute("DISCARD ALL").await.unwrap();
    assert_eq!(zone(&one).await.as_deref(), Some("UTC"));
}

#[tokio::test]
async fn no_statement_writes_or_reads_a_file() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (a bigint)").await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.csv");
    let copy =
        format!("EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{}' STORED AS CSV", file.display());
    let code = |error: tokio_postgres::Error| error.code().unwrap().code().to_owned();
    assert_eq!(code(client.batch_execute(&copy).await.unwrap_err()), "0A000");
    assert_eq!(code(client.prepare(&copy).await.unwrap_err()), "0A000");
    assert!(!file.exists());
    std::fs::write(&file, "a\n1\n").unwrap();
    let read = format!("COPY t FROM '{}'", file.display());
    assert_eq!(code(client.batch_execute(&read).await.unwrap_err()), "42501");
    let reject = format!("WITH (max_errors '1', reject_file '{}')", file.display());
    let send = format!("COPY t FROM STDIN {reject}");
    assert_eq!(code(client.batch_execute(&send).await.unwrap_err()), "0A000");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\n1\n");
}
