//! Merges the pages of the stripes of one range into one page.

use bytes::Bytes;

use crate::index::Error;
use crate::index::ListBlobs;
use crate::index::ListEntry;
use crate::index::ListPage;
use crate::index::ReadReply;
use crate::index::ReadRequest;
use crate::types::RoutingKey;

/// The number of entries to request from each stripe, if `limit` entries are wanted of all
/// together. Names are distributed evenly, so a little more than the share of a stripe mostly
/// suffices. If it does not, the page is shorter.
fn share(limit: usize, stripes: usize) -> usize {
    if stripes < 2 {
        return limit;
    }
    let even = limit.div_ceil(stripes);
    (even + even / 4 + SLACK).min(limit)
}

const SLACK: usize = 8;

/// The request to each of `stripes` stripes. It asks for a share of the entries and of their
/// weight, because the pages of all stripes are in memory together.
pub(super) fn part(list: &ListBlobs, stripes: usize) -> ListBlobs {
    let weight_max = (list.weight_max / stripes.max(1)).max(1);
    ListBlobs { limit: share(list.limit, stripes), weight_max, ..list.clone() }
}

/// The page of a range: that of its only partition, or those of its stripes, merged.
///
/// # Errors
/// The first of the answers; [`Error::WrongPartition`] without any.
pub(super) fn of_answers(
    answers: Vec<Result<ReadReply, Error>>,
    list: &ListBlobs,
    high: Option<&Bytes>,
) -> Result<ListPage, Error> {
    let pages = answers.into_iter().map(|answer| answer.and_then(ListBlobs::checked));
    let mut pages: Vec<ListPage> = pages.collect::<Result<_, _>>()?;
    match pages.pop() {
        Some(only) if pages.is_empty() => Ok(only),
        Some(last) => {
            pages.push(last);
            Ok(one_page(pages, list, high))
        }
        None => Err(Error::WrongPartition),
    }
}

/// Merges the pages of the stripes of a range, which ends at `high`. The result has at most `limit`
/// entries, and at least one if there is any.
///
/// An entry covers the names up to the position where the listing continues after it; a group
/// covers names of other stripes too. If the page of a stripe ends inside the range, later names of
/// that stripe are unknown, so the merged page ends there too. If a group begins before that
/// position, the merged page ends after the group.
fn one_page(pages: Vec<ListPage>, list: &ListBlobs, high: Option<&Bytes>) -> ListPage {
    let limit = list.limit;
    let is_inside = |next: &&Bytes| high.is_none_or(|high| *next < high);
    let mut known =
        pages.iter().filter_map(|page| page.next.as_ref()).filter(is_inside).min().cloned();
    // If all stripes have ended, one may have a group that extends beyond the range, even to the
    // end of the listing.
    let ends: Option<Vec<Bytes>> = pages.iter().map(|page| page.next.clone()).collect();
    let end = ends.and_then(|ends| ends.into_iter().max());
    let seen = pages.iter().map(|page| page.seen).sum();
    let weight = pages.iter().map(|page| page.weight).sum();
    let mut all: Vec<(Bytes, ListEntry)> =
        pages.into_iter().flat_map(|page| page.after.into_iter().zip(page.entries)).collect();
    // The pages are sorted, so this stable sort merges them.
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.dedup_by(|(a, _), (b, _)| a == b);
    if let Some(end) = &mut known {
        let count = all.partition_point(|(after, _)| *after <= *end);
        // A group covers all its names, so the names of a stripe that paused inside the group need
        // not be known. Without this the next page would begin inside a group that is never shown.
        let group = all.get(count).filter(|(_, entry)| is_begun(list, entry, end));
        if let Some((after, _)) = group {
            *end = after.clone();
        }
        all.truncate(count + usize::from(group.is_some()));
    }
    let next = if all.len() > limit {
        all.truncate(limit);
        all.last().map(|(after, _)| after.clone())
    } else {
        known.or(end)
    };
    let (after, entries) = all.into_iter().unzip();
    ListPage { entries, after, weight, next, seen }
}

