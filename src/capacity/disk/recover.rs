//! Recovery of one disk: replays the journal into the extents' files, then ends every extent that
//! was open (`found_open.rs`), because its writer has ended. At that point all acknowledged bytes
//! are in the file. Other bytes may be kept or cut off.

#![deny(clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};

use crate::capacity::ExtentKind;
use crate::capacity::disk::catalog::{Catalog, Change, Contents};
use crate::capacity::disk::compact::UNFINISHED;
use crate::capacity::disk::format::FULL_PAUSES;
use crate::capacity::disk::open_error::OpenError;
use crate::capacity::disk::opening::{Opened, Opening};
use crate::capacity::disk::seal::sealed_change;
use crate::capacity::disk::space::SpaceWatch;
use crate::capacity::disk::store::{Store, StoreSetup, extent_of, path_of};
use crate::capacity::extent::header::{
    DATA_AT, Header, Slot, file_offset, padding_at, padding_len, parse_padding, sealed_file_len,
};
use crate::capacity::extent::map::Body;
use crate::capacity::extent::memory::{Extent, Frees};
use crate::capacity::extent::ranges::Ranges;
use crate::capacity::extent::walk::{Reach, Walker};
use crate::capacity::health::{DiskName, Health};
use crate::capacity::journal::create::JOURNAL;
use crate::capacity::journal::layout::{Record, Superblock};
use crate::capacity::journal::replay::Replay;
use crate::capacity::journal::writer::Journal;
use crate::capacity::units::{PAGE, index};
use crate::env::{Disk, DiskError, DiskFile};
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// How many extents are examined and sealed concurrently.
const EXAMINED_AT_ONCE: usize = 16;

/// An extent that was found on the disk. It is sealed or closed.
pub(super) struct FoundExtent {
    pub(super) extent: Extent,
    /// Ranges that are dead according to its file.
    pub(super) dead: Vec<Range<ExtentOffset>>,
}

/// All extents of the disk.
struct FoundExtents {
    extents: Vec<Arc<Extent>>,
    /// Changes that the catalog does not have yet.
    changes: Vec<Change>,
}

/// An extent that was open when its writer ended.
pub(super) struct OpenExtent<'a> {
    pub(super) id: ExtentId,
    pub(super) kind: ExtentKind,
    pub(super) slot: Slot,
    pub(super) file: &'a Arc<dyn DiskFile>,
}

/// One disk being opened.
pub(crate) struct Recovery<'a> {
    pub(crate) disk: Arc<dyn Disk>,
    /// Its place in the list of disks that the node was opened with.
    pub(crate) place: usize,
    /// Its number in the store.
    pub(crate) number: usize,
    pub(crate) store_id: u128,
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) opening: &'a Opening,
}

/// An extent that had records in the journal.
struct Replayed {
    /// Closed when too many are open. After the replay each extent is read back from the device, so
    /// no sync is needed before.
    file: Option<Arc<dyn DiskFile>>,
    /// Whether it is sealed. Its records are not applied: the seal has synced all its bytes.
    sealed: bool,
    /// The end of its last record. All bytes below it were durable, in the file or the journal.
    known_end: ExtentOffset,
}

