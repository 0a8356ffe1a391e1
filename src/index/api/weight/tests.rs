mod accounts;
mod blobs;
mod content;

use std::collections::BTreeSet;
use std::time::Duration;

use uuid::Uuid;

use crate::index::api::*;
use crate::types::ExtentOffset;
use crate::types::*;

use accounts::{of_accounts, of_ends};
use blobs::{of_blobs, writes};
use content::{of_content, of_uploads};

fn key(name: &str) -> BlobKey {
    BlobKey {
        account: AccountId::new(1),
        container: ContainerId::new(2),
        collation: Collation::Utf16,
        name: BlobName::new(name).unwrap(),
    }
}

fn id(number: usize) -> BlockId {
    BlockId::from_bytes(format!("{number:064}").as_bytes()).unwrap()
}

fn locations(count: u64) -> Vec<Location> {
    let at = |offset| Location {
        extent: ExtentId::new(1),
        offset: ExtentOffset::new(offset),
        len: ByteLen::new(1),
        crc: Crc32c::EMPTY,
    };
    (0..count).map(at).collect()
}

fn metadata(bytes: usize) -> Metadata {
    Metadata::new(vec![("name".to_owned(), "v".repeat(bytes))]).unwrap()
}

fn tags() -> Tags {
    let pair = |n: usize| (format!("{n:0128}"), "v".repeat(256));
    Tags::new((0..10).map(pair).collect()).unwrap()
}

/// Long texts where the type allows any length, else as long as it allows.
const LONG: usize = 8_000;

fn long() -> String {
    "l".repeat(LONG)
}

fn container() -> ContainerName {
    ContainerName::new(&"c".repeat(63)).unwrap()
}

fn account() -> AccountName {
    AccountName::new(&"a".repeat(24)).unwrap()
}

/// Under a scope with a long name, if tags are as demanded.
fn long_guard() -> (Guard, usize) {
    let clauses: Vec<String> = (0..10).map(|n| format!("\"k{n}\" = 'v'")).collect();
    let guard = Guard {
        if_tags: Some(TagCondition::parse(&clauses.join(" AND ")).unwrap()),
        encryption: EncryptionClaim::Given(Some(Encryption::Scope(long()))),
        ..Guard::default()
    };
    (guard, LONG + 10 * size_of::<TagClause>())
}

fn secret() -> Secret {
    Secret::Sealed(vec![0; LONG].into())
}

/// Writes of background tasks.
fn of_tasks() -> Vec<(Write, usize)> {
    let blob = RoutingKey::blob(&long_key());
    let at = Timestamp::ZERO;
    let reseal = ResealCopy { blob: blob.clone(), from: secret(), to: secret() };
    let (id, duration) = (Uuid::nil(), Duration::ZERO);
    let lease = LeaseCopy { blob: blob.clone(), id, lease: id, duration, copied: 1 };
    let (entry, from) = (blob.clone(), blob.as_bytes().clone());
    let tag = IndexTag { entry, time: at, container: Some(container()) };
    let rows = (0..100).map(|_| vec![0; 1_000].into()).collect();
    let (account, container) = (AccountId::new(1), ContainerId::new(2));
    vec![
        (Write::LeaseCopy(lease), 1_024),
        (Write::Settle { key: blob.clone() }, 1_024),
        (Write::ResealCopy(reseal), 2 * LONG + 1_024),
        (Write::NoteRead(NoteRead { key: long_key(), at }), 1_024),
        (Write::ExpireStaged { key: blob.clone(), before: at }, 1_024),
        (Write::ExpireDeleted { key: blob, all: false }, 1_024),
        (Write::PurgeContainer { account, container, from, limit: 1 }, 1_024),
        (Write::IndexTag(tag), 1_024 + 63),
        (Write::ForgetTagWork { rows }, 100 * (1_000 + size_of::<bytes::Bytes>())),
    ]
}

fn long_key() -> BlobKey {
    key(&"n".repeat(1_024))
}

/// Texts of twice [`LONG`].
fn long_properties() -> BlobProperties {
    let content_md5 = ContentMd5::Other(vec![0; LONG].into());
    BlobProperties { cache_control: Some(long()), content_md5, ..BlobProperties::default() }
}

fn inline() -> NewContent {
    NewContent::Inline(vec![0; LONG].into())
}

/// A write of each variant at least, and what its payload takes.
fn all() -> impl Iterator<Item = (Write, usize)> {
    let lists =
        [writes(), of_accounts(), of_ends(), of_blobs(), of_content(), of_uploads(), of_tasks()];
    lists.into_iter().flatten()
}

/// A write of each variant at least.
pub(in crate::index::api) fn every_write() -> impl Iterator<Item = Write> {
    all().map(|(write, _)| write)
}

/// The variant's number. A new variant gets one here, and a write of it in the lists above.
const fn number(write: &Write) -> usize {
    match write {
        Write::CreateAccount { .. } => 0,
        Write::UpdateAccount { .. } => 1,
        Write::DeleteAccount { .. } => 2,
        Write::CreateContainer(_) => 3,
        Write::UpdateContainer(_) => 4,
        Write::DeleteContainer(_) => 5,
        Write::LeaseContainer(_) => 6,
        Write::PutBlob(_) => 7,
        Write::PutCopy(_) => 8,
        Write::Share(_) => 9,
        Write::SharePages(_) => 10,
        Write::FillLayer(_) => 11,
        Write::EndCopy(_) => 12,
        Write::ResealCopy(_) => 13,
        Write::StageBlock(_) => 14,
        Write::CommitBlocks(_) => 15,
        Write::AppendBlock(_) => 16,
        Write::SealBlob(_) => 17,
        Write::WritePages(_) => 18,
        Write::UpdatePages(_) => 19,
        Write::UpdateBlob(_) => 20,
        Write::DeleteBlob(_) => 21,
        Write::LeaseBlob(_) => 22,
        Write::SnapshotBlob(_) => 23,
        Write::SetTier(_) => 24,
        Write::NoteRead(_) => 25,
        Write::ExpireStaged { .. } => 26,
        Write::UndeleteBlob(_) => 40,
        Write::ExpireDeleted { .. } => 41,
        Write::RestoreContainer(_) => 42,
        Write::PurgeContainer { .. } => 27,
        Write::ForgetContainer { .. } => 28,
        Write::IndexTag(_) => 29,
        Write::ForgetTagWork { .. } => 30,
        Write::ForgetGarbage { .. } => 31,
        Write::Prove => 32,
        Write::CloseContainer(_) => 33,
        Write::ReopenContainer(_) => 34,
        Write::StartUpload(_) => 35,
        Write::StagePart(_) => 36,
        Write::CompleteUpload(_) => 37,
        Write::AbortUpload(_) => 38,
        Write::ChangeSetting(_) => 39,
        Write::SetUpAccount(_) => 43,
        Write::LeaseCopy(_) => 44,
        Write::Settle { .. } => 45,
    }
}

#[test]
fn weight_is_not_less_than_the_memory_and_not_much_more() {
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for (write, least) in all() {
        seen.insert(number(&write));
        let (weight, least) = (write.weight(), least + size_of::<Write>());
        if weight < least || weight > 2 * least + 4_096 {
            let name = format!("{write:?}").chars().take(40).collect::<String>();
            wrong.push(format!("{name}: {weight} of {least}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), (0..=45).collect::<Vec<_>>());
}
