//! What can be done with views in a warehouse.
//!
//! As for tables, the catalog says of each change whether it was made. Where it cannot (08007), the
//! metadata file stays, because the pointer may reach it.

use std::sync::Arc;

use futures::future::BoxFuture;
use stoa_catalog::TableIdent;
use stoa_error::{Condition, Error, ErrorKind, Result};

use super::{View, ViewChange, ViewMetadata, ViewSpec, build};
use crate::Warehouse;
use crate::commit::version_of;
use crate::failpoint;
use crate::name::check_name;

/// How often a change of a name is tried while others move its pointer.
const POINTER_TRIES: usize = 100;

impl Warehouse {
    /// The views of a namespace, by name.
    ///
    /// # Errors
    /// `NotFound` (3F000).
    pub fn views<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, Result<Vec<TableIdent>>> {
        Box::pin(async move {
            let names = self.catalog().views(namespace).await?;
            Ok(names.into_iter().map(|name| TableIdent::new(namespace, name)).collect())
        })
    }

    /// Opens a view at its current version. The pointer is read every time; the metadata it points to
    /// is cached.
    ///
    /// # Errors
    /// `NotFound` (42P01, 3F000); `Invalid` (42809) where it is a table; `Corrupt` or `Unsupported`,
    /// naming the file, where its metadata cannot be read.
    pub fn view<'a>(&'a self, ident: &'a TableIdent) -> BoxFuture<'a, Result<View>> {
        Box::pin(async move {
            let mut location = self.catalog().view_pointer(ident).await?;
            loop {
                let error = match self.view_metadata(&location).await {
                    Ok(metadata) => return Ok(opened(ident, metadata, location)),
                    Err(error) => error,
                };
                // Many changes ago the file was there: old metadata files are deleted.
                let now = self.catalog().view_pointer(ident).await?;
                if now == location {
                    return Err(error.at(format!("view {ident}")));
                }
                location = now;
            }
        })
    }

