//! sqlx against a server: what its pool asks for, values of all types, arrays, transactions, COPY.

use crate::common::Server;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow, PgSslMode};
use sqlx::{Column, Connection, Executor, Row, TypeInfo};

async fn pool(server: &Server) -> PgPool {
    let options = PgConnectOptions::new()
        .host("127.0.0.1")
        .port(server.port)
        .username("test")
        .database("stoa")
        .ssl_mode(PgSslMode::Disable);
    PgPoolOptions::new().max_connections(3).connect_with(options).await.unwrap()
}

#[tokio::test]
async fn values_go_in_and_come_out() {
    let server = Server::start().await;
    let pool = pool(&server).await;
    pool.execute(
        "CREATE TABLE t (i INT, l BIGINT, f DOUBLE PRECISION, r REAL, s TEXT, b BYTEA, ok BOOLEAN)",
    )
    .await
    .unwrap();
    let insert = "INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let written = sqlx::query(insert)
        .bind(1_i32)
        .bind(2_i64)
        .bind(0.1_f64)
        .bind(1.5_f32)
        .bind("ä")
        .bind(&[0_u8, 255][..])
        .bind(true)
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(written.rows_affected(), 1);
    let nulls = sqlx::query(insert)
        .bind(None::<i32>)
        .bind(None::<i64>)
        .bind(None::<f64>)
        .bind(None::<f32>)
        .bind(None::<&str>)
        .bind(None::<&[u8]>)
        .bind(None::<bool>);
    assert_eq!(nulls.execute(&pool).await.unwrap().rows_affected(), 1);
    type Record = (
        Option<i32>,
        Option<i64>,
        Option<f64>,
        Option<f32>,
        Option<String>,
        Option<Vec<u8>>,
        Option<bool>,
    );
    let rows: Vec<Record> =
        sqlx::query_as("SELECT * FROM t ORDER BY i NULLS LAST").fetch_all(&pool).await.unwrap();
    let first: Record = (
        Some(1),
        Some(2),
        Some(0.1),
        Some(1.5),
        Some("ä".to_owned()),
        Some(vec![0, 255]),
        Some(true),
    );
    assert_eq!(rows, [first, (None, None, None, None, None, None, None)]);
}

#[tokio::test]
async fn results_have_the_types_that_sqlx_expects() {
    let server = Server::start().await;
    let pool = pool(&server).await;
    let row: PgRow = sqlx::query(
        "SELECT 1, 3000000000, count(*), row_number() OVER (), ARRAY[1, 2], 'x', 1 = 1, sum(2), 0.5::float8 \
         FROM (VALUES (1)) AS v (n)",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    let types: Vec<&str> = row.columns().iter().map(|column| column.type_info().name()).collect();
    let expected = ["INT4", "INT8", "INT8", "INT8", "INT4[]", "TEXT", "BOOL", "INT8", "FLOAT8"];
    assert_eq!(types, expected);
    assert_eq!((row.get::<i32, _>(0), row.get::<i64, _>(1)), (1, 3_000_000_000));
    assert_eq!(row.get::<Vec<i32>, _>(4), [1, 2]);
    let ids = sqlx::query_scalar::<_, i32>(
        "SELECT n FROM generate_series(1, 9) AS s (n) WHERE n = ANY($1) ORDER BY n",
    )
    .bind(vec![2_i32, 5, 40])
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(ids, [2, 5]);
    let error = sqlx::query("SELECT nothing FROM nowhere").fetch_all(&pool).await.unwrap_err();
    let error = error.as_database_error().unwrap();
    assert_eq!(error.code().as_deref(), Some("42P01"));
    // The connection is as good as before.
    assert_eq!(sqlx::query_scalar::<_, i32>("SELECT 7").fetch_one(&pool).await.unwrap(), 7);
}

#[tokio::test]
async fn transactions_and_copy_do_what_they_say() {
    let server = Server::start().await;
    let pool = pool(&server).await;
    pool.execute("CREATE TABLE t (id BIGINT, name TEXT)").await.unwrap();
    let count = async || {
        sqlx::query_scalar::<_, i64>("SELECT count(*) FROM t").fetch_one(&pool).await.unwrap()
    };
    let insert = "INSERT INTO t VALUES ($1, $2)";
    let mut undone = pool.begin().await.unwrap();
    sqlx::query(insert).bind(1_i64).bind("a").execute(&mut *undone).await.unwrap();
    undone.rollback().await.unwrap();
    assert_eq!(count().await, 0);
    let mut done = pool.begin().await.unwrap();
    sqlx::query(insert).bind(1_i64).bind("a").execute(&mut *done).await.unwrap();
    let mut inner = done.begin().await.unwrap();
    sqlx::query(insert).bind(2_i64).bind("b").execute(&mut *inner).await.unwrap();
    inner.rollback().await.unwrap();
    done.commit().await.unwrap();
    assert_eq!(count().await, 1);
    let mut connection = pool.acquire().await.unwrap();
    let mut copy = connection.copy_in_raw("COPY t FROM STDIN (FORMAT csv)").await.unwrap();
    copy.send("3,c\n4,d\n".as_bytes()).await.unwrap();
    assert_eq!(copy.finish().await.unwrap(), 2);
    assert_eq!(count().await, 3);
}
