//! Is everything there that snapshots refer to, and is there anything else?
//!
//! In: a table. Out: what is missing or does not add up, and files that nothing refers to
//! (orphans: left by writers that were killed or lost a commit). Only the table's own `data` and
//! `metadata` directories are looked through.

mod content;
mod homes;
mod tail;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use futures::future::BoxFuture;
use iceberg::spec::{DataFile, DataFileFormat, ManifestContentType, ManifestFile, Snapshot};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use stoa_error::{Error, ErrorKind, Result};
use stoa_store::from_object_store;

use crate::Table;
use crate::abandoned::remove;
use crate::deletes::stored_bytes;
use crate::expire::check_deletion;
use crate::writers::Working;
pub use content::CheckedData;
use content::check_contents;
use homes::Homes;
use tail::{Described, check_tails};

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Retained snapshots looked at.
    pub snapshots: usize,
    /// Different manifests that they refer to.
    pub manifests: usize,
    /// Different data files that they refer to.
    pub data_files: usize,
    /// Rows in the current snapshot, by its manifests; those that delete files name included.
    pub rows: u64,
    /// Bytes of the files in the current snapshot.
    pub bytes: u64,
    /// What [`Table::check_data`] read.
    pub data: Option<CheckedData>,
    /// What is wrong; empty for a sound table.
    pub problems: Vec<Problem>,
    /// Files that no retained snapshot and no retained metadata version refers to. They do no harm
    /// and may belong to another process's writer at work; those of this process are not among them.
    pub orphans: Vec<Orphan>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file or snapshot.
    pub place: String,
    /// What is wrong with it.
    pub what: String,
}

/// A file that nothing refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Its literal location.
    pub location: String,
    /// Its size.
    pub bytes: u64,
    /// When it was last written.
    pub modified: DateTime<Utc>,
}

/// What a clean-up did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedOrphans {
    /// Orphans deleted.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Orphans left because they are too young.
    pub kept: usize,
}

impl Table {
    /// Looks through the newest version of the table: every file that a retained snapshot refers
    /// to must be there with its size, and row counts must add up.
    ///
    /// # Errors
    /// `NotFound` where the table is gone, `Unavailable` where the store fails. What is wrong with
    /// the table is no error but in the report.
    pub fn check(&self) -> BoxFuture<'_, Result<CheckReport>> {
        Box::pin(async move { self.check_files(false).await })
    }

    /// As [`Self::check`], and reads all data files: each byte of those with checksums must be the
    /// one that was written, and those without must decode.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_data(&self) -> BoxFuture<'_, Result<CheckReport>> {
        Box::pin(async move { self.check_files(true).await })
    }

    async fn check_files(&self, reads_data: bool) -> Result<CheckReport> {
        // Listed before the metadata is read: a file that is committed in between is not taken for
        // an orphan then.
        let listed = self.listed().await?;
        let working = self.warehouse().writers().now();
        let table = self.reload().await?;
        let mut check = Check::new(&table, listed, working);
        check.run().await?;
        if reads_data {
            check.read_data().await?;
        }
        Ok(check.report)
    }

    /// Deletes orphans that were last written more than `older_than` ago. Choose an age well above
    /// the time that a load of another process may take: its files are orphans until it commits.
    ///
    /// # Errors
    /// `Corrupt` where the table is not sound, `Unsupported` where `gc.enabled` is `false` (nothing
    /// is deleted then); `Unavailable` where the store fails.
    pub fn remove_orphans(&self, older_than: Duration) -> BoxFuture<'_, Result<RemovedOrphans>> {
        Box::pin(async move {
            check_deletion(self)?;
            let report = self.check().await?;
            if let Some(problem) = report.problems.first() {
                return Err(Error::corrupt(format!("table {} is not sound", self.ident()))
                    .with_detail(format!("{}: {}", problem.place, problem.what))
                    .with_hint("`stoa table check` lists all problems; nothing was deleted"));
            }
            remove(self.warehouse(), report.orphans, older_than).await
        })
    }

    /// All files in the table's directories, by path.
    async fn listed(&self) -> Result<HashMap<Path, (String, ObjectMeta)>> {
        let mut listed = HashMap::new();
        for part in ["data", "metadata"] {
            let location = format!("{}/{part}", self.location());
            let place = self.warehouse().stores().resolve(&location)?;
            let files: Vec<ObjectMeta> = place
                .store
                .list(Some(&place.path))
                .try_collect()
                .await
                .map_err(|source| from_object_store(&location, source))?;
            let named = |file: ObjectMeta| {
                (file.location.clone(), (place.literal_of(&file.location), file))
            };
            listed.extend(files.into_iter().map(named));
        }
        Ok(listed)
    }
}

