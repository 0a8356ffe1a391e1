use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::{Capacity, ExtentKind};
use crate::index::engine::run::block::{Block, BlockBuilder};
use crate::index::engine::run::filter::{Filter, FilterBuilder};
use crate::index::engine::run::footer::Footer;
use crate::index::engine::run::writer::{RunTarget, RunWriter};
use crate::index::engine::testing::MemoryCapacity;
use crate::index::rows::Family;
use crate::types::ByteLen;
use crate::types::Crc32c;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;
use crate::types::Stripe;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn small() -> Bytes {
    let mut builder = BlockBuilder::default();
    builder.push(b"name-1", Some(b"one"));
    builder.push(b"name-2", None);
    builder.push(b"other", Some(b""));
    builder.finish()
}

/// Enough rows for several restarts, alike enough to be packed.
fn large() -> (Bytes, Vec<(Bytes, Option<Bytes>)>) {
    let rows: Vec<(Bytes, Option<Bytes>)> = (0..100)
        .map(|number| {
            let key = Bytes::from(format!("folder/name-{:03}", number * 2));
            (key, (number % 7 != 0).then(|| format!("value {number}").into()))
        })
        .collect();
    let mut builder = BlockBuilder::default();
    for (key, value) in &rows {
        builder.push(key, value.as_deref());
    }
    (builder.finish(), rows)
}

fn walk(block: &Block, from: &[u8]) -> Option<Vec<(Bytes, Option<Bytes>)>> {
    let mut iter = block.iter_from(from)?;
    let mut rows = Vec::new();
    while let Some(row) = iter.next_row()? {
        rows.push(row);
    }
    Some(rows)
}

fn footer() -> Footer {
    let part = |offset| Location {
        extent: ExtentId::new(300),
        offset,
        len: ByteLen::new(200),
        crc: Crc32c::new(1),
    };
    Footer {
        family: 3,
        rows: 2,
        tombstones: 1,
        first: Bytes::from_static(b"a"),
        last: Bytes::from_static(b"bc"),
        index: part(ExtentOffset::new(1000)),
        filter: part(ExtentOffset::new(2000)),
        stripe: None,
    }
}

#[test]
fn block_has_golden_bytes() {
    let golden = concat!(
        "00",
        "20000000",
        "00",
        "06",
        "04",
        "6e616d652d31",
        "6f6e65",
        "05",
        "01",
        "00",
        "32",
        "00",
        "05",
        "01",
        "6f74686572",
        "00000000",
        "01000000",
    );
    assert_eq!(hex(&small()), golden);
}

#[test]
fn footer_has_golden_bytes() {
    let fields = concat!(
        "03", "02", "01", "0161", "026263", "ac02", "e807", "c801", "01", "ac02", "d00f", "c801",
        "01",
    );
    assert_eq!(hex(&footer().encode()), format!("02{fields}00"));
    let striped = Footer { stripe: Stripe::new(3, 9), ..footer() };
    assert_eq!(hex(&striped.encode()), format!("02{fields}010309"));
    assert_eq!(Footer::decode(&striped.encode()), Some(striped.clone()));
    let mut malformed = striped.encode().to_vec();
    let number = malformed.len() - 2;
    malformed[number] = 9;
    assert_eq!(Footer::decode(&malformed), None, "no tenth stripe of nine");
    let mut first_version = footer().encode().to_vec();
    first_version[0] = 1;
    first_version.pop();
    assert_eq!(hex(&first_version), format!("01{fields}"));
    assert_eq!(Footer::decode(&first_version), Some(footer()));
}

#[test]
fn filter_has_golden_bytes() {
    let mut builder = FilterBuilder::new(6);
    builder.insert(b"one");
    builder.insert(b"two");
    assert_eq!(hex(&builder.finish()), "2884c01006420910");
}

#[test]
fn block_finds_rows_from_any_key() {
    let (stored, rows) = large();
    assert_eq!(stored[0], 1, "packed");
    let block = Block::decode(&stored).unwrap();
    assert_eq!(walk(&block, b"").unwrap(), rows);
    for number in 0..201 {
        let key = format!("folder/name-{number:03}");
        let at = rows.partition_point(|(other, _)| other.as_ref() < key.as_bytes());
        assert_eq!(walk(&block, key.as_bytes()).unwrap(), rows[at..]);
        let found = block.get(key.as_bytes()).unwrap();
        let expected = rows.iter().find(|(other, _)| other == key.as_bytes());
        assert_eq!(found, expected.map(|(_, value)| value.clone()));
    }
}

#[test]
fn block_of_no_rows_is_empty() {
    let block = Block::decode(&BlockBuilder::default().finish()).unwrap();
    assert_eq!(walk(&block, b"").unwrap(), []);
    assert_eq!(block.get(b"a").unwrap(), None);
}

#[test]
fn blocks_cut_short_or_flipped_do_no_harm() {
    for stored in [small(), large().0] {
        for len in 0..stored.len() {
            assert!(Block::decode(&stored.slice(..len)).is_none(), "cut to {len}");
        }
        for bit in 0..stored.len() * 8 {
            let mut bytes = stored.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Some(block) = Block::decode(&bytes.into()) {
                drop(walk(&block, b"folder/name-100"));
                drop(block.get(b"folder/name-100"));
            }
        }
    }
}

#[test]
fn footers_cut_short_or_flipped_do_no_harm() {
    let stored = footer().encode();
    assert_eq!(Footer::decode(&stored), Some(footer()));
    for len in 0..stored.len() {
        assert_eq!(Footer::decode(&stored[..len]), None);
    }
    for bit in 0..stored.len() * 8 {
        let mut bytes = stored.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(Footer::decode(&bytes), Some(footer()));
    }
}

#[test]
fn filter_knows_its_keys_and_few_others() {
    let mut builder = FilterBuilder::new(10_000);
    for number in 0..10_000 {
        builder.insert(format!("key {number}").as_bytes());
    }
    let filter = Filter::new(builder.finish());
    assert!((0..10_000).all(|number| filter.may_contain(format!("key {number}").as_bytes())));
    let wrong = (10_000..20_000).filter(|n| filter.may_contain(format!("key {n}").as_bytes()));
    assert!(wrong.count() < 200, "about 80 of 10,000 are expected");
    assert!(!Filter::new(Bytes::new()).may_contain(b"a"));
}

/// 8 KiB that cannot be packed.
fn noise(seed: u64) -> Bytes {
    let mut state = seed + 1;
    let words = (0..1_024).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.collect()
}

/// Found by splits of ten million rows: the log's syncs waited for a compaction that had all of its
/// run to write at once.
#[tokio::test]
async fn long_runs_are_made_durable_as_they_are_written() {
    let capacity = Arc::new(MemoryCapacity::default());
    let (extent, epoch) = (ExtentId::new(1), Epoch::new(1));
    capacity.create(extent, ExtentKind::Run, epoch).await.unwrap();
    let target = RunTarget { extent, epoch, family: Family::Main, stripe: None, rows_max: 4_000 };
    let mut writer = RunWriter::new(Arc::clone(&capacity) as Arc<dyn Capacity>, target);
    for number in 0..4_000 {
        let key = Bytes::from(format!("key{number:05}"));
        writer.push(key, Some(noise(number))).await.unwrap();
    }
    let run = writer.finish().await.unwrap().unwrap();
    assert!(run.bytes > 30 << 20, "{} bytes", run.bytes);
    assert!(capacity.most_flushed() < 9 << 20, "{} bytes at once", capacity.most_flushed());
}
