//! Versions: random requests against a plain model of the chains of a few blobs.
//!
//! After every step all states of all blobs have the bytes and the fields of the model, lists show
//! them, the check of a stopped store finds nothing, and no location that a row owned is lost. At
//! the end a purge leaves no row.

mod chain;
mod check;
mod locked;
mod restored;
mod single;
mod steps;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::support::*;
use crate::capacity::AppendRequest;
use crate::capacity::Capacity;
use crate::capacity::Durability;
use crate::capacity::ExtentKind;
use crate::index::api::*;
use crate::index::engine::testing::MemoryCapacity;
use crate::index::objects::fake::Partition;
use crate::index::objects::keys::DeletedKey;
use crate::index::objects::keys::DeletedState;
use crate::types::*;

/// `a` is a prefix of another name.
const NAMES: [&str; 3] = ["a", "a/x", "b"];
const EXTENT: ExtentId = ExtentId::new(1);
const EPOCH: Epoch = Epoch::new(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Block,
    Append,
    Page,
}

/// Which of its states a step means a blob in: an index into those that the model has.
type Pick = usize;

#[derive(Clone, Debug)]
enum Step {
    /// The next setting: never on, enabled, suspended, enabled and so on.
    Versioning,
    Put {
        name: usize,
        kind: Kind,
        stored: bool,
    },
    Stage {
        name: usize,
        id: usize,
    },
    /// Blocks of the list by id; how often the list is repeated.
    Commit {
        name: usize,
        ids: Vec<usize>,
        times: usize,
    },
    Append {
        name: usize,
        times: usize,
    },
    WritePage {
        name: usize,
        page: u64,
    },
    Metadata {
        name: usize,
    },
    Tags {
        name: usize,
        pick: Pick,
    },
    Snapshot {
        name: usize,
    },
    Copy {
        from: usize,
        pick: Pick,
        to: usize,
    },
    Delete {
        name: usize,
        scope: DeleteScope,
    },
    DeleteSnapshot {
        name: usize,
        pick: Pick,
    },
    DeleteVersion {
        name: usize,
        pick: Pick,
        former: bool,
    },
    DeleteNull {
        name: usize,
    },
    /// Object lock on, then its default retention on and off.
    Lock,
    /// Whether deletions and changes of a retention bypass one that is not locked.
    Bypass,
    /// Replaces the retention of a state: its mode, and for how many steps.
    Retain {
        name: usize,
        pick: Pick,
        new: Option<(RetentionMode, u64)>,
    },
    Hold {
        name: usize,
        pick: Pick,
        on: bool,
    },
    /// Soft delete on or off.
    SoftDelete,
    Undelete {
        name: usize,
    },
    Permanently {
        name: usize,
        pick: Pick,
    },
    /// Removes what can no longer be restored.
    Expire,
    Reclaim,
    Purge {
        limit: usize,
    },
}

/// What a state of a blob has.
#[derive(Clone, Debug, PartialEq)]
struct State {
    kind: Kind,
    bytes: Vec<u8>,
    /// The committed blocks.
    blocks: Vec<(String, Vec<u8>)>,
    metadata: Metadata,
    tags: Tags,
    modified: Timestamp,
    retention: Option<Retention>,
    hold: Option<bool>,
}

/// A version. The current one may have no id.
#[derive(Clone, Debug)]
struct Version {
    id: Option<VersionId>,
    is_marker: bool,
    state: State,
}

impl Version {
    fn id(&self) -> VersionId {
        self.id.unwrap_or(VersionId::null(self.state.modified))
    }
}

/// The versions of a blob, oldest first.
#[derive(Clone, Debug, Default)]
struct Chain {
    versions: Vec<Version>,
    snapshots: BTreeMap<Timestamp, State>,
    staged: BTreeMap<String, Vec<u8>>,
    /// The newest version is not current, though it is no delete marker: it was restored.
    is_headless: bool,
    /// What was softly deleted.
    deleted: BTreeMap<DeletedKey, Deletion>,
}

/// What was softly deleted, and until when it can be restored.
#[derive(Clone, Debug)]
struct Deletion {
    version: Version,
    until: Timestamp,
}

/// The number of steps for which a deleted blob can be restored.
const STEPS: u64 = 12;
const RESTORABLE_FOR: Duration = Duration::from_nanos(100 * STEPS);

struct World {
    partition: Partition,
    capacity: MemoryCapacity,
    /// The bytes written to the capacity node, by offset.
    bytes: BTreeMap<u64, Vec<u8>>,
    end: u64,
    seed: u8,
    versioning: Option<Versioning>,
    is_soft: bool,
    lock: Option<ObjectLock>,
    bypass: bool,
    chains: BTreeMap<&'static str, Chain>,
}

/// Runs what does not wait for another task.
fn wait<T>(of: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(of)
}

impl World {
    fn new() -> Self {
        let capacity = MemoryCapacity::default();
        wait(capacity.create(EXTENT, ExtentKind::Data, EPOCH)).unwrap();
        Self {
            partition: partition(),
            capacity,
            bytes: BTreeMap::new(),
            end: 0,
            seed: 0,
            versioning: None,
            is_soft: false,
            lock: None,
            bypass: false,
            chains: NAMES.iter().map(|name| (*name, Chain::default())).collect(),
        }
    }

    fn chain(&mut self, name: &str) -> &mut Chain {
        self.chains.get_mut(name).unwrap()
    }

