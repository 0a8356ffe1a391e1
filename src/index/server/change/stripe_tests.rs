use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::index::api::DeleteBlob;
use crate::index::api::Guard;
use crate::index::api::IndexHost;
use crate::index::api::ListBlobs;
use crate::index::api::ListEntry;
use crate::index::api::NewBlobFields;
use crate::index::api::NewContent;
use crate::index::api::PutBlob;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::engine::Dependencies;
use crate::index::engine::testing::World;
use crate::index::map::PartitionMap;
use crate::types::Revision;
use crate::types::*;

const ACCOUNT: AccountId = AccountId::new(1);
const CONTAINER: ContainerId = ContainerId::new(1 << 62);

struct Rig {
    deps: Dependencies,
    server: Arc<IndexServer>,
}

fn key(number: u32) -> BlobKey {
    let name = BlobName::new(&format!("log/{number:06}")).unwrap();
    BlobKey { account: ACCOUNT, container: CONTAINER, collation: Collation::Utf16, name }
}

fn put(number: u32) -> Write {
    let content = Bytes::from(number.to_string());
    Write::PutBlob(PutBlob {
        key: key(number),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        kind: NewKind::Block,
        tags: Tags::default(),
        crc64: Crc64::of(&content),
        content: NewContent::Inline(content),
        tier: None,
        fields: NewBlobFields::default(),
    })
}

fn delete(number: u32) -> Write {
    let scope = DeleteScope::Blob;
    Write::DeleteBlob(DeleteBlob { key: key(number), guard: Guard::default(), scope })
}

impl Rig {
    /// Opens the store, whose container has a partition of its own.
    async fn open(world: &World) -> Self {
        world.capacity.crash();
        let deps = Dependencies { machine: Arc::new(crate::index::Objects), ..world.deps() };
        let range = RoutingKey::container_range(ACCOUNT, CONTAINER);
        let borders = [range.low().clone(), range.high().unwrap().clone()];
        let hosts = vec![deps.clone(); 2];
        let server = IndexServer::open_with(hosts, world.config, &borders).await.unwrap();
        Self { deps, server: Arc::new(server) }
    }

    async fn map(&self) -> PartitionMap {
        PartitionMap::load(self.deps.coordinator.as_ref()).await.unwrap()
    }

    /// The partitions of the container.
    async fn ids(&self) -> Vec<PartitionId> {
        let map = self.map().await;
        let key = RoutingKey::blob(&key(0));
        map.at(key.as_bytes()).iter().map(|partition| partition.id).collect()
    }

    async fn write(&self, write: Write) {
        let map = self.map().await;
        let target = Target::of(map.owner(&write.routing_key()).unwrap());
        self.server.write(target, write).await.unwrap();
    }

