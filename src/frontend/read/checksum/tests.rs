//! Ranges of 4 MiB on a simulated disk.

use std::future;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::coordinator::Coordinator;
use crate::coordinator::SimulatedStore;
use crate::frontend::answers::AnswerBudget;
use crate::frontend::answers::AnswerMemory;
use crate::frontend::answers::Payer;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::read::ContentVersion;
use crate::frontend::write::Stored;
use crate::frontend::write::WriteConfig;
use crate::frontend::write::tests::Rig;
use crate::frontend::write::tests::bytes;
use crate::frontend::write::tests::rig;
use crate::frontend::write::tests::stream;
use crate::index;
use crate::index::InFlight;
use crate::index::NewContent;
use crate::index::Piece;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Router;
use crate::index::Target;
use crate::index::client::testing::ReadIndex;
use crate::index::client::testing::Reads;
use crate::index::client::testing::publish;
use crate::protocol::model::Reason;
use crate::types::AccountId;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Crc64;
use crate::types::Etag;
use crate::types::KeyRange;
use crate::types::Location;
use crate::types::Revision;
use crate::types::Timestamp;

const MIB: u64 = 1 << 20;
const LEN: usize = 4 << 20;
const SECOND: Duration = Duration::from_secs(1);

/// Nothing is looked up: all pieces are known.
#[derive(Debug)]
struct Nothing;

#[async_trait::async_trait]
impl Reads for Nothing {
    async fn read(&self, _target: Target, _read: Read) -> Result<ReadReply, index::Error> {
        Err(index::Error::Overloaded)
    }
}

fn payer(known: bool) -> Payer {
    Payer { account: AccountId::new(1), peer: "192.0.2.1".parse().unwrap(), known }
}

struct Blob {
    rig: Rig,
    router: Arc<Router>,
    location: Location,
    content: Bytes,
    budget: Arc<AnswerBudget>,
    /// Freed when dropped.
    _stored: Stored,
}

impl Blob {
    async fn new(budget: u64) -> Self {
        let rig = rig(64 << 20, WriteConfig::default()).await;
        let content = bytes(LEN, 3);
        let stored = stream(&rig, &content, 1 << 20).await;
        let NewContent::Stored(locations) = stored.content() else { panic!("it is stored") };
        let [location] = locations.as_slice() else { panic!("it is in one piece") };
        let coordinator: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(&rig.env));
        publish(coordinator.as_ref(), (1, 1), KeyRange::all()).await;
        let host = Arc::new(ReadIndex(Arc::new(Nothing)));
        let router = Router::new(host, coordinator, rig.env.clone()).await.unwrap();
        let budget = AnswerBudget::new(budget, Arc::clone(&rig.env.clock));
        Self {
            router: Arc::new(router),
            location: *location,
            rig,
            content,
            budget,
            _stored: stored,
        }
    }

    fn source(&self, known: bool) -> BlobSource {
        let (account, container) = (AccountId::new(1), ContainerId::new(7));
        let name = BlobName::new("big").unwrap();
        let key = BlobKey { account, container, collation: Collation::Utf16, name };
        let (location, len) = (self.location, LEN as u64);
        BlobSource {
            router: Arc::clone(&self.router),
            capacity: Arc::clone(&self.rig.node) as _,
            tasks: self.rig.env.tasks.clone(),
            clock: Arc::clone(&self.rig.env.clock),
            blob: BlobVersion { key, revision: Revision::Current },
            content: ContentVersion { etag: Etag::from_commit(Timestamp::ZERO), generation: None },
            pieces: vec![Piece::Stored { location, range: 0..len }].into(),
            pieces_end: len,
            end: len,
            decrypting: None,
            memory: Some(AnswerMemory::new(&self.budget, payer(known))),
            note: InFlight::default().read(self.rig.env.clock.monotonic()),
            request: None,
        }
    }
}

/// The result, with the most that was taken while others had their turn, and how many such turns
/// there were in which nothing was.
async fn watched(blob: &Blob, kind: RangeChecksum) -> (BodyChecksum, u64, u32) {
    let others = blob.budget.taken();
    let mut hashes = Box::pin(checksum(blob.source(false), kind));
    let (mut most, mut free) = (0, 0);
    let done = future::poll_fn(|cx| {
        let polled = hashes.as_mut().poll(cx);
        let taken = blob.budget.taken() - others;
        most = most.max(taken);
        free += u32::from(polled.is_pending() && taken == 0);
        polled
    });
    let done = done.await.unwrap();
    assert_eq!(blob.budget.taken(), others);
    (done, most, free)
}

#[tokio::test(start_paused = true)]
async fn a_range_is_hashed_in_steps_that_are_paid_for_and_given_back() {
    let blob = Blob::new(128 * MIB).await;
    let mut md5 = Md5Hasher::default();
    md5.update(&blob.content);
    let md5 = BodyChecksum::Md5(md5.finish());
    let crc64 = BodyChecksum::Crc64(Crc64::of(&blob.content));
    for (kind, known) in [(RangeChecksum::Md5, md5), (RangeChecksum::Crc64, crc64)] {
        let (found, most, free) = watched(&blob, kind).await;
        assert_eq!(found, known);
        assert_eq!(most, MIB, "a step at a time");
        assert!(free >= 4, "it gave way {free} times between steps");
    }
}

#[tokio::test(start_paused = true)]
async fn a_range_is_refused_before_it_is_read_when_answers_hold_all_memory() {
    let blob = Blob::new(4 * MIB).await;
    let held = blob.budget.begin(payer(false), 3 * MIB, SECOND).await.unwrap();
    let refused = checksum(blob.source(false), RangeChecksum::Md5).await.unwrap_err();
    assert_eq!(refused.reason, Reason::ServerBusy);
    drop(held);
    // Of what strangers may have, less than a quarter of all is left.
    let held = blob.budget.begin(payer(false), 5 * MIB / 2, SECOND).await.unwrap();
    let (_, most, _) = watched(&blob, RangeChecksum::Md5).await;
    assert_eq!(most, 16 << 10, "smaller steps do");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn steps_of_a_range_together_wait_no_longer_than_one_may() {
    const STEP: u64 = 16 << 10;
    let blob = Blob::new(4 * MIB).await;
    let clock = Arc::clone(&blob.rig.env.clock);
    // All that strangers may have. A step becomes free after a second and a half, each time.
    let _rest = blob.budget.wait(payer(false), 3 * MIB - STEP).await;
    let mut step = blob.budget.wait(payer(false), STEP).await;
    let others = async {
        loop {
            clock.sleep(SECOND * 3 / 2).await;
            drop(step);
            step = blob.budget.wait(payer(false), STEP).await;
        }
    };
    let began = clock.monotonic();
    let hashed = tokio::select! {
        biased;
        hashed = checksum(blob.source(false), RangeChecksum::Md5) => hashed,
        () = others => panic!("it never ends"),
    };
    let took = clock.monotonic() - began;
    assert_eq!(hashed.unwrap_err().reason, Reason::ServerBusy);
    assert!(took >= SECOND * 2 && took < SECOND * 3, "{took:?}");
}
