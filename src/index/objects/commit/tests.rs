use bytes::Bytes;

use super::*;
use crate::index::objects::values::Content;

fn id(number: u8) -> BlockId {
    BlockId::from_bytes(&[number]).unwrap()
}

fn named(numbers: &[u8]) -> Vec<BlockListEntry> {
    let entry = |number: &u8| BlockListEntry { source: BlockSource::Latest, id: id(*number) };
    numbers.iter().map(entry).collect()
}

fn entry(number: u8, len: u64) -> Entry {
    let content = Content::Inline(Bytes::from_static(b"four"));
    Entry::new(id(number), len, Crc64::EMPTY, content)
}

fn broken(checked: Result<(), Violation>) -> bool {
    checked.is_err_and(|violation| violation.invariant == Invariant::ExactBlocks)
}

#[test]
fn blocks_that_are_not_those_of_the_list_are_found() {
    let two = [entry(1, 4), entry(2, 4)];
    assert_eq!(check_entries(&named(&[1, 2]), &two), Ok(()));
    for list in [&[1][..], &[2, 1], &[1, 2, 3], &[]] {
        assert!(broken(check_entries(&named(list), &two)), "{list:?}");
    }
    assert!(broken(check_entries(&named(&[1]), &[entry(1, 5)])), "longer than its bytes");
}

#[test]
fn layouts_without_all_blocks_are_found() {
    let list = named(&[1, 2, 3]);
    let segments = |starts: &[(u64, u32)]| Layout::Segments {
        generation: 1,
        directory: starts
            .iter()
            .map(|(start, n)| SegmentStart { start: *start, entries: *n })
            .collect(),
    };
    assert_eq!(check_layout(&segments(&[(0, 2), (8, 1)]), list.len(), 12), Ok(()));
    assert!(broken(check_layout(&segments(&[(0, 2)]), list.len(), 12)), "a segment is missing");
    assert!(broken(check_layout(&segments(&[(0, 2), (13, 1)]), list.len(), 12)), "past the end");
    assert!(broken(check_layout(&Layout::Blocks(vec![entry(1, 4)]), list.len(), 12)));
}
