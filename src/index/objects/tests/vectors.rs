//! `api-spec/vectors/rows_format_2.json`: rows of append and page blobs, snapshots, leases, tiers,
//! tags, copies and encryption, byte by byte. What is on disk now must be readable for ever;
//! `rows.json` is what releases before wrote.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use super::support::*;
use crate::index::api::History;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::record::CopyRecord;
use crate::index::record::CopyStatus;
use crate::index::rows::Family;
use crate::types::*;

const ID: Uuid = Uuid::from_bytes(*b"0123456789abcdef");
const SECOND: Duration = Duration::from_secs(1);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect::<Vec<u8>>().into()
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    Tags::new(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()).unwrap()
}

fn lease(name: &str, action: LeaseAction) -> Write {
    Write::LeaseBlob(LeaseBlob { key: key(name), guard: Guard::default(), action })
}

fn pages(name: &str, range: std::ops::Range<u64>, content: Option<NewContent>) -> Write {
    let (key, guard, sequence) = (key(name), Guard::default(), SequenceBounds::default());
    Write::WritePages(WritePages { key, guard, sequence, range, content })
}

fn snapshot(name: &str, metadata: Option<Metadata>) -> Write {
    Write::SnapshotBlob(SnapshotBlob { key: key(name), guard: Guard::default(), metadata })
}

fn tier(name: &str, tier: AccessTier) -> Write {
    Write::SetTier(SetTier {
        key: key(name),
        revision: Revision::Current,
        guard: Guard::default(),
        tier,
        priority: RehydratePriority::High,
        rehydration: SECOND * 3600,
    })
}

/// An append blob with a full segment, a page blob with two layers and its snapshot, a layer nobody
/// names, and blobs with each optional part of the record.
fn everything() -> Partition {
    let mut p = partition();
    append_and_pages(&mut p);
    p.must(&Write::PutBlob(put(&key("sn"), stored(&[location(6, 0, 9)]))));
    p.must(&snapshot("sn", Some(Metadata::new([("k".to_owned(), "v")]).unwrap())));
    p.must(&Write::PutBlob(put(&key("le"), inline(b"l"))));
    p.must(&lease("le", LeaseAction::Acquire { proposed: Some(ID), duration: Some(SECOND * 60) }));
    p.must(&lease("le", LeaseAction::Break { period: Some(SECOND * 10) }));
    p.must(&Write::PutBlob(put(&key("li"), inline(b"l"))));
    p.must(&lease("li", LeaseAction::Acquire { proposed: Some(ID), duration: None }));
    let cool = Some(AccessTier::Cool);
    p.must(&Write::PutBlob(PutBlob { tier: cool, ..put(&key("ti"), inline(b"t")) }));
    p.must(&tier("ti", AccessTier::Archive));
    p.must(&tier("ti", AccessTier::Hot));
    tagged(&mut p);
    copied_and_encrypted(&mut p);
    p.must(&Write::PutBlob(put(&key("ac"), inline(b"a"))));
    let at = p.now.next();
    p.must(&Write::NoteRead(NoteRead { key: key("ac"), at }));
    p
}

fn append_and_pages(p: &mut Partition) {
    p.must(&make(&key("ap"), NewKind::Append));
    for _ in 0..64 {
        p.must(&Write::AppendBlock(append(&key("ap"), inline(b"a"))));
    }
    p.must(&Write::AppendBlock(append(&key("ap"), stored(&[location(5, 4096, 70)]))));
    p.must(&Write::AppendBlock(append(&key("ap"), inline(b"z"))));
    p.must(&Write::SealBlob(seal(&key("ap"))));
    p.must(&make(&key("pg"), NewKind::Page { len: 8192, sequence: 7 }));
    p.must(&pages("pg", 0..512, Some(NewContent::Inline(vec![b'p'; 512].into()))));
    p.must(&pages("pg", 1024..3072, Some(NewContent::Stored(vec![location(5, 0, 2048)]))));
    p.must(&pages("pg", 1536..2048, None));
    p.must(&snapshot("pg", None));
    p.must(&pages("pg", 0..512, None));
    p.must(&make(&key("pd"), NewKind::Page { len: 512, sequence: 0 }));
    p.must(&delete(&key("pd")));
}

fn tagged(p: &mut Partition) {
    let first = tags(&[("a", "1"), ("b", "")]);
    p.must(&Write::PutBlob(PutBlob { tags: first, ..put(&key("tg"), inline(b"t")) }));
    p.must(&Write::UpdateBlob(UpdateBlob {
        key: key("tg"),
        revision: Revision::Current,
        guard: Guard::default(),
        change: BlobChange::Tags(tags(&[("a", "2"), ("b", "")])),
    }));
    let entry =
        TagEntryKey { key: "a".into(), value: "2".into(), blob: RoutingKey::blob(&key("tg")) };
    let container = ContainerName::new("live").unwrap();
    let (entry, time) = (entry.routing_key(), Timestamp::from_ticks(640_000_000_000_000_000));
    p.must(&Write::IndexTag(IndexTag { entry, time, container: Some(container) }));
}

