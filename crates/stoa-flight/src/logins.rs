//! Tokens of logins, as daemons tell each other about them.

use bytes::Bytes;
use prost::Message;
use stoa_error::Result;
use stoa_query::Engine;

use crate::client::Client;
use crate::handles::Handle;
use crate::question::{Question, Setting, What, read};

/// Whose token it is, and all that makes a session there mean the same by a statement.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Login {
    #[prost(string, tag = "1")]
    pub(crate) user: String,
    #[prost(string, tag = "2")]
    pub(crate) application: String,
    /// The settings of its session that are not the default.
    #[prost(message, repeated, tag = "3")]
    pub(crate) settings: Vec<Setting>,
}

impl Login {
    /// # Errors
    /// 0A000: the session has what no other one can have.
    pub(crate) fn of(client: &Client) -> Result<Self> {
        let settings = client.session.settings_for_another()?;
        let settings = settings.into_iter().map(|(name, value)| Setting { name, value });
        Ok(Self {
            user: client.user.clone(),
            application: client.application.clone(),
            settings: settings.collect(),
        })
    }
}

/// Asks the daemon that gave a token; `None` if that is this one, or is gone.
///
/// # Errors
/// 28000: it does not know it; 0A000: the session is bound to it; 57P03: it does not answer.
pub(crate) async fn ask(engine: &Engine, token: Handle) -> Result<Option<Login>> {
    let answer =
        engine.ask_about_ticket(token.daemon(), question(engine, What::Login, token)).await?;
    answer.map(read).transpose()
}

/// Has all other daemons end their sessions of a token. One that does not answer ends its own when it was idle for long.
pub(crate) async fn close_elsewhere(engine: &Engine, token: Handle) {
    engine.tell_others_about_ticket(question(engine, What::Logout, token)).await;
}

fn question(engine: &Engine, what: What, token: Handle) -> Bytes {
    let (what, handle, asker) = (what as i32, token.bytes(), engine.daemon_number());
    Question { what, handle, asker, ..Question::default() }.encode_to_vec().into()
}
