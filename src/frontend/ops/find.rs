//! Find Blobs by Tags: candidates from the tag index, each compared with the record of its blob.
//!
//! The index may have entries of old tags, and may lack entries of the newest. The record decides,
//! so the result never has a blob without the tags.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::TryStreamExt;
use futures_util::future;
use futures_util::stream;

use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::ops::effort::Effort;
use crate::frontend::ops::listing;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::ContainerRecord;
use crate::index::Guard;
use crate::index::IndexTag;
use crate::index::ListTags;
use crate::index::PAGE_WEIGHT_MAX;
use crate::index::ReadBlob;
use crate::index::TagEntry;
use crate::index::TagPage;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::FindBlobs;
use crate::protocol::model::reply::FoundBlob;
use crate::protocol::model::reply::FoundBlobs;
use crate::types::AccountId;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::Comparison;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::TagClause;
use crate::types::TagEntryKey;
use crate::types::TagQuery;
use crate::types::Tags;

/// Candidates per read.
const CANDIDATES: usize = 512;
/// The most candidates that one request checks. Where few of them match, the page is short and has
/// a marker, as on the service.
const CANDIDATES_MAX: usize = 20_000;
/// Records read at a time.
const PARALLEL_READS: usize = 16;

/// Find Blobs by Tags.
pub(crate) async fn find(
    front: &FrontEnd,
    account: &Account,
    find: FindBlobs,
) -> Result<Reply, Refusal> {
    let scope = match find.container.as_ref().or(find.query.container.as_ref()) {
        None => None,
        Some(name) => match lookup::container(&front.rows, account, name).await {
            Ok(record) => Some(record.id),
            // The search names another container than the URL: nothing is found.
            Err(e) if e.reason == Reason::ContainerNotFound && find.container.is_none() => {
                return Ok(Reply::FoundBlobs(FoundBlobs::default()));
            }
            Err(error) => return Err(error),
        },
    };
    let limit = listing::page_size(find.max_results);
    let ranges = ranges(account.id, &find.query, scope);
    let mut search =
        Search { front, account, query: &find.query, scope, containers: HashMap::new() };
    let Start { range, position } = match start(find.marker.as_deref(), &ranges)? {
        Some(start) => start,
        None => match search.narrowest(&ranges).await? {
            Some(start) => start,
            // A search without a tag finds nothing; no dialect parses one.
            None => return Ok(Reply::FoundBlobs(FoundBlobs::default())),
        },
    };
    let (mut items, mut seen, mut weight) = (Vec::new(), 0, 0);
    let mut effort = Effort::new(front.env.clock.as_ref());
    let mut from = Some(position);
    while let Some(position) = from.take() {
        let wanted = (limit - items.len()).clamp(1, CANDIDATES);
        let page = search.candidates(range, position, wanted).await?;
        seen += page.entries.len();
        let found = search.verify(page.entries).await?;
        weight += found.iter().map(self::weight).sum::<usize>();
        items.extend(found);
        from = page.next;
        let is_long = weight >= PAGE_WEIGHT_MAX || seen >= CANDIDATES_MAX;
        if items.len() >= limit || is_long || effort.is_enough(page.seen) {
            break;
        }
    }
    let next_marker = from.map(|position| URL_SAFE_NO_PAD.encode(position));
    Ok(Reply::FoundBlobs(FoundBlobs { items, next_marker }))
}

/// The most bytes that a found blob takes when it is rendered: an escaped byte takes five or six.
fn weight(found: &FoundBlob) -> usize {
    let tags: usize = found.tags.iter().map(|(key, value)| 64 + key.len() + value.len() * 6).sum();
    256 + found.name.len() * 6 + found.container.len() + tags
}

/// A range of the tag index that contains every match.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    from: Bytes,
    to: Option<Bytes>,
}

/// The position from which a search continues.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Start<'a> {
    range: &'a Range,
    position: Bytes,
}