/// A check at work.
struct Check<'a> {
    table: &'a Table,
    /// With their locations.
    listed: HashMap<Path, (String, ObjectMeta)>,
    working: Working,
    referenced: HashSet<Path>,
    /// Rows and bytes in live files per manifest, so that each is read once.
    manifests: HashMap<String, Option<LiveTotals>>,
    homes: Homes,
    /// ORC data files that are there with their size.
    present: Vec<Described>,
    report: CheckReport,
}

#[derive(Clone, Copy, Debug, Default)]
struct LiveTotals {
    files: u64,
    rows: u64,
    bytes: u64,
}

impl<'a> Check<'a> {
    fn new(
        table: &'a Table,
        listed: HashMap<Path, (String, ObjectMeta)>,
        working: Working,
    ) -> Self {
        Self {
            table,
            listed,
            working,
            referenced: HashSet::new(),
            manifests: HashMap::new(),
            homes: Homes::default(),
            present: Vec::new(),
            report: CheckReport::default(),
        }
    }

    async fn run(&mut self) -> Result<()> {
        let metadata = self.table.metadata();
        self.refer(self.table.metadata_location())?;
        for version in metadata.metadata_log() {
            // Older versions may have been cleaned up by another engine; that is no damage.
            self.refer(&version.metadata_file)?;
        }
        for statistics in metadata.statistics_iter() {
            self.refer(&statistics.statistics_path)?;
        }
        for statistics in metadata.partition_statistics_iter() {
            self.refer(&statistics.statistics_path)?;
        }
        self.referenced.extend(self.table.warehouse().view_files().await?);
        if let Err(error) = self.table.log_positions() {
            self.damaged(self.table.metadata_location(), error)?;
        }
        for snapshot in metadata.snapshots() {
            self.report.snapshots += 1;
            self.snapshot(snapshot).await?;
        }
        self.report.manifests = self.homes.manifests();
        self.report.data_files = self.homes.files();
        self.report.problems.extend(self.homes.problems());
        let problems = check_tails(self.table.warehouse().stores(), &self.present).await?;
        self.report.problems.extend(problems);
        self.find_orphans();
        self.report.problems.sort_by(|a, b| a.place.cmp(&b.place));
        Ok(())
    }

    /// Reads the data files that are there.
    async fn read_data(&mut self) -> Result<()> {
        let (data, problems) =
            check_contents(self.table.warehouse().stores(), &self.present).await?;
        self.report.data = Some(data);
        self.report.problems.extend(problems);
        self.report.problems.sort_by(|a, b| a.place.cmp(&b.place));
        Ok(())
    }

    async fn snapshot(&mut self, snapshot: &Snapshot) -> Result<()> {
        let metadata = self.table.metadata();
        let list = snapshot.manifest_list();
        self.refer(list)?;
        let files = self.table.warehouse().files();
        let manifests = match files.manifest_list(snapshot, metadata.format_version()).await {
            Ok(manifests) if self.exists(list).await? => manifests,
            Ok(_) => return self.problem(list, "the file is missing"),
            Err(error) => return self.damaged(list, error),
        };
        let mut totals = LiveTotals::default();
        let mut complete = true;
        for manifest in manifests.iter() {
            self.homes.has(snapshot.snapshot_id(), &manifest.manifest_path);
            match self.manifest(manifest).await? {
                Some(live) if manifest.content == ManifestContentType::Data => {
                    totals.files += live.files;
                    totals.rows += live.rows;
                    totals.bytes += live.bytes;
                }
                // Delete files count in the size only.
                Some(live) => totals.bytes += live.bytes,
                None => complete = false,
            }
        }
        if complete {
            self.compare_totals(snapshot, totals)?;
        }
        if metadata.current_snapshot_id() == Some(snapshot.snapshot_id()) {
            self.report.rows = totals.rows;
            self.report.bytes = totals.bytes;
        }
        Ok(())
    }

    /// Totals of the live files in `manifest`, checked; `None` where it cannot be read.
    async fn manifest(&mut self, manifest: &ManifestFile) -> Result<Option<LiveTotals>> {
        let location = manifest.manifest_path.clone();
        if let Some(known) = self.manifests.get(&location) {
            return Ok(*known);
        }
        self.refer(&location)?;
        let totals = match self.table.warehouse().files().parse_manifest(manifest).await {
            Ok((parsed, bytes)) => {
                if u64::try_from(manifest.manifest_length).ok() != Some(bytes as u64) {
                    let what = format!(
                        "the manifest has {bytes} bytes, its list says {}",
                        manifest.manifest_length
                    );
                    self.problem(&location, &what)?;
                }
                Some(self.entries(manifest, &parsed).await?)
            }
            Err(error) => {
                self.damaged(&location, error)?;
                None
            }
        };
        self.manifests.insert(location, totals);
        Ok(totals)
    }

