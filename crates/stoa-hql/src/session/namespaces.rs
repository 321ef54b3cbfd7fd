//! USE, CREATE and DROP NAMESPACE, GET LISTING, SHOW TABLES.

use stoa_error::{ErrorKind, Result};

use super::Session;
use crate::output::Output;
use crate::store::errors;

impl Session {
    pub(super) async fn use_namespace(&mut self, name: &str) -> Result<()> {
        let namespace = self.namespace.resolve(name)?;
        if !self.store.namespace_exists(&namespace).await? {
            return Err(errors::missing_namespace(&namespace));
        }
        self.namespace = namespace;
        Ok(())
    }

    pub(super) async fn create_namespace(&self, name: &str, if_not_exists: bool) -> Result<()> {
        let namespace = self.namespace.resolve(name)?;
        if if_not_exists && self.store.namespace_exists(&namespace).await? {
            return Ok(());
        }
        match self.store.create_namespace(&namespace).await {
            Err(e) if if_not_exists && e.kind() == ErrorKind::AlreadyExists => {
                // Made by somebody else since; unless it is a table.
                if self.store.namespace_exists(&namespace).await? { Ok(()) } else { Err(e) }
            }
            other => other,
        }
    }

    pub(super) async fn drop_namespace(&self, name: &str, if_exists: bool) -> Result<()> {
        let namespace = self.namespace.resolve(name)?;
        match self.store.drop_namespace(&namespace).await {
            Err(e) if if_exists && e.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    pub(super) async fn list(&self, with_namespaces: bool, out: &mut dyn Output) -> Result<()> {
        let mut text = String::new();
        for entry in self.store.listing(&self.namespace).await? {
            match entry.is_namespace {
                true if with_namespaces => text.push_str(&format!("{}\t(namespace)\n", entry.name)),
                true => {}
                false => text.push_str(&format!("{}\n", entry.name)),
            }
        }
        out.write(text.as_bytes())
    }
}
