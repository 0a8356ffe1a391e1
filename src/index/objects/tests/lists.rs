//! List Blobs.

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::types::*;

fn filled(names: &[&str]) -> Partition {
    let mut p = partition();
    for name in names {
        p.must(&Write::PutBlob(put(&key(name), inline(b"1"))));
    }
    p
}

fn with(change: impl Fn(&mut ListBlobs)) -> ListBlobs {
    let mut list = list();
    change(&mut list);
    list
}

#[test]
fn names_come_in_utf16_order() {
    // U+FFFD is one unit above the surrogates of U+1F600; UTF-8 bytes order them the other way.
    let p = filled(&["\u{FFFD}", "\u{1F600}", "a", "a\u{1}", "Z", "ä"]);
    assert_eq!(p.list_all(&list()), ["Z", "a", "a\u{1}", "ä", "\u{1F600}", "\u{FFFD}"]);
}

#[test]
fn delimiter_folds_groups_and_skips_them() {
    let p = filled(&["a", "a/1", "a/2", "a/b/1", "a0", "b/", "b/1", "c//d"]);
    let delimiter = |prefix: &str, delimiter: &str| {
        with(|list| {
            list.prefix = prefix.to_owned();
            list.delimiter = Some(delimiter.to_owned());
            list.limit = 2;
        })
    };
    assert_eq!(p.list_all(&delimiter("", "/")), ["a", "a/>", "a0", "b/>", "c/>"]);
    assert_eq!(p.list_all(&delimiter("a/", "/")), ["a/1", "a/2", "a/b/>"]);
    assert_eq!(p.list_all(&delimiter("b/", "/")), ["b/", "b/1"]);
    assert_eq!(p.list_all(&delimiter("a", "/")), ["a", "a/>", "a0"]);
    assert_eq!(p.list_all(&delimiter("", "//")).last().unwrap(), "c//>");
    assert_eq!(
        p.list_all(&delimiter("", "/b/")),
        ["a", "a/1", "a/2", "a/b/>", "a0", "b/", "b/1", "c//d"]
    );
    assert_eq!(p.list_all(&delimiter("", "")).len(), 8);
}

#[test]
fn group_is_skipped_by_a_seek() {
    #[derive(Debug)]
    struct Counted(crate::index::objects::fake::Memory, std::sync::atomic::AtomicUsize);
    #[async_trait::async_trait]
    impl crate::index::rows::Rows for Counted {
        async fn get(
            &self,
            family: crate::index::rows::Family,
            key: &[u8],
        ) -> Result<Option<bytes::Bytes>, Error> {
            self.0.get(family, key).await
        }
        async fn scan(
            &self,
            family: crate::index::rows::Family,
            from: &[u8],
            to: Option<&[u8]>,
            limit: usize,
        ) -> Result<crate::index::rows::Scanned, Error> {
            let found = self.0.scan(family, from, to, limit).await?;
            self.1.fetch_add(found.rows.len(), std::sync::atomic::Ordering::Relaxed);
            Ok(found)
        }
    }
    use crate::index::rows::Machine;
    use futures_util::FutureExt;
    let mut p = partition();
    for n in 0..3_000 {
        p.must(&Write::PutBlob(put(&key(&format!("{}/{n}", n % 2)), inline(b"1"))));
    }
    let range = p.memory.range.clone();
    let view = Counted(p.memory, Default::default());
    let list = with(|list| list.delimiter = Some("/".to_owned()));
    let reply = crate::index::objects::Objects
        .answer(&view, &range, &Read::Blobs(list), Timestamp::ZERO)
        .now_or_never()
        .unwrap();
    let ReadReply::Blobs(page) = reply.unwrap() else { panic!("not a page") };
    assert_eq!(page.entries.iter().map(show).collect::<Vec<_>>(), ["0/>", "1/>"]);
    assert!(page.next.is_none());
    let read = view.1.into_inner();
    assert!(read < 100, "{read} rows read");
}

#[test]
fn page_of_heavy_entries_ends_before_its_limit_and_goes_on_behind_them() {
    let mut p = partition();
    let metadata = Metadata::new(vec![("k".to_owned(), "v".repeat(8_000))]).unwrap();
    for number in 0..1_200 {
        let mut heavy = put(&key(&format!("{number:04}")), inline(b"1"));
        heavy.metadata = metadata.clone();
        p.must(&Write::PutBlob(heavy));
    }
    let (mut from, mut pages, mut found) = (None, 0, 0);
    loop {
        let list = with(|list| (list.from, list.limit) = (from.clone(), 5_000));
        let ReadReply::Blobs(page) = p.read(&Read::Blobs(list)).unwrap() else {
            panic!("not a page")
        };
        assert_eq!(page.entries.len(), page.after.len());
        assert!(page.weight <= PAGE_WEIGHT_MAX + 16_384, "{}", page.weight);
        (pages, found) = (pages + 1, found + page.entries.len());
        from = page.next;
        if from.is_none() {
            break;
        }
        assert_eq!(page.after.last(), from.as_ref());
    }
    assert_eq!((pages, found), (3, 1_200));
    // Each of several stripes is given a part of the weight.
    let part = with(|list| (list.limit, list.weight_max) = (5_000, PAGE_WEIGHT_MAX / 4));
    let ReadReply::Blobs(page) = p.read(&Read::Blobs(part)).unwrap() else { panic!("not a page") };
    assert!(page.weight <= PAGE_WEIGHT_MAX / 4 + 16_384, "{}", page.weight);
    assert_eq!(p.list_all(&with(|list| list.limit = 5_000)).len(), 1_200);
}

