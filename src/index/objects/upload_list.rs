//! Lists uploads: in the order of names, those of one blob by their ids.

use bytes::Bytes;

use crate::index::api::ENTRY_WEIGHT;
use crate::index::api::Error;
use crate::index::api::ListEntry;
use crate::index::api::ListPage;
use crate::index::api::ListUploads;
use crate::index::api::UploadMarker;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::keys;
use crate::index::objects::keys::StagedKey;
use crate::index::objects::list;
use crate::index::objects::page::Window;
use crate::index::objects::values;
use crate::index::record::UploadRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::BlobName;
use crate::types::Collation;
use crate::types::KeyRange;
use crate::types::RoutingKey;
use crate::types::UploadId;

/// One page of the uploads of a container.
pub(super) async fn list(
    view: &dyn Rows,
    range: &KeyRange,
    uploads: &ListUploads,
) -> Result<ListPage, Error> {
    let list = &uploads.list;
    let prefix = RoutingKey::prefix(list.account, list.container, &list.prefix, list.collation);
    let from = after_marker(uploads).into_iter().fold(list.position(), Ord::max);
    let mut window = Window::new(&prefix, from, range);
    let (start, end) = (window.position.clone(), window.to.clone());
    let mut cursor = Cursor::new(view, Family::Staged, start, end).pausing();
    let (mut entries, mut after, mut weight) = (Vec::new(), Vec::new(), 0);
    while let Some(row) = cursor.peek().await? {
        let key = keys::routing_key(Family::Staged, &row.key)?;
        let id = match keys::parse_staged(&row.key, &key)? {
            StagedKey::Upload(id) => id,
            StagedKey::Summary | StagedKey::Block(_) => {
                cursor.seek(&keys::staged_blocks_end(&key));
                continue;
            }
            StagedKey::Part(id, _) => {
                cursor.seek(&keys::after_upload(&key, id));
                continue;
            }
            StagedKey::Completed(_) => {
                cursor.seek(&keys::after(&key));
                continue;
            }
        };
        if entries.len() >= list.limit || weight >= list.weight_max {
            let (next, seen) = (Some(window.position), view.seen());
            return Ok(ListPage { entries, after, weight, next, seen });
        }
        weight += ENTRY_WEIGHT + key.as_bytes().len();
        let name = key
            .name(list.collation)
            .ok_or_else(|| keys::corrupt(Family::Staged, key.as_bytes(), "no blob name"))?;
        if let Some(group) = list::group(list, &name) {
            window
                .pass(list::after_group(list, &group))
                .map_err(|violation| view.violated(violation))?;
            entries.push(ListEntry::Prefix { name: group });
        } else {
            window
                .pass(keys::after_upload(&key, id))
                .map_err(|violation| view.violated(violation))?;
            let record: UploadRecord = values::decode_record(Family::Staged, &row.key, &row.value)?;
            weight += record.blob.weight();
            entries.push(ListEntry::Upload { name, id, record: Box::new(record) });
        }
        after.push(window.position.clone());
        cursor.seek(&window.position);
    }
    let paused = cursor.paused().map(|at| at.max(&window.position).clone());
    let next = paused.or_else(|| window.end());
    Ok(ListPage { entries, after, weight, next, seen: view.seen() })
}

/// The marker with which a list continues from a position among or just behind the rows of a blob.
/// It names the place after the uploads before the position. `None` for another position.
#[must_use]
pub fn upload_marker_before(position: &Bytes, collation: Collation) -> Option<UploadMarker> {
    let (name, upload) = match RoutingKey::of_row(position) {
        Some(blob) => (blob.name(collation)?, keys::upload_before(position, &blob)),
        None => (RoutingKey::passed_name(position, collation)?, UploadId::from_bytes([0xFF; 16])),
    };
    Some(UploadMarker { name: BlobName::new(&name).ok()?, upload: Some(upload) })
}

/// The first position after the marker.
fn after_marker(uploads: &ListUploads) -> Option<Bytes> {
    let blob = uploads.marked()?;
    let id = uploads.after.as_ref().and_then(|marker| marker.upload);
    Some(id.map_or_else(|| keys::after(&blob), |id| keys::after_upload(&blob, id)))
}
