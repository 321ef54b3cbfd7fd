//! Who may run which programs, and the files that a session has added for them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;
use stoa_error::{Error, ErrorKind, Result};
use stoa_script::{Allowed, Guard, Launch, SessionFiles};

use crate::access::Caller;

/// Which programs rows may go through; none by default.
#[derive(Clone, Debug, Default)]
pub struct ScriptOptions {
    /// Files and folders: see [`Allowed`].
    pub listed: Vec<PathBuf>,
    /// Roles whose members may run them, beside superusers.
    pub roles: Vec<String>,
    /// The binary that is a [`Guard`]; without it, nothing runs.
    pub guard: Option<PathBuf>,
}

/// What all sessions have together.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    allowed: Allowed,
    roles: Vec<String>,
    guard: Option<Guard>,
}

impl Scripts {
    /// Programs run in folders within `folder`, or the system's for temporary files.
    ///
    /// # Errors
    /// 22023 for a listed file that is not there.
    pub(crate) fn open(options: ScriptOptions, folder: Option<&Path>) -> Result<Self> {
        let folder = folder.map_or_else(std::env::temp_dir, Path::to_owned);
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let guard = options.guard.map(|binary| Guard::new(binary, folder));
        Ok(Self { allowed: Allowed::resolved(&options.listed)?, roles: options.roles, guard })
    }
}

/// What a session may run. Plans take it along to where programs run.
pub(crate) struct SessionScripts {
    shared: Arc<Scripts>,
    caller: Arc<Caller>,
    files: Mutex<SessionFiles>,
}

impl fmt::Debug for SessionScripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionScripts")
    }
}

impl SessionScripts {
    pub(crate) fn new(config: &SessionConfig, caller: &Arc<Caller>) -> Self {
        let shared = config.get_extension::<Scripts>().unwrap_or_default();
        Self { shared, caller: Arc::clone(caller), files: Mutex::default() }
    }

    /// Adds files.
    ///
    /// # Errors
    /// 42501: scripts are off, the role may not run any, or a file is in no listed folder; 58P01 and the like. Nothing was
    /// added then.
    pub(crate) fn add(&self, paths: &[String]) -> Result<()> {
        self.check()?;
        let mut files = self.files.lock();
        let mut added = files.clone();
        paths.iter().try_for_each(|path| self.shared.allowed.add(&mut added, path))?;
        *files = added;
        Ok(())
    }

    /// Takes files out, by path or name; all if none is named. One that is not there is no error, as in Hive.
    pub(crate) fn remove(&self, paths: &[String]) {
        let mut files = self.files.lock();
        if paths.is_empty() {
            files.clear();
        }
        for path in paths {
            let _ = files.remove(path);
        }
    }

    /// Where its files are.
    pub(crate) fn files(&self) -> Vec<String> {
        let files = self.files.lock();
        files.all().iter().map(|(_, path)| path.display().to_string()).collect()
    }

    /// What runs for a command.
    ///
    /// # Errors
    /// 42501: scripts are off, or the role may not run any, or not this one.
    pub(crate) fn launch(&self, command: &str) -> Result<(Guard, Launch)> {
        self.check()?;
        let launch = self.shared.allowed.launch(command, &self.files.lock())?;
        let guard = self.shared.guard.clone();
        Ok((guard.ok_or_else(|| Error::internal("nothing runs scripts"))?, launch))
    }

    fn check(&self) -> Result<()> {
        if self.shared.allowed.is_off() || self.shared.guard.is_none() {
            return Err(forbidden("scripts are off".to_owned())
                .with_hint("an administrator can list programs in the setting scripts"));
        }
        if self.caller.may_everything() {
            return Ok(());
        }
        let (policy, role) = (self.caller.policy(), self.caller.role());
        let member_of = policy.memberships().roles_of(role);
        match self.shared.roles.iter().any(|role| member_of.contains(role.as_str())) {
            true => Ok(()),
            false => Err(forbidden("permission denied: the role may not run scripts".to_owned())
                .with_hint(format!(
                    "an administrator can list \"{role}\", or a role that it is a member of, in the setting script_roles"
                ))),
        }
    }
}

fn forbidden(message: String) -> Error {
    Error::new(ErrorKind::Forbidden, message).with_sqlstate("42501")
}
