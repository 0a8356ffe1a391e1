//! Random requests against a plain model of block blobs, over several partitions.
//!
//! The model keeps bytes and knows no rows. After every step: contents, block lists and listings
//! agree, and every location ever stored is in exactly one of: what blobs and staged blocks use,
//! garbage, forgotten.

mod check;

use std::collections::{BTreeMap, BTreeSet};

use crate::index::api::Deleted;
use crate::types::ExtentOffset;
use bytes::Bytes;
use proptest::prelude::*;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::types::*;

/// Names that exercise order, prefixes and groups; `ab` is a prefix of `ab/c`.
const NAMES: [&str; 9] =
    ["a", "a/", "a/b", "a/b/c", "ab", "ab/c", "b//c", "\u{1F600}/x", "\u{FFFD}"];
const IDS: [&str; 5] = ["1", "2", "3", "4", "xx"];

#[derive(Clone, Debug)]
enum Step {
    Put { name: usize, content: Content, create_only: bool },
    Stage { name: usize, id: usize, content: Content },
    Commit { name: usize, list: Vec<(u8, usize)>, times: usize },
    Delete { name: usize },
    Metadata { name: usize },
    Expire { name: usize, all: bool },
    ForgetGarbage { rows: usize },
    Purge { limit: usize },
    Copy { from: usize, to: usize },
    CopyBlock { from: usize, to: usize, id: usize },
    Audit,
}

/// What a request stores: bytes in the row, or pieces in extents.
#[derive(Clone, Debug)]
enum Content {
    Inline(usize),
    Stored(Vec<usize>),
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        4 => (1usize..50).prop_map(Content::Inline),
        1 => Just(Content::Inline(0)),
        // Heavy enough that a few of them make segments.
        1 => Just(Content::Inline(90_000)),
        6 => prop::collection::vec(1usize..60, 1..4).prop_map(Content::Stored),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    let id = prop_oneof![9 => 0usize..4, 1 => Just(4usize)];
    let list = prop::collection::vec((0u8..3, id.clone()), 0..6);
    prop_oneof![
        3 => (name.clone(), content(), any::<bool>())
            .prop_map(|(name, content, create_only)| Step::Put { name, content, create_only }),
        8 => (name.clone(), id, content())
            .prop_map(|(name, id, content)| Step::Stage { name, id, content }),
        6 => (name.clone(), list, prop_oneof![5 => Just(1usize), 1 => Just(30usize)])
            .prop_map(|(name, list, times)| Step::Commit { name, list, times }),
        2 => name.clone().prop_map(|name| Step::Delete { name }),
        1 => name.clone().prop_map(|name| Step::Metadata { name }),
        1 => (name, any::<bool>()).prop_map(|(name, all)| Step::Expire { name, all }),
        2 => (1usize..5).prop_map(|rows| Step::ForgetGarbage { rows }),
        1 => (1usize..9).prop_map(|limit| Step::Purge { limit }),
        3 => (0..NAMES.len(), 0..NAMES.len()).prop_map(|(from, to)| Step::Copy { from, to }),
        2 => (0..NAMES.len(), 0..NAMES.len(), 0usize..4)
            .prop_map(|(from, to, id)| Step::CopyBlock { from, to, id }),
        1 => Just(Step::Audit),
    ]
}

/// One stored thing of the model.
#[derive(Clone, Debug, PartialEq)]
struct Stored {
    bytes: Vec<u8>,
    locations: Vec<Location>,
}

#[derive(Clone, Debug, Default)]
struct ModelBlob {
    /// Blocks with ids; an id of "" for content without blocks.
    committed: Option<Vec<(String, Stored)>>,
    staged: BTreeMap<String, Stored>,
    created: Option<Timestamp>,
}

struct World {
    partitions: Vec<Partition>,
    model: BTreeMap<&'static str, ModelBlob>,
    /// Bytes of each location.
    extents: BTreeMap<(ExtentId, ExtentOffset), Vec<u8>>,
    forgotten: BTreeSet<(ExtentId, ExtentOffset)>,
    /// Once named by a copy: the audit frees them, never a garbage row.
    shared: BTreeSet<(ExtentId, ExtentOffset)>,
    now: Timestamp,
}

