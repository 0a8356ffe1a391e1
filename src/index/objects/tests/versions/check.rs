//! Deletions, reclaim, and what must hold after every step.

use std::collections::BTreeSet;

use super::*;
use crate::index::check;
use crate::index::objects::keys;
use crate::index::objects::spans;
use crate::index::objects::values;
use crate::index::objects::values::Layout;
use crate::index::objects::values::StagedBlock;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;

type Places = BTreeSet<u64>;

impl World {
    pub(super) fn delete(&mut self, name: &'static str, scope: DeleteScope) {
        let reply = self.write(delete_of(&key(name), scope));
        let (now, versioning, until) = (self.now(), self.versioning, self.until());
        let held = self.held_snapshot(name);
        let chain = self.chain(name);
        let is_kept = until.is_some() || chain.is_kept(versioning) && versioning.is_some();
        let is_object = scope == DeleteScope::Object && versioning.is_some();
        if chain.current().is_none() && !is_object {
            let why = if scope == DeleteScope::Snapshots {
                Refused::BlobNotFound
            } else {
                chain.missing(versioning)
            };
            assert_eq!(reply, Err(Error::Refused(why)));
            return;
        }
        let takes_snapshots =
            matches!(scope, DeleteScope::Snapshots | DeleteScope::BlobAndSnapshots);
        if let Some(held) = held.filter(|_| takes_snapshots) {
            assert_eq!(reply, Err(held));
            return;
        }
        if scope == DeleteScope::Snapshots {
            chain.delete_snapshots(until);
            let deleted = Deleted { is_kept: until.is_some(), ..Deleted::default() };
            assert_eq!(reply, Ok(WriteReply::Deleted(deleted)));
            return;
        }
        if scope == DeleteScope::BlobAndSnapshots {
            chain.delete_snapshots(until);
        } else if !chain.snapshots.is_empty() && !is_object {
            assert_eq!(reply, Err(Error::Refused(Refused::SnapshotsPresent)));
            return;
        }
        let was_there = chain.current().is_some();
        if was_there {
            chain.staged.clear();
        }
        if versioning.is_some() {
            let marker = State::new(Kind::Block, Vec::new(), now);
            chain.push((versioning, until), marker, true);
        } else {
            let gone = chain.versions.pop().unwrap();
            chain.delete(DeletedKey { state: DeletedState::Blob, time: now }, gone, until);
        }
        let version = versioning.map(|_| chain.versions.last().unwrap().id());
        let is_kept = is_kept || !was_there;
        let deleted = Deleted { version, is_marker: version.is_some(), is_kept };
        assert_eq!(reply, Ok(WriteReply::Deleted(deleted)));
    }

    pub(super) fn delete_snapshot(&mut self, name: &'static str, pick: Pick) {
        let all: Vec<Timestamp> = self.chain(name).snapshots.keys().copied().collect();
        let Some(&taken) = all.get(pick % all.len().max(1)) else { return };
        let reply = self.write(delete_of(&key(name), DeleteScope::Snapshot(taken)));
        let until = self.until();
        let state = self.chains[name].snapshots[&taken].clone();
        if let Some(held) = state.held(self.now(), self.bypass) {
            assert_eq!(reply, Err(Error::Refused(held)));
            return;
        }
        let deleted = Deleted { is_kept: until.is_some(), ..Deleted::default() };
        assert_eq!(reply, Ok(WriteReply::Deleted(deleted)));
        self.chain(name).delete_snapshot(taken, until);
    }

    pub(super) fn delete_version(&mut self, name: &'static str, pick: Pick, former: bool) {
        let versions = &self.chains[name].versions;
        if versions.is_empty() {
            return;
        }
        let at = pick % versions.len();
        let Some(VersionId { time, .. }) = versions[at].id else { return };
        let scope = if former {
            DeleteScope::FormerVersion(time)
        } else {
            DeleteScope::Version(Revision::Version(time))
        };
        self.remove(name, scope, Some(at));
    }

    pub(super) fn delete_null(&mut self, name: &'static str) {
        let at = self.chains[name].versions.iter().position(|of| of.id().is_null);
        self.remove(name, DeleteScope::Version(Revision::Null), at);
    }

