//! One store per scheme and authority, opened once.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::Mutex;
use stoa_error::{Error, Result};
use stoa_rangeio::{RangeReader, ReaderOptions};
use url::Url;

use crate::location::{Location, is_s3, literal_of, split_literal};
use crate::s3::{self, Patience, S3Options};
use crate::{LocalStore, Metered, Prices, StoreMetrics, StoreTotals, from_object_store};

/// Opens locations; keeps one metered store and one range reader per scheme and authority. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    s3: S3Options,
    open: Mutex<BTreeMap<String, OpenStore>>,
}

#[derive(Clone, Debug)]
struct OpenStore {
    root: Arc<str>,
    store: Arc<dyn ObjectStore>,
    reader: RangeReader,
    metrics: Arc<StoreMetrics>,
    prices: Prices,
}

/// What one store has done so far.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreUsage {
    /// `file://` or `s3://bucket`.
    pub store: String,
    /// Its requests and bytes.
    pub totals: StoreTotals,
    /// Reads sent a second time because the first was slow; they are among the requests.
    pub hedges: u64,
    /// What the requests cost, in dollars, by the prices it was opened with.
    pub dollars: f64,
}

impl Stores {
    /// Nothing is open yet; S3 as [`S3Options::default`] has it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing is open yet.
    pub fn with_s3(s3: S3Options) -> Self {
        Self { inner: Arc::new(Inner { s3, open: Mutex::default() }) }
    }

    /// Opens a URL (percent-encoded, as [`crate::parse_location`] makes it).
    ///
    /// # Errors
    /// `Unsupported` for another scheme than `file` and `s3`; `Invalid` for a path that cannot be;
    /// `Invalid` or `Forbidden` where the options for S3 do not do. Whether the store answers is
    /// not looked at; see [`Self::probe`].
    pub fn open(&self, url: &Url) -> Result<Location> {
        self.resolve(&literal_of(url)?)
    }

    /// Opens a literal Iceberg location, such as a manifest holds (see [`crate::literal_of`]).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn resolve(&self, location: &str) -> Result<Location> {
        let (scheme, authority, path) = split_literal(location)?;
        let OpenStore { store, reader, root, .. } = self.store(scheme, authority, location)?;
        let path = Path::parse(path).map_err(|source| {
            Error::invalid(format!("location {location:?} is not a usable path"))
                .with_source(source)
        })?;
        Ok(Location { store, path, reader, root })
    }

    /// Looks whether the store of `url` can be used, by listing what is there; says soon if not.
    /// Local directories are left to whoever makes them.
    ///
    /// # Errors
    /// `NotFound` for a bucket that is not there, `Forbidden` for keys that are wrong, `Invalid`
    /// for a wrong region, `Unavailable` where the store does not answer; each with a hint.
    pub async fn probe(&self, url: &Url) -> Result<()> {
        let location = literal_of(url)?;
        let place = self.resolve(&location)?;
        let (scheme, bucket, _) = split_literal(&location)?;
        if !is_s3(scheme) {
            return Ok(());
        }
        let metrics = self.metrics_of(&place.root);
        let store = s3::open_bucket(bucket, &self.inner.s3, Patience::Probe, &metrics)?;
        let first = store.list(Some(&place.path)).try_next().await;
        first.map(drop).map_err(|source| match s3::is_bare_404(&source) {
            true => Error::not_found(format!("{location}: there is no such bucket"))
                .with_hint("check the name, make the bucket, or set s3_endpoint")
                .with_source(source),
            false => from_object_store(&location, source),
        })
    }

    /// What each store opened here has done so far.
    pub fn usage(&self) -> Vec<StoreUsage> {
        let open = self.inner.open.lock();
        let usage = |(name, open): (&String, &OpenStore)| {
            let totals = open.metrics.totals();
            StoreUsage {
                store: name.clone(),
                totals,
                hedges: open.reader.hedges(),
                dollars: open.prices.dollars(&totals),
            }
        };
        open.iter().map(usage).collect()
    }

    /// What all stores opened here have done so far.
    pub fn totals(&self) -> StoreTotals {
        let open = self.inner.open.lock();
        open.values().fold(StoreTotals::default(), |sum, open| sum.plus(&open.metrics.totals()))
    }

    fn metrics_of(&self, root: &str) -> Arc<StoreMetrics> {
        let open = self.inner.open.lock();
        open.get(root).map(|open| Arc::clone(&open.metrics)).unwrap_or_default()
    }

    fn store(&self, scheme: &str, authority: &str, place: &str) -> Result<OpenStore> {
        let root = match scheme {
            "file" => "file://".to_owned(),
            scheme if is_s3(scheme) && !authority.is_empty() => format!("s3://{authority}"),
            scheme if is_s3(scheme) => {
                return Err(Error::invalid(format!("location {place:?} names no bucket")));
            }
            other => return Err(unsupported(other, place)),
        };
        let mut open = self.inner.open.lock();
        if let Some(store) = open.get(&root) {
            return Ok(store.clone());
        }
        let opened = match scheme {
            "file" => open_disk(),
            _ => open_s3(authority, &root, &self.inner.s3)?,
        };
        open.insert(root, opened.clone());
        Ok(opened)
    }
}

