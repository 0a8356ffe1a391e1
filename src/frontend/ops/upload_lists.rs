//! Lists the uploads of a container, across partitions.

use bytes::Bytes;

use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::ops::effort::Effort;
use crate::frontend::ops::uploads;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::ContainerRecord;
use crate::index::History;
use crate::index::ListEntry;
use crate::index::ListedFields;
use crate::index::PAGE_WEIGHT_MAX;
use crate::index::UploadMarker;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::ListUploads;
use crate::protocol::model::upload_reply::UploadItem;
use crate::protocol::model::upload_reply::UploadPosition;
use crate::protocol::model::upload_reply::UploadReply;
use crate::types::BlobName;
use crate::types::Collation;
use crate::types::RoutingKey;

/// Lists uploads.
pub(crate) async fn list(
    front: &FrontEnd,
    account: &Account,
    list: ListUploads,
) -> Result<Reply, Refusal> {
    let container = lookup::container(&front.rows, account, &list.container).await?;
    let limit = list.limit;
    let mut query = query(account, &container, list);
    let mut items: Vec<UploadItem> = Vec::new();
    let mut weight = 0;
    let mut effort = Effort::new(front.env.clock.as_ref());
    loop {
        // One more than wanted shows whether there are more.
        query.list.limit = limit.saturating_add(1) - items.len();
        query.list.weight_max = PAGE_WEIGHT_MAX.saturating_sub(weight).max(1);
        let page = front.rows.router.list_uploads(&query).await;
        let page = page.map_err(|error| errors::from_index(&error, Subject::Blob))?;
        items.extend(page.entries.into_iter().filter_map(item));
        weight += page.weight;
        let Some(next) = page.next else {
            let next = cut(&mut items, limit);
            return Ok(answer(items, next));
        };
        if items.len() > limit {
            let next = cut(&mut items, limit);
            return Ok(answer(items, next));
        }
        let is_enough = effort.is_enough(page.seen) || weight >= PAGE_WEIGHT_MAX;
        if let Some(at) = position(&next, container.collation).filter(|_| is_enough) {
            return Ok(answer(items, Some(at)));
        }
        query.list.from = Some(next);
    }
}

fn answer(items: Vec<UploadItem>, next: Option<UploadPosition>) -> Reply {
    Reply::Upload(Box::new(UploadReply::Uploads { items, next }))
}

/// Cuts a page to its limit. Returns the start of the next page, if something was cut.
fn cut(items: &mut Vec<UploadItem>, limit: usize) -> Option<UploadPosition> {
    if items.len() <= limit {
        return None;
    }
    items.truncate(limit);
    match items.last()? {
        UploadItem::Upload { name, id, .. } => {
            Some(UploadPosition { name: name.clone(), upload: Some(*id) })
        }
        UploadItem::Prefix { name } => Some(UploadPosition { name: name.clone(), upload: None }),
    }
}

/// The position as clients name it.
fn position(next: &Bytes, collation: Collation) -> Option<UploadPosition> {
    let UploadMarker { name, upload } = index::upload_marker_before(next, collation)?;
    Some(UploadPosition { name: name.as_str().to_owned(), upload })
}

fn item(entry: ListEntry) -> Option<UploadItem> {
    match entry {
        ListEntry::Upload { name, id, record } => {
            Some(UploadItem::Upload { name, id, facts: Box::new(uploads::facts_of(*record)) })
        }
        ListEntry::Prefix { name } => Some(UploadItem::Prefix { name }),
        // A list of uploads has no blobs.
        ListEntry::Blob { .. } | ListEntry::VersionsOnly { .. } | ListEntry::Uncommitted { .. } => {
            None
        }
    }
}

/// The question of the first page.
fn query(account: &Account, container: &ContainerRecord, list: ListUploads) -> index::ListUploads {
    let collation = container.collation;
    let mut blobs = index::ListBlobs {
        account: account.id,
        container: container.id,
        collation,
        prefix: list.prefix.unwrap_or_default(),
        delimiter: list.delimiter.filter(|delimiter| !delimiter.is_empty()),
        start_from: None,
        end_before: None,
        from: None,
        limit: list.limit,
        weight_max: PAGE_WEIGHT_MAX,
        uncommitted: false,
        history: History::None,
        deleted: false,
        versions_only: false,
        shown: ListedFields::ALL,
    };
    let mut after = None;
    if let Some(marker) = list.after {
        // A marker with an upload says that the previous page ended inside the group and did not
        // show it.
        let is_shown = list.after_upload.is_none();
        if let Some(group) = group(&blobs, &marker).filter(|_| is_shown) {
            let prefix = RoutingKey::prefix(account.id, container.id, group, collation);
            blobs.from = Some(RoutingKey::after_prefix(&prefix).unwrap_or_default());
        } else {
            match BlobName::new(&marker) {
                Ok(name) => after = Some(UploadMarker { name, upload: list.after_upload }),
                // No blob has this name.
                Err(_) => blobs.start_from = Some(marker),
            }
        }
    }
    index::ListUploads { list: blobs, after }
}

/// The group into which a marker is folded.
fn group<'a>(list: &index::ListBlobs, marker: &'a str) -> Option<&'a str> {
    let delimiter = list.delimiter.as_deref()?;
    let rest = marker.strip_prefix(list.prefix.as_str())?;
    marker.get(..list.prefix.len() + rest.find(delimiter)? + delimiter.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::AccountId;
    use crate::types::ContainerId;

    #[test]
    fn a_marker_in_a_group_stands_for_the_group() {
        let list = index::ListBlobs {
            prefix: "p/".to_owned(),
            delimiter: Some("//".to_owned()),
            ..index::ListBlobs::first_page(
                AccountId::new(1),
                ContainerId::new(1),
                Collation::Utf8,
                1,
            )
        };
        assert_eq!(group(&list, "p/a//b"), Some("p/a//"));
        assert_eq!(group(&list, "p/a//"), Some("p/a//"));
        assert_eq!(group(&list, "p/a/b"), None);
        assert_eq!(group(&list, "q//"), None);
    }
}