/// One range for each tag of the search, from its equality or its bounds.
fn ranges(account: AccountId, query: &TagQuery, scope: Option<ContainerId>) -> Vec<Range> {
    let mut keys: Vec<&str> = query.clauses.iter().map(|clause| clause.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().map(|key| range(account, key, &query.clauses, scope)).collect()
}

fn range(
    account: AccountId,
    key: &str,
    clauses: &[TagClause],
    scope: Option<ContainerId>,
) -> Range {
    let exact = |value: &str, scope| TagEntryKey::exact(account, key, value, scope);
    let after = |prefix: &Bytes| RoutingKey::after_prefix(prefix).unwrap_or_default();
    let whole = TagEntryKey::start(account, key, "");
    let mut range = Range { to: RoutingKey::after_prefix(&whole), from: whole };
    for clause in clauses.iter().filter(|clause| clause.key == key) {
        let value = clause.value.as_str();
        let (from, to) = match clause.comparison {
            Comparison::Equal => {
                let prefix = exact(value, scope);
                (Some(prefix.clone()), RoutingKey::after_prefix(&prefix))
            }
            Comparison::Greater => (Some(after(&exact(value, None))), None),
            Comparison::GreaterOrEqual => (Some(exact(value, None)), None),
            Comparison::Less => (None, Some(exact(value, None))),
            Comparison::LessOrEqual => (None, Some(after(&exact(value, None)))),
            Comparison::NotEqual => (None, None),
        };
        range.from = from.map_or(range.from.clone(), |from| from.max(range.from.clone()));
        range.to = match (to, range.to.take()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    range
}

/// The position of a marker; `None` without one.
fn start<'a>(marker: Option<&str>, ranges: &'a [Range]) -> Result<Option<Start<'a>>, Refusal> {
    let Some(marker) = marker.filter(|marker| !marker.is_empty()) else { return Ok(None) };
    let position = URL_SAFE_NO_PAD.decode(marker).ok().map(Bytes::from);
    let found = position.and_then(|position| {
        let inside = |range: &&Range| {
            range.from <= position && range.to.as_ref().is_none_or(|to| position < *to)
        };
        Some(Start { range: ranges.iter().find(inside)?, position: position.clone() })
    });
    found.map(Some).ok_or_else(|| {
        Refusal::new(Reason::InvalidQueryParameterValue)
            .detail(Detail::ParameterName, "marker")
            .detail(Detail::ParameterValue, marker)
            .detail(Detail::Explanation, "Send the NextMarker of the page before, unchanged.")
    })
}

/// A running search.
struct Search<'a> {
    front: &'a FrontEnd,
    account: &'a Account,
    query: &'a TagQuery,
    scope: Option<ContainerId>,
    /// Containers looked up so far, by name; `None` for those that do not exist.
    containers: HashMap<ContainerName, Option<Box<ContainerRecord>>>,
}

impl Search<'_> {
    async fn candidates(
        &self,
        range: &Range,
        from: Bytes,
        limit: usize,
    ) -> Result<TagPage, Refusal> {
        let list = ListTags { from: from.clone(), to: range.to.clone(), limit };
        let found = self.front.rows.router.ask(list).await;
        found.map_err(|error| errors::from_index(&error, Subject::Blob))
    }

    /// The range with the fewest candidates, judged by the first page of each; `None` if there is
    /// no range.
    async fn narrowest<'r>(&self, ranges: &'r [Range]) -> Result<Option<Start<'r>>, Refusal> {
        let mut best: Option<(usize, &Range)> = None;
        for range in ranges {
            let count = if ranges.len() == 1 {
                0
            } else {
                let page = self.candidates(range, range.from.clone(), CANDIDATES).await?;
                page.entries.len() + usize::from(page.next.is_some()) * CANDIDATES
            };
            if best.is_none_or(|(fewest, _)| count < fewest) {
                best = Some((count, range));
            }
        }
        Ok(best.map(|(_, range)| Start { range, position: range.from.clone() }))
    }

    /// The candidates that match the search, in order.
    async fn verify(&mut self, entries: Vec<TagEntry>) -> Result<Vec<FoundBlob>, Refusal> {
        for entry in &entries {
            if !self.containers.contains_key(&entry.container) {
                let found =
                    lookup::container(&self.front.rows, self.account, &entry.container).await;
                let record = match found {
                    Ok(record) => Some(record),
                    Err(error) if error.reason == Reason::ContainerNotFound => None,
                    Err(error) => return Err(error),
                };
                self.containers.insert(entry.container.clone(), record);
            }
        }
        let this = &*self;
        stream::iter(entries)
            .map(|entry| this.verify_one(entry))
            .buffered(PARALLEL_READS)
            .try_filter_map(future::ok)
            .try_collect()
            .await
    }

    async fn verify_one(&self, entry: TagEntry) -> Result<Option<FoundBlob>, Refusal> {
        let record = self.containers.get(&entry.container).and_then(Option::as_ref);
        let Some(container) = record.filter(|record| is_of(&entry.key.blob, record.id)) else {
            // The container was deleted. Its purge removes the entry; until then the container may
            // be restored.
            return Ok(None);
        };
        if self.scope.is_some_and(|scope| scope != container.id) {
            return Ok(None);
        }
        let Some(name) = entry.key.blob.name(container.collation) else { return Ok(None) };
        let Some(tags) = self.tags(container, &name).await? else {
            self.forget(&entry).await;
            return Ok(None);
        };
        if tags.get(&entry.key.key) != Some(entry.key.value.as_str()) {
            self.forget(&entry).await;
            return Ok(None);
        }
        if !self.query.matches(&tags) {
            return Ok(None);
        }
        let named = |key: &str| self.query.clauses.iter().any(|clause| clause.key == key);
        let tags = tags.only(named);
        Ok(Some(FoundBlob { name, container: entry.container.as_str().to_owned(), tags }))
    }

    /// The current tags of a blob; `None` if the blob does not exist.
    async fn tags(&self, container: &ContainerRecord, name: &str) -> Result<Option<Tags>, Refusal> {
        let Ok(name) = BlobName::new(name) else { return Ok(None) };
        let key = BlobKey {
            account: self.account.id,
            container: container.id,
            collation: container.collation,
            name,
        };
        let guard = Guard::default();
        let read = ReadBlob { key, revision: Revision::Current, guard, range: None, pieces: false };
        match self.front.rows.router.ask(read).await {
            Ok(view) => Ok(Some(view.record.tags)),
            Err(index::Error::Refused(index::Refused::BlobNotFound)) => Ok(None),
            Err(error) => Err(errors::from_index(&error, Subject::Blob)),
        }
    }

    /// Removes an outdated entry, unless it was written again meanwhile.
    async fn forget(&self, entry: &TagEntry) {
        let remove = IndexTag { entry: entry.key.routing_key(), time: entry.time, container: None };
        if let Err(error) = self.front.rows.router.tell(remove).await {
            tracing::debug!(%error, "an outdated entry of the tag index was not removed");
        }
    }
}

