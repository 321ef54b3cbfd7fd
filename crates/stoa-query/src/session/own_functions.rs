//! Functions that tell of the session in which they are called, and change it.

use std::sync::{Arc, Weak};

use datafusion::execution::session_state::SessionState;
use stoa_error::{Error, Result};
use stoa_pg_catalog::{KnownTables, Role, SessionSettings, Setting};

use super::{Session, SessionOptions};
use crate::access::Caller;
use crate::catalogs::pg::{OwnSettings, shown};

/// Gives `state` the functions of a session. A state without them would say that there are no such functions.
pub(super) fn install(
    state: &mut SessionState,
    session: &Weak<Session>,
    options: &SessionOptions,
    caller: &Arc<Caller>,
    tables: &Arc<KnownTables>,
) {
    let settings: Arc<dyn SessionSettings> = Arc::new(SettingsOf(Weak::clone(session)));
    state.config_mut().set_extension(Arc::new(OwnSettings(Arc::clone(&settings))));
    // None of them fails: the state takes functions.
    let _ = stoa_pg_catalog::set_settings(state, &settings);
    super::backend_functions::install(state, session);
    super::ending::install(state, session);
    let _ = stoa_pg_catalog::set_user(state, &options.user);
    let _ = stoa_pg_catalog::set_tables(state, tables);
    if caller.is_asked() {
        let role = Arc::clone(caller) as Arc<dyn Role>;
        let _ = stoa_pg_catalog::set_rights(state, &role, tables);
    }
}

/// The settings of a session, for as long as it is there.
struct SettingsOf(Weak<Session>);

impl std::fmt::Debug for SettingsOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SettingsOf")
    }
}

impl SettingsOf {
    fn session(&self) -> Result<Arc<Session>> {
        self.0.upgrade().ok_or_else(|| Error::internal("a session ended while it was asked"))
    }
}

impl SessionSettings for SettingsOf {
    fn get(&self, name: &str) -> Result<String> {
        self.session()?.setting(name)
    }

    fn set(&self, name: &str, value: Option<&str>, is_local: bool) -> Result<String> {
        let session = self.session()?;
        if is_local && !session.block.is_open() {
            // The transaction is this statement: what it sets is gone when it ends.
            let mut settings = session.settings.lock().clone();
            settings.set(name, value)?;
            return settings.get(name);
        }
        match is_local {
            true => session.set_local(name, value)?,
            false => session.set(name, value)?,
        }
        session.setting(name)
    }

    fn rows(&self) -> Vec<Setting> {
        let rows = |session: Arc<Session>| session.settings.lock().rows();
        self.session().map(rows).unwrap_or_default().into_iter().map(shown).collect()
    }
}
