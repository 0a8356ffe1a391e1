use bytes::Bytes;

use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::index::engine::answers::{Answers, KeptAnswer};
use crate::index::engine::log::manifest::{Link, Manifest, RunEntry};
use crate::index::engine::log::record::{Batch, BatchBuilder, HEADER_LEN, Header, Kind};
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::rpc::NodeIdentity;
use crate::types::ByteLen;
use crate::types::Crc32c;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Incarnation;
use crate::types::Location;
use crate::types::NodeId;
use crate::types::PartitionId;
use crate::types::Sequence;
use crate::types::Timestamp;

fn commits() -> Vec<RowBatch> {
    let mut first = RowBatch::default();
    first.put(Family::Main, "key", "value");
    first.delete(Family::Garbage, "gone");
    let mut second = RowBatch::default();
    second.put(Family::Staged, "k", "");
    vec![first, second]
}

fn batch() -> Bytes {
    let mut builder = BatchBuilder::new(Sequence::new(7), 0);
    for commit in commits() {
        builder.push(&commit);
    }
    builder.finish(Timestamp::from_ticks(0x0102_0304)).unwrap()
}

fn manifest() -> Manifest {
    let footer = Location {
        extent: ExtentId::new(300),
        offset: ExtentOffset::new(5000),
        len: ByteLen::new(90),
        crc: Crc32c::new(0xDEAD_BEEF),
    };
    Manifest {
        partition: PartitionId::new(1),
        epoch: Epoch::new(2),
        previous: Some(Link { extent: ExtentId::new(9), end: 1000 }),
        flushed: Sequence::new(6),
        time: Timestamp::from_ticks(128),
        runs: vec![RunEntry { family: 2, footer, rows: 3, bytes: 5100 }],
        answers: Answers::default(),
    }
}

fn answered(node: u64) -> KeptAnswer {
    let process = NodeIdentity { node: NodeId::new(node), incarnation: Incarnation::new(2) };
    let id = WriteId { process, number: 5, settled: 3, is_repeated: false };
    KeptAnswer::of(&id, &Ok(WriteReply::Done)).unwrap()
}

fn answered_batch() -> Bytes {
    let mut builder = BatchBuilder::new(Sequence::new(7), 0);
    for commit in commits() {
        builder.push(&commit);
    }
    builder.finish_with(Timestamp::from_ticks(0x0102_0304), &[answered(300)]).unwrap()
}

fn answered_manifest() -> Manifest {
    let mut answers = Answers::default();
    [1, 300].into_iter().for_each(|node| answers.keep(answered(node)));
    Manifest { answers, ..manifest() }
}

