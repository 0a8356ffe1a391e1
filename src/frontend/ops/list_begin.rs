//! The start of a list of blobs that has no position, but a name or version to continue after.

use bytes::Bytes;

use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::ops::effort::Effort;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::ContainerRecord;
use crate::index::Guard;
use crate::index::History;
use crate::index::ListEntry;
use crate::index::ReadBlob;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::list_reply::BlobItem;
use crate::protocol::model::operation::ListAfter;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::operation::VersionAfter;
use crate::types::BlobName;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// The position at which a list without a marker begins.
pub(super) async fn position(
    front: &FrontEnd,
    account: &Account,
    (container, list): (&ContainerRecord, &ListBlobs),
) -> Result<Option<Bytes>, Refusal> {
    let (id, collation) = (container.id, container.collation);
    let Some(after) = &list.after else { return Ok(None) };
    let folds = matches!(after, ListAfter::NameOrPrefix(_) | ListAfter::Version(..));
    let (ListAfter::Name(name)
    | ListAfter::NameOrPrefix(name)
    | ListAfter::Version(name, _)
    | ListAfter::PassedVersion(name, _)) = after;
    // A name that is folded into a group is passed together with the group's prefix.
    if let Some(group) = group(list, name).filter(|_| folds) {
        let prefix = RoutingKey::prefix(account.id, id, &group, collation);
        return Ok(Some(RoutingKey::after_prefix(&prefix).unwrap_or_default()));
    }
    let version = match after {
        ListAfter::Version(_, VersionAfter::Null)
        | ListAfter::PassedVersion(_, VersionAfter::Null) => {
            time_of_null(front, account, (container, name)).await?
        }
        ListAfter::Version(_, VersionAfter::Time(time))
        | ListAfter::PassedVersion(_, VersionAfter::Time(time)) => Some(*time),
        ListAfter::Name(_) | ListAfter::NameOrPrefix(_) => None,
    };
    Ok(Some(match version {
        Some(time) => RoutingKey::after_version(account.id, id, (name, time), collation),
        None => RoutingKey::after_name(account.id, id, name, collation),
    }))
}

/// The prefix into which a list folds a name.
fn group(list: &ListBlobs, name: &str) -> Option<String> {
    let prefix = list.prefix.as_deref().unwrap_or_default();
    let delimiter = list.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty())?;
    let end = prefix.len() + name.strip_prefix(prefix)?.find(delimiter)? + delimiter.len();
    name.get(..end).map(str::to_owned)
}

/// The time of a name's null version, which determines its place among the versions; `None` if the
/// name has no null version.
async fn time_of_null(
    front: &FrontEnd,
    account: &Account,
    (container, name): (&ContainerRecord, &str),
) -> Result<Option<Timestamp>, Refusal> {
    let Ok(name) = BlobName::new(name) else { return Ok(None) };
    let key = lookup::key_in(account, container, name);
    let (revision, guard) = (Revision::Null, Guard::default());
    let read = ReadBlob { key, revision, guard, range: None, pieces: false };
    match front.rows.router.ask(read).await {
        Ok(view) => {
            let record = view.record;
            Ok(Some(record.version().map_or(record.last_modified, |version| version.time)))
        }
        Err(error) => {
            if let index::Error::Refused(index::Refused::DeleteMarker(marker)) = &error {
                return Ok(Some(marker.time));
            }
            let refused = errors::from_index(&error, Subject::Blob);
            if refused.reason == Reason::VersionNotFound { Ok(None) } else { Err(refused) }
        }
    }
}

/// Whether the name of the first item of a page has a newer version before the page, in a list that
/// begins with the newest version. Only needed for a delete marker on a page that begins among the
/// versions of its name: any other version is the newest only if it is current. The look-up is
/// limited as a page is. If it ends early because of many removed rows, it reports no newer
/// version.
pub(super) async fn has_newer(
    front: &FrontEnd,
    (list, begun): (&index::ListBlobs, Option<&Bytes>),
    first: Option<&BlobItem>,
) -> Result<bool, Refusal> {
    let (Some(BlobItem::Blob { name, revision, facts }), Some(begun)) = (first, begun) else {
        return Ok(false);
    };
    if list.history != History::VersionsDown || !facts.is_marker {
        return Ok(false);
    }
    let within = RoutingKey::of_row(begun).and_then(|key| key.name(list.collation));
    if within.as_ref() != Some(name) {
        return Ok(false);
    }
    let mut look = index::ListBlobs {
        prefix: name.clone(),
        delimiter: None,
        start_from: None,
        end_before: None,
        from: None,
        limit: 1,
        ..list.clone()
    };
    let mut effort = Effort::new(front.env.clock.as_ref());
    loop {
        let page = front.rows.router.list(&look).await;
        let page = page.map_err(|error| errors::from_index(&error, Subject::Blob))?;
        if let Some(newest) = page.entries.first() {
            return Ok(matches!(newest, ListEntry::Blob { name: of, revision: other, .. }
                if of == name && other != revision));
        }
        if page.next.is_none() || effort.is_enough(page.seen) {
            return Ok(false);
        }
        look.from = page.next;
    }
}