    /// Evaluates a write as a front end sends it.
    fn write(&mut self, mut write: Write) -> Result<WriteReply, Error> {
        write.set_protection(self.protection());
        // What the container is known to have before a write begins to commit.
        let (lock, bypass) = (self.lock, self.bypass);
        if let Write::UpdateBlob(UpdateBlob { guard, .. })
        | Write::DeleteBlob(DeleteBlob { guard, .. }) = &mut write
        {
            (guard.protection.lock, guard.lock.bypass) = (lock, bypass);
        }
        self.partition.write(&write)
    }

    fn protection(&self) -> Protection {
        let restorable_for = self.is_soft.then_some(RESTORABLE_FOR);
        Protection { versioning: self.versioning, restorable_for, lock: self.lock }
    }

    /// Until when can be restored what is deleted now.
    fn until(&self) -> Option<Timestamp> {
        self.is_soft.then(|| self.now().plus(RESTORABLE_FOR))
    }

    fn now(&self) -> Timestamp {
        self.partition.now
    }

    /// New bytes.
    fn fresh(&mut self, len: usize) -> Vec<u8> {
        self.seed = self.seed.wrapping_add(1);
        vec![self.seed; len]
    }

    /// Stores bytes, or keeps them for the row.
    fn store(&mut self, bytes: &[u8], stored: bool) -> (NewContent, Crc64) {
        if !stored || bytes.is_empty() {
            return inline(bytes);
        }
        let request = AppendRequest {
            extent: EXTENT,
            epoch: EPOCH,
            offset: ExtentOffset::new(self.end),
            payloads: vec![vec![Bytes::copy_from_slice(bytes)]],
            durability: Durability::Durable,
        };
        let appended = wait(self.capacity.append(request)).unwrap();
        self.end = appended.end.get();
        let location = appended.locations[0];
        self.bytes.insert(location.offset.get(), bytes.to_vec());
        (NewContent::Stored(vec![location]), Crc64::of(bytes))
    }
}

fn scope() -> impl Strategy<Value = DeleteScope> {
    prop_oneof![
        3 => Just(DeleteScope::Blob),
        2 => Just(DeleteScope::BlobAndSnapshots),
        3 => Just(DeleteScope::Object),
        1 => Just(DeleteScope::Snapshots),
    ]
}

fn retention() -> impl Strategy<Value = Option<(RetentionMode, u64)>> {
    let mode = prop_oneof![3 => Just(RetentionMode::Unlocked), 1 => Just(RetentionMode::Locked)];
    prop_oneof![
        4 => (mode, 0u64..15).prop_map(Some),
        1 => Just(None),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let name = || prop_oneof![4 => Just(0usize), 1 => 0..NAMES.len()];
    let kind = prop_oneof![3 => Just(Kind::Block), 1 => Just(Kind::Append), 2 => Just(Kind::Page)];
    let ids = prop::collection::vec(0usize..4, 0..5);
    let times = prop_oneof![4 => Just(1usize), 1 => Just(30)];
    prop_oneof![
        2 => Just(Step::Versioning),
        5 => (name(), kind, any::<bool>())
            .prop_map(|(name, kind, stored)| Step::Put { name, kind, stored }),
        4 => (name(), 0usize..4).prop_map(|(name, id)| Step::Stage { name, id }),
        4 => (name(), ids, times)
            .prop_map(|(name, ids, times)| Step::Commit { name, ids, times }),
        3 => (name(), prop_oneof![4 => Just(1usize), 1 => Just(70)])
            .prop_map(|(name, times)| Step::Append { name, times }),
        4 => (name(), 0u64..4).prop_map(|(name, page)| Step::WritePage { name, page }),
        4 => name().prop_map(|name| Step::Metadata { name }),
        2 => (name(), 0usize..9).prop_map(|(name, pick)| Step::Tags { name, pick }),
        3 => name().prop_map(|name| Step::Snapshot { name }),
        4 => (name(), 0usize..9, name()).prop_map(|(from, pick, to)| Step::Copy { from, pick, to }),
        5 => (name(), scope()).prop_map(|(name, scope)| Step::Delete { name, scope }),
        1 => (name(), 0usize..9).prop_map(|(name, pick)| Step::DeleteSnapshot { name, pick }),
        5 => (name(), 0usize..9, any::<bool>())
            .prop_map(|(name, pick, former)| Step::DeleteVersion { name, pick, former }),
        1 => name().prop_map(|name| Step::DeleteNull { name }),
        1 => Just(Step::Lock),
        1 => Just(Step::Bypass),
        4 => (name(), 0usize..9, retention())
            .prop_map(|(name, pick, new)| Step::Retain { name, pick, new }),
        2 => (name(), 0usize..9, any::<bool>())
            .prop_map(|(name, pick, on)| Step::Hold { name, pick, on }),
        1 => Just(Step::SoftDelete),
        3 => name().prop_map(|name| Step::Undelete { name }),
        1 => (name(), 0usize..9).prop_map(|(name, pick)| Step::Permanently { name, pick }),
        1 => Just(Step::Expire),
        2 => Just(Step::Reclaim),
        1 => (1usize..4).prop_map(|limit| Step::Purge { limit }),
    ]
}

proptest! {
    #[test]
    fn chains_agree_with_the_model(steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::new();
        for step in &steps {
            world.check_step(step);
        }
        world.check_lists();
        world.purge(2);
        world.reclaim();
        prop_assert_eq!(world.left(), 0, "rows are left");
    }
}