fn place(location: &Location) -> (ExtentId, ExtentOffset) {
    (location.extent, location.offset)
}

impl World {
    fn new(borders: &[&str]) -> Self {
        let border = |name: &&str| {
            RoutingKey::from_bytes(RoutingKey::prefix(ACCOUNT, CONTAINER, name, Collation::Utf16))
        };
        let mut bounds: Vec<RoutingKey> = borders.iter().map(border).collect();
        bounds.sort();
        bounds.dedup();
        let lows = [RoutingKey::min()].into_iter().chain(bounds.iter().cloned());
        let highs = bounds.iter().cloned().map(Some).chain([None]);
        let ranges = lows.zip(highs).map(|(low, high)| KeyRange::new(low, high));
        Self {
            partitions: ranges.map(Partition::new).collect(),
            model: NAMES.iter().map(|name| (*name, ModelBlob::default())).collect(),
            extents: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            shared: BTreeSet::new(),
            now: Timestamp::from_ticks(639_000_000_000_000_000),
        }
    }

    fn owner(&mut self, key: &[u8]) -> &mut Partition {
        self.partitions.iter_mut().find(|p| p.memory.range.contains(key)).unwrap()
    }

    fn write(&mut self, write: &Write) -> Result<WriteReply, Error> {
        self.now = self.now.next();
        let now = self.now;
        let owner = self.owner(&write.routing_key());
        owner.now = now;
        let reply = owner.write(write);
        self.now = owner_now(&self.partitions);
        reply
    }

    /// Stores content the way a front end does: bytes first.
    fn store(&mut self, content: &Content) -> (NewContent, Stored) {
        let seed = self.extents.len();
        let bytes = |from: usize, len: usize| -> Vec<u8> {
            (0..len).map(|n| u8::try_from((seed * 31 + from * 7 + n) % 251).unwrap()).collect()
        };
        match content {
            Content::Inline(len) => {
                let bytes = bytes(0, *len);
                let new = NewContent::Inline(Bytes::copy_from_slice(&bytes));
                (new, Stored { bytes, locations: Vec::new() })
            }
            Content::Stored(lens) => {
                let mut stored = Stored { bytes: Vec::new(), locations: Vec::new() };
                for (n, len) in lens.iter().enumerate() {
                    let part = bytes(n, *len);
                    let offset = 1_000 * u64::try_from(self.extents.len()).unwrap();
                    let len = u64::try_from(*len).unwrap();
                    let location = location(offset % 3, offset, len);
                    self.extents.insert(place(&location), part.clone());
                    stored.bytes.extend(part);
                    stored.locations.push(location);
                }
                (NewContent::Stored(stored.locations.clone()), stored)
            }
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Put { name, content, create_only } => {
                self.put(NAMES[*name], content, *create_only);
            }
            Step::Stage { name, id, content } => self.stage(NAMES[*name], IDS[*id], content),
            Step::Commit { name, list, times } => self.commit(NAMES[*name], list, *times),
            Step::Delete { name } => self.delete(NAMES[*name]),
            Step::Metadata { name } => self.metadata(NAMES[*name]),
            Step::Expire { name, all } => self.expire(NAMES[*name], *all),
            Step::ForgetGarbage { rows } => self.forget_garbage(*rows),
            Step::Purge { limit } => self.purge(*limit),
            Step::Copy { from, to } => self.copy(NAMES[*from], NAMES[*to]),
            Step::CopyBlock { from, to, id } => {
                self.copy_block(NAMES[*from], NAMES[*to], IDS[*id]);
            }
            Step::Audit => self.audit(),
        }
    }

