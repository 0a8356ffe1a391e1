//! The check of a stopped store. It verifies that every row can be decoded, that the bytes that
//! rows name exist and match their checksums, and that the rows of each blob are consistent.

mod affected;
mod committed;
mod content;
mod report;
mod staged;
mod versions;

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::HashSet;

use uuid::Uuid;

use crate::auth::sealed_under;
use crate::capacity::Capacity;
use crate::index::api::Error;
use crate::index::check::committed::Committed;
use crate::index::check::committed::Place;
use crate::index::objects::copy_jobs;
use crate::index::objects::keys;
use crate::index::objects::settings;
use crate::index::objects::spans;
use crate::index::objects::spans::SpanRow;
use crate::index::objects::sweep;
use crate::index::objects::tags;
use crate::index::objects::values;
use crate::index::objects::values::Content;
use crate::index::objects::values::DeadLayer;
use crate::index::objects::values::DeletedWork;
use crate::index::objects::values::Entry;
use crate::index::objects::values::GarbageValue;
use crate::index::objects::values::Layout;
use crate::index::objects::values::StagedSummary;
use crate::index::objects::values::StoredBytes;
use crate::index::objects::walk::Blobs;
use crate::index::record::AccountRecord;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerRecord;
use crate::index::record::CopyStatus;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::types::Collation;
use crate::types::Crc64;
use crate::types::Crc64Hasher;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::RoutingKey;
use crate::types::Secret;
use crate::types::SettingKind;
use crate::types::TAG_INDEX;
use crate::types::Timestamp;
use crate::types::UploadId;

pub use affected::{Affected, Names, OfExtent, Owner};
pub use report::{CheckReport, Problem};

/// Checks one partition. It calls `progress` after each blob, with the report so far.
///
/// If rows cannot be read, the check ends there; that is its last problem.
pub async fn check(
    view: &dyn Rows,
    capacity: &dyn Capacity,
    progress: &mut (dyn FnMut(&CheckReport) + Send),
) -> CheckReport {
    let mut report = CheckReport::default();
    // The walk over blobs skips the garbage rows of deleted containers, so they are decoded here.
    if let Err(error) = sweep::dead_containers(view).await {
        report.problem(&RoutingKey::min(), error.to_string());
    }
    let mut blobs = Blobs::new(view, &Family::ALL, &bytes::Bytes::new(), None);
    let mut reached = RoutingKey::min();
    loop {
        let key = match blobs.next().await {
            Ok(Some(key)) => key,
            Ok(None) => return report,
            Err(error) => {
                report.problem(&reached, format!("rows cannot be read from here on: {error}"));
                report.unread_from = Some(reached);
                return report;
            }
        };
        reached = key.clone();
        let mut blob = BlobCheck::new(capacity, &key, &mut report);
        loop {
            match blobs.take_of(&key).await {
                Ok(Some((family, row))) => blob.row(family, &row).await,
                Ok(None) => break,
                Err(error) => {
                    report.problem(&key, format!("rows cannot be read from here on: {error}"));
                    report.unread_from = Some(key);
                    return report;
                }
            }
        }
        blob.finish().await;
        progress(&report);
    }
}

fn is_tag_entry(key: &RoutingKey) -> bool {
    key.as_bytes().get(8..16) == Some(TAG_INDEX.get().to_be_bytes().as_slice())
}

/// The ends of the spans of a layer that were seen so far.
#[derive(Clone, Copy, Debug, Default)]
struct LayerEnds {
    layer: u64,
    /// The end of the last span.
    all: u64,
    /// The end of the last span with bytes. A span without bytes, which hides an older layer, may
    /// be beyond the end of the blob: if the blob grows again, it shows zeros there.
    bytes: u64,
}

