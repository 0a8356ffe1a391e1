use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join;

use super::*;
use crate::coordinator::SimulatedStore;
use crate::env::Env;
use crate::index::IndexHost;
use crate::index::LocalRequests;
use crate::index::Target;
use crate::index::api::CreateContainer;
use crate::index::api::DeleteBlob;
use crate::index::api::Guard;
use crate::index::api::History;
use crate::index::api::NewBlobFields;
use crate::index::api::NewContent;
use crate::index::api::PutBlob;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::SnapshotBlob;
use crate::index::api::StageBlock;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::client::testing::env;
use crate::index::client::testing::publish;
use crate::index::objects::fake::Partition;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::BlobProperties;
use crate::types::BlockId;
use crate::types::CannedAcl;
use crate::types::Collation;
use crate::types::Crc64;
use crate::types::DeleteScope;
use crate::types::ExtentId;
use crate::types::KeyRange;
use crate::types::Metadata;
use crate::types::NewKind;
use crate::types::PublicAccess;
use crate::types::Tags;

const ACCOUNT: AccountId = AccountId::new(3);
/// How long a commit takes.
const COMMIT: Duration = Duration::from_millis(20);

/// One partition with everything, whose commits take a while.
#[derive(Debug)]
struct Host {
    partition: Mutex<Partition>,
    env: Env,
}

#[async_trait]
impl IndexHost for Host {
    async fn read(&self, _target: Target, read: Read) -> Result<ReadReply, Error> {
        self.partition.lock().unwrap().read(&read)
    }

    async fn write_shared(&self, _target: Target, write: Arc<Write>) -> Result<WriteReply, Error> {
        self.env.clock.sleep(COMMIT).await;
        let mut partition = self.partition.lock().unwrap();
        partition.now = partition.now.max(self.env.clock.now());
        partition.write(&write)
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        Vec::new()
    }
}

fn bucket() -> ContainerName {
    ContainerName::new("bucket").unwrap()
}

fn found(id: u64) -> FoundContainer {
    FoundContainer {
        account: ACCOUNT,
        name: bucket(),
        id: ContainerId::new(id),
        protection: Protection::default(),
    }
}

fn delete() -> DeleteContainer {
    DeleteContainer {
        account: ACCOUNT,
        name: bucket(),
        guard: Guard::default(),
        closed: None,
        restorable_for: None,
    }
}

fn key() -> BlobKey {
    BlobKey {
        account: ACCOUNT,
        container: ContainerId::new(1),
        collation: Collation::Utf8,
        name: BlobName::new("blob").unwrap(),
    }
}

fn put() -> PutBlob {
    PutBlob {
        key: key(),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        kind: NewKind::Block,
        tags: Tags::default(),
        content: NewContent::Inline(Bytes::new()),
        crc64: Crc64::EMPTY,
        tier: None,
        fields: NewBlobFields::default(),
    }
}

fn create(id: u64) -> CreateContainer {
    CreateContainer {
        account: ACCOUNT,
        name: bucket(),
        id: ContainerId::new(id),
        collation: Collation::Utf8,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        owner: Some("owner".to_owned()),
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    }
}

/// An index with an empty container.
async fn containers() -> Containers {
    let env = env();
    let coordinator = Arc::new(SimulatedStore::new().open(&env));
    publish(coordinator.as_ref(), (1, 1), KeyRange::all()).await;
    let partition = Mutex::new(Partition::new(KeyRange::all()));
    let host = Arc::new(Host { partition, env: env.clone() });
    let router = Arc::new(Router::new(host, coordinator, env.clone()).await.unwrap());
    router.tell(create(1)).await.unwrap();
    let (inflight, clock) = (InFlight::default(), Arc::clone(&env.clock));
    let requests = LocalRequests::shared(inflight.clone(), Arc::clone(&clock));
    Containers { router, inflight, requests, clock }
}

impl Containers {
    /// A Put Blob, as the front end does it.
    async fn put(&self) -> Result<(), Error> {
        let noted = self.enter(self.inflight.commit(), &found(1)).await?;
        let answer = self.router.tell(put()).await;
        drop(noted);
        answer.map(|_| ())
    }

    async fn record(&self) -> Result<ContainerRecord, Error> {
        self.read(ACCOUNT, &bucket()).await.map(|record| *record)
    }

    async fn is_open(&self) -> bool {
        self.record().await.unwrap().closed().is_none()
    }
}