    fn remove(&mut self, name: &'static str, scope: DeleteScope, at: Option<usize>) {
        let reply = self.write(delete_of(&key(name), scope));
        let (now, versioning, until) = (self.now(), self.versioning, self.until());
        let is_former = matches!(scope, DeleteScope::FormerVersion(_));
        let bypass = self.bypass;
        let before = self.chains[name].clone();
        let held = at.and_then(|at| before.versions[at].state.held(now, bypass));
        let is_current = at.is_some_and(|at| at + 1 == before.versions.len());
        if let Some(held) = held
            && !(is_former && is_current && before.current().is_some())
        {
            assert_eq!(reply, Err(Error::Refused(held)));
            return;
        }
        match self.chain(name).remove(at, is_former) {
            Err(why) => assert_eq!(reply, Err(Error::Refused(why))),
            Ok(version) => {
                let id = version.id.or_else(|| versioning.map(|_| version.id()));
                let is_kept = until.is_some() && !version.is_marker;
                let deleted = Deleted { version: id, is_marker: version.is_marker, is_kept };
                assert_eq!(reply, Ok(WriteReply::Deleted(deleted)));
                if version.id.is_none() {
                    let key = DeletedKey { state: DeletedState::Blob, time: now };
                    self.chain(name).delete(key, version, until);
                } else {
                    self.chain(name).delete_version(version, until);
                }
                self.chain(name).drop_unlike();
            }
        }
    }

    /// Frees all garbage, as reclaim does.
    pub(super) fn reclaim(&mut self) {
        loop {
            let read = Read::Garbage { from: Bytes::new(), limit: 100 };
            let ReadReply::Garbage(page) = self.partition.read(&read).unwrap() else {
                panic!("not garbage")
            };
            if page.rows.is_empty() {
                return;
            }
            let named = self.places(false);
            for location in page.rows.iter().flat_map(|row| &row.locations) {
                assert!(!named.contains(&location.offset.get()), "garbage is in use");
            }
            let keys = page.rows.into_iter().map(|row| row.key).collect();
            self.write(Write::ForgetGarbage { keys }).unwrap();
        }
    }

    pub(super) fn purge(&mut self, limit: usize) {
        let whole = RoutingKey::container_range(ACCOUNT, CONTAINER);
        let mut from = Some(whole.low().as_bytes().clone());
        while let Some(start) = from {
            let (account, container) = (ACCOUNT, CONTAINER);
            let purge = Write::PurgeContainer { account, container, from: start, limit };
            let WriteReply::Purged { next } = self.write(purge).unwrap() else {
                panic!("not purged")
            };
            from = next;
        }
        self.chains.values_mut().for_each(|chain| *chain = Chain::default());
    }

    /// The number of rows, without those of the tag index.
    pub(super) fn left(&self) -> usize {
        let rows = self.partition.memory.rows.keys();
        rows.filter(|(family, _)| *family != Family::Work).count()
    }

    /// The locations that rows name, without those in garbage rows: all, or those that are owned.
    fn places(&self, only_owned: bool) -> Places {
        let mut places = Places::new();
        let mut add = |content: &values::Content| {
            let locations = if only_owned { content.owned() } else { content.locations() };
            places.extend(locations.iter().map(|location| location.offset.get()));
        };
        for ((family, row), value) in &self.partition.memory.rows {
            let blob = RoutingKey::of_row(row).unwrap();
            match family {
                Family::Versions if *row == keys::null_version(&blob) => {}
                Family::Main | Family::Versions => {
                    let (_, content) =
                        values::decode_record_head::<BlobRecord>(*family, row, value).unwrap();
                    match values::decode_content(row, content).unwrap().layout {
                        Layout::Whole(content) => add(&content),
                        Layout::Blocks(entries) | Layout::Appended { tail: entries, .. } => {
                            entries.iter().for_each(|entry| add(&entry.content));
                        }
                        Layout::Segments { .. } | Layout::Pages { .. } => {}
                    }
                }
                Family::Staged if *row == keys::staged_summary(&blob) => {}
                Family::Staged => {
                    let block: StagedBlock = values::decode_record(*family, row, value).unwrap();
                    add(&block.content);
                }
                Family::Layout if keys::parse_span(row, &blob).is_some() => {
                    let found = spans::parse_row(row, value, &blob).unwrap();
                    found.span.content.iter().for_each(&mut add);
                }
                Family::Layout => {
                    let entries = values::decode_segment(row, value).unwrap();
                    entries.iter().for_each(|entry| add(&entry.content));
                }
                Family::Garbage | Family::Work => {}
            }
        }
        places
    }

    pub(super) fn check_step(&mut self, step: &Step) {
        let owned = self.places(true);
        self.apply(step);
        if !matches!(step, Step::Reclaim) {
            let kept: Places =
                references(&self.partition).iter().map(|of| of.offset.get()).collect();
            let lost: Vec<&u64> = owned.difference(&kept).collect();
            assert!(lost.is_empty(), "lost {lost:?}");
        }
        let (view, mut progress) = (&self.partition.memory, |_: &check::CheckReport| ());
        let report = wait(check::check(view, &self.capacity, &mut progress));
        assert_eq!(report.problems, []);
        for name in NAMES {
            self.check_blob(name);
        }
    }