    async fn write_all(&self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            self.write(put(number)).await;
        }
    }

    async fn stripe(&self, stripes: u8) -> Changed {
        let ids = self.ids().await;
        assert_eq!(ids.len(), 1);
        self.server.stripe(ids[0], stripes).await.unwrap()
    }

    async fn unstripe(&self) {
        let ids = self.ids().await;
        let merged = self.server.merge(&ids).await.unwrap();
        assert_eq!(self.ids().await, merged.partitions);
    }

    /// The names that each of the container's partitions lists.
    async fn lists(&self) -> Vec<Vec<String>> {
        let list = ListBlobs::first_page(ACCOUNT, CONTAINER, Collation::Utf16, 5_000);
        let mut lists = Vec::new();
        for owner in self.map().await.at(&list.position()) {
            let read = Read::Blobs(list.clone());
            let answer = self.server.read(Target::of(owner), read).await.unwrap();
            let ReadReply::Blobs(page) = answer else { panic!("{answer:?}") };
            let names = page.entries.into_iter().map(|entry| {
                let ListEntry::Blob { name, .. } = entry else { panic!("{entry:?}") };
                name
            });
            lists.push(names.collect());
        }
        lists
    }

    /// Exactly these blobs are there: each in one list, which is in order, and found by its name.
    async fn check(&self, numbers: impl IntoIterator<Item = u32>) {
        let lists = self.lists().await;
        assert!(lists.iter().all(|names| names.is_sorted_by(|a, b| a < b)));
        let mut all: Vec<String> = lists.into_iter().flatten().collect();
        all.sort();
        let numbers: Vec<u32> = numbers.into_iter().collect();
        let wanted: Vec<String> =
            numbers.iter().map(|number| key(*number).name.as_str().to_owned()).collect();
        assert_eq!(all, wanted);
        let map = self.map().await;
        for number in numbers {
            let row = RoutingKey::blob(&key(number));
            let target = Target::of(map.owner(row.as_bytes()).unwrap());
            let read = Read::BlockList(key(number), Revision::Current, Guard::default());
            assert!(self.server.read(target, read).await.is_ok(), "{number}");
        }
    }

    /// Everything in runs, each partition's own, and nothing else is kept.
    async fn settle(&self, world: &World) {
        for host in &self.server.hosts {
            for partition in host.opened.all() {
                partition.flush().await.unwrap();
                while partition.compact().await.unwrap() {}
            }
        }
        // The host's own upkeep may be half-way through its chores.
        for _ in 0..1_000 {
            for host in &self.server.hosts {
                host.context.do_chores().await;
            }
            if self.server.owned_extents().await == world.capacity.extents_of_index() {
                return;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(self.server.owned_extents().await, world.capacity.extents_of_index());
    }
}

#[tokio::test]
async fn stripes_have_every_row_with_and_without_flush_compaction_and_restart() {
    for flush in [false, true] {
        let world = World::empty();
        let rig = Rig::open(&world).await;
        rig.write_all(0..100).await;
        if flush {
            rig.server.flush().await.unwrap();
        }
        rig.write_all(100..200).await;
        let made = rig.stripe(5).await;
        assert_eq!(rig.ids().await, made.partitions);
        rig.check(0..200).await;
        rig.write_all(200..300).await;
        rig.check(0..300).await;
        assert!(rig.lists().await.iter().all(|names| names.len() > 30), "dealt out");
        if flush {
            rig.settle(&world).await;
            rig.check(0..300).await;
        }
        drop(rig);
        let rig = Rig::open(&world).await;
        rig.check(0..300).await;
        rig.write_all(300..350).await;
        rig.unstripe().await;
        rig.check(0..350).await;
        drop(rig);
        let rig = Rig::open(&world).await;
        rig.check(0..350).await;
        // Into other parts than before: runs of the old stripes are of no one of the new.
        rig.stripe(3).await;
        rig.settle(&world).await;
        rig.check(0..350).await;
        rig.server.shutdown().await;
    }
}

/// Otherwise its flusher would come back to it for ever.
#[tokio::test]
async fn log_without_rows_of_its_own_is_left_behind_by_a_flush() {
    let world = World::empty();
    let config = crate::index::Config { log_extent_bytes: 4 << 10, ..world.config };
    let world = World { config, ..world };
    let rig = Rig::open(&world).await;
    rig.write_all(0..300).await;
    // All but the last names are of the left one.
    rig.server.split(rig.ids().await[0], &[RoutingKey::blob(&key(299))]).await.unwrap();
    drop(rig);
    let rig = Rig::open(&world).await;
    let owner = |map: &PartitionMap| map.owner(RoutingKey::blob(&key(299)).as_bytes()).cloned();
    rig.write(delete(299)).await;
    for _ in 0..2 {
        rig.server.flush().await.unwrap();
        let owner = owner(&rig.map().await).unwrap();
        assert!(owner.log.len() <= 2, "{:?}", owner.log);
        for _ in 0..200 {
            rig.server.write(Target::of(&owner), Write::Prove).await.unwrap();
        }
    }
    rig.check(0..299).await;
    rig.server.shutdown().await;
}

#[tokio::test]
async fn part_of_a_partition_is_striped_and_what_is_around_it_is_not() {
    let world = World::empty();
    let deps = Dependencies { machine: Arc::new(crate::index::Objects), ..world.deps() };
    let server = IndexServer::open_with(vec![deps.clone()], world.config, &[]).await.unwrap();
    let rig = Rig { deps, server: Arc::new(server) };
    rig.write_all(0..100).await;
    let whole = rig.map().await.partitions()[0].id;
    let from = |number| RoutingKey::blob(&key(number));
    let rest = from(60).rest_of_container().unwrap();
    let outside = KeyRange::new(from(10), None);
    assert_eq!(rig.server.stripe_part(whole, outside, 4).await, Err(ChangeError::NotStripable));
    let made = rig.server.stripe_part(whole, rest.clone(), 16).await.unwrap();
    assert_eq!(made.partitions.len(), 18);
    let stripes: Vec<_> = rig.server.status().into_iter().map(|one| one.stripe).collect();
    assert_eq!(stripes[1..17], Stripe::all(16).map(Some).collect::<Vec<_>>());
    assert_eq!((stripes[0], stripes[17]), (None, None));
    let lists = rig.lists().await;
    assert_eq!(lists.len(), 1, "the list begins below the stripes");
    assert_eq!(lists[0].len(), 60);
    rig.write_all(100..130).await;
    let target = |number: u32, map: &PartitionMap| {
        map.owner(from(number).as_bytes()).map(|owner| (Target::of(owner), owner.keys.clone()))
    };
    let map = rig.map().await;
    for number in 0..130 {
        let (target, keys) = target(number, &map).unwrap();
        assert_eq!(keys.stripe().is_some(), number >= 60);
        let read = Read::BlockList(key(number), Revision::Current, Guard::default());
        assert!(rig.server.read(target, read).await.is_ok(), "{number}");
    }
    // Exactly to the end of the partition, too.
    let middle = made.partitions[0];
    let part = KeyRange::new(from(30), Some(from(60)));
    let made = rig.server.stripe_part(middle, part.clone(), 2).await.unwrap();
    assert_eq!(made.partitions.len(), 3);
    let low = KeyRange::new(from(30), Some(from(50)));
    assert_eq!(rig.server.stripe_part(made.partitions[1], low, 2).await, Err(ChangeError::Striped));
    assert_eq!(
        rig.server.stripe_part(made.partitions[0], part, 2).await,
        Err(ChangeError::BadKeys)
    );
    rig.server.shutdown().await;
}

/// A run that all stripes share still has the row; the merged partition must not show it again.
#[tokio::test]
async fn rows_deleted_in_a_stripe_stay_deleted_when_it_is_no_more() {
    let world = World::empty();
    let rig = Rig::open(&world).await;
    rig.write_all(0..60).await;
    rig.server.flush().await.unwrap();
    rig.stripe(4).await;
    for number in 20..60 {
        rig.write(delete(number)).await;
    }
    // One stripe has compacted its deletions away, the others have not.
    let ids = rig.ids().await;
    let host = rig.server.host_of(ids[2]).unwrap();
    let one = host.opened.get(ids[2]).unwrap();
    one.flush().await.unwrap();
    while one.compact().await.unwrap() {}
    // Who holds it holds its runs.
    drop(one);
    rig.unstripe().await;
    rig.check(0..20).await;
    rig.settle(&world).await;
    rig.check(0..20).await;
    rig.server.shutdown().await;
}

#[tokio::test]
async fn stripes_move_and_are_merged_from_where_they_are() {
    let world = World::empty();
    let rig = Rig::open(&world).await;
    rig.write_all(0..50).await;
    rig.stripe(4).await;
    let ids = rig.ids().await;
    for id in [ids[1], ids[3]] {
        rig.server.move_to(id, HostId::new(1)).await.unwrap();
    }
    rig.write_all(50..100).await;
    rig.check(0..100).await;
    let hosts: BTreeSet<u64> = rig.server.status().iter().map(|one| one.host.number()).collect();
    assert_eq!(hosts.len(), 2);
    rig.unstripe().await;
    rig.check(0..100).await;
    let kinds: Vec<_> = rig.server.changes_after(0).iter().map(|event| event.kind).collect();
    assert_eq!(kinds.first(), Some(&ChangeKind::Stripe));
    assert_eq!(kinds.last(), Some(&ChangeKind::Unstripe));
    rig.settle(&world).await;
    rig.server.shutdown().await;
}

#[tokio::test]
async fn only_names_of_one_container_are_dealt_out_and_stripes_are_merged_before_anything_else() {
    let world = World::empty();
    let rig = Rig::open(&world).await;
    rig.write_all(0..20).await;
    let outside = rig.map().await.partitions()[0].id;
    assert_eq!(rig.server.stripe(outside, 2).await, Err(ChangeError::NotStripable));
    let id = rig.ids().await[0];
    for wrong in [0, 1, 17] {
        assert_eq!(rig.server.stripe(id, wrong).await, Err(ChangeError::NotStripable));
    }
    rig.stripe(3).await;
    let ids = rig.ids().await;
    assert_eq!(rig.server.stripe(ids[0], 2).await, Err(ChangeError::Striped));
    let cut = [RoutingKey::blob(&key(10))];
    assert_eq!(rig.server.split(ids[0], &cut).await, Err(ChangeError::Striped));
    for some in [vec![ids[0], ids[1]], vec![outside, ids[0]], vec![ids[0], ids[1], ids[1]]] {
        assert_eq!(rig.server.merge(&some).await, Err(ChangeError::NotNeighbours), "{some:?}");
    }
    let stripes: Vec<_> = rig.server.status().into_iter().filter_map(|one| one.stripe).collect();
    assert_eq!(stripes, Stripe::all(3).collect::<Vec<_>>());
    rig.check(0..20).await;
    rig.server.shutdown().await;
}
