//! Pages of containers and blobs, across partitions.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use crate::env::Clock;
use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::facts;
use crate::frontend::lookup;
use crate::frontend::ops::blocks;
use crate::frontend::ops::deletions;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::ContainerRecord;
use crate::index::History;
use crate::index::ListEntry;
use crate::index::PAGE_WEIGHT_MAX;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ListAfter;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::operation::ListContainers;
use crate::protocol::model::operation::Passed;
use crate::protocol::model::operation::UploadOperation;
use crate::protocol::model::operation::VersionOrder;
use crate::protocol::model::reply::BlobItem;
use crate::protocol::model::reply::BlobListing;
use crate::protocol::model::reply::ContainerItem;
use crate::protocol::model::reply::ContainerListing;
use crate::types::AccountId;
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

/// The most rows that one request scans, in all partitions; see also [`Effort`].
const ROWS_MAX: usize = 65_536;
/// A request may scan this many rows however long it takes, so that full pages do not end early on
/// a slow machine.
const ROWS_MIN: usize = 16_384;
/// How long a request may scan more rows than that.
const TIME_MAX: Duration = Duration::from_millis(40);

/// The cost of a page so far. Where millions of names were deleted a page ends early, perhaps
/// without any entry, but with a marker: clients then ask for the next page.
pub(crate) struct Effort<'a> {
    clock: &'a dyn Clock,
    began: Duration,
    seen: usize,
}

impl<'a> Effort<'a> {
    /// Nothing so far.
    pub(crate) fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, began: clock.monotonic(), seen: 0 }
    }

    /// Adds scanned rows, and returns whether the page must end.
    pub(crate) fn is_enough(&mut self, seen: usize) -> bool {
        self.seen = self.seen.saturating_add(seen);
        let late = || self.clock.monotonic().saturating_sub(self.began) >= TIME_MAX;
        self.seen >= ROWS_MAX || self.seen >= ROWS_MIN && late()
    }
}

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
    // One more than is shown tells whether more follows.
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
    let from = marker.or_else(|| begin(account.id, &container, &list));
    let (limit, exact) = (page_size(list.max_results), list.exact);
    if limit == 0 {
        return Ok(Reply::Blobs(BlobListing::default()));
    }
    // One more than is shown tells whether more follows.
    let fetch = limit + usize::from(exact);
    let history = history(&list);
    let mut query = index::ListBlobs {
        account: account.id,
        container: container.id,
        collation: container.collation,
        prefix: list.prefix.unwrap_or_default(),
        delimiter: list.delimiter.filter(|d| !d.is_empty()),
        start_from: list.start_from,
        from,
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
        items.extend(page.entries.into_iter().map(|entry| item(front, entry, now)));
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
            let next = query.from;
            return Ok(Reply::Blobs(BlobListing { passed: end.passed, items, after, next }));
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

/// What the list has beside current blobs.
const fn history(list: &ListBlobs) -> History {
    match (list.versions, list.snapshots) {
        (None, false) => History::None,
        (None, true) => History::Snapshots,
        (Some(VersionOrder::OldestFirst), snapshots) => History::VersionsUp { snapshots },
        (Some(VersionOrder::NewestFirst), _) => History::VersionsDown,
    }
}

/// The position at which a list begins that has no marker.
fn begin(account: AccountId, container: &ContainerRecord, list: &ListBlobs) -> Option<Bytes> {
    let (id, collation) = (container.id, container.collation);
    let group = |name: &str| {
        let prefix = list.prefix.as_deref().unwrap_or_default();
        let delimiter = list.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty())?;
        let end = prefix.len() + name.strip_prefix(prefix)?.find(delimiter)? + delimiter.len();
        name.get(..end).map(str::to_owned)
    };
    let (name, group) = match list.after.as_ref()? {
        ListAfter::Name(name) => (name, None),
        ListAfter::NameOrPrefix(name) => (name, group(name)),
        // A version that is folded is passed with its prefix.
        ListAfter::Version(name, time) => match group(name) {
            Some(group) => (name, Some(group)),
            None => return Some(RoutingKey::after_version(account, id, (name, *time), collation)),
        },
        ListAfter::PassedVersion(name, time) => {
            return Some(RoutingKey::after_version(account, id, (name, *time), collation));
        }
    };
    Some(match group {
        Some(group) => {
            let prefix = RoutingKey::prefix(account, id, &group, collation);
            RoutingKey::after_prefix(&prefix).unwrap_or_default()
        }
        None => RoutingKey::after_name(account, id, name, collation),
    })
}

fn item(front: &FrontEnd, entry: ListEntry, now: Timestamp) -> BlobItem {
    match entry {
        ListEntry::Blob { name, revision, mut record } => {
            front.copies.show_progress(&mut record);
            BlobItem::Blob { name, revision, facts: facts::of_blob(front, *record, now) }
        }
        ListEntry::VersionsOnly { name, record } => {
            BlobItem::VersionsOnly { name, facts: facts::of_blob(front, *record, now) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimClock;

    #[tokio::test(start_paused = true)]
    async fn page_ends_at_many_rows_or_at_some_rows_and_some_time() {
        let clock = SimClock::new();
        let mut fast = Effort::new(&clock);
        assert!(!fast.is_enough(ROWS_MIN));
        assert!(!fast.is_enough(ROWS_MAX - ROWS_MIN - 1));
        assert!(fast.is_enough(1), "it is fast, but looks at many rows");

        let mut slow = Effort::new(&clock);
        clock.sleep(TIME_MAX * 100).await;
        assert!(!slow.is_enough(ROWS_MIN - 1), "it is slow, but full pages do not end early");
        assert!(slow.is_enough(1));

        let mut both = Effort::new(&clock);
        assert!(!both.is_enough(ROWS_MIN));
        clock.sleep(TIME_MAX - Duration::from_millis(1)).await;
        assert!(!both.is_enough(1));
        clock.sleep(Duration::from_millis(1)).await;
        assert!(both.is_enough(0));
    }
}