#[tokio::test(start_paused = true)]
async fn container_is_deleted_if_it_has_no_blobs_and_no_snapshots() {
    let containers = containers().await;
    containers.put().await.unwrap();
    let snapshot = SnapshotBlob { key: key(), guard: Guard::default(), metadata: None };
    containers.router.tell(snapshot).await.unwrap();
    let not_empty = Err(Refused::ContainerNotEmpty.into());
    assert_eq!(containers.delete_if_empty(delete(), History::All).await, not_empty);
    assert!(containers.is_open().await);
    assert_eq!(containers.record().await.unwrap().owner(), Some("owner"), "a field is kept");
    for scope in [DeleteScope::Snapshots, DeleteScope::Blob] {
        assert_eq!(containers.delete_if_empty(delete(), History::All).await, not_empty);
        let delete = DeleteBlob { key: key(), guard: Guard::default(), scope };
        containers.router.tell(delete).await.unwrap();
    }
    let stage = StageBlock {
        key: key(),
        guard: Guard::default(),
        id: BlockId::from_bytes(b"1").unwrap(),
        content: NewContent::Inline(Bytes::from_static(b"1")),
        crc64: Crc64::of(b"1"),
    };
    containers.router.tell(stage).await.unwrap();
    containers.delete_if_empty(delete(), History::All).await.expect("staged blocks do not count");
    let gone = Refused::ContainerNotFound.into();
    assert_eq!(containers.record().await.unwrap_err(), gone);
    assert_eq!(containers.delete_if_empty(delete(), History::All).await.unwrap_err(), gone);
}

/// A write that read the container before it was closed commits while the deletion runs.
#[tokio::test(start_paused = true)]
async fn deletion_waits_for_commits_that_saw_the_container_open() {
    let containers = containers().await;
    for late in [0, 5, 10, 19, 21, 35] {
        let write = async {
            containers.clock.sleep(Duration::from_millis(late)).await;
            containers.put().await
        };
        let (deleted, written) =
            join(containers.delete_if_empty(delete(), History::All), write).await;
        match (deleted, written) {
            (Err(Error::Refused(Refused::ContainerNotEmpty)), Ok(())) => {
                assert!(containers.is_open().await);
                let scope = DeleteScope::Blob;
                let delete = DeleteBlob { key: key(), guard: Guard::default(), scope };
                containers.router.tell(delete).await.unwrap();
            }
            (Ok(()), Err(Error::Refused(Refused::ContainerNotFound))) => {
                assert!(late > 19, "the container was open {late} ms after the deletion began");
                containers.router.tell(create(1)).await.unwrap();
            }
            (deleted, written) => panic!("after {late} ms: {deleted:?}, {written:?}"),
        }
    }
}

/// Its body arrived after its container was deleted, and perhaps made again.
#[tokio::test(start_paused = true)]
async fn write_into_a_container_that_was_deleted_is_refused() {
    let containers = containers().await;
    containers.router.tell(delete()).await.unwrap();
    let gone = Err(Refused::ContainerNotFound.into());
    assert_eq!(containers.put().await, gone);
    containers.router.tell(create(2)).await.unwrap();
    assert_eq!(containers.put().await, gone, "it is another container");
}

/// The process that closed the container is gone.
#[tokio::test(start_paused = true)]
async fn closing_that_nobody_ends_is_ended_by_the_next_write() {
    let containers = containers().await;
    let close = || CloseContainer { account: ACCOUNT, name: bucket(), guard: Guard::default() };
    let closed = containers.router.tell(close()).await.unwrap().closed().unwrap();
    let again = containers.router.tell(close()).await.unwrap_err();
    assert_eq!(again, Refused::ContainerClosed.into());
    let begun = containers.clock.monotonic();
    containers.put().await.unwrap();
    let waited = containers.clock.monotonic() - begun;
    assert!(waited > CLOSED_MAX / 2 && waited < CLOSED_MAX * 2, "{waited:?}");
    // The deletion was only slow. It does not find its closing.
    let late = DeleteContainer { closed: Some(closed), ..delete() };
    assert_eq!(containers.router.tell(late).await, Err(Refused::ContainerReopened.into()));
    let late = ReopenContainer { account: ACCOUNT, name: bucket(), closed };
    let closed = containers.router.tell(close()).await.unwrap().closed();
    containers.router.tell(late).await.unwrap();
    assert_eq!(containers.record().await.unwrap().closed(), closed, "that is another closing");
    let begun = containers.clock.monotonic();
    assert_eq!(
        containers.delete_if_empty(delete(), History::All).await,
        Err(Refused::ContainerNotEmpty.into())
    );
    assert_eq!(containers.clock.monotonic(), begun, "a look is enough");
}

#[tokio::test(start_paused = true)]
async fn deletions_at_once_have_one_winner() {
    let containers = containers().await;
    let (one, two) = join(
        containers.delete_if_empty(delete(), History::All),
        containers.delete_if_empty(delete(), History::All),
    )
    .await;
    let gone = Err(Refused::ContainerNotFound.into());
    assert!((one.is_ok() && two == gone) || (two.is_ok() && one == gone), "{one:?} {two:?}");
}

/// A commit of any container that does not end.
#[tokio::test(start_paused = true)]
async fn deletion_gives_up_after_some_seconds_and_opens_the_container() {
    let containers = containers().await;
    let stuck = containers.inflight.commit();
    assert_eq!(containers.delete_if_empty(delete(), History::All).await, Err(Error::Overloaded));
    assert!(containers.is_open().await);
    drop(stuck);
    containers.delete_if_empty(delete(), History::All).await.unwrap();
}