    fn put(&mut self, name: &'static str, content: &Content, create_only: bool) {
        let (new, stored) = self.store(content);
        let mut put = put(&key(name), (new, Crc64::of(&stored.bytes)));
        if create_only {
            put.guard.conditions.if_none_match = Some(EtagMatch::Any);
        }
        let reply = self.write(&Write::PutBlob(put));
        let now = self.now;
        let blob = self.model.get_mut(name).unwrap();
        if create_only && blob.committed.is_some() {
            assert_eq!(reply, Err(Error::Refused(Refused::Condition(Outcome::AlreadyExists))));
            self.drop_unnamed(&stored);
            return;
        }
        assert!(reply.is_ok(), "{reply:?}");
        blob.created = blob.created.or(Some(now));
        blob.committed = Some(vec![(String::new(), stored)]);
        blob.staged.clear();
    }

    /// What a refused request had stored is for the audit: no row names it.
    fn drop_unnamed(&mut self, stored: &Stored) {
        self.forgotten.extend(stored.locations.iter().map(place));
    }

    fn stage(&mut self, name: &'static str, id: &str, content: &Content) {
        let (new, stored) = self.store(content);
        let reply = self.write(&stage(&key(name), id, (new, Crc64::of(&stored.bytes))));
        let blob = self.model.get_mut(name).unwrap();
        if blob.staged.keys().any(|other| other.len() != id.len()) {
            assert_eq!(reply, Err(Error::Refused(Refused::BlockIdLength)));
            self.drop_unnamed(&stored);
            return;
        }
        assert_eq!(reply, Ok(WriteReply::Done));
        blob.staged.insert(id.to_owned(), stored);
    }

    fn commit(&mut self, name: &'static str, list: &[(u8, usize)], times: usize) {
        let list: Vec<(u8, &str)> = std::iter::repeat_n(list, times)
            .flatten()
            .map(|(source, id)| (*source, IDS[*id]))
            .collect();
        let texts: Vec<String> = list
            .iter()
            .map(|(source, id)| format!("{}{id}", ["+", "=", ""][usize::from(*source)]))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let reply = self.write(&Write::CommitBlocks(commit(&key(name), &texts)));
        let now = self.now;
        let blob = self.model.get_mut(name).unwrap();
        let mut blocks = Vec::new();
        for (source, id) in &list {
            let staged = blob.staged.get(*id);
            let old = || blob.committed.iter().flatten().find(|(other, _)| other == *id);
            let found = match *source {
                0 => staged,
                1 => old().map(|(_, stored)| stored),
                _ => staged.or_else(|| old().map(|(_, stored)| stored)),
            };
            let Some(found) = found else {
                assert_eq!(reply, Err(Error::Refused(Refused::UnknownBlock)));
                return;
            };
            blocks.push(((*id).to_owned(), found.clone()));
        }
        if list.windows(2).any(|two| two[0].1.len() != two[1].1.len()) {
            assert_eq!(reply, Err(Error::Refused(Refused::BlockIdLength)));
            return;
        }
        assert!(reply.is_ok(), "{reply:?}");
        blob.created = blob.created.or(Some(now));
        blob.committed = Some(blocks);
        blob.staged.clear();
    }

    fn delete(&mut self, name: &'static str) {
        let reply = self.write(&delete(&key(name)));
        let blob = self.model.get_mut(name).unwrap();
        if blob.committed.is_none() {
            assert_eq!(reply, Err(Error::Refused(Refused::BlobNotFound)));
        } else {
            assert_eq!(reply, Ok(WriteReply::Deleted(Deleted::default())));
            *blob = ModelBlob::default();
        }
    }

    fn metadata(&mut self, name: &'static str) {
        let change = BlobChange::Metadata(Metadata::default());
        let update = UpdateBlob {
            key: key(name),
            revision: Revision::Current,
            guard: Guard::default(),
            change,
        };
        let reply = self.write(&Write::UpdateBlob(update));
        let exists = self.model[name].committed.is_some();
        assert_eq!(reply.is_ok(), exists, "{reply:?}");
    }

    fn expire(&mut self, name: &'static str, all: bool) {
        let before = if all { self.now.next() } else { Timestamp::ZERO };
        let write = Write::ExpireStaged { key: RoutingKey::blob(&key(name)), before };
        assert_eq!(self.write(&write), Ok(WriteReply::Done));
        if all {
            self.model.get_mut(name).unwrap().staged.clear();
        }
    }

