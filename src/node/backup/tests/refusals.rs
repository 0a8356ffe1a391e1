//! A backup or restore that cannot succeed changes nothing, and the last backup stays good.

use bytes::Bytes;

use crate::capacity::CapacityConfig;
use crate::capacity::CapacityNode;
use crate::coordinator::embedded::FILE_NAME;
use crate::node::storage::coordinator_copy;
use crate::node::storage::open_disk;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::BlobProperties;
use crate::types::CannedAcl;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::Crc64;
use crate::types::ExtentOffset;
use crate::types::Metadata;
use crate::types::NewKind;
use crate::types::PublicAccess;
use crate::types::Tags;

use super::*;

const CONTAINER: ContainerId = ContainerId::new(1 << 60);

impl Running {
    /// A blob in an extent of its own.
    async fn blob(&self, name: &str, extent: u64) {
        let content = Bytes::from(vec![0x5a; CONTENT]);
        let (extent, epoch) = (ExtentId::new(extent), Epoch::new(1));
        self.storage.capacity.create(extent, ExtentKind::Data, epoch).await.unwrap();
        let payloads = vec![vec![content.clone()]];
        let durability = Durability::Durable;
        let request =
            AppendRequest { extent, epoch, offset: ExtentOffset::START, payloads, durability };
        let locations = self.storage.capacity.append(request).await.unwrap().locations;
        let key = BlobKey {
            account: AccountId::new(7),
            container: CONTAINER,
            collation: Collation::Utf16,
            name: BlobName::new(name).unwrap(),
        };
        let put = index::PutBlob {
            key,
            guard: index::Guard::default(),
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            kind: NewKind::Block,
            tags: Tags::default(),
            content: index::NewContent::Stored(locations),
            crc64: Crc64::of(&content),
            tier: None,
            fields: index::NewBlobFields::default(),
        };
        self.assembly.front.router.write(Write::PutBlob(put)).await.unwrap();
    }

    async fn container(&self) {
        let create = index::CreateContainer {
            account: AccountId::new(7),
            name: ContainerName::new("raw").unwrap(),
            id: CONTAINER,
            collation: Collation::Utf16,
            metadata: Metadata::default(),
            public_access: PublicAccess::Private,
            encryption_scope: None,
            owner: None,
            region: None,
            acl: CannedAcl::Private,
            object_lock: false,
        };
        self.assembly.front.router.write(Write::CreateContainer(create)).await.unwrap();
    }
}

/// A stopped store with two blobs, each in an extent of its own, and a backup of it.
async fn with_blobs() -> Folders {
    let at = Folders::new();
    let running = Running::start(&at.data).await.unwrap();
    running.account("aaaa").await;
    running.container().await;
    running.blob("a", 1_000).await;
    running.blob("b", 1_001).await;
    running.stop().await;
    of_stopped(&at.data, &at.backup).await.unwrap();
    at
}

