//! A warehouse: a directory of tables and the catalog that names them.
//!
//! ```text
//! <warehouse>/catalog.db                              names → metadata files; or elsewhere on disk
//! <warehouse>/<namespace>/<table>/metadata/           00000-<uuid>.metadata.json, snap-….avro, …-m0.avro
//! <warehouse>/<namespace>/<table>/data/<part=value>/  ….orc
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use iceberg::spec::{
    FormatVersion, NullOrder, Schema, SortDirection, SortField, SortOrder, TableMetadata,
    TableMetadataBuilder, UnboundPartitionSpec,
};
use stoa_catalog::{Catalog, CatalogPlace, Listing, TableIdent};
use stoa_env::Env;
use stoa_error::{Condition, Error, ErrorKind, Result, is_disk_full};
use stoa_store::{S3Options, Stores, create_directory, from_object_store, literal_of};
use url::Url;

use crate::cache::Cache;
use crate::declared;
use crate::defaults::{self, is_of_column};
use crate::files::{LoadedMetadata, MetadataFiles};
use crate::name::check_name;
use crate::pins::Pins;
use crate::positions::{is_position, reserved};
use crate::recover::refuse_forgotten;
use crate::table::Table;
use crate::view::ViewMetadata;
use crate::writers::Writers;
use crate::{PartitionTerm, SortTerm, TableSpec, commit, error, property, schema};

/// The name under which Stoa's tables are kept in the catalog database; other engines must use it.
pub const CATALOG_NAME: &str = "stoa";

/// The namespace that a new warehouse has.
const DEFAULT_NAMESPACE: &str = "public";

/// How often a change of a name is tried while others move its pointer.
const POINTER_TRIES: usize = 100;

/// What the metadata of views may take in memory, by estimate.
const VIEW_CACHE_BYTES: usize = 32 << 20;

/// How often tables are read again that changed while they were read.
const LOOKS_MAX: usize = 1000;

/// What a warehouse is opened with.
#[derive(Clone, Debug)]
pub struct WarehouseOptions {
    /// Where the tables are: `file:///…` or `s3://bucket/…`.
    pub url: Url,
    /// Where the catalog is; `None` is `catalog.db` in a local warehouse.
    pub catalog: Option<CatalogPlace>,
    /// How to reach S3.
    pub s3: S3Options,
    /// Whether a new catalog may be begun for a store that holds tables.
    pub new_catalog: bool,
}

impl WarehouseOptions {
    /// The catalog in the warehouse, S3 by its defaults.
    pub fn new(url: Url) -> Self {
        Self { url, catalog: None, s3: S3Options::default(), new_catalog: false }
    }

    /// Where the catalog is.
    ///
    /// # Errors
    /// `Invalid` where none is named and the warehouse is not on a local disk.
    pub fn catalog_place(&self) -> Result<CatalogPlace> {
        if let Some(place) = &self.catalog {
            return Ok(place.clone());
        }
        let directory = self.url.to_file_path().map_err(|()| {
            Error::invalid(format!("warehouse {} has no place for its catalog", self.url))
                .with_hint("name a file on a local disk, or a database, with --catalog")
        })?;
        Ok(CatalogPlace::File(directory.join("catalog.db")))
    }
}

/// Tables under one location. Cheap to clone.
#[derive(Clone)]
pub struct Warehouse {
    inner: Arc<Inner>,
}

struct Inner {
    url: Url,
    /// The literal location, without a trailing slash.
    location: String,
    stores: Stores,
    catalog: Catalog,
    files: MetadataFiles,
    views: Cache<ViewMetadata>,
    pins: Arc<Pins>,
    writers: Arc<Writers>,
    env: Env,
}