    fn forget_garbage(&mut self, rows: usize) {
        for number in 0..self.partitions.len() {
            let read = Read::Garbage { from: Bytes::new(), limit: rows };
            let reply = self.partitions[number].read(&read).unwrap();
            let ReadReply::Garbage(GarbagePage { rows, .. }) = reply else { panic!("not garbage") };
            if rows.is_empty() {
                continue;
            }
            self.forgotten.extend(rows.iter().flat_map(|row| &row.locations).map(place));
            let keys = rows.into_iter().map(|row| row.key).collect();
            assert_eq!(self.write(&Write::ForgetGarbage { keys }), Ok(WriteReply::Done));
        }
    }

    fn purge(&mut self, limit: usize) {
        let whole = RoutingKey::container_range(ACCOUNT, CONTAINER);
        for number in 0..self.partitions.len() {
            let part = whole.intersect(&self.partitions[number].memory.range);
            let mut from = part.map(|part| part.low().as_bytes().clone());
            while let Some(start) = from {
                let (account, container) = (ACCOUNT, CONTAINER);
                let purge = Write::PurgeContainer { account, container, from: start, limit };
                let WriteReply::Purged { next } = self.write(&purge).unwrap() else {
                    panic!("not purged")
                };
                from = next;
            }
        }
        self.model.values_mut().for_each(|blob| *blob = ModelBlob::default());
    }

    /// Asks the source to share; all it names is shared from then on.
    fn share(&mut self, from: &'static str) -> Option<SharedBlob> {
        let share = Share {
            key: key(from),
            revision: Revision::Current,
            guard: Guard::default(),
            range: None,
        };
        let reply = self.write(&Write::Share(Box::new(share)));
        let Some(blocks) = &self.model[from].committed else {
            assert_eq!(reply, Err(Error::Refused(Refused::BlobNotFound)));
            return None;
        };
        let named = blocks.iter().flat_map(|(_, stored)| &stored.locations);
        self.shared.extend(named.map(place));
        let Ok(WriteReply::Shared(shared)) = reply else { panic!("not shared: {reply:?}") };
        Some(*shared)
    }

    fn copy(&mut self, from: &'static str, to: &'static str) {
        let Some(shared) = self.share(from) else { return };
        let reply = self.write(&copied(shared, to));
        assert!(reply.is_ok(), "{reply:?}");
        let now = self.now;
        let blocks = self.model[from].committed.clone();
        let blob = self.model.get_mut(to).unwrap();
        blob.created = blob.created.or(Some(now));
        blob.committed = blocks;
        blob.staged.clear();
    }

    /// Stages what a blob made by Put Blob holds as a block of another.
    fn copy_block(&mut self, from: &'static str, to: &'static str, id: &str) {
        let Some(SharedBlob { record, content, .. }) = self.share(from) else { return };
        let Some(CopiedContent::Whole(content)) = content else { return };
        if record.len == 0 {
            return;
        }
        let write = stage(&key(to), id, (content, record.crc64));
        let reply = self.write(&write);
        let stored = self.model[from].committed.as_ref().unwrap()[0].1.clone();
        let blob = self.model.get_mut(to).unwrap();
        if blob.staged.keys().any(|other| other.len() != id.len()) {
            assert_eq!(reply, Err(Error::Refused(Refused::BlockIdLength)));
            return;
        }
        assert_eq!(reply, Ok(WriteReply::Done));
        blob.staged.insert(id.to_owned(), stored);
    }

    /// Frees what no row names, as an audit does.
    fn audit(&mut self) {
        let named = self.named();
        let freed = self.extents.keys().filter(|place| !named.contains(place));
        self.forgotten.extend(freed.copied());
    }
}

fn owner_now(partitions: &[Partition]) -> Timestamp {
    partitions.iter().map(|p| p.now).max().unwrap()
}

proptest! {
    #[test]
    fn rows_agree_with_the_model(
        borders in prop::collection::vec(prop::sample::select(&NAMES[..]), 0..4),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut world = World::new(&borders);
        for step in &steps {
            world.apply(step);
            world.check_locations();
        }
        world.check();
    }
}
