//! What the local store promises: durable writes, no half files, nothing changed in place.
#![allow(clippy::unwrap_used)]

use std::fs;

use object_store::{ObjectStoreExt, PutMode, PutPayload};
use stoa_store::{Stores, literal_of, parse_location};

fn place(directory: &tempfile::TempDir, name: &str) -> String {
    let url = parse_location(directory.path().to_str().unwrap()).unwrap();
    format!("{}/{name}", literal_of(&url).unwrap())
}

fn files_in(directory: &tempfile::TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_put_creates_directories_and_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let stores = Stores::new();
    let at = stores.resolve(&place(&directory, "a/b=x%2Fy z/c.bin")).unwrap();
    at.store.put(&at.path, "hello".into()).await.unwrap();
    assert!(directory.path().join("a/b=x%2Fy z/c.bin").is_file());
    let bytes = at.store.get(&at.path).await.unwrap().bytes().await.unwrap();
    assert_eq!(&bytes[..], b"hello");
    let totals = stores.totals();
    assert_eq!((totals.writes, totals.bytes_written), (1, 5));
    assert_eq!((totals.reads, totals.bytes_read), (1, 5));
}

#[tokio::test]
async fn create_refuses_an_existing_file_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let at = Stores::new().resolve(&place(&directory, "x")).unwrap();
    at.store.put_opts(&at.path, "1".into(), PutMode::Create.into()).await.unwrap();
    let second = at.store.put_opts(&at.path, "2".into(), PutMode::Create.into()).await;
    assert!(matches!(second, Err(object_store::Error::AlreadyExists { .. })));
    assert_eq!(files_in(&directory), ["x"]);
    assert_eq!(fs::read(directory.path().join("x")).unwrap(), b"1");
}

#[tokio::test]
async fn an_upload_appears_only_when_complete() {
    let directory = tempfile::tempdir().unwrap();
    let at = Stores::new().resolve(&place(&directory, "big.orc")).unwrap();
    let mut upload = at.store.put_multipart(&at.path).await.unwrap();
    let first = upload.put_part(PutPayload::from_static(b"one "));
    let second = upload.put_part(PutPayload::from_static(b"two"));
    second.await.unwrap();
    first.await.unwrap();
    let before = files_in(&directory);
    assert!(before.len() == 1 && before[0].ends_with(".tmp"), "{before:?}");
    upload.complete().await.unwrap();
    assert_eq!(files_in(&directory), ["big.orc"]);
    assert_eq!(fs::read(directory.path().join("big.orc")).unwrap(), b"one two");
    assert!(upload.complete().await.is_err());
}

#[tokio::test]
async fn an_aborted_or_dropped_upload_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let at = Stores::new().resolve(&place(&directory, "x.orc")).unwrap();
    let mut upload = at.store.put_multipart(&at.path).await.unwrap();
    upload.put_part(PutPayload::from_static(b"1")).await.unwrap();
    upload.abort().await.unwrap();
    let mut upload = at.store.put_multipart(&at.path).await.unwrap();
    upload.put_part(PutPayload::from_static(b"1")).await.unwrap();
    drop(upload);
    assert!(files_in(&directory).is_empty());
}