impl Warehouse {
    /// Opens the warehouse in the local directory `url`; see [`Self::open_with`].
    ///
    /// # Errors
    /// As [`Self::open_with`].
    pub fn open(url: &Url) -> BoxFuture<'_, Result<Self>> {
        Box::pin(async move { Self::open_with(&WarehouseOptions::new(url.clone())).await })
    }

    /// Opens a warehouse, making an empty one with the namespace `public` if there is none. Any
    /// number of processes may have it open.
    ///
    /// # Errors
    /// Those of [`Stores::probe`] where an object store cannot be used; `Unavailable` or
    /// `Forbidden` where a directory cannot; `Conflict` where the catalog would be new and the
    /// store holds tables already.
    pub fn open_with(options: &WarehouseOptions) -> BoxFuture<'_, Result<Self>> {
        Box::pin(async move { Self::open_in(&Env::real(), options).await })
    }

    /// [`Self::open_with`] in the world `env`: clock, timers and randomness of its tables, and of all who
    /// work on them in this process.
    ///
    /// # Errors
    /// As [`Self::open_with`].
    pub fn open_in<'a>(env: &'a Env, options: &'a WarehouseOptions) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            let url = &options.url;
            let stores = Stores::with_s3(options.s3.clone());
            let location = literal_of(url)?;
            stores.resolve(&location)?;
            let catalog = options.catalog_place()?;
            if url.scheme() != "file" {
                stores.probe(url).await?;
            }
            if let Some(file) = catalog.file().filter(|file| is_new(file)) {
                if !options.new_catalog {
                    refuse_forgotten(&stores, &location, &catalog.to_string()).await?;
                }
                make_directory_of(file, url)?;
            }
            let is_database = catalog.file().is_none();
            let catalog = catalog.open(CATALOG_NAME).await?;
            if is_database && !options.new_catalog && catalog.namespaces().await?.is_empty() {
                refuse_forgotten(&stores, &location, catalog.place()).await?;
            }
            let files = MetadataFiles::new(stores.clone());
            let views = Cache::new(VIEW_CACHE_BYTES);
            let (pins, writers) = (Arc::default(), Arc::default());
            let (url, env) = (url.clone(), env.clone());
            let inner = Inner { url, location, stores, catalog, files, views, pins, writers, env };
            let warehouse = Self { inner: Arc::new(inner) };
            if warehouse.namespaces().await?.is_empty() {
                match warehouse.create_namespace(DEFAULT_NAMESPACE, &BTreeMap::new()).await {
                    // Another process opened it at the same moment.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    other => other?,
                }
            }
            Ok(warehouse)
        })
    }

    /// Where it is.
    pub fn url(&self) -> &Url {
        &self.inner.url
    }

    /// The literal location, without a trailing slash.
    pub fn location(&self) -> &str {
        &self.inner.location
    }

    /// The world that it was opened in.
    pub fn env(&self) -> &Env {
        &self.inner.env
    }

    /// The catalog of names.
    pub fn catalog(&self) -> &Catalog {
        &self.inner.catalog
    }

    /// The stores its files are in.
    pub fn stores(&self) -> &Stores {
        &self.inner.stores
    }

    /// All namespaces, by name.
    ///
    /// # Errors
    /// `Unavailable` where the catalog does not answer.
    pub fn namespaces(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async move { self.catalog().namespaces().await })
    }

    /// All namespaces and the names of their tables and views, as they are at one moment. Who asks
    /// for one namespace after the other meets those that are dropped meanwhile.
    ///
    /// # Errors
    /// `Unavailable` where the catalog does not answer.
    pub fn listing(&self) -> BoxFuture<'_, Result<Vec<Listing>>> {
        Box::pin(async move { self.catalog().listing().await })
    }

    /// The tables of all namespaces, by name, as they are at one moment.
    ///
    /// # Errors
    /// `Unavailable` where the catalog does not answer.
    pub fn all_tables(&self) -> BoxFuture<'_, Result<Vec<TableIdent>>> {
        Box::pin(async move {
            let idents = |of: Listing| {
                let ident = move |name| TableIdent::new(&of.namespace, name);
                of.tables.into_iter().map(ident).collect::<Vec<_>>()
            };
            Ok(self.listing().await?.into_iter().flat_map(idents).collect())
        })
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// `AlreadyExists` (42P06); `Invalid` for a name that cannot be a directory.
    pub fn create_namespace<'a>(
        &'a self,
        namespace: &'a str,
        properties: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            check_name("schema", namespace)?;
            self.catalog().create_namespace(namespace, properties).await
        })
    }

    /// Removes an empty namespace.
    ///
    /// # Errors
    /// `NotFound` (3F000), `Conflict` (2BP01).
    pub fn drop_namespace<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.catalog().drop_namespace(namespace).await })
    }

    /// The tables of a namespace, by name.
    ///
    /// # Errors
    /// `NotFound` (3F000).
    pub fn tables<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, Result<Vec<TableIdent>>> {
        Box::pin(async move {
            let names = self.catalog().tables(namespace).await?;
            Ok(names.into_iter().map(|name| TableIdent::new(namespace, name)).collect())
        })
    }

    /// Opens a table at its current version. The pointer is read every time; the metadata it
    /// points to is cached.
    ///
    /// # Errors
    /// `NotFound` (42P01, 3F000); `Corrupt` where its metadata cannot be read.
    pub async fn table(&self, ident: &TableIdent) -> Result<Table> {
        let mut location = self.catalog().pointer(ident).await?;
        loop {
            let error = match self.files().table_metadata(&location).await {
                Ok(loaded) => {
                    return Ok(Table::new(self.clone(), ident.clone(), loaded, Some(location)));
                }
                Err(error) => error,
            };
            // Many commits ago the file was there: old metadata files are deleted.
            let now = self.catalog().pointer(ident).await?;
            if now == location {
                return Err(error);
            }
            location = now;
        }
    }

    /// Opens a table at the version that a metadata file describes, whether or not it is the current one.
    ///
    /// # Errors
    /// `NotFound` where the file is gone; `Corrupt` where it cannot be read.
    pub async fn table_at(&self, ident: &TableIdent, location: &str) -> Result<Table> {
        let loaded = self.files().table_metadata(location).await?;
        Ok(Table::new(self.clone(), ident.clone(), loaded, Some(location.to_owned())))
    }

    /// Opens tables at their versions of one moment, in the order of `idents`.
    ///
    /// # Errors
    /// As [`Self::table`]; `Conflict` where they change all the time.
    pub async fn tables_at_once(&self, idents: &[TableIdent]) -> Result<Vec<Table>> {
        for _ in 0..LOOKS_MAX {
            let mut tables = Vec::with_capacity(idents.len());
            for ident in idents {
                tables.push(self.table(ident).await?);
            }
            if tables.len() < 2 || self.are_current(&tables).await? {
                return Ok(tables);
            }
        }
        Err(Error::conflict("the tables change all the time").with_hint("try it again"))
    }

    /// Whether the pointers are where these versions have them.
    async fn are_current(&self, tables: &[Table]) -> Result<bool> {
        for table in tables {
            if self.catalog().pointer(table.ident()).await? != table.metadata_location() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes an empty table.
    ///
    /// # Errors
    /// `AlreadyExists` (42P07), `NotFound` (3F000), `Invalid` or `Unsupported` for a specification
    /// that cannot be.
    pub fn create_table<'a>(
        &'a self,
        ident: &'a TableIdent,
        spec: TableSpec,
    ) -> BoxFuture<'a, Result<Table>> {
        Box::pin(async move {
            let staged = self.stage_table(ident, spec).await?;
            let first = commit::build(&staged, commit::builder(&staged), Vec::new())?;
            commit::create(&staged, first).await
        })
    }

    /// Prepares a table that appears in the catalog, together with its first rows, when its
    /// [`crate::TableWriter`] commits; until then nobody sees it.
    ///
    /// # Errors
    /// As [`Self::create_table`].
    pub fn stage_table<'a>(
        &'a self,
        ident: &'a TableIdent,
        spec: TableSpec,
    ) -> BoxFuture<'a, Result<Table>> {
        Box::pin(async move {
            check_name("table", &ident.name)?;
            self.catalog().check_free(ident).await?;
            self.stage(ident, spec).await
        })
    }

    /// Prepares a table that takes the place of `old` in the catalog, together with its first rows,
    /// when its [`crate::TableWriter`] commits. The old one's files stay until
    /// [`Self::purge`].
    ///
    /// # Errors
    /// `Invalid` or `Unsupported` for a specification that cannot be. The commit ends with
    /// `Conflict` where somebody changed the old table meanwhile.
    pub fn stage_replacement<'a>(
        &'a self,
        old: &'a Table,
        spec: TableSpec,
    ) -> BoxFuture<'a, Result<Table>> {
        Box::pin(async move {
            let staged = self.stage(old.ident(), spec).await?;
            Ok(staged.replacing(old.metadata_location().to_owned()))
        })
    }

    async fn stage(&self, ident: &TableIdent, spec: TableSpec) -> Result<Table> {
        let location = self.free_location(ident).await?;
        let metadata = new_metadata(ident, &spec, location)?;
        let schema = declared::schema_of(&metadata)?;
        let loaded = LoadedMetadata { metadata: Arc::new(metadata), schema, bytes: 0 };
        let table = Table::new(self.clone(), ident.clone(), Arc::new(loaded), None);
        // A property that no writer could follow is refused now rather than at the first INSERT.
        table.writer(crate::WriteOptions::default())?;
        Ok(table)
    }

    /// Renames a table; its files stay where they are.
    ///
    /// # Errors
    /// `NotFound` (42P01, 3F000), `AlreadyExists` (42P07).
    pub fn rename_table<'a>(
        &'a self,
        from: &'a TableIdent,
        to: &'a TableIdent,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            check_name("table", &to.name)?;
            self.catalog().rename_table(from, to).await
        })
    }

    /// Forgets a table; with `purge` also deletes its files. Queries that run on it may fail then.
    ///
    /// # Errors
    /// `NotFound` (42P01). A failure to delete files is logged and leaves them behind.
    pub fn drop_table<'a>(
        &'a self,
        ident: &'a TableIdent,
        purge: bool,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let pointer = self.catalog().drop_table(ident).await?;
            if purge && let Err(error) = self.purge_at(&pointer).await {
                tracing::warn!(table = %ident, %error, "files of a dropped table stay behind");
            }
            Ok(())
        })
    }

    /// Forgets `table` at whatever version it is, and no other of its name; with `purge` also deletes
    /// its files.
    ///
    /// # Errors
    /// `NotFound` (42P01) where it is gone, or its name is another table's; `Conflict` where its
    /// version changes faster than it is read.
    pub fn drop_only<'a>(&'a self, table: &'a Table, purge: bool) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (catalog, ident) = (self.catalog(), table.ident());
            for _ in 1..POINTER_TRIES {
                let pointer = self.pointer_of(table).await?;
                match catalog.drop_table_at(ident, &pointer).await {
                    Err(error) if error.kind() == ErrorKind::Conflict => continue,
                    dropped => dropped?,
                }
                if purge && let Err(error) = self.purge_at(&pointer).await {
                    tracing::warn!(table = %ident, %error, "files of a dropped table stay behind");
                }
                return Ok(());
            }
            Err(busy(ident))
        })
    }

    /// Renames `table`, at whatever version it is, and no other of its name.
    ///
    /// # Errors
    /// As [`Self::drop_only`] and [`Self::rename_table`].
    pub fn rename_only<'a>(
        &'a self,
        table: &'a Table,
        to: &'a TableIdent,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            check_name("table", &to.name)?;
            for _ in 1..POINTER_TRIES {
                let pointer = self.pointer_of(table).await?;
                match self.catalog().rename_table_at(table.ident(), &pointer, to).await {
                    Err(error) if error.kind() == ErrorKind::Conflict => {}
                    renamed => return renamed,
                }
            }
            Err(busy(table.ident()))
        })
    }

    async fn pointer_of(&self, table: &Table) -> Result<String> {
        let now = self.table(table.ident()).await?;
        match now.uuid() == table.uuid() {
            true => Ok(now.metadata_location().to_owned()),
            false => Err(Error::not_found(format!("table {} was dropped", table.ident()))
                .with_condition(Condition::UndefinedTable)
                .with_hint("another table has its name now; start again")),
        }
    }

    pub(crate) fn pins(&self) -> &Arc<Pins> {
        &self.inner.pins
    }

    pub(crate) fn writers(&self) -> &Arc<Writers> {
        &self.inner.writers
    }

    pub(crate) fn files(&self) -> &MetadataFiles {
        &self.inner.files
    }

    pub(crate) fn view_cache(&self) -> &Cache<ViewMetadata> {
        &self.inner.views
    }

    /// Deletes the files of a table that is in the catalog no more. Queries that run on it may fail
    /// then. A failure to delete files is logged and leaves them behind.
    pub fn purge<'a>(&'a self, dropped: &'a Table) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = self.purge_at(dropped.metadata_location()).await {
                let table = dropped.ident();
                tracing::warn!(%table, %error, "files of a replaced table stay behind");
            }
        })
    }

    async fn purge_at(&self, pointer: &str) -> Result<()> {
        let loaded = self.files().table_metadata(pointer).await?;
        let location = loaded.metadata.location();
        let failed = |source| from_object_store(location, source);
        // Listed before any is deleted: once the directory is empty, a new table of the same name may
        // take it, and its files must not be among them.
        let mut listed = Vec::new();
        let kept = self.view_files().await?;
        // Only what a table's layout holds: another engine may keep a table inside this directory.
        for part in ["data", "metadata"] {
            let place = self.stores().resolve(&format!("{location}/{part}"))?;
            let paths = place.store.list(Some(&place.path)).map_ok(|meta| meta.location);
            let mut paths: Vec<_> = paths.try_collect().await.map_err(failed)?;
            paths.retain(|path| !kept.contains(path));
            listed.push((place.store, paths));
        }
        for (store, paths) in listed {
            let paths = futures::stream::iter(paths.into_iter().map(Ok)).boxed();
            let deleted = store.delete_stream(paths);
            deleted.try_for_each(|_| async { Ok(()) }).await.map_err(failed)?;
        }
        Ok(())
    }

    /// The paths of the metadata files of all views: another engine may have put a view into the directory
    /// that a table had before it was renamed.
    pub(crate) async fn view_files(&self) -> Result<HashSet<object_store::path::Path>> {
        let pointers = self.catalog().view_pointers().await?;
        // What cannot be resolved is in no store that tables are in.
        let path = |pointer: String| self.stores().resolve(&pointer).ok().map(|place| place.path);
        Ok(pointers.into_iter().filter_map(path).collect())
    }

    /// `<warehouse>/<namespace>/<name>`, or with a suffix where files of another table (renamed,
    /// or dropped without purge) are there.
    pub(crate) async fn free_location(&self, ident: &TableIdent) -> Result<String> {
        let plain = format!("{}/{}/{}", self.inner.location, ident.namespace, ident.name);
        let place = self.stores().resolve(&plain)?;
        let first = place.store.list(Some(&place.path)).next().await.transpose();
        match first.map_err(|source| from_object_store(&plain, source))? {
            None => Ok(plain),
            Some(_) => Ok(format!("{plain}-{:08x}", self.env().random_u64() as u32)),
        }
    }
}