fn copied_and_encrypted(p: &mut Partition) {
    let block = CopiedBlock {
        id: block_id("x"),
        len: 9,
        crc64: Crc64::of(b"stored"),
        content: NewContent::Shared(vec![location(6, 0, 9)]),
        checksums: Vec::new(),
    };
    p.must(&Write::PutCopy(Box::new(PutCopy {
        key: key("cp"),
        guard: Guard::default(),
        kind: BlobKind::Block,
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags: Tags::default(),
        tier: None,
        content: CopiedContent::Blocks(vec![block]),
        crc64: Crc64::of(b"stored"),
        increment: None,
        job: None,
        copy: Some(Box::new(CopyRecord {
            id: ID,
            source: "http://s".to_owned(),
            status: CopyStatus::Failed,
            description: Some("d".to_owned()),
            copied: 5,
            total: 9,
            completed: Some(Timestamp::from_ticks(640_000_000_000_000_000)),
        })),
        fields: NewBlobFields::default(),
    })));
    let under = |encryption| Guard {
        encryption: EncryptionClaim::Given(Some(encryption)),
        ..Guard::default()
    };
    let scoped = PutBlob {
        guard: under(Encryption::Scope("s".to_owned())),
        ..put(&key("es"), inline(b"e"))
    };
    p.must(&Write::PutBlob(scoped));
    let nonce = KeyedNonce { bytes: [1; 16], key_sha256: [2; 32] };
    let (content, crc64) = stored(&[location(7, 0, 8)]);
    let content = NewContent::Encrypted(nonce, Box::new(content));
    let customer = PutBlob {
        guard: under(Encryption::Customer([2; 32])),
        ..put(&key("ec"), (content, crc64))
    };
    p.must(&Write::PutBlob(customer));
}

pub(super) const NOW: &str = include_str!("../../../../api-spec/vectors/rows_format_2.json");
const FORMAT_1: &str = include_str!("../../../../api-spec/vectors/rows.json");

fn vectors(text: &str) -> Vec<(String, Family, Bytes, Bytes)> {
    let all: Value = serde_json::from_str(text).unwrap();
    let row = |row: &Value| {
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        let family = Family::ALL.into_iter().find(|f| format!("{f:?}") == text("family")).unwrap();
        (text("what"), family, unhex(&text("key")), unhex(&text("value")))
    };
    all["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn rows_are_written_as_the_vectors_say() {
    let p = everything();
    let vectors = vectors(NOW);
    for (what, family, key, value) in &vectors {
        let written = p.memory.rows.get(&(*family, key.clone())).map(|value| hex(value));
        assert_eq!(written, Some(hex(value)), "{what}");
    }
    let more: Vec<String> = p
        .memory
        .rows
        .iter()
        .filter(|((family, key), _)| !vectors.iter().any(|v| v.1 == *family && v.2 == *key))
        .map(|((family, key), value)| format!("{family:?} {} {}", hex(key), hex(value)))
        .collect();
    assert!(more.is_empty(), "not among the vectors:\n{}", more.join("\n"));
}

#[test]
fn rows_of_the_vectors_are_read() {
    for text in [NOW, FORMAT_1] {
        let mut p = partition();
        for (_, family, key, value) in vectors(text) {
            p.memory.rows.insert((family, key), value);
        }
        let expected = everything();
        p.now = expected.now;
        for read in questions() {
            let answer = p.read(&read);
            assert!(answer.is_ok(), "{read:?}: {answer:?}");
            assert_eq!(format!("{answer:?}"), format!("{:?}", expected.read(&read)));
        }
    }
}

#[test]
fn cut_and_longer_values_of_the_vectors_are_refused() {
    let good = everything();
    for (what, family, key, value) in vectors(NOW) {
        let cut = (0..value.len()).map(|at| value.slice(..at));
        let longer = Bytes::from([value.as_ref(), b"x"].concat());
        let newer = Bytes::from([&[6], value.get(1..).unwrap()].concat());
        for bad in cut.chain([longer, newer]) {
            let mut p = good.clone();
            p.memory.rows.insert((family, key.clone()), bad.clone());
            let refused =
                |read: &Read| matches!(p.read(read), Err(Error::Corrupt(Damage::Rows(_))));
            assert!(questions().iter().any(refused), "{what}: {} went unnoticed", hex(&bad));
        }
    }
}

/// Questions that together read every row.
fn questions() -> Vec<Read> {
    let mut reads = vec![
        Read::Blobs(ListBlobs { history: History::Snapshots, limit: 99, ..list() }),
        Read::Garbage { from: Bytes::new(), limit: 99 },
        Read::References(ListReferences::all()),
        Read::TagWork { blob: None, from: Bytes::new(), limit: 99 },
        Read::Tags(ListTags { from: TagEntryKey::start(ACCOUNT, "a", ""), to: None, limit: 9 }),
    ];
    for name in ["ap", "cp", "le", "li", "pg", "sn", "tg"] {
        reads.push(Read::Blob(read(&key(name))));
    }
    reads
}