impl Recovery<'_> {
    /// Recovers the disk and opens it for work.
    pub(crate) async fn run(self) -> Result<Opened, OpenError> {
        let journal_file = self.disk.open(JOURNAL).await.map_err(|e| self.failed(e))?;
        let journal = |error| OpenError::Journal { disk: self.place, error };
        let mut replay = Replay::open(Arc::clone(&journal_file)).await.map_err(journal)?;
        let replayed = self.replay(&mut replay).await?;
        let known = self.load_catalog().await;
        let FoundExtents { extents, changes } = self.extents(&known, &replayed).await?;

        // All records are durable in the extents' files now, so the journal may release them.
        let superblock = replay.restarted();
        let page = vec![superblock.encode()];
        let written = journal_file.write_sync(superblock.offset().get(), page).await;
        written.map_err(|e| self.failed(e))?;

        let store = Arc::new(self.store(journal_file, superblock).await?);
        store.note(changes).await;
        for extent in extents.iter().filter(|extent| extent.state().dead.total() > 0) {
            store.mark_sparse(extent);
        }
        store.metrics.extents.inc_by(i64::try_from(extents.len()).unwrap_or(i64::MAX));
        Ok(Opened { store, extents })
    }

    async fn store(
        self,
        journal_file: Arc<dyn DiskFile>,
        superblock: Superblock,
    ) -> Result<Store, OpenError> {
        let Opening { env, config, metrics, damages, stop } = self.opening;
        let name = DiskName::of(&*self.disk, self.number);
        let health = Arc::new(Health::new(name.clone(), metrics.clone(), env.tasks.health()));
        let space = self.disk.space().await.map_err(|e| self.failed(e))?;
        let journal = Journal::new(
            journal_file,
            superblock,
            config.journal_queue_bytes,
            Arc::clone(&health),
            metrics.clone(),
        );
        Ok(Store::new(StoreSetup {
            place: self.place,
            number: self.number,
            store_id: self.store_id,
            disk: self.disk,
            env: env.clone(),
            config: config.clone(),
            metrics: metrics.clone(),
            health,
            journal,
            catalog: self.catalog,
            space: SpaceWatch::new(name, space, env.clock.monotonic()),
            damages: damages.clone(),
            stop: stop.child_token(),
        }))
    }

    async fn load_catalog(&self) -> Contents {
        if !self.catalog.may_block() {
            return self.catalog.load();
        }
        let catalog = Arc::clone(&self.catalog);
        let work = self.opening.env.tasks.spawn_blocking("catalog", move || catalog.load());
        work.await.unwrap_or_default()
    }

    /// Applies all records to the extents' files. A second replay changes nothing.
    async fn replay(&self, replay: &mut Replay) -> Result<BTreeMap<ExtentId, Replayed>, OpenError> {
        let journal = |error| OpenError::Journal { disk: self.place, error };
        let mut extents: BTreeMap<ExtentId, Replayed> = BTreeMap::new();
        let (mut applied, mut open) = (0u64, 0);
        while let Some(records) = replay.next().await.map_err(journal)? {
            for record in records {
                if open >= self.opening.config.open_files_max {
                    extents.values_mut().for_each(|replayed| replayed.file = None);
                    open = 0;
                }
                open += usize::from(self.apply(record, &mut extents).await?);
                applied += 1;
            }
        }
        if applied > 0 {
            tracing::info!(
                disk = self.number,
                records = applied,
                "journal replayed: its records are in the files of their extents"
            );
        }
        Ok(extents)
    }

    /// Applies one record. Returns whether it opened a file.
    async fn apply(
        &self,
        record: Record,
        extents: &mut BTreeMap<ExtentId, Replayed>,
    ) -> Result<bool, OpenError> {
        let known = extents.get(&record.extent);
        let opens = known.is_none_or(|known| !known.sealed && known.file.is_none());
        if opens {
            let file = match self.disk.open(&path_of(record.extent)).await {
                Ok(file) => file,
                // The extent was removed later.
                Err(DiskError::NotFound { .. }) => return Ok(false),
                Err(error) => return Err(self.failed(error)),
            };
            let page = file.read_at(0, index(PAGE)).await.map_err(|e| self.failed(e))?;
            let sealed = Slot::parse(&page).is_some_and(|slot| slot.sealed);
            let new = Replayed { file: None, sealed, known_end: ExtentOffset::START };
            extents.entry(record.extent).or_insert(new).file = Some(file);
        }
        let Some(extent) = extents.get_mut(&record.extent) else { return Ok(opens) };
        extent.file = extent.file.take().filter(|_| !extent.sealed);
        if let Some(file) = &extent.file {
            extent.known_end = extent.known_end.max(record.range().end);
            let write = || file.write_at(file_offset(record.offset).get(), record.pieces.clone());
            self.with_room(record.len, write).await?;
        }
        Ok(opens)
    }

    /// Finds every extent of the disk and seals or closes those that are open.
    async fn extents(
        &self,
        known: &Contents,
        replayed: &BTreeMap<ExtentId, Replayed>,
    ) -> Result<FoundExtents, OpenError> {
        let names = self.disk.list("extents").await.map_err(|e| self.failed(e))?;
        let mut extents = Vec::new();
        let mut changes = Vec::new();
        for name in names.iter().filter(|name| name.ends_with(UNFINISHED)) {
            self.disk.remove(name).await.map_err(|e| self.failed(e))?;
        }
        let ids: Vec<ExtentId> = names.iter().filter_map(|name| extent_of(name)).collect();
        let unknown = ids.iter().filter(|id| !known.sealed.contains_key(id));
        let examinations = unknown.map(|id| {
            let known_end = replayed.get(id).map_or(ExtentOffset::START, |r| r.known_end);
            async move { self.examine(*id, known_end).await.map(|found| (*id, found)) }
        });
        // Several are examined concurrently: thousands of logs may have been open, and concurrent
        // syncs share commits of the file system.
        let examined = stream::iter(examinations).buffered(EXAMINED_AT_ONCE).try_collect();
        let mut examined: BTreeMap<ExtentId, Option<FoundExtent>> = examined.await?;
        for id in ids {
            let dead = known.dead.get(&id).cloned().unwrap_or_default();
            let extent = if let Some(entry) = known.sealed.get(&id) {
                // The other fields of its slot are read when the file is opened.
                let slot = Slot { sealed: true, len: entry.len, ..Slot::new(0, entry.epoch) };
                let extent = Extent::new(id, entry.kind, slot);
                insert_dead(&extent, &dead);
                extent
            } else {
                let Some(found) = examined.remove(&id).flatten() else { continue };
                let FoundExtent { extent, dead: padding } = found;
                if extent.state().slot.sealed {
                    changes.push(sealed_change(&extent));
                }
                // The dead ranges of the catalog are inserted first. Otherwise a change for padding
                // would replace a longer range in the catalog that begins at the same offset.
                insert_dead(&extent, &dead);
                note_padding(&extent, &padding, &mut changes);
                extent
            };
            if self.opening.config.removes_dead() && wholly_dead(&extent) {
                self.disk.remove(&path_of(id)).await.map_err(|e| self.failed(e))?;
                changes.push(Change::Removed { extent: id });
                continue;
            }
            // Frames of logs and runs are not freed.
            if extent.kind == ExtentKind::Data {
                extent.state().frees = Frees::Unsure;
            }
            extents.push(Arc::new(extent));
        }
        let here: BTreeSet<ExtentId> = extents.iter().map(|e| e.id).collect();
        let gone = known.sealed.keys().chain(known.dead.keys()).filter(|id| !here.contains(id));
        changes.extend(gone.map(|&extent| Change::Removed { extent }));
        Ok(FoundExtents { extents, changes })
    }

    /// Examines an extent's first page, and seals or closes the extent if it was open. `None` if
    /// its creation was never completed.
    async fn examine(
        &self,
        id: ExtentId,
        known_end: ExtentOffset,
    ) -> Result<Option<FoundExtent>, OpenError> {
        let path = path_of(id);
        let file = self.disk.open(&path).await.map_err(|e| self.failed(e))?;
        // The process before may have ended after a failed sync, so the device is read and not the
        // page cache. This is also needed for a seal. If a seal is only in the cache, the extent is
        // open after a power failure, and recovery could not follow its frames past the holes
        // punched meanwhile.
        file.drop_cache().await.map_err(|e| self.failed(e))?;
        let len = file.len().await.map_err(|e| self.failed(e))?;
        let page = file.read_at(0, index(PAGE)).await.map_err(|e| self.failed(e))?;
        let header = Header::parse(&page).filter(|h| h.extent == id && h.store == self.store_id);
        match (header, Slot::parse(&page)) {
            (Some(header), Some(slot)) if slot.sealed => {
                if len > sealed_file_len(&slot) {
                    // The seal did not shorten the file, or a power failure undid that. The file is
                    // shortened now, because no later start examines an extent that is in the
                    // catalog.
                    let shortened = file.set_len(sealed_file_len(&slot)).await;
                    shortened.map_err(|e| self.failed(e))?;
                    file.sync().await.map_err(|e| self.failed(e))?;
                }
                let dead = self.known_dead(&file, &slot).await.map_err(|e| self.failed(e))?;
                Ok(Some(FoundExtent { extent: Extent::new(id, header.kind, slot), dead }))
            }
            (Some(header), Some(slot)) => {
                let open = OpenExtent { id, kind: header.kind, slot, file: &file };
                self.end_open(open, known_end).await.map(Some)
            }
            (None, Some(slot)) if slot.sealed => {
                // The slot has the length and the epoch. The header is rewritten with the fields
                // that are known.
                let header = self.unknown_header(id);
                let written = file.write_sync(0, vec![header.encode()]).await;
                written.map_err(|e| self.failed(e))?;
                let dead = self.known_dead(&file, &slot).await.map_err(|e| self.failed(e))?;
                Ok(Some(FoundExtent { extent: Extent::new(id, header.kind, slot), dead }))
            }
            _ if len <= DATA_AT => {
                tracing::info!(
                    extent = %id,
                    "extent removed: it is empty and its creation was never acknowledged"
                );
                self.disk.remove(&path).await.map_err(|e| self.failed(e))?;
                Ok(None)
            }
            _ => self.rescue(id, &file, len).await.map(Some),
        }
    }

    /// The dead ranges of a sealed extent according to its file: the gaps of its map, or the
    /// padding.
    async fn known_dead(
        &self,
        file: &Arc<dyn DiskFile>,
        slot: &Slot,
    ) -> Result<Vec<Range<ExtentOffset>>, DiskError> {
        if slot.map > 0 {
            let body = Body::load(Arc::clone(file), slot).await?;
            let map = body.and_then(|body| body.map);
            return Ok(map.map_or_else(Vec::new, |map| map.ranges().gaps(slot.len)));
        }
        let list =
            file.read_at(padding_at(slot.len).get(), index(padding_len(slot.padding))).await?;
        Ok(parse_padding(&list, slot).unwrap_or_default())
    }

    /// Seals or closes an extent with a damaged first page. Each frame names its extent and offset,
    /// so all intact frames are kept.
    async fn rescue(
        &self,
        id: ExtentId,
        file: &Arc<dyn DiskFile>,
        len: u64,
    ) -> Result<FoundExtent, OpenError> {
        tracing::error!(
            extent = %id,
            "the first page of an extent is damaged; it is written anew, and the intact frames \
             are kept"
        );
        let mut walker = Walker::new(Body::plain(Arc::clone(file)), id);
        let limit = ExtentOffset::new(len - DATA_AT);
        let (mut end, mut at) = (ExtentOffset::START, ExtentOffset::START);
        while let Some(found) = walker.search(at..limit).await.map_err(|e| self.failed(e))? {
            at = walker.follow(found).await.map_err(|e| self.failed(e))?.end.max(found + 1);
            end = end.max(at);
        }
        let header = self.unknown_header(id);
        let page = header.page();
        self.with_room(PAGE, || file.write_at(0, vec![page.clone()])).await?;
        let slot = Slot::parse(&page).expect("a new page has a slot");
        let open = OpenExtent { id, kind: header.kind, slot, file };
        let reach = Reach { end: end.min(limit), ..Reach::default() };
        self.end_rescued(open, reach).await
    }

    fn unknown_header(&self, extent: ExtentId) -> Header {
        let (kind, created) = (ExtentKind::Data, Epoch::new(0));
        Header { extent, kind, created, store: self.store_id }
    }

    /// Does work that may need `needed` more bytes. On a full disk, tries again a few times: other
    /// programs may free space, and without this disk a part of the store is out of service until
    /// the next start.
    pub(super) async fn with_room<F>(
        &self,
        needed: u64,
        work: impl Fn() -> F,
    ) -> Result<(), OpenError>
    where
        F: Future<Output = Result<(), DiskError>>,
    {
        for pause in FULL_PAUSES {
            match work().await {
                Err(DiskError::Full) => {
                    self.opening.env.clock.sleep(Duration::from_millis(pause)).await;
                }
                done => return done.map_err(|error| self.failed(error)),
            }
        }
        match (work().await, self.disk.space().await) {
            (Err(DiskError::Full), Ok(space)) => {
                let (disk, available) = (self.place, space.available);
                Err(OpenError::Full { disk, needed, available })
            }
            (done, _) => done.map_err(|error| self.failed(error)),
        }
    }

    pub(super) fn failed(&self, error: DiskError) -> OpenError {
        OpenError::Disk { disk: self.place, error }
    }
}

fn note_padding(extent: &Extent, padding: &[Range<ExtentOffset>], changes: &mut Vec<Change>) {
    let mut state = extent.state();
    for range in padding {
        if let Some(merged) = state.dead.insert(range.clone()) {
            changes.push(Change::Dead {
                extent: extent.id,
                range: merged.range,
                swallowed: merged.swallowed,
            });
        }
    }
}

fn insert_dead(extent: &Extent, dead: &Ranges) {
    let mut state = extent.state();
    let end = state.end;
    for range in dead.iter() {
        state.dead.insert(range.start..range.end.min(end));
    }
}

/// Whether all bytes are dead: a crash came between the last free and the removal.
fn wholly_dead(extent: &Extent) -> bool {
    let state = extent.state();
    state.end > ExtentOffset::START && state.dead.total() >= state.end.get()
}
