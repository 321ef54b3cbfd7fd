//! Views: queries with a name, stored as Iceberg views, so that other engines see them.
//!
//! ```text
//! <warehouse>/<namespace>/<view>/metadata/  00000-<uuid>.metadata.json, one more for each change
//! ```
//! In: queries as text, with the columns that they have. Out: the same, at the version that the catalog
//! points to. A view has its query in one or more dialects; those of other engines are kept.
//!
//! Properties that mean something here:
//!
//! | property | default | meaning |
//! |---|---|---|
//! | `comment` | | what users see as the view's comment |
//! | `security_invoker` | `false` | the view reads with the rights of who asks, not of its owner |
//! | `version.history.num-entries` | 10 | versions that a metadata file keeps |
//! | `replace.drop-dialect.allowed` | `false` | a replacement may lose the query in another dialect |
//! | `write.metadata.delete-after-commit.enabled` | `true` | old metadata files go |
//!
//! **Invariants:** a [`View`] is one immutable version; the metadata file is durable before the catalog
//! points to it; a column keeps its field id as long as its name stays, and no id is used again, so that
//! grants on columns stay with their columns.
//! Not here: what the text of a query means, and who may do what with a view (`stoa-query`).

mod build;
mod files;
mod metadata;
mod warehouse;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};
use uuid::Uuid;

use crate::schema;

use metadata::Representation;
pub use metadata::ViewSql;
pub(crate) use metadata::{ViewMetadata, view_uuid};

/// Dialects that can be read here, the preferred one first. New views have the first.
pub const VIEW_DIALECTS: [&str; 2] = ["stoa", "postgresql"];

/// View property: the comment.
pub const VIEW_COMMENT: &str = "comment";

/// View property: whether the view reads with the rights of who asks.
pub const VIEW_SECURITY_INVOKER: &str = "security_invoker";

/// What a view is to be made of, or replaced by.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewSpec {
    /// Columns with their types, and comments under the metadata key `comment`. Field ids are assigned
    /// here, whatever the fields carry.
    pub schema: SchemaRef,
    /// The query, once for each dialect.
    pub sql: Vec<ViewSql>,
    /// The namespace in which names without one are looked for.
    pub default_namespace: String,
    /// All properties that the view shall have.
    pub properties: BTreeMap<String, String>,
}

impl ViewSpec {
    /// A view that is `sql` in Stoa's own dialect, without properties.
    pub fn new(
        schema: SchemaRef,
        sql: impl Into<String>,
        default_namespace: impl Into<String>,
    ) -> Self {
        let sql = vec![ViewSql { dialect: VIEW_DIALECTS[0].to_owned(), sql: sql.into() }];
        let default_namespace = default_namespace.into();
        Self { schema, sql, default_namespace, properties: BTreeMap::new() }
    }
}

/// A change that leaves the query of a view as it is, in all dialects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewChange {
    /// Sets properties; `None` removes one.
    Properties(BTreeMap<String, Option<String>>),
    /// Sets the comments of columns; `None` removes one.
    ColumnComments(BTreeMap<String, Option<String>>),
}

/// A view at one version. Cheap to clone; later changes do not change it.
#[derive(Clone)]
pub struct View {
    ident: TableIdent,
    metadata: Arc<ViewMetadata>,
    metadata_location: String,
}

impl View {
    /// The name under which it was opened.
    pub fn ident(&self) -> &TableIdent {
        &self.ident
    }

    /// The view's identity, which survives renaming and replacing. Owner and grants are kept under it.
    pub fn uuid(&self) -> Uuid {
        self.metadata.view_uuid
    }

    /// The directory of its files.
    pub fn location(&self) -> &str {
        &self.metadata.location
    }

    /// The metadata file of this version.
    pub fn metadata_location(&self) -> &str {
        &self.metadata_location
    }

    /// Columns in Arrow types; each field carries its id under [`crate::FIELD_ID_KEY`] and its comment
    /// under `comment`.
    ///
    /// # Errors
    /// `Unsupported` for types that cannot be read.
    pub fn schema(&self) -> Result<SchemaRef> {
        let version = self.current()?;
        let schema = self.metadata.schema(version.schema_id);
        schema::to_arrow(schema.ok_or_else(|| self.incomplete())?)
            .map_err(|error| error.at(format!("view {}", self.ident)))
    }

    /// The query in a dialect that can be read here.
    ///
    /// # Errors
    /// `Unsupported` (0A000) where the view has its query in other dialects only.
    pub fn sql(&self) -> Result<&ViewSql> {
        let readable = |dialect: &&str| self.sql_in(dialect);
        if let Some(sql) = VIEW_DIALECTS.iter().find_map(readable) {
            return Ok(sql);
        }
        let others: Vec<&str> = self.all_sql().map(|sql| sql.dialect.as_str()).collect();
        let detail = match others.is_empty() {
            true => "it has no SQL at all".to_owned(),
            false => format!("it has its query for {}", others.join(", ")),
        };
        let what = format!("view {} has no query that can be read here", self.ident);
        Err(Error::unsupported(what)
            .with_detail(detail)
            .with_hint("query it with the engine that made it, or drop it and create it here"))
    }

    /// The query in `dialect`.
    pub fn sql_in(&self, dialect: &str) -> Option<&ViewSql> {
        self.all_sql().find(|sql| sql.dialect.eq_ignore_ascii_case(dialect))
    }

    /// The query in all dialects that it has, in their order.
    pub fn all_sql(&self) -> impl Iterator<Item = &ViewSql> {
        let representations = self.metadata.current().map(|version| &version.representations);
        representations.into_iter().flatten().filter_map(|representation| match representation {
            Representation::Sql(sql) => Some(sql),
            Representation::Other(_) => None,
        })
    }

    /// The namespace in which names without one are looked for.
    pub fn default_namespace(&self) -> String {
        let levels = self.metadata.current().map(|version| version.default_namespace.join("."));
        levels.unwrap_or_default()
    }

    /// The catalog in which names without one are looked for, where another engine has set it.
    pub fn default_catalog(&self) -> Option<&str> {
        self.metadata.current()?.default_catalog.as_deref()
    }

    /// All properties.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.metadata.properties
    }

    /// The comment.
    pub fn comment(&self) -> Option<&str> {
        self.properties().get(VIEW_COMMENT).map(String::as_str)
    }

    /// Whether the view reads with the rights of who asks, and not of its owner.
    ///
    /// # Errors
    /// `Corrupt` where the property is no Boolean.
    pub fn is_security_invoker(&self) -> Result<bool> {
        let Some(text) = self.properties().get(VIEW_SECURITY_INVOKER) else { return Ok(false) };
        build::boolean(text).ok_or_else(|| {
            Error::corrupt(format!("view {}: {VIEW_SECURITY_INVOKER} is {text:?}", self.ident))
                .with_hint("set it to true or false")
        })
    }

    /// The number of the version that is current; a replacement has a higher one.
    pub fn version_id(&self) -> i32 {
        self.metadata.current_version_id
    }

    /// When that version was made, in milliseconds since 1970-01-01 UTC.
    pub fn timestamp_ms(&self) -> i64 {
        self.metadata.current().map_or(0, |version| version.timestamp_ms)
    }

    fn current(&self) -> Result<&metadata::ViewVersion> {
        self.metadata.current().ok_or_else(|| self.incomplete())
    }

    /// Was checked when the file was read.
    fn incomplete(&self) -> Error {
        Error::internal(format!("view {} lacks its current version", self.ident))
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} at {:?})", self.ident, self.metadata_location)
    }
}
