//! Pages of containers and blobs, across partitions.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use crate::frontend::accounts::Account;
use crate::frontend::encrypt::scope;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::facts;
use crate::frontend::lookup;
use crate::frontend::ops::blocks;
use crate::frontend::ops::deletions;
use crate::frontend::ops::effort::Effort;
use crate::frontend::ops::list_begin;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::History;
use crate::index::ListEntry;
use crate::index::PAGE_WEIGHT_MAX;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::list_reply::BlobItem;
use crate::protocol::model::list_reply::BlobListing;
use crate::protocol::model::list_reply::ContainerItem;
use crate::protocol::model::list_reply::ContainerListing;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::operation::ListContainers;
use crate::protocol::model::operation::Passed;
use crate::protocol::model::operation::UploadOperation;
use crate::protocol::model::operation::VersionOrder;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::KeyRange;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// About the most memory that a page takes: rows read ahead, entries, and the rendered page.
const ROOM_BYTES: u64 = 16 << 20;
/// The most memory that a list of page ranges takes: it has at most 10,000.
const PAGE_RANGES_ROOM_BYTES: u64 = 1 << 20;
/// The most memory that an entry takes: 8 KiB of metadata, each byte of which is escaped.
const ENTRY_ROOM_BYTES: u64 = 64 << 10;

/// The default and the maximum number of entries of a page.
const PAGE_MAX: usize = 5000;

pub(crate) fn page_size(max_results: Option<u32>) -> usize {
    max_results.map_or(PAGE_MAX, |n| usize::try_from(n).unwrap_or(PAGE_MAX).min(PAGE_MAX))
}

/// The memory that an operation reserves for its page, if it returns one.
pub(crate) fn page_memory(operation: &Operation) -> Option<u64> {
    let max_results = if let Operation::Container(ContainerOperation::ListBlobs(list)) = operation {
        list.max_results
    } else if let Operation::Account(AccountOperation::ListContainers(list)) = operation {
        list.max_results
    } else if let Operation::Account(AccountOperation::FindBlobs(find)) = operation {
        find.max_results
    } else if let Operation::Container(ContainerOperation::DeleteBlobs(deletions)) = operation {
        return Some(deletions::answer_memory(&deletions.items));
    } else if let Operation::Blob(BlobOperation::GetPageRanges { .. }) = operation {
        return Some(PAGE_RANGES_ROOM_BYTES);
    } else if let Operation::Blob(BlobOperation::GetBlockList { kind, .. }) = operation {
        return Some(blocks::list_memory_of(*kind));
    } else if let Operation::Upload(UploadOperation::ListUploads(list)) = operation {
        u32::try_from(list.limit).ok()
    } else {
        return None;
    };
    Some((page_size(max_results) as u64).saturating_mul(ENTRY_ROOM_BYTES).min(ROOM_BYTES))
}

/// List Containers.
pub(crate) async fn containers(
    front: &FrontEnd,
    account: &Account,
    list: ListContainers,
) -> Result<Reply, Refusal> {
    let table = ContainerId::new(0);
    let range = RoutingKey::container_range(account.id, table);
    let mut from = position(list.marker.as_deref(), &range)?;
    let (prefix, owner) = (list.prefix.unwrap_or_default(), list.owner);
    let shows_deleted = list.deleted;
    let limit = page_size(list.max_results);
    // One more entry than is shown reveals whether more follow.
    let fetch = limit + usize::from(list.exact);
    let now = front.env.clock.now();
    let (mut items, mut after, mut weight) = (Vec::new(), Vec::new(), 0);
    let mut effort = Effort::new(front.env.clock.as_ref());
    loop {
        let list = index::ListContainers {
            account: account.id,
            prefix: prefix.clone(),
            from,
            limit: fetch - items.len(),
            deleted: shows_deleted,
        };
        let page = front.rows.router.ask(list).await;
        let page = page.map_err(|error| errors::from_index(&error, Subject::Container))?;
        for (entry, position) in page.entries.into_iter().zip(page.after) {
            if owner.is_some() && entry.record.owner() != owner.as_deref() {
                continue;
            }
            items.push(ContainerItem {
                name: entry.name.into_string(),
                facts: facts::of_container(front, entry.record, now),
            });
            after.push(position);
        }
        weight += page.weight;
        from = page.next;
        if items.len() > limit {
            items.truncate(limit);
            after.truncate(limit);
            from = after.last().cloned();
            return Ok(Reply::Containers(ContainerListing { items, after, next: from }));
        }
        let is_full = items.len() >= fetch || weight >= PAGE_WEIGHT_MAX;
        let is_enough = effort.is_enough(page.seen);
        if from.is_none() || is_full || is_enough {
            return Ok(Reply::Containers(ContainerListing { items, after, next: from }));
        }
    }
}