#[test]
fn start_from_is_inclusive() {
    let p = filled(&["a", "b", "c/1", "c/2", "d"]);
    let from = |name: &str| with(|list| list.start_from = Some(name.to_owned()));
    assert_eq!(p.list_all(&from("b")), ["b", "c/1", "c/2", "d"]);
    assert_eq!(p.list_all(&from("bb")), ["c/1", "c/2", "d"]);
    assert_eq!(
        p.list_all(&with(|list| {
            list.start_from = Some("c/2".to_owned());
            list.delimiter = Some("/".to_owned());
        })),
        ["c/>", "d"]
    );
    assert_eq!(
        p.list_all(&with(|list| {
            list.start_from = Some("d".to_owned());
            list.prefix = "c".to_owned();
        })),
        Vec::<String>::new()
    );
}

#[test]
fn end_before_is_exclusive() {
    let p = filled(&["a", "b", "c/1", "c/2", "d"]);
    let before = |name: &str| with(|list| list.end_before = Some(name.to_owned()));
    assert_eq!(p.list_all(&before("c/2")), ["a", "b", "c/1"]);
    assert_eq!(p.list_all(&before("c/11")), ["a", "b", "c/1"]);
    assert_eq!(p.list_all(&before("a")), Vec::<String>::new());
    assert_eq!(p.list_all(&before("z")), ["a", "b", "c/1", "c/2", "d"]);
    let between = |prefix: &str, from: &str, to: &str| {
        with(|list| {
            list.prefix = prefix.to_owned();
            (list.start_from, list.end_before) = (Some(from.to_owned()), Some(to.to_owned()));
        })
    };
    assert_eq!(p.list_all(&between("", "b", "d")), ["b", "c/1", "c/2"]);
    assert_eq!(p.list_all(&between("c", "a", "c/2")), ["c/1"]);
    assert_eq!(p.list_all(&between("", "d", "b")), Vec::<String>::new());
    // A group begins before the end.
    let mut folded = before("c/2");
    folded.delimiter = Some("/".to_owned());
    for limit in 1..5 {
        folded.limit = limit;
        assert_eq!(p.list_all(&folded), ["a", "b", "c/>"]);
    }
}

#[test]
fn staged_names_show_when_asked_for() {
    let mut p = filled(&["b", "d"]);
    for name in ["a", "b", "c/1", "c/2", "e"] {
        for id in ["1", "2"] {
            p.must(&stage(&key(name), id, inline(b"1")));
        }
    }
    assert_eq!(p.list_all(&list()), ["b", "d"]);
    let mut all = with(|list| list.uncommitted = true);
    for limit in 1..7 {
        all.limit = limit;
        assert_eq!(p.list_all(&all), ["a?", "b", "c/1?", "c/2?", "d", "e?"]);
        let mut folded = all.clone();
        folded.delimiter = Some("/".to_owned());
        assert_eq!(p.list_all(&folded), ["a?", "b", "c/>", "d", "e?"]);
    }
}

#[test]
fn last_page_that_is_full_has_no_next() {
    let p = filled(&["a", "b", "c"]);
    let ReadReply::Blobs(page) = p.read(&Read::Blobs(list())).unwrap() else { panic!("no page") };
    assert_eq!((page.entries.len(), page.next), (3, None));
}

#[test]
fn page_ends_at_the_partition_and_goes_on_in_the_next() {
    let border =
        RoutingKey::from_bytes(RoutingKey::prefix(ACCOUNT, CONTAINER, "c/5", Collation::Utf16));
    let mut low = Partition::new(KeyRange::new(RoutingKey::min(), Some(border.clone())));
    for name in ["a", "c/1", "c/2"] {
        low.must(&Write::PutBlob(put(&key(name), inline(b"1"))));
    }
    let page = |list: &ListBlobs| {
        let ReadReply::Blobs(page) = low.read(&Read::Blobs(list.clone())).unwrap() else {
            panic!("no page")
        };
        (page.entries.iter().map(show).collect::<Vec<_>>(), page.next)
    };
    let flat = with(|list| list.limit = 10);
    let border = border.as_bytes().clone();
    assert_eq!(page(&flat), (vec!["a".into(), "c/1".into(), "c/2".into()], Some(border.clone())));
    // The group goes on beyond the border: the next page starts after it, so that it is not shown
    // twice.
    let folded = with(|list| list.delimiter = Some("/".to_owned()));
    let after = RoutingKey::prefix(ACCOUNT, CONTAINER, "c0", Collation::Utf16);
    assert_eq!(page(&folded), (vec!["a".into(), "c/>".into()], Some(after)));
    // Every name that starts so ends before the border: there is no need to ask further.
    let inside = with(|list| list.prefix = "c/1".to_owned());
    assert_eq!(page(&inside), (vec!["c/1".into()], None));
    let beyond = with(|list| list.prefix = "c/".to_owned());
    assert_eq!(page(&beyond), (vec!["c/1".into(), "c/2".into()], Some(border)));
    // The whole of what is wanted is one group: nothing can follow it.
    let group = with(|list| {
        list.prefix = "c".to_owned();
        list.delimiter = Some("c".to_owned());
    });
    assert_eq!(page(&group).0, ["c/1", "c/2"]);
}
