//! The parts in which a blob was uploaded, page by page.

use super::support::*;
use super::uploads::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::types::*;

fn page(p: &Partition, key: &BlobKey, after: u32, limit: u32) -> BlobPartsView {
    let (key, guard) = (key.clone(), Guard::default());
    let read = ReadBlobParts { key, revision: Revision::Current, guard, after, limit };
    let reply = p.read(&Read::BlobParts(read)).unwrap();
    let ReadReply::BlobParts(view) = reply else { panic!("{reply:?}") };
    *view
}

fn numbers(view: &BlobPartsView) -> Vec<u32> {
    view.parts.iter().map(|part| part.number).collect()
}

#[test]
fn blob_of_one_piece_or_of_blocks_has_no_parts() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"whole"))));
    let view = page(&p, &a, 0, 10);
    assert_eq!((view.total, numbers(&view), view.more), (None, vec![], false));
    assert_eq!(view.record.len, 5);
}

#[test]
fn pages_of_parts_miss_none_and_repeat_none() {
    let mut p = partition();
    let a = key("a");
    // With gaps, in the main row and in segments.
    for count in [3u32, 64, 65, 2_500] {
        p.must(&start(&a, id(1)));
        let all: Vec<u32> = (1..=count).map(|n| n * 3).collect();
        for n in &all {
            p.must(&Write::StagePart(part(&a, id(1), *n, loc(u64::from(*n)))));
        }
        let list: Vec<NamedPart> = all.iter().map(|n| named(*n, loc(u64::from(*n)))).collect();
        p.must(&complete(&a, id(1), &list));
        p.must(&Write::ExpireStaged { key: RoutingKey::blob(&a), before: p.now.next() });
        let none = page(&p, &a, 0, 0);
        assert_eq!((none.total, numbers(&none), none.more), (Some(count), vec![], false));
        for limit in [1_000, count, count + 1, 7.max(count / 3)] {
            let (mut after, mut seen) = (0, Vec::new());
            loop {
                let view = page(&p, &a, after, limit);
                assert_eq!(view.total, Some(count));
                assert!(view.parts.iter().all(|part| part.len == LONG));
                // The MD5 of the part, and its CRC-64.
                assert!(view.parts.iter().all(|part| part.checksums.len() == 2));
                seen.extend(numbers(&view));
                if !view.more {
                    break;
                }
                assert_eq!(view.parts.len(), usize::try_from(limit).unwrap());
                after = *seen.last().unwrap();
            }
            assert_eq!(seen, all, "{limit} of {count}");
        }
        assert_eq!(numbers(&page(&p, &a, 4, 2)), [6, 9]);
        assert_eq!(numbers(&page(&p, &a, count * 3, 2)), [0; 0]);
    }
}
