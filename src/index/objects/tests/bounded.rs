//! Answers over rows of which most are removed: they end early, say where to continue, and all of
//! them together miss nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;

use super::support::*;
use crate::index::api::History;
use crate::index::api::*;
use crate::index::objects::Objects;
use crate::index::objects::fake::Partition;
use crate::index::rows::Family;
use crate::index::rows::Machine;
use crate::index::rows::Row;
use crate::index::rows::RowBatch;
use crate::index::rows::RowChange;
use crate::index::rows::Rows;
use crate::index::rows::Scanned;
use crate::types::*;

type Place = (Family, Bytes);

/// A partition that knows where its removed rows were.
struct Worn {
    partition: Partition,
    /// All rows there ever were.
    ever: BTreeSet<Place>,
}

impl Worn {
    fn new() -> Self {
        Self { partition: partition(), ever: BTreeSet::new() }
    }

    fn must(&mut self, write: &Write) -> WriteReply {
        let reply = self.partition.must(write);
        self.ever.extend(self.partition.memory.rows.keys().cloned());
        reply
    }

    /// Steps of `step` rows, spent after `answer` rows.
    fn view(&self, (step, answer): (usize, usize)) -> Tired<'_> {
        Tired { worn: self, step, answer, seen: AtomicUsize::new(0) }
    }

    fn read(&self, pace: (usize, usize), read: &Read) -> ReadReply {
        let view = self.view(pace);
        let answer = Objects.answer(&view, &self.partition.memory.range, read, self.partition.now);
        let reply = answer.now_or_never().expect("rows in memory never wait").unwrap();
        // One step more for each family there is, at most.
        let mut most = pace.1 + pace.0 * (Family::ALL.len() + 1);
        let has_versions = matches!(read, Read::Blobs(list)
            if list.history.has_versions() || list.versions_only);
        if has_versions || matches!(read, Read::References(_)) {
            // A blob that was begun is looked at to its end, and the removed rows of one that is
            // gone before it. The newest version of a blob is looked for where a page begins and
            // where it ends.
            most += 2 * self.longest();
        }
        assert!(view.seen() <= most, "{} rows looked at, {most} may be", view.seen());
        reply
    }

    /// The rows of the blob with the most, removed ones too.
    fn longest(&self) -> usize {
        let mut rows = BTreeMap::new();
        for (_, row) in &self.ever {
            *rows.entry(RoutingKey::of_row(row)).or_insert(0) += 1;
        }
        rows.into_values().max().unwrap_or(0)
    }

    /// What all answers name, and how many there are.
    fn references(&self, pace: (usize, usize), list: &ListReferences) -> (Vec<Location>, usize) {
        let (mut found, mut list, mut answers) = (Vec::new(), list.clone(), 0);
        loop {
            let ReadReply::References(page) = self.read(pace, &Read::References(list.clone()))
            else {
                panic!("not references")
            };
            assert!(page.locations.len() <= list.locations, "{} told", page.locations.len());
            found.extend(page.locations);
            answers += 1;
            let Some(next) = page.next else { return (found, answers) };
            assert!(next > list.from, "it does not go on");
            list.from = next;
        }
    }

    fn list_all(&self, pace: (usize, usize), list: &ListBlobs) -> (Vec<String>, usize) {
        let (mut names, mut list, mut empty) = (Vec::new(), list.clone(), 0);
        for _ in 0..10_000 {
            let ReadReply::Blobs(page) = self.read(pace, &Read::Blobs(list.clone())) else {
                panic!("not a page")
            };
            empty += usize::from(page.entries.is_empty());
            names.extend(page.entries.iter().map(show));
            let Some(next) = page.next else { return (names, empty) };
            assert!(list.from.as_ref().is_none_or(|from| *from < next), "it does not go on");
            list.from = Some(begin_of_next(&list, next, page.after.last()));
        }
        panic!("the listing does not end");
    }
}

/// The start of the page that a client requests with the marker of the previous page. An S3
/// client names the version that was passed, if the page does not end behind an entry.
fn begin_of_next(list: &ListBlobs, next: Bytes, last: Option<&Bytes>) -> Bytes {
    let names_version = list.history == History::VersionsDown && last != Some(&next);
    let passed = RoutingKey::passed_version(&next).filter(|_| names_version);
    let Some(time) = passed else { return next };
    let name = RoutingKey::passed_name(&next, list.collation).unwrap();
    RoutingKey::after_version(list.account, list.container, (&name, time), list.collation)
}

struct Tired<'a> {
    worn: &'a Worn,
    step: usize,
    answer: usize,
    seen: AtomicUsize,
}