/// Whether an entry is a group whose names begin at or before a position.
fn is_begun(list: &ListBlobs, entry: &ListEntry, position: &Bytes) -> bool {
    match entry {
        ListEntry::Prefix { name } => {
            let begin = RoutingKey::prefix(list.account, list.container, name, list.collation);
            begin <= *position
        }
        ListEntry::Blob { .. }
        | ListEntry::VersionsOnly { .. }
        | ListEntry::Uncommitted { .. }
        | ListEntry::Upload { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::AccountId;
    use crate::types::Collation;
    use crate::types::ContainerId;

    fn listing() -> ListBlobs {
        ListBlobs {
            delimiter: Some("/".to_owned()),
            ..ListBlobs::first_page(AccountId::new(1), ContainerId::new(1), Collation::Utf16, 9)
        }
    }

    fn name(name: &str) -> ListEntry {
        ListEntry::Uncommitted { name: name.to_owned() }
    }

    fn at(position: &str) -> Bytes {
        Bytes::copy_from_slice(position.as_bytes())
    }

    fn page(names: &[&str], next: Option<&str>) -> ListPage {
        ListPage {
            entries: names.iter().map(|one| name(one)).collect(),
            after: names.iter().map(|one| at(&format!("{one}."))).collect(),
            weight: 0,
            next: next.map(at),
            seen: 0,
        }
    }

    fn of(pages: Vec<ListPage>, limit: usize, high: &str) -> (String, Option<Bytes>) {
        let page = one_page(pages, &ListBlobs { limit, ..listing() }, Some(&at(high)));
        assert_eq!(page.entries.len(), page.after.len());
        let names = page.entries.into_iter().map(|entry| match entry {
            ListEntry::Uncommitted { name } => name,
            ListEntry::Blob { .. }
            | ListEntry::VersionsOnly { .. }
            | ListEntry::Upload { .. }
            | ListEntry::Prefix { .. } => {
                panic!("only names")
            }
        });
        (names.collect(), page.next)
    }

    #[test]
    fn names_come_in_order_and_all_of_them() {
        let pages = vec![page(&["b", "f"], None), page(&["a", "c"], None), page(&[], None)];
        assert_eq!(of(pages, 9, "z"), ("abcf".into(), None));
        let pages = vec![page(&["b", "f"], Some("z")), page(&["a", "c"], Some("z"))];
        assert_eq!(of(pages, 4, "z"), ("abcf".into(), Some(at("z"))));
    }

    #[test]
    fn a_full_page_ends_after_its_last_entry() {
        let pages = vec![page(&["b", "f"], Some("f.")), page(&["a", "x"], Some("x."))];
        assert_eq!(of(pages, 2, "z"), ("ab".into(), Some(at("b."))));
        let pages = vec![page(&["b", "f"], Some("f.")), page(&[], Some("z"))];
        assert_eq!(of(pages, 2, "z"), ("bf".into(), Some(at("f."))));
    }

    #[test]
    fn nothing_is_shown_beyond_what_is_known_of_every_stripe() {
        // The second page ends at c, so there may be names between c and f.
        let pages = vec![page(&["b", "f"], None), page(&["a", "c"], Some("c."))];
        assert_eq!(of(pages, 9, "z"), ("abc".into(), Some(at("c."))));
        let pages = vec![page(&["a", "b"], Some("b.")), page(&["f", "g"], Some("g."))];
        assert_eq!(of(pages, 9, "z"), ("ab".into(), Some(at("b."))));
    }

    #[test]
    fn stripe_that_ended_early_holds_the_page_back() {
        // The second met only removed names up to c and returned none.
        let pages = vec![page(&["b", "f"], Some("z")), page(&[], Some("c"))];
        assert_eq!(of(pages, 9, "z"), ("b".into(), Some(at("c"))));
        let pages = vec![page(&[], Some("d")), page(&[], Some("c"))];
        assert_eq!(of(pages, 9, "z"), (String::new(), Some(at("c"))));
    }

    #[test]
    fn stripes_are_asked_for_little_more_than_their_share() {
        assert_eq!(share(5_000, 1), 5_000);
        assert_eq!(share(5_000, 4), 1_570);
        assert_eq!(share(1, 16), 1);
        assert_eq!(share(20, 2), 20);
    }

    #[test]
    fn pages_of_all_stripes_weigh_no_more_together_than_one_page_may() {
        let list = listing();
        for stripes in [1, 2, 7, 64] {
            let part = part(&list, stripes);
            assert!(part.weight_max * stripes <= list.weight_max, "{stripes}");
            assert!(part.weight_max > 0, "a page has an entry");
        }
        assert_eq!(part(&list, 1).weight_max, list.weight_max);
    }

    #[test]
    fn group_that_a_stripe_paused_inside_is_shown_and_passed() {
        let group = |next: Option<&str>| ListPage {
            entries: vec![name("a"), ListEntry::Prefix { name: "g/".into() }, name("h")],
            after: vec![at("a."), at("g0"), at("h.")],
            weight: 0,
            next: next.map(at),
            seen: 0,
        };
        let list = listing();
        let begin = RoutingKey::prefix(list.account, list.container, "g/", list.collation);
        let inside = |rest: &str| Bytes::from([&begin, rest.as_bytes()].concat());
        let beyond = RoutingKey::after_prefix(&begin).unwrap();
        let live = |next| {
            let mut page = group(next);
            page.after[0] = Bytes::copy_from_slice(&begin);
            page.after[1] = beyond.clone();
            page.after[2] = Bytes::from([&beyond, b"h.".as_slice()].concat());
            page
        };
        // The second met only removed names, and stopped among those of the group.
        let paused = |rest| ListPage { next: Some(inside(rest)), ..page(&[], None) };
        for pages in [
            vec![live(None), paused("m")],
            vec![paused("b"), live(None), paused("m")],
            vec![live(None), paused("m"), live(None)],
        ] {
            let page = one_page(pages, &list, None);
            let is_group = |entry: &ListEntry| matches!(entry, ListEntry::Prefix { .. });
            assert_eq!(page.entries.iter().filter(|entry| is_group(entry)).count(), 1);
            assert_eq!((page.entries.len(), page.next), (2, Some(beyond.clone())));
        }
        // It stopped before the group: there may be names between.
        let before = begin.slice(..begin.len() - 1);
        let early = ListPage { next: Some(before.clone()), ..page(&[], None) };
        let page = one_page(vec![live(None), early], &list, None);
        assert_eq!((page.entries.len(), page.next), (0, Some(before)));
    }

    #[test]
    fn a_group_is_shown_once_and_counts_for_all_stripes() {
        let group = |next| page(&["g"], next);
        assert_eq!(of(vec![group(None), group(None)], 5, "z"), ("g".into(), None));
        // It goes on beyond the range: not to be met again from there.
        let pages = vec![group(Some("zz")), page(&["a"], Some("z"))];
        assert_eq!(of(pages, 5, "z"), ("ag".into(), Some(at("zz"))));
        // It is all the rest of what is asked for.
        let pages = vec![group(None), page(&["a"], Some("z"))];
        assert_eq!(of(pages, 5, "z"), ("ag".into(), None));
    }
}
