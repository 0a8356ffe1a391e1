//! Copies by reference: which content is marked, returned and left as garbage.

use super::support::*;
use crate::capacity::part_of_frames;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::types::Revision;

fn share(p: &mut Partition, name: &str, range: Option<std::ops::Range<u64>>) -> SharedBlob {
    let share =
        Share { key: key(name), revision: Revision::Current, guard: Guard::default(), range };
    let WriteReply::Shared(shared) = p.must(&Write::Share(Box::new(share))) else {
        panic!("not shared")
    };
    *shared
}

fn copy(p: &mut Partition, from: &str, to: &str) {
    let shared = share(p, from, None);
    p.must(&copied(shared, to));
}

#[test]
fn shared_bytes_are_no_garbage_whoever_goes_first() {
    for first in ["a", "b"] {
        let mut p = partition();
        let at = [location(1, 0, 10), location(1, 10, 10)];
        p.must(&Write::PutBlob(put(&key("a"), stored(&at))));
        copy(&mut p, "a", "b");
        p.must(&delete(&key(first)));
        assert_eq!(references(&p), at, "the other one names them still");
        p.must(&delete(&key(if first == "a" { "b" } else { "a" })));
        assert!(references(&p).is_empty() && p.garbage().is_empty(), "they are left to the audit");
    }
}

#[test]
fn source_that_was_never_copied_leaves_garbage() {
    let mut p = partition();
    p.must(&Write::PutBlob(put(&key("a"), stored(&[location(1, 0, 10)]))));
    let whole = share(&mut p, "a", Some(0..9));
    assert_eq!(whole.content, None, "the range cuts the content");
    p.must(&delete(&key("a")));
    assert_eq!(p.garbage(), [location(1, 0, 10)]);
}

#[test]
fn block_named_twice_is_marked_twice_though_one_is_wanted() {
    let mut p = partition();
    let a = key("a");
    let at = [location(1, 0, 10), location(2, 0, 10)];
    p.must(&stage(&a, "1", stored(&at[..1])));
    p.must(&stage(&a, "2", stored(&at[1..])));
    p.must(&Write::CommitBlocks(commit(&a, &["1", "2", "1"])));
    let shared = share(&mut p, "a", Some(0..10)).content.unwrap();
    let pieces: Vec<_> = shared.pieces().collect();
    assert_eq!(pieces, [&NewContent::Shared(at[..1].to_vec())]);
    p.must(&delete(&a));
    assert!(p.garbage().is_empty());
}

#[test]
fn part_of_a_long_layout_is_returned_and_all_of_it_marked() {
    let mut p = partition();
    let a = key("a");
    let ids: Vec<String> = (0..2_500).map(|n| format!("{n:04}")).collect();
    for (n, id) in (0..).zip(&ids) {
        p.must(&stage(&a, id, stored(&[location(1, n * 10, 10)])));
    }
    let list: Vec<&str> = ids.iter().map(String::as_str).collect();
    p.must(&Write::CommitBlocks(commit(&a, &list)));
    let before = p.blob(&read(&a)).unwrap().record;
    let ranged = share(&mut p, "a", Some(9_990..10_020)).content.unwrap();
    let expected = [999, 1_000, 1_001].map(|n| NewContent::Shared(vec![location(1, n * 10, 10)]));
    assert_eq!(ranged.pieces().cloned().collect::<Vec<_>>(), expected);
    assert_eq!(share(&mut p, "a", Some(9_995..10_020)).content, None);
    assert_eq!(share(&mut p, "a", Some(24_990..25_000)).content.unwrap().pieces().count(), 1);
    assert_eq!(p.blob(&read(&a)).unwrap().record, before, "clients see no change");
    copy(&mut p, "a", "b");
    assert_eq!(p.block_list(&key("b")).unwrap().committed.len(), 2_500);
    p.must(&delete(&a));
    assert!(p.garbage().is_empty());
    assert_eq!(references(&p).len(), 2_500);
}

#[test]
fn copy_over_a_blob_drops_what_that_owned() {
    let mut p = partition();
    let (mine, other) = (location(1, 0, 10), location(2, 0, 10));
    p.must(&Write::PutBlob(put(&key("a"), stored(&[mine]))));
    p.must(&Write::PutBlob(put(&key("b"), stored(&[other]))));
    copy(&mut p, "a", "b");
    assert_eq!(p.garbage(), [other]);
    copy(&mut p, "b", "b");
    copy(&mut p, "b", "a");
    assert_eq!((p.garbage(), references(&p)), (vec![other], vec![mine, other]));
}

#[test]
fn inline_content_is_copied_and_nothing_marked() {
    let mut p = partition();
    p.must(&Write::PutBlob(put(&key("a"), inline(b"hello"))));
    copy(&mut p, "a", "b");
    let view = p.blob(&read(&key("b"))).unwrap();
    assert_eq!(view.pieces, [Piece::Inline(bytes::Bytes::from_static(b"hello"))]);
}

/// Blocks without bytes hold no offset of a range, but they are in the block list, which a copy
/// takes over.
#[test]
fn copy_of_a_whole_blob_has_its_empty_blocks() {
    let long: Vec<&str> = ["1", "2", "3"].into_iter().cycle().take(1_500).collect();
    for list in [&["1", "1"][..], &["1", "2", "1"], &["2", "1", "2"], &long] {
        let mut p = partition();
        p.must(&stage(&key("a"), "1", inline(b"")));
        p.must(&stage(&key("a"), "2", inline(b"hello")));
        p.must(&stage(&key("a"), "3", inline(b"")));
        p.must(&Write::CommitBlocks(commit(&key("a"), list)));
        copy(&mut p, "a", "b");
        let blocks = |name| p.block_list(&key(name)).unwrap().committed;
        assert_eq!(blocks("b"), blocks("a"));
    }
}

#[test]
fn range_of_whole_frames_is_returned_though_it_cuts_the_content() {
    const FRAME: u64 = 1 << 20;
    let mut p = partition();
    let at = [location(1, 0, 3 * FRAME), location(2, 0, 2 * FRAME + 5)];
    p.must(&Write::PutBlob(put(&key("a"), stored(&at))));
    let frames = |p: &mut Partition, range| {
        let shared = share(p, "a", Some(range));
        assert_eq!(shared.content, None);
        shared.frames.iter().map(|run| (run.extent.get(), run.len.get())).collect::<Vec<_>>()
    };
    assert_eq!(frames(&mut p, 1..FRAME), [], "the range cuts a frame");
    p.must(&delete(&key("a")));
    assert_eq!(p.garbage(), at, "nothing was marked");
    let mut p = partition();
    p.must(&Write::PutBlob(put(&key("a"), stored(&at))));
    let end = 5 * FRAME + 5;
    assert_eq!(frames(&mut p, FRAME..2 * FRAME), [(1, FRAME)]);
    assert_eq!(frames(&mut p, 2 * FRAME..4 * FRAME), [(1, FRAME), (2, FRAME)]);
    assert_eq!(frames(&mut p, 5 * FRAME..end), [(2, 5)]);
    assert_eq!(frames(&mut p, 4 * FRAME..end - 1), []);
    let second = share(&mut p, "a", Some(FRAME..2 * FRAME)).frames[0];
    let expected = part_of_frames(&at[0], &(FRAME..2 * FRAME)).unwrap();
    assert_eq!(second.offset, expected);
    assert!(second.offset > at[0].offset + FRAME, "frames have headers");
    p.must(&delete(&key("a")));
    assert!(p.garbage().is_empty(), "others may name frames of it");
}