/// List Blobs.
pub(crate) async fn blobs(
    front: &FrontEnd,
    account: &Account,
    list: ListBlobs,
) -> Result<Reply, Refusal> {
    let container = lookup::container(&front.rows, account, &list.container).await?;
    let range = RoutingKey::container_range(account.id, container.id);
    let marker = position(list.marker.as_deref(), &range)?;
    let begun = match marker {
        Some(position) => Some(position),
        None => list_begin::position(front, account, (&container, &list)).await?,
    };
    let (limit, exact) = (page_size(list.max_results), list.exact);
    if limit == 0 {
        return Ok(Reply::Blobs(BlobListing::default()));
    }
    // One more entry than is shown reveals whether more follow.
    let fetch = limit + usize::from(exact);
    let history = history(&list);
    let mut query = index::ListBlobs {
        account: account.id,
        container: container.id,
        collation: container.collation,
        prefix: list.prefix.unwrap_or_default(),
        delimiter: list.delimiter.filter(|d| !d.is_empty()),
        start_from: list.start_from,
        end_before: list.end_before.filter(|name| !name.is_empty()),
        from: begun.clone(),
        limit: fetch,
        weight_max: PAGE_WEIGHT_MAX,
        uncommitted: list.uncommitted,
        history,
        deleted: list.deleted,
        versions_only: list.versions_only,
        shown: index::ListedFields {
            metadata: list.metadata,
            copy: list.copy,
            content_tag: list.content_etag,
        },
    };
    let now = front.env.clock.now();
    let (mut items, mut after, mut weight) = (Vec::new(), Vec::new(), 0);
    let mut effort = Effort::new(front.env.clock.as_ref());
    loop {
        query.limit = fetch - items.len();
        query.weight_max = PAGE_WEIGHT_MAX.saturating_sub(weight).max(1);
        let page = front.rows.router.list(&query).await;
        let page = page.map_err(|error| errors::from_index(&error, Subject::Blob))?;
        items.extend(page.entries.into_iter().map(|entry| item(front, account, entry, now)));
        after.extend(page.after);
        weight += page.weight;
        query.from = page.next;
        let is_full = items.len() >= fetch || weight >= PAGE_WEIGHT_MAX;
        let is_enough = effort.is_enough(page.seen);
        if items.len() > limit {
            items.truncate(limit);
            after.truncate(limit);
            query.from = after.last().cloned();
        }
        let end = End::of(query.from.as_ref(), after.last(), (container.collation, history));
        if query.from.is_none() || (is_full || is_enough) && (!exact || end.has_name()) {
            let has_newer = list_begin::has_newer(front, (&query, begun.as_ref()), items.first());
            let (has_newer, passed, next) = (has_newer.await?, end.passed, query.from);
            return Ok(Reply::Blobs(BlobListing { has_newer, passed, items, after, next }));
        }
    }
}

/// Where a page ends.
struct End {
    /// Behind its last item.
    at_an_item: bool,
    /// Behind this, which is not an item.
    passed: Option<Passed>,
}

impl End {
    fn of(
        next: Option<&Bytes>,
        last: Option<&Bytes>,
        (collation, history): (Collation, History),
    ) -> Self {
        let is_down = history == History::VersionsDown;
        let at_an_item = next == last;
        let passed = next.filter(|_| !at_an_item);
        let passed = passed.and_then(|next| {
            let name = RoutingKey::passed_name(next, collation)?;
            let version = RoutingKey::passed_version(next).filter(|_| is_down);
            Some(Passed { name, version })
        });
        Self { at_an_item, passed }
    }

    const fn has_name(&self) -> bool {
        self.at_an_item || self.passed.is_some()
    }
}

/// The history that the list includes beside current blobs.
const fn history(list: &ListBlobs) -> History {
    match (list.versions, list.snapshots) {
        (None, false) => History::None,
        (None, true) => History::Snapshots,
        (Some(VersionOrder::OldestFirst), snapshots) => History::VersionsUp { snapshots },
        (Some(VersionOrder::NewestFirst), _) => History::VersionsDown,
    }
}

fn item(front: &FrontEnd, account: &Account, entry: ListEntry, now: Timestamp) -> BlobItem {
    let facts_of = |record| {
        let mut facts = facts::of_blob(front, account.account_type.tiers(), record, now);
        scope::show_md5(account, &mut facts);
        facts
    };
    match entry {
        ListEntry::Blob { name, revision, mut record } => {
            front.copies.show_progress(&mut record);
            BlobItem::Blob { name, revision, facts: facts_of(*record) }
        }
        ListEntry::VersionsOnly { name, record } => {
            BlobItem::VersionsOnly { name, facts: facts_of(*record) }
        }
        // A list of blobs has no uploads.
        ListEntry::Uncommitted { name } | ListEntry::Upload { name, .. } => {
            BlobItem::Uncommitted { name }
        }
        ListEntry::Prefix { name } => BlobItem::Prefix { name },
    }
}

fn position(marker: Option<&str>, range: &KeyRange) -> Result<Option<Bytes>, Refusal> {
    let Some(marker) = marker.filter(|m| !m.is_empty()) else { return Ok(None) };
    let position = URL_SAFE_NO_PAD.decode(marker).ok().map(Bytes::from);
    match position.filter(|p| range.contains(p)) {
        Some(position) => Ok(Some(position)),
        None => Err(Refusal::new(Reason::InvalidQueryParameterValue)
            .detail(Detail::ParameterName, "marker")
            .detail(Detail::ParameterValue, marker)
            .detail(Detail::Explanation, "Send the NextMarker of the page before, unchanged.")),
    }
}
