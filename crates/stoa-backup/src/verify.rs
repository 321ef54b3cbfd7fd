//! Checking that a backup is whole.

use futures::StreamExt;
use stoa_error::{ErrorKind, Result};
use stoa_store::Stores;

use crate::copy::{AT_ONCE, Progress, content_of};
use crate::layout::{Backup, BackupFile, file_in, open};

/// What a check of a backup found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The backup.
    pub backup: Backup,
    /// What is wrong with which files; empty for a sound backup.
    pub problems: Vec<String>,
}

/// Reads all files of the backup `id` at the literal location `backup`, or of the newest one, and compares their
/// sizes and checksums with its list.
///
/// # Errors
/// `NotFound` where there is no such backup, `Corrupt` where its list is damaged, `Unavailable` where the store fails.
pub async fn verify(
    stores: &Stores,
    backup: &str,
    id: Option<&str>,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Verified> {
    let location = backup.trim_end_matches('/');
    let backup = open(stores, location, id).await?;
    let catalog = format!("{location}/{}", backup.catalog.path);
    let named = backup.files.iter().map(|file| (file_in(location, &file.path), file));
    let all: Vec<(String, &BackupFile)> =
        std::iter::once((catalog, &backup.catalog)).chain(named).collect();
    let mut done = Progress { files_total: all.len(), ..Progress::default() };
    let checks: Vec<_> = all.iter().map(|(literal, file)| check(stores, literal, file)).collect();
    let mut checks = futures::stream::iter(checks).buffer_unordered(AT_ONCE);
    let mut problems = Vec::new();
    while let Some(checked) = checks.next().await {
        let (bytes, problem) = checked?;
        problems.extend(problem);
        done.files += 1;
        done.bytes += bytes;
        progress(done);
    }
    drop(checks);
    drop(all);
    problems.sort();
    Ok(Verified { backup, problems })
}

/// How many bytes were read, and what is wrong.
pub(crate) async fn check(
    stores: &Stores,
    literal: &str,
    file: &BackupFile,
) -> Result<(u64, Option<String>)> {
    let content = match content_of(stores, literal).await {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok((0, Some(format!("{literal}: the file is missing"))));
        }
        Err(error) => return Err(error),
    };
    let problem = if content.bytes != file.bytes {
        Some(format!("{literal}: has {} bytes instead of {}", content.bytes, file.bytes))
    } else if content.crc32c != file.crc32c {
        Some(format!("{literal}: its bytes are not those that were copied (CRC-32C)"))
    } else {
        None
    };
    Ok((content.bytes, problem))
}