/// A record of each kind.
fn records() -> [Bytes; 4] {
    let manifests = [manifest(), answered_manifest()].map(|manifest| manifest.encode().unwrap());
    let [manifest, answered] = manifests;
    [batch(), manifest, answered_batch(), answered]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn batch_record_has_golden_bytes() {
    let golden = concat!(
        "01",
        "00",
        "0000",
        "2b000000",
        "e283496c",
        "dc500723",
        "0700000000000000",
        "0403020100000000",
        "02000000",
        "02",
        "00",
        "03",
        "6b6579",
        "05",
        "76616c7565",
        "84",
        "04",
        "676f6e65",
        "01",
        "02",
        "01",
        "6b",
        "00",
    );
    assert_eq!(hex(&batch()), golden);
}

#[test]
fn manifest_record_has_golden_bytes() {
    let golden = concat!(
        "01",
        "01",
        "0000",
        "18000000",
        "bc2be4c4",
        "04af53a8",
        "01",
        "02",
        "01",
        "09",
        "e807",
        "06",
        "8001",
        "01",
        "02",
        "ac02",
        "8827",
        "5a",
        "effdb6f50d",
        "03",
        "ec27",
    );
    assert_eq!(hex(&manifest().encode().unwrap()), golden);
}

/// After the body of the record without answers.
#[test]
fn answers_have_golden_bytes() {
    let body = |record: &Bytes| hex(&record[HEADER_LEN..]);
    let record = answered_batch();
    assert_eq!(record[1], 2);
    // Process, number, settled, the answer's length, the answer; the length of all that.
    let answers = concat!("01", "ac0202", "05", "03", "02", "000f", "09000000");
    assert_eq!(body(&record), [&body(&batch()), answers].concat());
    let record = answered_manifest().encode().unwrap();
    assert_eq!(record[1], 3);
    // Of each process: settled, the answers by number.
    let answers =
        concat!("02", "0102", "03", "01", "05", "02000f", "ac0202", "03", "01", "05", "02000f");
    assert_eq!(body(&record), [&body(&manifest().encode().unwrap()), answers].concat());
}

#[test]
fn records_round_trip() {
    let record = batch();
    let header = Header::decode(&record).unwrap();
    assert_eq!(header.kind, Kind::Batch);
    let body = record.slice(HEADER_LEN..);
    assert!(header.matches(&body));
    let decoded = Batch::decode(&body).unwrap();
    assert_eq!((decoded.first, decoded.last()), (Sequence::new(7), Sequence::new(8)));
    assert_eq!(decoded.time, Timestamp::from_ticks(0x0102_0304));
    let rows: Vec<_> = decoded.rows().unwrap().into_iter().map(|commit| commit.changes).collect();
    assert_eq!(rows, commits().into_iter().map(|commit| commit.changes).collect::<Vec<_>>());

    let record = manifest().encode().unwrap();
    assert_eq!(Header::decode(&record).unwrap().kind, Kind::Manifest);
    assert_eq!(Manifest::decode(&record[HEADER_LEN..]), Some(manifest()));

    let record = answered_batch();
    assert_eq!(Header::decode(&record).unwrap().kind, Kind::AnsweredBatch);
    let decoded = Batch::decode_answered(&record.slice(HEADER_LEN..)).unwrap();
    assert_eq!(decoded.rows().unwrap().len(), 2);
    assert_eq!(decoded.answers, [answered(300)]);
    assert_eq!(decoded.answers[0].reply(), Ok(WriteReply::Done));
    let record = answered_manifest().encode().unwrap();
    assert_eq!(Header::decode(&record).unwrap().kind, Kind::AnsweredManifest);
    assert_eq!(Manifest::decode_answered(&record[HEADER_LEN..]), Some(answered_manifest()));
}

#[test]
fn records_cut_short_are_refused() {
    for record in records() {
        for len in 0..record.len() {
            let cut = record.slice(..len);
            match Header::decode(&cut) {
                None => assert!(len < HEADER_LEN),
                Some(header) => assert!(!header.matches(&cut[HEADER_LEN..])),
            }
            // Nothing panics even without the checksum, and no prefix passes as a whole body.
            if let Some(body) = cut.get(HEADER_LEN..) {
                let body = Bytes::copy_from_slice(body);
                let kind = Header::decode(&record).unwrap().kind;
                let has_passed = match kind {
                    Kind::Batch => Batch::decode(&body).and_then(|batch| batch.rows()).is_some(),
                    Kind::AnsweredBatch => {
                        Batch::decode_answered(&body).and_then(|batch| batch.rows()).is_some()
                    }
                    Kind::Manifest => Manifest::decode(&body) == Some(manifest()),
                    Kind::AnsweredManifest => {
                        Manifest::decode_answered(&body) == Some(answered_manifest())
                    }
                };
                assert!(!has_passed, "{kind:?} cut to {len}");
            }
        }
    }
}

#[test]
fn records_with_a_flipped_bit_are_refused() {
    for record in records() {
        for bit in 0..record.len() * 8 {
            let mut bytes = record.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let intact = Header::decode(&bytes).is_some_and(|h| h.matches(&bytes[HEADER_LEN..]));
            assert!(!intact, "bit {bit}");
            // What a checksum that happens to match would let through does no harm either.
            let body = Bytes::copy_from_slice(&bytes[HEADER_LEN..]);
            drop(Batch::decode(&body).map(|batch| batch.rows()));
            drop(Manifest::decode(&body));
            drop(Batch::decode_answered(&body).map(|batch| batch.rows()));
            drop(Manifest::decode_answered(&body));
        }
    }
}