fn open_disk() -> OpenStore {
    let metrics = Arc::<StoreMetrics>::default();
    let store: Arc<dyn ObjectStore> =
        Arc::new(Metered::new(LocalStore::new(), Arc::clone(&metrics)));
    let reader = RangeReader::new(Arc::clone(&store), ReaderOptions::local_file());
    OpenStore { root: "file://".into(), store, reader, metrics, prices: Prices::FREE }
}

fn open_s3(bucket: &str, root: &str, options: &S3Options) -> Result<OpenStore> {
    let metrics = Arc::<StoreMetrics>::default();
    let store: Arc<dyn ObjectStore> =
        Arc::new(s3::open_bucket(bucket, options, Patience::Usual, &metrics)?);
    // The store retries; see `s3`.
    let reading = ReaderOptions { retries: 0, ..ReaderOptions::object_store() };
    let reader = RangeReader::new(Arc::clone(&store), reading);
    Ok(OpenStore { root: root.into(), store, reader, metrics, prices: options.prices })
}

fn unsupported(scheme: &str, place: &str) -> Error {
    Error::unsupported(format!("location {place:?}: scheme {scheme:?} is not supported"))
        .with_hint("use a directory, file:///… or s3://bucket/…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_and_encoded_locations_meet_at_one_path() {
        let stores = Stores::new();
        let literal = stores.resolve("file:/a b/c%2Fd").unwrap();
        let encoded = stores.open(&Url::parse("file:///a%20b/c%252Fd").unwrap()).unwrap();
        assert_eq!(literal.path, encoded.path);
        assert_eq!(literal.literal_of(&literal.path), "file:///a b/c%2Fd");
        assert!(Arc::ptr_eq(&literal.store, &encoded.store));
    }

    #[test]
    fn other_schemes_say_what_works() {
        let error = Stores::new().resolve("hdfs://name/x").unwrap_err();
        assert_eq!(error.kind(), stoa_error::ErrorKind::Unsupported);
        assert!(error.hint().is_some());
    }

    #[test]
    fn spellings_of_s3_meet_at_one_store() {
        let stores = Stores::new();
        let ours = stores.resolve("s3://bucket/a b%20/c").unwrap();
        let sparks = stores.resolve("s3a://bucket/d").unwrap();
        assert!(Arc::ptr_eq(&ours.store, &sparks.store));
        assert_eq!(sparks.literal_of(&ours.path), "s3://bucket/a b%20/c");
        assert!(!Arc::ptr_eq(&ours.store, &stores.resolve("s3://other/d").unwrap().store));
        assert!(stores.resolve("s3:///d").is_err());
    }
}