    /// Makes a view.
    ///
    /// # Errors
    /// `AlreadyExists` (42P07) where a table or view has the name, `NotFound` (3F000), `Invalid` or
    /// `Unsupported` for a specification that cannot be.
    pub fn create_view<'a>(
        &'a self,
        ident: &'a TableIdent,
        spec: &'a ViewSpec,
    ) -> BoxFuture<'a, Result<View>> {
        Box::pin(async move {
            check_name("view", &ident.name)?;
            self.catalog().check_free(ident).await?;
            let location = self.free_location(ident).await?;
            let new = ViewMetadata::new(self.env().uuid(), location);
            let first = build::defined(ident, &new, spec, self.env().unix_ms())?;
            let (location, metadata) = self.write_view_version(ident, first, 0).await?;
            failpoint::at("commit.metadata_written").await?;
            let created = self.catalog().create_view(ident, &location).await;
            failpoint::at("commit.swapped").await?;
            self.settle_view(ident, &location, created).await?;
            Ok(opened(ident, metadata, location))
        })
    }

    /// Makes `spec` the definition of a view that is at the version `old` still. UUID, owner, grants and
    /// columns' comments stay; properties are those of `spec`.
    ///
    /// # Errors
    /// `Conflict` (40001) where somebody else changed it first: open it again, and look whether it may
    /// still be replaced. `NotFound` (42P01) where it is gone, `Invalid` (42809) where a table has its
    /// name now, `Invalid` (2BP01) where a query in another dialect would be lost, `Invalid` or
    /// `Unsupported` for a specification that cannot be.
    pub fn replace_view<'a>(
        &'a self,
        old: &'a View,
        spec: &'a ViewSpec,
    ) -> BoxFuture<'a, Result<View>> {
        Box::pin(async move {
            let now_ms = self.env().unix_ms();
            self.advance_view(old, build::defined(old.ident(), &old.metadata, spec, now_ms)?).await
        })
    }

    /// Changes properties or comments of a view that is at the version `old` still.
    ///
    /// # Errors
    /// `NotFound` (42703) for a column that it does not have; otherwise as [`Self::replace_view`].
    pub fn alter_view<'a>(
        &'a self,
        old: &'a View,
        change: &'a ViewChange,
    ) -> BoxFuture<'a, Result<View>> {
        Box::pin(async move {
            let now_ms = self.env().unix_ms();
            self.advance_view(old, build::altered(old.ident(), &old.metadata, change, now_ms)?)
                .await
        })
    }

    async fn advance_view(&self, old: &View, next: ViewMetadata) -> Result<View> {
        let (ident, from) = (old.ident(), old.metadata_location());
        let number = version_of(from).saturating_add(1);
        let (location, metadata) = self.write_view_version(ident, next, number).await?;
        failpoint::at("commit.metadata_written").await?;
        let swapped = self.catalog().swap_view(ident, from, &location).await;
        failpoint::at("commit.swapped").await?;
        self.settle_view(ident, &location, swapped).await?;
        self.forget_old_view_files(&metadata, &location).await;
        Ok(opened(ident, metadata, location))
    }

    async fn write_view_version(
        &self,
        ident: &TableIdent,
        metadata: ViewMetadata,
        number: u64,
    ) -> Result<(String, Arc<ViewMetadata>)> {
        let written = self.write_view_metadata(metadata, number).await;
        written.map_err(|error| error.at(format!("view {ident}")))
    }

    /// After an error of the catalog: was the change made all the same? If certainly not, its file goes.
    async fn settle_view(
        &self,
        ident: &TableIdent,
        location: &str,
        changed: Result<()>,
    ) -> Result<()> {
        let Err(error) = changed else { return Ok(()) };
        let is_refused = matches!(
            error.kind(),
            ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::AlreadyExists
        ) || error.is(Condition::WrongObjectType);
        if !is_refused {
            match self.catalog().view_pointer(ident).await {
                Ok(now) if now == location => return Ok(()),
                // That the pointer is another proves nothing then; see `commit`.
                _ if error.is(Condition::UnknownOutcome) => return Err(error),
                Ok(_) => {}
                Err(now) if now.kind() == ErrorKind::NotFound => {}
                Err(_) => return Err(error),
            }
        }
        self.forget_view_file(location).await;
        Err(error)
    }

    /// Renames a view; its files stay where they are.
    ///
    /// # Errors
    /// `NotFound` (42P01, 3F000), `Invalid` (42809) where it is a table, `AlreadyExists` (42P07).
    pub fn rename_view<'a>(
        &'a self,
        from: &'a TableIdent,
        to: &'a TableIdent,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            check_name("view", &to.name)?;
            self.catalog().rename_view(from, to).await
        })
    }

    /// Renames `view`, at whatever version it is, and no other of its name.
    ///
    /// # Errors
    /// As [`Self::drop_only_view`] and [`Self::rename_view`].
    pub fn rename_only_view<'a>(
        &'a self,
        view: &'a View,
        to: &'a TableIdent,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            check_name("view", &to.name)?;
            for _ in 1..POINTER_TRIES {
                let now = self.same_view(view).await?;
                let at = now.metadata_location();
                match self.catalog().rename_view_at(view.ident(), at, to).await {
                    Err(error) if error.kind() == ErrorKind::Conflict => {}
                    renamed => return renamed,
                }
            }
            Err(busy(view.ident()))
        })
    }

    /// Forgets a view and deletes its files, even one whose metadata cannot be read. Owner and grants stay
    /// until `forget_table` of the catalog.
    ///
    /// # Errors
    /// `NotFound` (42P01), `Invalid` (42809) where it is a table. A failure to delete files is logged
    /// and leaves them behind.
    pub fn drop_view<'a>(&'a self, ident: &'a TableIdent) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let location = self.catalog().drop_view(ident).await?;
            self.purge_view(ident, &location).await;
            Ok(())
        })
    }

    /// Forgets `view` at whatever version it is, and no other of its name, and deletes its files.
    ///
    /// # Errors
    /// `NotFound` (42P01) where it is gone, or its name is another view's; `Invalid` (42809) where its name
    /// is a table's; `Conflict` where it changes faster than it is read.
    pub fn drop_only_view<'a>(&'a self, view: &'a View) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let ident = view.ident();
            for _ in 1..POINTER_TRIES {
                let now = self.same_view(view).await?;
                match self.catalog().drop_view_at(ident, now.metadata_location()).await {
                    Err(error) if error.kind() == ErrorKind::Conflict => continue,
                    dropped => dropped?,
                }
                self.purge_view(ident, now.metadata_location()).await;
                return Ok(());
            }
            Err(busy(ident))
        })
    }

    /// `view` as it is now.
    async fn same_view(&self, view: &View) -> Result<View> {
        let now = self.view(view.ident()).await?;
        match now.uuid() == view.uuid() {
            true => Ok(now),
            false => Err(Error::not_found(format!("view {} was dropped", view.ident()))
                .with_condition(Condition::UndefinedTable)
                .with_hint("another view has its name now; start again")),
        }
    }

    async fn purge_view(&self, ident: &TableIdent, location: &str) {
        let purged = match self.view_metadata(location).await {
            Ok(metadata) => self.forget_all_view_files(&metadata).await,
            Err(error) => Err(error),
        };
        if let Err(error) = purged {
            tracing::warn!(view = %ident, %error, "files of a dropped view stay behind");
        }
    }
}

fn opened(ident: &TableIdent, metadata: Arc<ViewMetadata>, metadata_location: String) -> View {
    View { ident: ident.clone(), metadata, metadata_location }
}

fn busy(ident: &TableIdent) -> Error {
    Error::conflict(format!("view {ident} changes faster than it can be read"))
        .with_hint("retry later")
}