#[async_trait]
impl Rows for Tired<'_> {
    async fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.worn.partition.memory.get(family, key).await
    }

    async fn scan(
        &self,
        family: Family,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
    ) -> Result<Scanned, Error> {
        let low = Bound::Included((family, Bytes::copy_from_slice(from)));
        let all = self.worn.ever.range((low, Bound::Unbounded));
        let inside = |place: &&Place| place.0 == family && to.is_none_or(|to| place.1 < to);
        let mut found = Scanned::default();
        for (count, place) in all.take_while(inside).enumerate() {
            if found.rows.len() == limit || count == self.step {
                found.next = Some(place.1.clone());
                break;
            }
            self.seen.fetch_add(1, Ordering::Relaxed);
            let value = self.worn.partition.memory.rows.get(place).cloned();
            found.rows.extend(value.map(|value| Row { key: place.1.clone(), value }));
        }
        Ok(found)
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    fn is_spent(&self) -> bool {
        self.seen() >= self.answer
    }
}

/// Names, snapshots, staged blocks and garbage, most of them removed again; from a seed.
fn worn(seed: u64) -> Worn {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut worn = Worn::new();
    for n in 0..300 {
        let name = key(&format!("{}/{}", draw(4), draw(30)));
        match draw(5) {
            0 => drop(worn.must(&stage(&name, &format!("{:02}", draw(20)), inline(b"1")))),
            1 => {
                let write = stage(&name, &format!("{:02}", draw(20)), stored(&[location(n, 0, 9)]));
                worn.must(&write);
            }
            _ => {
                worn.must(&Write::PutBlob(put(&name, stored(&[location(n, 0, 1)]))));
                for _ in 0..draw(4) {
                    worn.must(&Write::SnapshotBlob(SnapshotBlob {
                        key: name.clone(),
                        guard: Guard::default(),
                        metadata: None,
                    }));
                }
            }
        }
        if draw(10) < 8 {
            for _ in 0..3 {
                let name = key(&format!("{}/{}", draw(4), draw(30)));
                let scope = DeleteScope::BlobAndSnapshots;
                // Often there is no such blob.
                if worn.partition.write(&delete_of(&name, scope)).is_ok() {
                    worn.ever.extend(worn.partition.memory.rows.keys().cloned());
                }
            }
        }
    }
    worn
}

const PACES: [(usize, usize); 4] = [(1, 1), (2, 5), (7, 20), (64, 100)];

#[test]
fn pages_that_end_early_show_every_name_once() {
    for seed in 1..6 {
        let worn = worn(seed);
        let mut empty = 0;
        for flags in 0..8 {
            let whole = ListBlobs {
                delimiter: (flags & 1 > 0).then(|| "/".to_owned()),
                uncommitted: flags & 2 > 0,
                history: if flags & 4 > 0 { History::Snapshots } else { History::None },
                limit: 1_000,
                ..list()
            };
            let expected = worn.partition.list_all(&whole);
            for pace in PACES {
                for limit in [1, 3, 1_000] {
                    let (names, none) = worn.list_all(pace, &ListBlobs { limit, ..whole.clone() });
                    assert_eq!(names, expected, "seed {seed} flags {flags} pace {pace:?}");
                    empty += none;
                }
            }
        }
        assert!(empty > 0, "no page was empty");
    }
}

/// Blobs "a" to "c" with many versions. The newest ones of "a" and "b" are removed, so that their
/// current blobs are older than those. "c" has removed snapshots and a null version, "d" has no
/// current blob.
fn with_versions() -> Worn {
    let mut worn = Worn::new();
    let protection = Protection { versioning: Some(Versioning::Enabled), ..Protection::default() };
    let (c, d) = (key("c"), key("d"));
    worn.must(&Write::PutBlob(put(&c, stored(&[location(0, 0, 1)]))));
    for _ in 0..20 {
        let (key, guard) = (c.clone(), Guard::default());
        worn.must(&Write::SnapshotBlob(SnapshotBlob { key, guard, metadata: None }));
    }
    worn.must(&delete_of(&c, DeleteScope::Snapshots));
    let must = |worn: &mut Worn, mut write: Write| {
        write.set_protection(protection);
        worn.must(&write)
    };
    for (name, removed) in [(key("a"), 40), (key("b"), 40), (c, 0), (d.clone(), 10)] {
        let mut made = Vec::new();
        for n in 0..60 {
            let write = Write::PutBlob(put(&name, stored(&[location(n, 0, 1)])));
            let WriteReply::Written(written) = must(&mut worn, write) else { panic!("not put") };
            made.push(written.version.unwrap());
        }
        for version in made.iter().rev().take(removed) {
            let scope = DeleteScope::Version(Revision::Version(version.time));
            must(&mut worn, delete_of(&name, scope));
        }
    }
    must(&mut worn, delete_of(&d, DeleteScope::Blob));
    worn
}

