//! Pages of the stripes of one range, as one page.

use bytes::Bytes;

use crate::index::ListEntry;
use crate::index::ListPage;

/// Entries to ask each of so many stripes for, when `limit` are wanted of all together: names are dealt out evenly, so a
/// little more than its share of each will mostly do, and where it does not, the listing goes on.
pub(super) fn share(limit: usize, stripes: usize) -> usize {
    if stripes < 2 {
        return limit;
    }
    let even = limit.div_ceil(stripes);
    (even + even / 4 + SLACK).min(limit)
}

const SLACK: usize = 8;

/// At most `limit` entries of pages that the stripes of a range, which ends at `high`, gave for the same question, with at
/// least one when there is any.
///
/// An entry covers the names up to where the listing goes on after it; a group, those of other stripes too. Where a page ends
/// inside the range nothing is known of that stripe from there on: the page of all goes no further.
pub(super) fn one_page(pages: Vec<ListPage>, limit: usize, high: Option<&Bytes>) -> ListPage {
    let is_inside = |next: &&Bytes| high.is_none_or(|high| *next < high);
    let known = pages.iter().filter_map(|page| page.next.as_ref()).filter(is_inside).min().cloned();
    // Where all have ended, one may have met a group that goes on beyond the range, even to the end of what is asked for.
    let ends: Option<Vec<Bytes>> = pages.iter().map(|page| page.next.clone()).collect();
    let end = ends.and_then(|ends| ends.into_iter().max());
    let seen = pages.iter().map(|page| page.seen).sum();
    let weight = pages.iter().map(|page| page.weight).sum();
    let mut all: Vec<(Bytes, ListEntry)> =
        pages.into_iter().flat_map(|page| page.after.into_iter().zip(page.entries)).collect();
    // Stable, and stripes are sorted: merging them is what this sort does.
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.dedup_by(|(a, _), (b, _)| a == b);
    if let Some(known) = &known {
        all.truncate(all.partition_point(|(after, _)| after <= known));
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let page = one_page(pages, limit, Some(&at(high)));
        assert_eq!(page.entries.len(), page.after.len());
        let names = page.entries.into_iter().map(|entry| match entry {
            ListEntry::Uncommitted { name } => name,
            ListEntry::Blob { .. } | ListEntry::Prefix { .. } => panic!("only names"),
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
        // The second has told only up to c: there may be names between c and f.
        let pages = vec![page(&["b", "f"], None), page(&["a", "c"], Some("c."))];
        assert_eq!(of(pages, 9, "z"), ("abc".into(), Some(at("c."))));
        let pages = vec![page(&["a", "b"], Some("b.")), page(&["f", "g"], Some("g."))];
        assert_eq!(of(pages, 9, "z"), ("ab".into(), Some(at("b."))));
    }

    #[test]
    fn stripe_that_ended_early_holds_the_page_back() {
        // The second met only removed names up to c and told of none.
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
