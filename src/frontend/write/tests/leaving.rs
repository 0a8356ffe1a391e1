//! Clients that leave while their small body waits for its append, or is appended.

use std::sync::Weak;

use futures_util::poll;

use super::*;
use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::ingest::ingest;
use crate::frontend::ingest::ingest_pages;
use crate::protocol::model::operation::ClaimedChecksums;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::Upload;

const BUDGET: u64 = 1 << 20;
const STALL: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_millis(1);

/// Bytes that signal when they are dropped.
struct Owned(Arc<Vec<u8>>);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn owned(len: usize) -> (Bytes, Weak<Vec<u8>>) {
    let bytes = Arc::new(vec![7; len]);
    let gone = Arc::downgrade(&bytes);
    (Bytes::from_owner(Owned(bytes)), gone)
}

/// A pool with little memory for bodies, and an extent that is open.
async fn rig() -> (Rig, Stored) {
    let config = WriteConfig { body_bytes_max: BUDGET, ..WriteConfig::default() };
    let rig = super::rig(64 << 20, config).await;
    let kept = rig.pool.store(vec![bytes(5_000, 0)], 5_000).await.unwrap();
    (rig, kept)
}

/// A Put Blob or Put Page of a client that leaves soon.
async fn leave(rig: &Rig, content: Bytes, pages: bool) {
    let len = content.len() as u64;
    let upload = Upload {
        framing: Framing::Known { len },
        md5: None,
        crc64: None,
        checksums: ClaimedChecksums::default(),
    };
    let body = ResponseBody::full(content);
    let mut body = RequestBody::of_source(body, STALL, rig.env.clone());
    let stored = async {
        match pages {
            true => ingest_pages(&rig.pool, &mut body, &upload, 0, None).await,
            false => ingest(&rig.pool, &mut body, &upload, false, None).await,
        }
    };
    assert!(tokio::time::timeout(SOON, stored).await.is_err(), "it is stored already");
}

/// Whether bodies take at most `taken` of the memory.
fn takes_at_most(rig: &Rig, taken: usize) -> bool {
    let rest = usize::try_from(BUDGET).unwrap() - taken - PIECE_BYTES;
    rig.pool.budget().take(&BodyMemory::of(ACCOUNT), rest).is_ok()
}

/// Bytes in extents, and those of them that were freed.
async fn on_disk(rig: &Rig) -> (u64, u64) {
    let extents = rig.node.extents().await;
    extents.iter().fold((0, 0), |(len, freed), extent| (len + extent.len, freed + extent.freed))
}

#[tokio::test(start_paused = true)]
async fn body_whose_client_left_before_its_append_is_dropped_at_once_and_never_stored() {
    let (rig, _kept) = rig().await;
    let (one, _) = on_disk(&rig).await;
    rig.disk.stall(STALL);
    let mut begun = Box::pin(rig.pool.store(vec![bytes(5_000, 1)], 5_000));
    assert!(poll!(begun.as_mut()).is_pending());
    tokio::time::sleep(SOON).await;
    let mut left = Vec::new();
    for _ in 0..40 {
        let (content, gone) = owned(100_000);
        leave(&rig, content, false).await;
        left.push(gone);
    }
    leave(&rig, owned(200_000).0, true).await;
    let held = left.iter().filter(|gone| gone.strong_count() > 0).count();
    let nothing_counts = takes_at_most(&rig, 0);
    let _begun = begun.await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let found = (held, nothing_counts, on_disk(&rig).await);
    assert_eq!(found, (0, true, (2 * one, 0)), "only the two of 5,000 bytes are there");
}

#[tokio::test(start_paused = true)]
async fn body_whose_client_left_during_its_append_counts_until_its_end_and_is_freed() {
    for pages in [false, true] {
        let (rig, _kept) = rig().await;
        let (kept, _) = on_disk(&rig).await;
        rig.disk.stall(STALL);
        leave(&rig, owned(200_000).0, pages).await;
        let counts = !takes_at_most(&rig, 100_000);
        tokio::time::sleep(STALL + Duration::from_secs(5)).await;
        let (len, freed) = on_disk(&rig).await;
        assert!(len >= kept + 200_000, "pages: {pages}: nothing was appended");
        let found = (counts, takes_at_most(&rig, 0), freed);
        assert_eq!(found, (true, true, len - kept), "pages: {pages}");
    }
}