    fn check_blob(&self, name: &'static str) {
        let chain = &self.chains[name];
        for (revision, state) in chain.readable() {
            let read = ReadBlob { revision, ..read(&key(name)) };
            let view = self.partition.blob(&read).unwrap();
            let record = &view.record;
            assert_eq!(record.metadata, state.metadata, "{revision:?}");
            assert_eq!(record.tags, state.tags, "{revision:?}");
            assert_eq!(record.last_modified, state.modified, "{revision:?}");
            assert_eq!(record.retention(), state.retention, "{revision:?}");
            assert_eq!(record.legal_hold(), state.hold, "{revision:?}");
            assert_eq!(self.content(&read), state.bytes, "{revision:?}");
        }
        let current = self.partition.blob(&read(&key(name)));
        let version = current.as_ref().ok().map(|view| view.record.version());
        assert_eq!(version, chain.current().map(|of| of.id));
        for version in chain.versions.iter().filter(|of| of.is_marker) {
            let revision = Revision::Version(version.id().time);
            let read = ReadBlob { revision, ..read(&key(name)) };
            let refused = Refused::DeleteMarker(version.id());
            assert_eq!(self.partition.blob(&read).map(drop), Err(Error::Refused(refused)));
        }
        let null = ReadBlob { revision: Revision::Null, ..read(&key(name)) };
        let null = self.partition.blob(&null).map(|view| view.record.last_modified);
        let expected = match chain.versions.iter().find(|of| of.id().is_null) {
            None => Err(Error::Refused(Refused::VersionNotFound)),
            Some(of) if of.is_marker => Err(Error::Refused(Refused::DeleteMarker(of.id()))),
            Some(of) => Ok(of.state.modified),
        };
        assert_eq!(null, expected);
    }

    /// Reads a whole blob.
    fn content(&self, read: &ReadBlob) -> Vec<u8> {
        let (mut bytes, mut read) = (Vec::new(), read.clone());
        loop {
            let view = self.partition.blob(&read).unwrap();
            for piece in &view.pieces {
                match piece {
                    Piece::Inline(part) => bytes.extend_from_slice(part),
                    Piece::Zeros(len) => {
                        bytes.resize(bytes.len() + usize::try_from(*len).unwrap(), 0);
                    }
                    Piece::Stored { location, range } => {
                        let all = &self.bytes[&location.offset.get()];
                        let (from, to) = (range.start, range.end);
                        let (from, to) =
                            (usize::try_from(from).unwrap(), usize::try_from(to).unwrap());
                        bytes.extend_from_slice(&all[from..to]);
                    }
                    Piece::Encrypted { .. } | Piece::Authenticated { .. } => panic!("encrypted"),
                }
            }
            if view.pieces_end >= view.range.end {
                return bytes;
            }
            read.range = ByteRange::new(view.pieces_end, None);
        }
    }

    /// The lists with each history, in pages of different lengths.
    pub(super) fn check_lists(&self) {
        let histories = [
            History::None,
            History::Snapshots,
            History::VersionsUp { snapshots: false },
            History::VersionsUp { snapshots: true },
            History::VersionsDown,
        ];
        let every = histories.into_iter().flat_map(|history| {
            let every = [(false, false), (true, false), (false, true), (true, true)];
            // In S3's order, what was softly deleted is not listed.
            let count = if history == History::VersionsDown { 1 } else { every.len() };
            every.into_iter().take(count).map(move |(deleted, only)| ListBlobs {
                history,
                deleted,
                versions_only: only,
                ..list()
            })
        });
        for asked in every {
            let expected: Vec<String> = NAMES
                .iter()
                .flat_map(|name| {
                    let first = self.listed_first(name, &asked);
                    first.into_iter().chain(self.listed(name, asked.history))
                })
                .collect();
            for limit in [1, 2, 3, 7, 100] {
                let list = ListBlobs { limit, ..asked.clone() };
                assert_eq!(self.partition.list_all(&list), expected, "{list:?}");
            }
        }
    }

    fn listed(&self, name: &str, history: History) -> Vec<String> {
        let chain = &self.chains[name];
        let at = |time: &Timestamp| format!("{name}@{}", time.ticks());
        let snapshots: Vec<String> = chain.snapshots.keys().map(at).collect();
        let count = chain.versions.len() - usize::from(chain.current().is_some());
        let version = |of: &Version| format!("{name}!{}", of.id().time.ticks());
        let (former, current) = chain.versions.split_at(count);
        let current = current.iter().map(|_| name.to_owned());
        let is_blob = |of: &&Version| !of.is_marker;
        match history {
            History::None => current.collect(),
            History::Snapshots => snapshots.into_iter().chain(current).collect(),
            History::VersionsUp { snapshots: wanted } => {
                let snapshots = snapshots.into_iter().filter(|_| wanted);
                let up = former.iter().filter(is_blob).map(version);
                snapshots.chain(up).chain(current).collect()
            }
            History::VersionsDown | History::All => {
                current.chain(former.iter().rev().map(version)).collect()
            }
        }
    }
}