/// The check of the rows of one routing key. Rows are checked in the order of families.
struct BlobCheck<'a> {
    capacity: &'a dyn Capacity,
    key: &'a RoutingKey,
    report: &'a mut CheckReport,
    /// The main row, then snapshots and versions.
    committed: Vec<Committed>,
    /// Layers of page blobs that have spans.
    layers: Vec<LayerEnds>,
    dead_layers: Vec<u64>,
    /// The id of the pending copy, from its work row.
    copy: Option<Uuid>,
    /// The time of the null version, from the row that names it.
    null_version: Option<Timestamp>,
    /// Whether it has rows that were softly deleted, and the work row of such rows.
    has_deleted: bool,
    has_deleted_work: bool,
    /// Whether the main row is that of a container.
    is_container: bool,
    summary: Option<StagedSummary>,
    staged: u32,
    /// The upload whose row was seen last.
    upload: Option<UploadId>,
    /// The locations that blocks name.
    live: HashSet<(ExtentId, ExtentOffset)>,
    /// Which row owns a location.
    owners: HashMap<(ExtentId, ExtentOffset), ByteOwner>,
    /// Extents whose bytes cannot be read or are wrong.
    damaged: BTreeSet<ExtentId>,
}

/// A row that owns locations. It may name a location many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOwner {
    /// A blob, a snapshot or a version.
    Committed(Place),
    /// A layer of pages.
    Layer(u64),
    /// A staged block or a part, by the number of its row in the report.
    Staged(u64),
}

impl<'a> BlobCheck<'a> {
    fn new(capacity: &'a dyn Capacity, key: &'a RoutingKey, report: &'a mut CheckReport) -> Self {
        Self {
            capacity,
            key,
            report,
            committed: Vec::new(),
            layers: Vec::new(),
            dead_layers: Vec::new(),
            copy: None,
            null_version: None,
            has_deleted: false,
            has_deleted_work: false,
            is_container: false,
            summary: None,
            staged: 0,
            upload: None,
            live: HashSet::new(),
            owners: HashMap::new(),
            damaged: BTreeSet::new(),
        }
    }

    fn problem(&mut self, what: impl Into<String>) {
        self.report.problem(self.key, what);
    }

    /// Checks that nothing else owns these locations.
    fn owns(&mut self, owner: ByteOwner, content: &Content) {
        for location in content.owned() {
            let place = (location.extent, location.offset);
            if self.owners.insert(place, owner).is_some_and(|other| other != owner) {
                self.problem(format!(
                    "extent {} at {} has two owners",
                    location.extent, location.offset
                ));
            }
        }
    }

    async fn row(&mut self, family: Family, row: &Row) {
        self.report.rows += 1;
        let result = match family {
            Family::Main if sweep::is_blob(self.key) => {
                self.report.blobs += 1;
                self.committed(Place::Current, row).await
            }
            Family::Main if is_tag_entry(self.key) => self.tag_entry(row),
            Family::Main => self.table(row),
            Family::Work if keys::parse_tag_work(&row.key, self.key).is_some() => {
                tags::decode_work(row).map(drop)
            }
            Family::Work if keys::is_copy_work(&row.key, self.key) => {
                copy_jobs::decode(row).map(|job| {
                    self.secret(&job.source);
                    self.copy = Some(job.id);
                })
            }
            Family::Work if keys::is_deleted_work(&row.key, self.key) => {
                self.has_deleted_work = true;
                values::decode::<DeletedWork>(family, &row.key, &row.value).map(drop)
            }
            Family::Versions if sweep::is_blob(self.key) => self.version(row).await,
            Family::Versions => self.setting(row),
            Family::Work => Err(keys::corrupt(family, &row.key, "unknown row")),
            Family::Staged => self.staged(row).await,
            Family::Layout if keys::parse_span(&row.key, self.key).is_some() => {
                self.span(row).await
            }
            Family::Layout => self.segment(row).await,
            Family::Garbage => match keys::parse_dead_layer(&row.key, self.key) {
                Some(layer) => self.dead_layer(row, layer),
                None => self.garbage(row),
            },
        };
        if let Err(error) = result {
            self.problem(error.to_string());
        }
    }

    fn tag_entry(&mut self, row: &Row) -> Result<(), Error> {
        tags::decode_entry(self.key, &row.value)?;
        self.report.tag_entries += 1;
        Ok(())
    }

    fn secret(&mut self, secret: &Secret) {
        self.report.master_keys.extend(sealed_under(secret));
    }