/// A page ends among removed versions, and the current blob is older than those, as one would be
/// that became current after that page. Or it ends before the versions.
#[test]
fn lists_of_versions_that_end_early_show_every_entry_once() {
    let worn = with_versions();
    let without = ListBlobs { limit: 1_000, ..list() };
    for (whole, count) in [
        (ListBlobs { history: History::VersionsDown, ..without.clone() }, 20 + 20 + 61 + 51),
        (
            ListBlobs { history: History::VersionsUp { snapshots: true }, ..without.clone() },
            20 + 20 + 61 + 50,
        ),
        (ListBlobs { versions_only: true, ..without.clone() }, 4),
        (ListBlobs { versions_only: true, history: History::Snapshots, ..without }, 4),
    ] {
        let expected = worn.partition.list_all(&whole);
        assert_eq!(expected.len(), count, "{whole:?}: {expected:?}");
        for pace in PACES {
            for limit in [1, 3, 1_000] {
                let (names, _) = worn.list_all(pace, &ListBlobs { limit, ..whole.clone() });
                assert_eq!(names, expected, "{whole:?} pace {pace:?} limit {limit}");
            }
        }
    }
}

#[test]
fn references_that_end_early_name_the_same() {
    for seed in 1..6 {
        let worn = worn(seed);
        let expected = references(&worn.partition);
        for pace in PACES {
            for locations in [1, 2, 7, 1_000] {
                let list = ListReferences { blobs: 5, locations, ..ListReferences::all() };
                let (mut found, _) = worn.references(pace, &list);
                found.sort();
                found.dedup();
                assert_eq!(found, expected, "seed {seed} pace {pace:?} locations {locations}");
            }
        }
    }
}

