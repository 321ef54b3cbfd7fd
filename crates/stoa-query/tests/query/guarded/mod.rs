//! An engine that asks who somebody is, and what is said to whom.

// Each suite uses some of it.
#![allow(dead_code)]

use std::path::Path;
use std::sync::Arc;

use arrow::util::pretty::pretty_format_batches;
use stoa_error::Error;
use stoa_query::{Engine, EngineOptions, Outcome, Session, SessionOptions};
use url::Url;

pub struct Home {
    pub engine: Arc<Engine>,
    /// Somebody who may do everything.
    pub root: Arc<Session>,
    directory: tempfile::TempDir,
}

impl Home {
    /// With these roles, which may log in with the password `pencil`.
    pub async fn new(roles: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path(), "log").await;
        let root = engine.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
        let home = Self { engine, root, directory };
        for role in roles {
            home.run(&format!("CREATE USER {role} PASSWORD 'pencil'")).await;
        }
        home
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub async fn run(&self, sql: &str) {
        said(&self.root, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    pub fn session_of(&self, role: &str) -> Arc<Session> {
        let user = role.to_owned();
        self.engine.session(SessionOptions { user, ..SessionOptions::default() })
    }
}

pub async fn open(directory: &Path, log: &str) -> Arc<Engine> {
    let url = |name: &str| Url::from_directory_path(directory.join(name)).unwrap();
    let options = EngineOptions {
        logs: Some(url(log)),
        access_control: true,
        ..EngineOptions::new(url("warehouse"))
    };
    Engine::open(options).await.unwrap()
}

/// The rows as text, with notices.
pub async fn said(session: &Session, sql: &str) -> Result<String, Error> {
    match session.sql(sql).await? {
        Outcome::Rows(rows) => {
            let rows = rows.collect().await?;
            Ok(pretty_format_batches(&rows).unwrap().to_string())
        }
        Outcome::Done(done) => Ok(format!("{} {}", done.tag, done.notices.join("; "))),
        Outcome::CopyIn(copy) => {
            let columns = copy.columns();
            Ok(format!("{columns:?} {:?}", copy.finish().await))
        }
    }
}

/// All that a client may be shown: rows, or everything that an error says.
pub async fn shown(session: &Session, sql: &str) -> String {
    said(session, sql).await.unwrap_or_else(|error| format!("{error:?}"))
}

/// The SQLSTATE, or `ok`.
pub async fn code(session: &Session, sql: &str) -> &'static str {
    said(session, sql).await.err().map_or("ok", |error| error.sqlstate())
}