    async fn entries(
        &mut self,
        manifest: &ManifestFile,
        parsed: &iceberg::spec::Manifest,
    ) -> Result<LiveTotals> {
        let mut totals = LiveTotals::default();
        for entry in parsed.entries().iter().filter(|entry| entry.is_alive()) {
            let file = entry.data_file();
            totals.files += 1;
            totals.rows += file.record_count();
            totals.bytes += stored_bytes(file);
            self.refer(file.file_path())?;
            let listed = match file.content_offset() {
                None => file.file_path().to_owned(),
                // Deletion vectors share files.
                Some(offset) => format!("{} at byte {offset}", file.file_path()),
            };
            if self.homes.lists(&manifest.manifest_path, &listed) {
                self.data_file(file).await?;
            }
        }
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
        let rows = sum(manifest.added_rows_count, manifest.existing_rows_count);
        if rows.is_some_and(|rows| rows != totals.rows) {
            let what = format!(
                "the manifest holds {} rows, its list says {}",
                totals.rows,
                rows.unwrap_or_default()
            );
            self.problem(&manifest.manifest_path, &what)?;
        }
        Ok(totals)
    }

    async fn data_file(&mut self, file: &DataFile) -> Result<()> {
        let location = file.file_path();
        let bytes = file.file_size_in_bytes();
        match self.size(location).await? {
            None => self.problem(location, "the data file is missing"),
            Some(size) if size != bytes => {
                let what = format!("the data file has {size} bytes, its manifest says {bytes}");
                self.problem(location, &what)
            }
            Some(_) => {
                if file.file_format() == DataFileFormat::Orc {
                    let rows = file.record_count();
                    self.present.push(Described { location: location.to_owned(), bytes, rows });
                }
                Ok(())
            }
        }
    }

    fn compare_totals(&mut self, snapshot: &Snapshot, totals: LiveTotals) -> Result<()> {
        let summary = &snapshot.summary().additional_properties;
        let place = format!("snapshot {}", snapshot.snapshot_id());
        for (key, counted) in [
            ("total-records", totals.rows),
            ("total-data-files", totals.files),
            ("total-files-size", totals.bytes),
        ] {
            let said = summary.get(key).and_then(|text| text.parse::<u64>().ok());
            if let Some(said) = said.filter(|said| *said != counted) {
                let what = format!("its summary says {key} = {said}, its manifests hold {counted}");
                self.problem(&place, &what)?;
            }
        }
        Ok(())
    }

    fn find_orphans(&mut self) {
        let referenced = &self.referenced;
        // Hadoop's local file system keeps `.name.crc` beside `name`.
        let is_checksum = |path: &Path| -> bool {
            let whole = path.as_ref();
            let (directory, name) = whole.rsplit_once('/').unwrap_or(("", whole));
            let owner = name.strip_prefix('.').and_then(|name| name.strip_suffix(".crc"));
            owner.is_some_and(|owner| {
                Path::parse(format!("{directory}/{owner}")).is_ok_and(|p| referenced.contains(&p))
            })
        };
        let orphans = self.listed.values().filter(|(_, file)| {
            !referenced.contains(&file.location)
                && !is_checksum(&file.location)
                && !file.location.as_ref().ends_with("version-hint.text")
                && !self.working.makes(file.location.as_ref())
        });
        self.report.orphans = orphans
            .map(|(location, file)| Orphan {
                location: location.clone(),
                bytes: file.size,
                modified: file.last_modified,
            })
            .collect();
        self.report.orphans.sort_by(|a, b| a.location.cmp(&b.location));
    }

    /// Notes that something refers to `location`.
    fn refer(&mut self, location: &str) -> Result<()> {
        let place = self.table.warehouse().stores().resolve(location)?;
        self.referenced.insert(place.path);
        Ok(())
    }

    async fn exists(&self, location: &str) -> Result<bool> {
        Ok(self.size(location).await?.is_some())
    }

    /// Bytes of a file, from the listing if it is in there.
    async fn size(&self, location: &str) -> Result<Option<u64>> {
        let place = self.table.warehouse().stores().resolve(location)?;
        if let Some((_, file)) = self.listed.get(&place.path) {
            return Ok(Some(file.size));
        }
        match place.store.head(&place.path).await {
            Ok(file) => Ok(Some(file.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(from_object_store(location, source)),
        }
    }

    fn problem(&mut self, place: &str, what: &str) -> Result<()> {
        self.report.problems.push(Problem { place: place.to_owned(), what: what.to_owned() });
        Ok(())
    }

    /// Damage is a finding; a store that fails is an error.
    fn damaged(&mut self, place: &str, error: Error) -> Result<()> {
        match error.kind() {
            ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::NotFound => {
                self.problem(place, &error.message_with_sources())
            }
            _ => Err(error),
        }
    }
}
