//! Logging in where passwords are asked for: how often one may try.

use crate::common::Server;
use stoa_query::{EngineOptions, SessionOptions};
use tokio_postgres::NoTls;

async fn guarded() -> Server {
    let server =
        Server::start_as(|options| EngineOptions { access_control: true, ..options }).await;
    let trusted = SessionOptions { is_trusted: true, ..SessionOptions::default() };
    let session = server.engine.session(trusted);
    for role in ["ann", "bob"] {
        session.sql(&format!("CREATE USER {role} PASSWORD 'pencil'")).await.unwrap();
    }
    server
}

/// The SQLSTATE of a login that is refused.
async fn refused(server: &Server, role: &str, password: &str) -> Option<String> {
    let mut config = server.config();
    let tried = config.user(role).password(password).connect(NoTls).await;
    tried.err().map(|error| error.code().unwrap().code().to_owned())
}

#[tokio::test]
async fn passwords_are_not_guessed_at_will() {
    let server = guarded().await;
    assert_eq!(refused(&server, "ann", "pencil").await, None);
    let mut limited = false;
    // Each try that is looked at after the tenth makes a pause that is twice as long.
    for number in 0..40 {
        let code = refused(&server, "ann", &format!("guess {number}")).await.unwrap();
        if code == "53400" {
            assert!(number > 10, "{number}");
            limited = true;
            break;
        }
        assert_eq!(code, "28P01", "{number}");
    }
    assert!(limited, "no try is refused");
    // Whoever is not there is counted in the same way: nobody learns who is.
    let mut codes = Vec::new();
    for _ in 0..40 {
        codes.push(refused(&server, "nobody", "pencil").await.unwrap());
    }
    assert!(codes[..11].iter().all(|code| code == "28P01"), "{codes:?}");
    assert!(codes.contains(&"53400".to_owned()), "{codes:?}");
    assert_eq!(refused(&server, "bob", "pencil").await, None);
}