impl fmt::Debug for Warehouse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Warehouse({})", self.inner.location)
    }
}

fn busy(ident: &TableIdent) -> Error {
    Error::conflict(format!("table {ident} changes faster than it can be read"))
        .with_hint("retry later")
}

/// Whether nothing was ever kept in the file.
fn is_new(catalog: &Path) -> bool {
    std::fs::metadata(catalog).map_or(true, |file| file.len() == 0)
}

/// Makes the directory of a new catalog, which in a local warehouse is the warehouse itself.
fn make_directory_of(catalog: &Path, url: &Url) -> Result<()> {
    let Some(directory) = catalog.parent() else { return Ok(()) };
    create_directory(directory).map_err(|source| {
        let place = directory.display();
        let message = format!("warehouse {url}: the directory {place} cannot be made");
        let error = match is_disk_full(&source) {
            true => Error::new(ErrorKind::Exhausted, message)
                .with_sqlstate("53100")
                .with_hint("its disk is full: make room"),
            false => {
                Error::unavailable(message).with_hint("choose a directory that this user may write")
            }
        };
        error.with_source(source)
    })
}

fn new_metadata(ident: &TableIdent, spec: &TableSpec, location: String) -> Result<TableMetadata> {
    let schema = schema::to_iceberg(&spec.schema)?;
    let schema = schema::with_identifiers(ident, schema, &spec.identifiers)?;
    let partitioning = partition_spec(ident, &schema, &spec.partition_by)?;
    let order = sort_order(ident, &schema, &spec.sort_by)?;
    property::check(ident, &spec.properties)?;
    if let Some(key) = spec.properties.keys().find(|key| is_position(key) || is_of_column(key)) {
        return Err(reserved(ident, key));
    }
    let mut properties: HashMap<String, String> =
        HashMap::from([("write.format.default".to_owned(), "orc".to_owned())]);
    properties.extend(spec.properties.clone());
    properties.extend(defaults::of_columns(&spec.schema, &schema));
    properties.extend(declared::of_columns(&spec.schema, &schema));
    if let Some(comment) = &spec.comment {
        properties.insert("comment".to_owned(), comment.clone());
    }
    if properties.get("write.format.default").is_some_and(|format| format != "orc") {
        return Err(Error::unsupported(format!(
            "table {ident}: write.format.default = {:?}",
            properties["write.format.default"]
        ))
        .with_hint("Stoa writes ORC: leave the property out"));
    }
    let invalid = |e| error::invalid_request(format!("table {ident}"), e);
    let builder = TableMetadataBuilder::new(
        schema,
        partitioning,
        order,
        location,
        FormatVersion::V2,
        properties,
    );
    Ok(builder.map_err(invalid)?.build().map_err(invalid)?.metadata)
}

