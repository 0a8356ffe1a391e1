//! The request of the audit: all locations that rows name.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::index::api::Error;
use crate::index::api::ListReferences;
use crate::index::api::ReferencePlace;
use crate::index::api::References;
use crate::index::objects::keys;
use crate::index::objects::keys::StagedKey;
use crate::index::objects::keys::VersionKey;
use crate::index::objects::spans;
use crate::index::objects::sweep::is_blob;
use crate::index::objects::values;
use crate::index::objects::values::Content;
use crate::index::objects::values::DeadLayer;
use crate::index::objects::values::GarbageValue;
use crate::index::objects::values::Layout;
use crate::index::objects::values::NullVersion;
use crate::index::objects::values::StagedBlock;
use crate::index::objects::walk::Blobs;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::types::ExtentId;
use crate::types::Location;
use crate::types::RoutingKey;

/// Noting this many locations takes as long as examining a row.
const LOCATIONS_OF_A_ROW: usize = 4;
/// Locations moved to the answer before the task yields.
const MOVED_IN_TURN: usize = 4_096;

/// Returns the locations that rows name, garbage rows too: those of whole blobs as long as they
/// fit, or the lowest locations of one blob. All rows of a blob are examined, through one view, in
/// steps that yield. Memory holds only the locations to be returned.
pub(super) async fn references(
    view: &dyn Rows,
    list: &ListReferences,
) -> Result<References, Error> {
    let most = list.locations.max(1);
    let mut blobs = Blobs::new(view, &Family::ALL, &list.from.key, None).pausing();
    let mut locations = Vec::new();
    for _ in 0..list.blobs {
        let Some(key) = blobs.next().await? else {
            let next = blobs.paused().cloned().map(ReferencePlace::at);
            return Ok(References { locations, next });
        };
        let after = list.from.after.filter(|_| list.from.key == *key.as_bytes());
        if after.is_some_and(|after| after.extent > *list.extents.end()) {
            blobs.skip(&key);
            continue;
        }
        let mut lowest = Lowest::new(&list.extents, after, most - locations.len());
        while let Some((family, row)) = blobs.take_of(&key).await? {
            let mut count = 0;
            refer(family, &key, &row, &mut |location| {
                count += 1;
                lowest.add(location);
            })?;
            view.rest(count / LOCATIONS_OF_A_ROW).await;
        }
        let Lowest { kept, has_more, .. } = lowest;
        for (number, location) in kept.into_iter().enumerate() {
            locations.push(location);
            if number % MOVED_IN_TURN == MOVED_IN_TURN - 1 {
                view.rest(MOVED_IN_TURN).await;
            }
        }
        if has_more {
            let next =
                ReferencePlace { key: key.as_bytes().clone(), after: locations.last().copied() };
            return Ok(References { locations, next: Some(next) });
        }
        // The answer must have room for the next blob.
        if locations.len() >= most / 2 {
            break;
        }
    }
    let next = blobs.next().await?.map(|key| key.as_bytes().clone());
    let next = next.or_else(|| blobs.paused().cloned()).map(ReferencePlace::at);
    Ok(References { locations, next })
}

/// The lowest locations that a blob names, each once.
struct Lowest<'a> {
    extents: &'a RangeInclusive<ExtentId>,
    after: Option<Location>,
    /// The most locations kept, at least one.
    most: usize,
    kept: BTreeSet<Location>,
    /// Whether there are more locations, above the kept ones.
    has_more: bool,
}

impl<'a> Lowest<'a> {
    fn new(extents: &'a RangeInclusive<ExtentId>, after: Option<Location>, most: usize) -> Self {
        Self { extents, after, most, kept: BTreeSet::new(), has_more: false }
    }

    fn add(&mut self, location: &Location) {
        if !self.extents.contains(&location.extent)
            || self.after.is_some_and(|after| *location <= after)
        {
            return;
        }
        let is_full = self.kept.len() >= self.most;
        if is_full && self.kept.last().is_some_and(|last| location > last) {
            self.has_more = true;
        } else if self.kept.insert(*location) && is_full {
            self.kept.pop_last();
            self.has_more = true;
        }
    }
}

/// Whether a row of the versions family is the one that names the null version.
fn is_null_version(row: &Row, key: &RoutingKey) -> bool {
    is_blob(key) && keys::parse_version(&row.key, key) == Ok(VersionKey::Null)
}

/// Calls `see` with each location that one row names.
fn refer(
    family: Family,
    key: &RoutingKey,
    row: &Row,
    see: &mut dyn FnMut(&Location),
) -> Result<(), Error> {
    let mut add = |content: &Content| content.locations().iter().for_each(&mut *see);
    match family {
        Family::Versions if is_null_version(row, key) => {
            let _which: NullVersion = values::decode(family, &row.key, &row.value)?;
        }
        Family::Versions | Family::Main if is_blob(key) => {
            let (_record, content) =
                values::decode_record_head::<BlobRecord>(family, &row.key, &row.value)?;
            match values::decode_content(&row.key, content)?.layout {
                Layout::Whole(content) => add(&content),
                Layout::Blocks(entries) => entries.iter().for_each(|e| add(&e.content)),
                Layout::Appended { tail, .. } => tail.iter().for_each(|e| add(&e.content)),
                Layout::Segments { .. } | Layout::Pages { .. } => {}
            }
        }
        Family::Main | Family::Versions => {}
        Family::Work if keys::parse_tag_work(&row.key, key).is_some() => {}
        Family::Work if keys::is_copy_work(&row.key, key) => {}
        Family::Work if keys::is_deleted_work(&row.key, key) => {}
        Family::Staged => match keys::parse_staged(&row.key, key)? {
            StagedKey::Summary | StagedKey::Upload(_) | StagedKey::Completed(_) => {}
            StagedKey::Block(_) | StagedKey::Part(..) => {
                let block: StagedBlock = values::decode_record(family, &row.key, &row.value)?;
                add(&block.content);
            }
        },
        Family::Layout if keys::parse_span(&row.key, key).is_some() => {
            let row = spans::parse_row(&row.key, &row.value, key)?;
            row.span.content.iter().for_each(add);
        }
        Family::Layout => {
            let entries = values::decode_segment(&row.key, &row.value)?;
            entries.iter().for_each(|e| add(&e.content));
        }
        Family::Garbage if keys::parse_dead_layer(&row.key, key).is_some() => {
            let _dead: DeadLayer = values::decode(family, &row.key, &row.value)?;
        }
        Family::Garbage => {
            let value: GarbageValue = values::decode(family, &row.key, &row.value)?;
            value.locations.iter().for_each(see);
        }
        // No release writes such a row. The locations that it names are unknown, so nothing may be
        // freed.
        Family::Work => {
            return Err(keys::corrupt(family, &row.key, "unknown row"));
        }
    }
    Ok(())
}
