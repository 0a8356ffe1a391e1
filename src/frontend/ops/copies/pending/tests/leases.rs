//! Leases of copies: two front ends over one partition.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::frontend::copies::Place;
use crate::frontend::ops::copies::pending::leases::LEASE;
use crate::frontend::ops::copies::pending::leases::RENEWED_EVERY;
use crate::frontend::ops::tests::Gated;
use crate::frontend::ops::tests::front_over;
use crate::frontend::ops::tests::gated;
use crate::index::BlobRecord;
use crate::index::CopiedContent;
use crate::index::CopyLease;
use crate::index::CopyRecord;
use crate::index::CopyStatus;
use crate::index::Guard;
use crate::index::NewBlobFields;
use crate::index::NewContent;
use crate::index::PutCopy;
use crate::index::ReadBlob;
use crate::types::BlobKey;
use crate::types::BlobKind;
use crate::types::BlobName;
use crate::types::BlobProperties;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Crc64;
use crate::types::Metadata;
use crate::types::Revision;
use crate::types::Tags;

use super::*;

const TOTAL: u64 = 100;
const ID: Uuid = Uuid::from_u128(5);

/// A partition with a pending copy, whose source nobody can unseal.
struct Rig {
    index: Arc<Gated>,
    pending: PendingCopy,
}

fn blob() -> BlobKey {
    let (account, container) = (AccountId::new(9), ContainerId::new(1));
    let name = BlobName::new("a").unwrap();
    BlobKey { account, container, name, collation: Collation::Utf16 }
}

fn put() -> PutCopy {
    let copy = CopyRecord {
        id: ID,
        source: "http://h/b".to_owned(),
        status: CopyStatus::Pending,
        description: None,
        copied: 0,
        total: TOTAL,
        completed: None,
    };
    let job = CopyJob { id: ID, ..pending_in(1).job };
    PutCopy {
        key: blob(),
        guard: Guard::default(),
        kind: BlobKind::Block,
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags: Tags::default(),
        tier: None,
        content: CopiedContent::Whole(NewContent::Inline(Bytes::new())),
        crc64: Crc64::EMPTY,
        copy: Some(Box::new(copy)),
        increment: None,
        job: Some(Box::new(job)),
        fields: NewBlobFields::default(),
    }
}

impl Rig {
    async fn new() -> (Self, [Leases; 2]) {
        let index = gated();
        let mut leases = Vec::new();
        for number in 0..2 {
            let (front, _) = front_over(Arc::clone(&index) as _).await;
            // Both draw from one seed.
            for _ in 0..number {
                front.env.rand.next_u64();
            }
            leases.push(Leases::new(Arc::new(front)));
        }
        index.partition.lock().unwrap().write(&Write::PutCopy(Box::new(put()))).unwrap();
        let job = CopyJob { id: ID, ..pending_in(1).job };
        let pending = PendingCopy { blob: RoutingKey::blob(&blob()), job };
        (Self { index, pending }, leases.try_into().unwrap())
    }

    fn record(&self) -> BlobRecord {
        let read = ReadBlob {
            key: blob(),
            revision: Revision::Current,
            guard: Guard::default(),
            range: None,
            pieces: false,
        };
        let reply = self.index.partition.lock().unwrap().read(&Read::Blob(read)).unwrap();
        let ReadReply::Blob(view) = reply else { panic!("{reply:?}") };
        view.record
    }

    fn copy(&self) -> CopyRecord {
        *self.record().copy.unwrap()
    }

    /// The job as a scan finds it.
    fn job(&self) -> CopyJob {
        let read = Read::CopyJobs { from: Bytes::new(), limit: 10 };
        let reply = self.index.partition.lock().unwrap().read(&read).unwrap();
        let ReadReply::CopyJobs(mut page) = reply else { panic!("{reply:?}") };
        page.jobs.remove(0).job
    }

    /// Sets the clock of the partition.
    fn pass(&self, time: Duration) {
        let mut partition = self.index.partition.lock().unwrap();
        partition.now = partition.now.plus(time);
    }

    fn place(&self, leases: &Leases) -> Place {
        let front = &leases.front;
        let now = front.env.clock.monotonic();
        front.copies.take_up(ID, AccountId::new(9), now).expect("a place is free")
    }
}