/// The Iceberg form of partition terms over `schema`.
pub(crate) fn partition_spec(
    ident: &TableIdent,
    schema: &Schema,
    terms: &[PartitionTerm],
) -> Result<UnboundPartitionSpec> {
    let mut builder = UnboundPartitionSpec::builder();
    for term in terms {
        let field = schema
            .field_by_name(&term.column)
            .ok_or_else(|| error::undefined_column(ident, &term.column))?;
        term.transform.result_type(&term.column, &field.field_type)?;
        builder = builder
            .add_partition_field(field.id, term.field_name(), term.transform.to_iceberg())
            .map_err(|e| error::invalid_request(format!("table {ident}"), e))?;
    }
    Ok(builder.build())
}

/// The Iceberg form of sort terms over `schema`.
pub(crate) fn sort_order(
    ident: &TableIdent,
    schema: &Schema,
    terms: &[SortTerm],
) -> Result<SortOrder> {
    let mut builder = SortOrder::builder();
    for term in terms {
        let field = schema
            .field_by_name(&term.column)
            .ok_or_else(|| error::undefined_column(ident, &term.column))?;
        term.transform.result_type(&term.column, &field.field_type)?;
        builder.with_sort_field(SortField {
            source_id: field.id,
            transform: term.transform.to_iceberg(),
            direction: match term.descending {
                true => SortDirection::Descending,
                false => SortDirection::Ascending,
            },
            null_order: if term.nulls_first { NullOrder::First } else { NullOrder::Last },
        });
    }
    builder.build_unbound().map_err(|e| error::invalid_request(format!("table {ident}"), e))
}