    fn table(&mut self, row: &Row) -> Result<(), Error> {
        if self.key.as_bytes().starts_with(&[0; 8]) {
            let record: AccountRecord = values::decode_record(Family::Main, &row.key, &row.value)?;
            record.secrets().for_each(|secret| self.secret(secret));
            self.report.accounts += 1;
            self.report.names.account(record.id, self.key.name(Collation::Utf8));
        } else {
            let record: ContainerRecord =
                values::decode_record(Family::Main, &row.key, &row.value)?;
            self.report.containers += 1;
            self.is_container = true;
            let owner = (affected::owner(self.key).0, record.id);
            self.report.names.container(owner, self.key.name(Collation::Utf8));
        }
        Ok(())
    }

    fn setting(&mut self, row: &Row) -> Result<(), Error> {
        if keys::parse_deleted_container(&row.key, self.key).is_some() {
            self.has_deleted = true;
            let record: ContainerRecord =
                values::decode_record(Family::Versions, &row.key, &row.value)?;
            if record.deleted().is_none() {
                self.problem("a deleted container that does not say so");
            }
            return Ok(());
        }
        let of_deleted = keys::parse_setting_of_deleted(&row.key, self.key);
        let number = keys::parse_setting(&row.key, self.key).or(of_deleted);
        let kind = number.and_then(SettingKind::from_number);
        let kind = kind.ok_or_else(|| keys::corrupt(Family::Versions, &row.key, "unknown row"))?;
        settings::decode(kind, &row.key, &row.value)?;
        if !self.is_container && of_deleted.is_none() {
            self.problem("a setting of a container that does not exist");
        }
        Ok(())
    }

    async fn committed(&mut self, place: Place, row: &Row) -> Result<(), Error> {
        let family = match place {
            Place::Current => Family::Main,
            Place::Snapshot | Place::Version(_) | Place::Deleted(_) => Family::Versions,
        };
        let (record, content): (BlobRecord, _) =
            values::decode_record_head(family, &row.key, &row.value)?;
        let content = values::decode_content(&row.key, content)?;
        let mut committed = Committed::new(place, record, content);
        match committed.content.layout.clone() {
            Layout::Whole(whole) => {
                committed.len = whole.len();
                committed.crc64 = committed.record.crc64;
                self.owns(ByteOwner::Committed(place), &whole);
                self.content_once(&whole, committed.crc64).await;
            }
            Layout::Blocks(entries) => self.entries(&mut committed, &entries).await,
            Layout::Pages { .. } => {
                committed.len = committed.record.len;
                committed.crc64 = committed.record.crc64;
            }
            // The rows of their segments come later.
            Layout::Segments { .. } | Layout::Appended { .. } => {}
        }
        self.committed.push(committed);
        Ok(())
    }

    async fn entries(&mut self, committed: &mut Committed, entries: &[Entry]) {
        for entry in entries {
            if entry.id.as_bytes().len() != usize::from(committed.content.id_len) {
                self.problem("committed block ids differ in length");
            }
            if entry.content.len() != entry.len {
                self.problem("a committed block is not as long as its bytes");
            }
            self.owns(ByteOwner::Committed(committed.place), &entry.content);
            self.content_once(&entry.content, entry.crc64).await;
            committed.add(entry);
        }
    }

    /// Checks content unless it was checked before. A list may name a block many times, and
    /// snapshots share blocks.
    async fn content_once(&mut self, content: &Content, crc64: Crc64) {
        let seen = content
            .locations()
            .first()
            .is_some_and(|first| self.live.contains(&(first.extent, first.offset)));
        if !seen {
            self.content(content, crc64).await;
        }
    }

    async fn segment(&mut self, row: &Row) -> Result<(), Error> {
        let entries = values::decode_segment(&row.key, &row.value)?;
        let is_next = |c: &Committed| c.next_segment(self.key).is_some_and(|key| key == row.key);
        let Some(at) = self.committed.iter().position(is_next) else {
            return Err(keys::corrupt(Family::Layout, &row.key, "a segment that no layout names"));
        };
        let mut committed = self.committed.remove(at);
        let start = committed.directory().get(committed.segments).copied();
        committed.segments += 1;
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        if start.is_none_or(|s| s.start != committed.len || s.entries != count) {
            self.problem(format!("segment {} differs from the directory", committed.segments - 1));
        }
        self.entries(&mut committed, &entries).await;
        self.committed.insert(at, committed);
        Ok(())
    }

