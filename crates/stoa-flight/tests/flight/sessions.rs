//! Whose session a call runs in.

use tonic::Code;

use crate::support::*;

async fn log_in(client: &mut Client, user: &str) {
    let token = client.handshake(user, "any").await.unwrap();
    client.set_token(String::from_utf8(token.to_vec()).unwrap());
}

#[tokio::test]
async fn settings_stay_with_the_token_or_else_the_connection() {
    let server = Server::start().await;
    let mut anonymous = server.client().await;
    run(&mut anonymous, "CREATE SCHEMA one").await;
    run(&mut anonymous, "CREATE TABLE one.t (id bigint)").await;
    run(&mut anonymous, "SET search_path = one").await;
    assert_eq!(shown(&mut anonymous, "SELECT count(*) FROM t").await, ["0"]);
    let mut other = server.client().await;
    assert!(query(&mut other, "SELECT count(*) FROM t").await.is_err());

    log_in(&mut other, "me").await;
    run(&mut other, "SET search_path = one").await;
    let mut elsewhere = server.client().await;
    elsewhere.set_token(other.token().unwrap().clone());
    assert_eq!(shown(&mut elsewhere, "SELECT count(*) FROM t").await, ["0"]);
    assert_eq!(server.engine.queries().recent()[0].user, "me");
}

#[tokio::test]
async fn an_unknown_token_is_refused() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for token in ["x", "0123456789abcdef0123456789abcdef"] {
        client.set_token(token.to_owned());
        let error = query(&mut client, "SELECT 1").await.unwrap_err();
        is_error(&error, Code::Unauthenticated, &["token", "connect again"]);
    }
    client.clear_token();
    log_in(&mut client, "me").await;
    assert_eq!(shown(&mut client, "SELECT 1").await, ["1"]);
}
