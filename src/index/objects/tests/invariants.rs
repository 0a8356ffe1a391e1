//! What the machine finds violated it reports: it neither answers nor changes anything.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;

use super::support::*;
use crate::index::api::History;
use crate::index::api::*;
use crate::index::objects::Objects;
use crate::index::objects::fake::{Memory, Partition};
use crate::index::objects::keys;
use crate::index::objects::values;
use crate::index::objects::values::{Content, StagedBlock};
use crate::index::rows::Family;
use crate::index::rows::Machine;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::index::rows::Scanned;
use crate::types::*;

fn names(error: &Error, invariant: &str) -> bool {
    let begins = format!("invariant {invariant} is violated");
    matches!(error, Error::Unavailable(why) if why.starts_with(&begins))
}

/// Rows in the wrong places.
struct Disordered {
    rows: Memory,
    /// Rows come in descending order; else each scan begins at the first row.
    is_backwards: bool,
}

#[async_trait]
impl Rows for Disordered {
    async fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.rows.get(family, key).await
    }

    async fn scan(
        &self,
        family: Family,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
    ) -> Result<Scanned, Error> {
        let from = if self.is_backwards { from } else { &[] };
        let mut found = self.rows.scan(family, from, to, limit).await?;
        if self.is_backwards {
            found.rows.reverse();
        }
        Ok(found)
    }
}

fn answer(p: &Partition, is_backwards: bool, read: &Read) -> Result<ReadReply, Error> {
    let view = Disordered { rows: p.memory.clone(), is_backwards };
    Objects.answer(&view, &p.memory.range, read, p.now).now_or_never().unwrap()
}

#[test]
fn a_name_that_an_earlier_page_showed_is_found() {
    let mut p = partition();
    for name in ["a", "b", "c"] {
        p.must(&Write::PutBlob(put(&key(name), inline(b"1"))));
    }
    let mut list = ListBlobs { limit: 2, ..list() };
    let ReadReply::Blobs(page) = answer(&p, false, &Read::Blobs(list.clone())).unwrap() else {
        panic!("not a page")
    };
    list.from = page.next;
    let error = answer(&p, false, &Read::Blobs(list)).unwrap_err();
    assert!(names(&error, "I7"), "{error}");
}

#[test]
fn snapshots_out_of_order_are_found() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"1"))));
    for _ in 0..2 {
        let guard = Guard::default();
        p.must(&Write::SnapshotBlob(SnapshotBlob { key: a.clone(), guard, metadata: None }));
    }
    let list = ListBlobs { history: History::Snapshots, ..list() };
    assert!(p.read(&Read::Blobs(list.clone())).is_ok());
    let error = answer(&p, true, &Read::Blobs(list)).unwrap_err();
    assert!(names(&error, "I7"), "{error}");
}

#[test]
fn a_change_that_is_not_later_than_the_blob_is_found() {
    let mut p = partition();
    let write = Write::PutBlob(put(&key("a"), inline(b"1")));
    p.must(&write);
    let mut batch = RowBatch::default();
    let evaluated = Objects.evaluate(&p.memory, &write, p.now, &mut batch).now_or_never().unwrap();
    let error = evaluated.unwrap_err();
    assert!(names(&error, "I9"), "{error}");
    assert!(batch.changes.is_empty());
    p.must(&write);
}

#[test]
fn a_block_of_another_length_than_its_bytes_is_found() {
    let mut p = partition();
    let a = key("a");
    p.must(&stage(&a, "1", inline(b"four")));
    let row = keys::staged_block(&RoutingKey::blob(&a), &block_id("1"));
    let content = Content::Inline(Bytes::from_static(b"four"));
    let block =
        StagedBlock { len: 5, crc64: Crc64::of(b"four"), time: p.now, fields: None, content };
    p.memory.rows.insert((Family::Staged, row), values::encode_record(&block));
    let error = p.write(&Write::CommitBlocks(commit(&a, &["1"]))).unwrap_err();
    assert!(names(&error, "I10"), "{error}");
    assert_eq!(p.blob(&read(&a)).unwrap_err(), Error::Refused(Refused::BlobNotFound));
}