    async fn span(&mut self, row: &Row) -> Result<(), Error> {
        let SpanRow { layer, range, span } = spans::parse_row(&row.key, &row.value, self.key)?;
        let mut ends = match self.layers.pop_if(|last| last.layer == layer) {
            Some(ends) => ends,
            None => LayerEnds { layer, ..LayerEnds::default() },
        };
        if range.start < ends.all {
            self.problem(format!("pages {range:?} of layer {layer} overlap"));
        }
        ends.all = range.end;
        if span.content.is_some() {
            ends.bytes = range.end;
        }
        self.layers.push(ends);
        span.content.iter().for_each(|content| self.owns(ByteOwner::Layer(layer), content));
        match span.content.as_ref().map(Content::stored_bytes) {
            None => {}
            Some(StoredBytes::Inline(bytes)) => {
                self.report.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            }
            Some(StoredBytes::Locations(locations)) => {
                for location in locations {
                    // Several spans may name a location; it is read once.
                    if self.live.insert((location.extent, location.offset)) {
                        let read = self.location(location, &mut Crc64Hasher::default()).await;
                        if let Err(what) = read {
                            self.problem(what);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn dead_layer(&mut self, row: &Row, layer: u64) -> Result<(), Error> {
        let _dead: DeadLayer = values::decode(Family::Garbage, &row.key, &row.value)?;
        self.dead_layers.push(layer);
        Ok(())
    }

    fn garbage(&mut self, row: &Row) -> Result<(), Error> {
        let value: GarbageValue = values::decode(Family::Garbage, &row.key, &row.value)?;
        for location in &value.locations {
            self.report.garbage_locations += 1;
            if self.live.contains(&(location.extent, location.offset)) {
                self.problem(format!(
                    "extent {} at {} is both used and garbage",
                    location.extent, location.offset
                ));
            }
        }
        Ok(())
    }

    /// Checks that every layer with spans belongs to the blob or is dead.
    fn finish_layers(&mut self) {
        let mut known = std::mem::take(&mut self.dead_layers);
        let mut first = None;
        for committed in &self.committed {
            if let Layout::Pages { layers } = &committed.content.layout {
                known.extend(layers);
                if committed.place == Place::Current {
                    first = layers.first().map(|layer| (*layer, committed.record.len));
                }
            }
        }
        for LayerEnds { layer, all: _, bytes } in std::mem::take(&mut self.layers) {
            if !known.contains(&layer) {
                self.problem(format!(
                    "layer {layer} of pages is not dead, and no blob or snapshot names it"
                ));
            }
            if let Some((_, len)) = first.filter(|(newest, len)| *newest == layer && bytes > *len) {
                self.problem(format!("pages of layer {layer} lie beyond the end {len}"));
            }
        }
    }

    /// Checks what needs all rows of the key.
    async fn finish(mut self) {
        self.finish_layers();
        self.finish_blob().await;
        // Noted last: the blocks in the tail of an append blob are read only now.
        self.report.affected.note(self.key, &self.damaged);
    }

    async fn finish_blob(&mut self) {
        let mut all = std::mem::take(&mut self.committed);
        for committed in &mut all {
            for tail in committed.take_tail() {
                self.entries(committed, &[tail]).await;
            }
            for problem in committed.problems() {
                self.problem(problem);
            }
        }
        if self.has_deleted && !self.has_deleted_work {
            self.problem("rows that were softly deleted, and no work row that ends them");
        }
        self.finish_versions(&all);
        self.finish_snapshots(&all);
        let current = all.iter().find(|committed| committed.place == Place::Current);
        let pending = current.and_then(|blob| blob.record.copy.as_ref());
        let pending = pending.filter(|copy| copy.status == CopyStatus::Pending).map(|copy| copy.id);
        if pending != self.copy {
            self.problem(format!(
                "the record has pending copy {pending:?}, the work row {:?}",
                self.copy
            ));
        }
        if self.summary.map_or(0, |summary| summary.count) != self.staged {
            self.problem(format!("{} staged blocks, summary {:?}", self.staged, self.summary));
        }
    }
}

#[cfg(test)]
mod tests;