async fn is_good(at: &Folders, to: &str, rows: u64) {
    restored(&at.backup, &at.other(to), &at.key).await.unwrap();
    assert_eq!(sound(&at.other(to), &at.key).await, rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_without_a_disk_leaves_the_last_backup_good() {
    let at = Folders::new();
    made(&at.data).await;
    of_stopped(&at.data, &at.backup).await.unwrap();
    let before = files(&at.backup);
    let env = env();
    let disk = open_disk(&at.data, &env).unwrap();
    let config = CapacityConfig { without: true, ..CapacityConfig::default() };
    let metrics = CapacityMetrics::default();
    let capacity = CapacityNode::open(vec![disk], env.clone(), config, metrics).await.unwrap();
    let coordinator = coordinator_copy(std::slice::from_ref(&at.data), &env).await.unwrap();
    let storage = Storage { capacity, coordinator: Arc::new(coordinator) };
    let source = Source::stopped(&storage);
    for to in [&at.backup, &at.other("fresh")] {
        let refused = backup(&source, to, &env, silent()).await.unwrap_err();
        assert!(matches!(refused, BackupError::DiskOut), "{refused}");
    }
    storage.capacity.shutdown().await;
    drop((source, storage));
    env.tasks.shutdown().await;
    assert_eq!(files(&at.backup), before);
    is_good(&at, "restored", 2).await;
    of_stopped(&at.data, &at.other("fresh")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quarantined_partition_leaves_the_last_backup_good() {
    let at = Folders::new();
    made(&at.data).await;
    of_stopped(&at.data, &at.backup).await.unwrap();
    let before = files(&at.backup);
    flip_row(&at.data, b"aaaa");
    let running = Running::start(&at.data).await.unwrap();
    let refused = backup(&running.source(), &at.backup, &running.env, silent()).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, BackupError::Index(index::Error::Corrupt(index::Damage::Quarantined(_)))),
        "{refused}"
    );
    running.stop().await;
    assert_eq!(files(&at.backup), before);
    is_good(&at, "restored", 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disk_that_takes_no_writes_is_named_and_the_last_backup_stays_good() {
    let at = Folders::new();
    made(&at.data).await;
    of_stopped(&at.data, &at.backup).await.unwrap();
    let before = files(&at.backup);
    let running = Running::start(&at.data).await.unwrap();
    running.content(1_002).await;
    // The folder of the next extent cannot be made.
    let blocked = file_of(&at.data, 4_321).parent().unwrap().to_owned();
    std::fs::write(&blocked, b"").unwrap();
    let (extent, epoch) = (ExtentId::new(4_321), Epoch::new(1));
    running.storage.capacity.create(extent, ExtentKind::Data, epoch).await.unwrap_err();
    let refused = backup(&running.source(), &at.backup, &running.env, silent()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("disk 0") && refused.contains("restart"), "{refused}");
    running.stop().await;
    assert_eq!(files(&at.backup), before);
    is_good(&at, "restored", 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_directories_are_refused_unchanged() {
    let at = Folders::new();
    made(&at.data).await;
    let summary = of_stopped(&at.data, &at.backup).await.unwrap();
    let half = at.other("half");
    let to = Destination { path: &half, mark: Mark::Restore };
    marks::begin(to, &summary, &attempt()).unwrap();
    std::fs::write(half.join(FILE_NAME), b"of the other restore").unwrap();
    let env = env();
    let locks = [&at.backup, &half].map(|path| open_disk(path, &env).unwrap());
    let before = [&at.backup, &half].map(|path| files(path));
    let refused = of_stopped(&at.data, &at.backup).await.unwrap_err().to_string();
    assert!(refused.contains("in use"), "{refused}");
    assert_eq!(files(&at.backup), before[0]);
    drop(locks);
    let lock = open_disk(&half, &env).unwrap();
    let refused = restored(&at.backup, &half, &at.key).await.unwrap_err().to_string();
    assert!(refused.contains("in use"), "{refused}");
    assert_eq!(files(&half), before[1]);
    drop(lock);
    is_good(&at, "half", 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_extent_is_named_and_its_older_copy_stays() {
    let at = with_blobs().await;
    let copy = std::fs::read(file_of(&at.backup, 1_000)).unwrap();
    std::fs::remove_file(file_of(&at.data, 1_000)).unwrap();
    let refused = of_stopped(&at.data, &at.backup).await.unwrap_err().to_string();
    let named = format!("extent {}", ExtentId::new(1_000));
    assert!(refused.contains(&named), "{refused}");
    assert_eq!(std::fs::read(file_of(&at.backup, 1_000)).unwrap(), copy);
    for refused in [
        restored(&at.backup, &at.other("no"), &at.key).await.unwrap_err().to_string(),
        Running::start(&at.backup).await.err().unwrap().to_string(),
    ] {
        assert!(refused.contains("complete"), "{refused}");
    }
    assert!(!at.other("no").exists());

    // Put back, the store and its backup are whole again.
    std::fs::write(file_of(&at.data, 1_000), copy).unwrap();
    of_stopped(&at.data, &at.backup).await.unwrap();
    restored(&at.backup, &at.other("restored"), &at.key).await.unwrap();
    sound(&at.other("restored"), &at.key).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_made_directories_are_refused_and_completed_by_the_next_call() {
    let at = Folders::new();
    made(&at.data).await;
    let summary = of_stopped(&at.data, &at.backup).await.unwrap();
    let to = at.other("restored");
    let half = Destination { path: &to, mark: Mark::Restore };
    marks::begin(half, &summary, &attempt()).unwrap();
    let refused = Running::start(&to).await.err().unwrap().to_string();
    assert!(refused.contains("half restored"), "{refused}");
    let refused = of_stopped(&to, &at.other("b")).await.unwrap_err().to_string();
    assert!(refused.contains("half restored"), "{refused}");
    flip_row(&at.backup, b"zzzz");
    let refused = restored(&at.backup, &to, &at.key).await.unwrap_err().to_string();
    assert!(refused.contains("extent"), "{refused}");
    flip_row(&at.backup, b"zzz\x7b");
    restored(&at.backup, &to, &at.key).await.unwrap();
    assert_eq!(sound(&to, &at.key).await, 2);

    let half = Destination { path: &at.backup, mark: Mark::Backup };
    marks::begin(half, &summary, &attempt()).unwrap();
    let refused = restored(&at.backup, &at.other("c"), &at.key).await.unwrap_err().to_string();
    assert!(refused.contains("not a complete backup"), "{refused}");
    of_stopped(&at.data, &at.backup).await.unwrap();
    restored(&at.backup, &at.other("d"), &at.key).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_directories_are_refused_by_name() {
    let at = Folders::new();
    made(&at.data).await;
    // Opening a store seals the extents that were open when it ended.
    sound(&at.data, &at.key).await;
    let before = files(&at.data);
    let other = at.other("other");
    made(&other).await;
    let wrong = of_stopped(&at.data, &other).await.unwrap_err().to_string();
    assert!(wrong.contains("neither empty nor a backup"), "{wrong}");
    of_stopped(&at.data, &at.backup).await.unwrap();
    let wrong = of_stopped(&other, &at.backup).await.unwrap_err().to_string();
    assert!(wrong.contains("another store"), "{wrong}");
    let wrong = of_stopped(&at.backup, &at.other("b")).await.unwrap_err().to_string();
    assert!(wrong.contains("is a backup"), "{wrong}");
    let wrong = restored(&at.data, &at.other("c"), &at.key).await.unwrap_err().to_string();
    assert!(wrong.contains("not a complete backup"), "{wrong}");
    let wrong = restored(&at.backup, &at.data, &at.key).await.unwrap_err().to_string();
    assert!(wrong.contains("is not empty"), "{wrong}");
    let lost = at.other("lost.key");
    let wrong = restored(&at.backup, &at.other("d"), &lost).await.unwrap_err().to_string();
    assert!(wrong.contains("lost.key") && wrong.contains("--master-key-file"), "{wrong}");
    for name in ["b", "c", "d"] {
        assert!(!at.other(name).exists(), "{name}");
    }
    let is_cache = |path: &Path| {
        let text = path.to_string_lossy();
        text.contains("/catalog") || text.ends_with("/journal")
    };
    let data = |mut files: BTreeMap<PathBuf, Vec<u8>>| {
        files.retain(|path, _| !is_cache(path));
        files
    };
    let (after, before) = (data(files(&at.data)), data(before));
    assert!(after.keys().eq(before.keys()), "{:?} {:?}", after.keys(), before.keys());
    let changed = after.iter().filter(|(path, bytes)| before.get(*path) != Some(bytes));
    let changed: Vec<_> = changed.map(|(path, _)| path).collect();
    assert!(changed.is_empty(), "{changed:?}");

    // A restored store goes its own way: its extents are not those of the other under these ids.
    let to = at.other("restored");
    restored(&at.backup, &to, &at.key).await.unwrap();
    let wrong = of_stopped(&to, &at.backup).await.unwrap_err().to_string();
    assert!(wrong.contains("before it was restored"), "{wrong}");
    of_stopped(&at.data, &at.backup).await.unwrap();
    of_stopped(&to, &at.other("of restored")).await.unwrap();
}