#[tokio::test(start_paused = true)]
async fn copy_that_another_process_carries_out_is_left_alone() {
    let (rig, [one, other]) = Rig::new().await;
    one.renew(&rig.pending, 7).await.unwrap();
    assert_eq!(rig.copy().copied, 7, "any front end shows it");
    other.carry_out(rig.pending.clone(), rig.place(&other)).await;
    assert_eq!(rig.copy().status, CopyStatus::Pending);
    let now = other.front.env.clock.monotonic();
    let early = other.front.copies.take_up(ID, AccountId::new(9), now);
    assert!(early.is_none(), "it is not looked at again at once");
    other.front.env.clock.sleep(LOOKS_EVERY).await;
    rig.pass(LEASE);
    other.carry_out(rig.pending.clone(), rig.place(&other)).await;
    assert_eq!(rig.copy().status, CopyStatus::Failed, "its source cannot be unsealed");
}

#[tokio::test(start_paused = true)]
async fn leased_copies_are_not_taken_up() {
    let (rig, [one, _]) = Rig::new().await;
    let now = one.front.env.clock.now();
    let job = rig.job();
    assert!(one.may_take(&job));
    let leased = |until| {
        let lease = Some(CopyLease { id: Uuid::from_u128(1), until });
        CopyJob { lease, ..job.clone() }
    };
    assert!(!one.may_take(&leased(now.next())));
    assert!(one.may_take(&leased(now)));
    one.renew(&rig.pending, 0).await.unwrap();
    let own = rig.job();
    assert!(one.may_take(&own), "its own copy may be tried again at once");
    let place = rig.place(&one);
    assert!(!one.may_take(&own), "but not twice at a time");
    drop(place);
}

/// The clock of the process is far ahead of that of the partition, so the lease looks expired.
#[tokio::test(start_paused = true)]
async fn process_does_not_ask_again_and_again_for_a_copy_of_another_one() {
    let (rig, [one, other]) = Rig::new().await;
    one.renew(&rig.pending, 0).await.unwrap();
    assert!(other.may_take(&rig.job()));
    let writes = |rig: &Rig| rig.index.partition.lock().unwrap().now.ticks();
    let (before, front) = (writes(&rig), Arc::clone(&other.front));
    let running = tokio::time::timeout(LOOKS_EVERY * 5, run(Arc::clone(&front), true));
    assert!(running.await.is_err(), "it runs until the program stops");
    let asked = writes(&rig) - before;
    assert!((1..=6).contains(&asked), "{asked} writes");
    rig.pass(LEASE);
    let running = tokio::time::timeout(LOOKS_EVERY * 2, run(front, true));
    assert!(running.await.is_err());
    assert_eq!(rig.copy().status, CopyStatus::Failed, "it was taken up when the lease had expired");
}

#[tokio::test(start_paused = true)]
async fn process_notes_its_progress_and_goes_on_until_another_one_may() {
    let (rig, [one, other]) = Rig::new().await;
    one.renew(&rig.pending, 0).await.unwrap();
    let copied = AtomicU64::new(40);
    let watched = async {
        one.front.env.clock.sleep(RENEWED_EVERY * 3 / 2).await;
        assert_eq!(rig.copy().copied, 40);
        copied.store(60, Ordering::Relaxed);
        one.front.env.clock.sleep(RENEWED_EVERY).await;
        assert_eq!(rig.copy().copied, 60);
        rig.pass(LEASE);
        other.renew(&rig.pending, 0).await.unwrap();
    };
    let began = one.front.env.clock.monotonic();
    tokio::join!(one.lost(&rig.pending, &copied), watched);
    let took = one.front.env.clock.monotonic() - began;
    assert!(took >= RENEWED_EVERY * 3 && took < RENEWED_EVERY * 4, "{took:?}");
    assert_eq!(rig.copy().copied, 0, "the other one has begun");
}

#[tokio::test(start_paused = true)]
async fn aborted_copy_is_not_renewed() {
    let (rig, [one, _]) = Rig::new().await;
    one.renew(&rig.pending, 0).await.unwrap();
    let end = EndCopy { blob: rig.pending.blob.clone(), id: ID, end: CopyEnd::Aborted(None) };
    rig.index.partition.lock().unwrap().write(&Write::EndCopy(Box::new(end))).unwrap();
    one.lost(&rig.pending, &AtomicU64::new(1)).await;
    assert_eq!(rig.copy().status, CopyStatus::Aborted);
}