fn is_of(blob: &RoutingKey, container: ContainerId) -> bool {
    blob.as_bytes().get(8..16) == Some(container.get().to_be_bytes().as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str, container: u64) -> Bytes {
        let blob = RoutingKey::blob(&BlobKey {
            account: AccountId::new(7),
            container: ContainerId::new(container),
            collation: crate::types::Collation::Utf16,
            name: BlobName::new("n").unwrap(),
        });
        let entry = TagEntryKey { key: key.to_owned(), value: value.to_owned(), blob };
        entry.routing_key().as_bytes().clone()
    }

    fn covered(search: &str, scope: Option<u64>) -> Vec<Vec<String>> {
        let query = TagQuery::parse(search).unwrap();
        let found = ranges(AccountId::new(7), &query, scope.map(ContainerId::new));
        let values = ["", "1", "10", "11", "2", "20"];
        let inside = |range: &Range| {
            let mut inside = Vec::new();
            for key in ["a", "ab", "b"] {
                for value in values {
                    for container in [1, 2] {
                        let at = entry(key, value, container);
                        if range.from <= at && range.to.as_ref().is_none_or(|to| at < *to) {
                            inside.push(format!("{key}{value}/{container}"));
                        }
                    }
                }
            }
            inside
        };
        found.iter().map(inside).collect()
    }

    #[test]
    fn each_range_holds_what_its_tag_allows() {
        assert_eq!(covered("a = '1'", None), [["a1/1", "a1/2"]]);
        assert_eq!(covered("a = '1'", Some(2)), [["a1/2"]]);
        assert_eq!(
            covered("a > '1' AND a <= '2'", None),
            [["a10/1", "a10/2", "a11/1", "a11/2", "a2/1", "a2/2"]]
        );
        assert_eq!(covered("a >= '11' AND a < '2'", None), [["a11/1", "a11/2"]]);
        assert_eq!(covered("a < '1'", None), [["a/1", "a/2"]]);
        assert_eq!(covered("a = '1' AND a = '2'", None), [Vec::<String>::new()]);
        let two = covered("b = '20' AND a = ''", None);
        assert_eq!(two, [["a/1", "a/2"], ["b20/1", "b20/2"]]);
    }

    #[test]
    fn marker_leads_back_into_its_range_or_is_refused() {
        let query = TagQuery::parse("a = '1' AND b = '2'").unwrap();
        let ranges = ranges(AccountId::new(7), &query, None);
        let marker = URL_SAFE_NO_PAD.encode(entry("b", "2", 1));
        let expected = Start { range: &ranges[1], position: entry("b", "2", 1) };
        assert_eq!(start(Some(&marker), &ranges).unwrap(), Some(expected));
        assert_eq!(start(None, &ranges).unwrap(), None);
        for bad in ["?", "AAAA", &URL_SAFE_NO_PAD.encode(entry("b", "3", 1))] {
            assert!(start(Some(bad), &ranges).is_err(), "{bad}");
        }
    }
}