/// A block list of two segments that changes from snapshot to snapshot.
fn with_snapshots(snapshots: usize) -> Worn {
    const BLOCKS: usize = 1_050;
    let (mut worn, name) = (Worn::new(), key("a"));
    let ids: Vec<String> = (0..BLOCKS).map(|n| format!("{n:04}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let extent = |n: usize| u64::try_from(n % 3).unwrap();
    for (offset, (n, id)) in (0..).zip(ids.iter().enumerate()) {
        worn.must(&stage(&name, id, stored(&[location(extent(n), offset, 9)])));
    }
    worn.must(&Write::CommitBlocks(commit(&name, &ids)));
    for n in 0..snapshots {
        let (key, guard) = (name.clone(), Guard::default());
        worn.must(&Write::SnapshotBlob(SnapshotBlob { key, guard, metadata: None }));
        let offset = u64::try_from(BLOCKS + n).unwrap();
        worn.must(&stage(&name, ids[n], stored(&[location(extent(n), offset, 9)])));
        worn.must(&Write::CommitBlocks(commit(&name, &ids)));
    }
    worn
}

#[test]
fn references_of_a_long_blob_with_snapshots_come_in_parts_and_each_once() {
    const SNAPSHOTS: usize = 40;
    let worn = with_snapshots(SNAPSHOTS);
    let expected = references(&worn.partition);
    // 41 times as many are in the rows.
    assert_eq!(expected.len(), 1_050 + SNAPSHOTS);
    for locations in [64, 500, 1_090, 1_091, 100_000] {
        let list = ListReferences { locations, ..ListReferences::all() };
        let (found, answers) = worn.references((64, 100), &list);
        assert_eq!(found, expected, "at most {locations}");
        assert_eq!(answers, expected.len().div_ceil(locations), "at most {locations}");
    }
    let second = ExtentId::new(1);
    let list = ListReferences { extents: second..=second, locations: 50, ..ListReferences::all() };
    let (found, _) = worn.references((64, 100), &list);
    let expected = expected.into_iter().filter(|location| location.extent == second);
    assert_eq!(found, expected.collect::<Vec<_>>());
}

/// A place among the rows of a blob is no place to go on from: what is behind it may be before it
/// by then.
#[test]
fn references_pause_between_blobs_only() {
    let (mut worn, name) = (Worn::new(), key("b"));
    worn.must(&Write::PutBlob(put(&key("a"), stored(&[location(1, 0, 9)]))));
    for n in 0..40 {
        worn.must(&stage(&name, &format!("{n:02}"), stored(&[location(2, n * 20, 9)])));
    }
    let expired: Vec<Place> = worn
        .ever
        .iter()
        .filter(|(family, _)| *family == Family::Staged)
        .take(20)
        .cloned()
        .collect();
    for place in expired {
        worn.partition.memory.rows.remove(&place);
    }
    let mut list = ListReferences::all();
    while let ReadReply::References(page) = worn.read((2, 5), &Read::References(list.clone())) {
        let Some(next) = page.next else { break };
        let blob = RoutingKey::of_row(&next.key);
        let is_start = blob.is_none_or(|blob| *blob.as_bytes() == next.key);
        assert!(is_start, "it would go on within a blob");
        list.from = next;
    }
}

#[test]
fn garbage_and_expired_blocks_are_found_behind_removed_rows() {
    let mut worn = worn(7);
    // Most of the garbage is freed, in order.
    let ReadReply::Garbage(GarbagePage { rows, .. }) =
        worn.partition.read(&Read::Garbage { from: Bytes::new(), limit: 1_000 }).unwrap()
    else {
        panic!("not garbage")
    };
    let left = rows.len() / 10;
    let keys: Vec<Bytes> = rows.iter().rev().skip(left).map(|row| row.key.clone()).collect();
    worn.must(&Write::ForgetGarbage { keys });
    for pace in PACES {
        let (mut found, mut from) = (0, Some(Bytes::new()));
        while let Some(start) = from {
            let ReadReply::Garbage(GarbagePage { rows, next }) =
                worn.read(pace, &Read::Garbage { from: start, limit: 10 })
            else {
                panic!("not garbage")
            };
            found += rows.len();
            from = next;
        }
        assert_eq!(found, left);
        let before = worn.partition.now.next();
        let (mut blobs, mut from) = (0, Some(Bytes::new()));
        while let Some(start) = from {
            let ReadReply::Expired(ExpiredPage { blobs: some, next }) =
                worn.read(pace, &Read::Expired { from: start, before, limit: 3 })
            else {
                panic!("not expired")
            };
            blobs += some.len();
            from = next;
        }
        let staged = |place: &&Place| place.0 == Family::Staged && place.1.ends_with(&[0]);
        assert_eq!(blobs, worn.partition.memory.rows.keys().filter(staged).count());
    }
}

/// The place of a deleted container is found without looking at all the garbage there was.
#[test]
fn dead_containers_are_found_by_a_seek() {
    let mut worn = worn(8);
    for container in [5, 9] {
        let purge = purge_key(ACCOUNT, ContainerId::new(container));
        let dead = crate::index::objects::values::DeadContainer { deleted: Timestamp::ZERO };
        let value = crate::index::objects::values::encode(&dead);
        worn.partition.memory.rows.insert((Family::Garbage, purge.clone()), value);
        worn.ever.insert((Family::Garbage, purge));
    }
    let blob = RoutingKey::blob(&key("z"));
    for n in 0..10_000_u64 {
        let row = [blob.as_bytes().as_ref(), &n.to_be_bytes(), &[0; 4]].concat();
        worn.ever.insert((Family::Garbage, row.into()));
    }
    let view = worn.view((16, 16));
    let found = crate::index::objects::sweep::dead_containers(&view).now_or_never().unwrap();
    let found: Vec<u64> = found.unwrap().into_iter().map(|dead| dead.container.get()).collect();
    assert_eq!(found, [5, 9]);
    assert!(view.seen() < 100, "{} rows looked at", view.seen());
}

#[test]
fn purge_passes_over_removed_rows_in_steps() {
    for pace in PACES {
        let mut worn = worn(9);
        let mut from = Bytes::new();
        for pass in 0.. {
            assert!(pass < 10_000, "the purge does not end");
            let purge = Write::PurgeContainer {
                account: ACCOUNT,
                container: CONTAINER,
                from: from.clone(),
                limit: 2,
            };
            let mut batch = RowBatch::default();
            worn.partition.now = worn.partition.now.next();
            let (view, now) = (worn.view(pace), worn.partition.now);
            let reply = Objects.evaluate(&view, &purge, now, &mut batch).now_or_never().unwrap();
            for RowChange { family, key, value } in batch.changes {
                match value {
                    Some(value) => worn.partition.memory.rows.insert((family, key), value),
                    None => worn.partition.memory.rows.remove(&(family, key)),
                };
            }
            let Ok(WriteReply::Purged { next }) = reply else { panic!("not purged") };
            let Some(next) = next else { break };
            assert!(next > from, "the purge does not go on");
            from = next;
        }
        let of_blobs = |(family, _): &&Place| {
            matches!(family, Family::Main | Family::Versions | Family::Staged | Family::Layout)
        };
        assert_eq!(worn.partition.memory.rows.keys().filter(of_blobs).count(), 0);
    }
}
