//! Tiers, the archive and the way out of it.

use std::time::Duration;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::record::BlobRecord;
use crate::types::*;

/// Ticks of a test's clock pass one a write; a rehydration takes this many of them.
const REHYDRATION: Duration = Duration::from_nanos(1_000);

fn set(p: &mut Partition, key: &BlobKey, tier: AccessTier) -> Result<WriteReply, Error> {
    set_of(p, key, None, tier)
}

fn set_of(
    p: &mut Partition,
    key: &BlobKey,
    snapshot: Option<Timestamp>,
    tier: AccessTier,
) -> Result<WriteReply, Error> {
    p.write(&Write::SetTier(SetTier {
        key: key.clone(),
        revision: snapshot.into(),
        guard: Guard::default(),
        tier,
        priority: RehydratePriority::Standard,
        rehydration: REHYDRATION,
    }))
}

const DONE: Result<WriteReply, Error> = Ok(WriteReply::TierSet { pending: false });
const PENDING: Result<WriteReply, Error> = Ok(WriteReply::TierSet { pending: true });

#[test]
fn tier_changes_neither_tag_nor_time() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, stored(&[location(1, 0, 4)]))));
    let before = p.blob(&read(&a)).unwrap();
    assert_eq!(before.record.tier, None);
    assert_eq!(set(&mut p, &a, AccessTier::Cool), DONE);
    let after = p.blob(&read(&a)).unwrap();
    assert_eq!(after.record.tier, Some(TierState::new(AccessTier::Cool, p.now)));
    assert_eq!(BlobRecord { tier: None, ..after.record.clone() }, before.record);
    assert_eq!(after.pieces, before.pieces);
    assert_eq!(set(&mut p, &a, AccessTier::Cool), DONE);
    let again = p.blob(&read(&a)).unwrap().record.tier;
    assert_eq!(again, after.record.tier, "the same tier is not set anew");
    assert_eq!(
        set(&mut p, &key("none"), AccessTier::Cool),
        Err(Error::Refused(Refused::BlobNotFound))
    );
}

#[test]
fn archive_refuses_reads_and_writes_and_lets_go_of_the_blob_later() {
    let mut p = partition();
    let a = key("a");
    let mut archived = put(&a, inline(b"1"));
    archived.tier = Some(AccessTier::Archive);
    p.must(&Write::PutBlob(archived));
    let metadata = Write::UpdateBlob(UpdateBlob {
        key: a.clone(),
        revision: Revision::Current,
        guard: Guard::default(),
        change: BlobChange::Metadata(Metadata::default()),
    });
    let snapshot = SnapshotBlob { key: a.clone(), guard: Guard::default(), metadata: None };
    let writes = [
        Write::PutBlob(put(&a, inline(b"2"))),
        stage(&a, "x", inline(b"2")),
        Write::CommitBlocks(commit(&a, &[])),
        metadata,
        Write::SnapshotBlob(snapshot),
    ];
    let refused = |p: &mut Partition, error: &Error| {
        assert_eq!(p.blob(&read(&a)).unwrap_err(), *error);
        for write in &writes {
            assert_eq!(p.write(write).unwrap_err(), *error, "{write:?}");
        }
        let head = ReadBlob { pieces: false, ..read(&a) };
        assert!(p.blob(&head).is_ok(), "properties are still shown");
        p.must(&Write::UpdateBlob(UpdateBlob {
            key: a.clone(),
            revision: Revision::Current,
            guard: Guard::default(),
            change: BlobChange::Tags(Tags::default()),
        }));
    };
    refused(&mut p, &Error::Refused(Refused::Archived));
    assert_eq!(set(&mut p, &a, AccessTier::Cool), PENDING);
    let asked = p.now;
    assert_eq!(set(&mut p, &a, AccessTier::Hot), Err(Error::Refused(Refused::Rehydrating)));
    assert_eq!(set(&mut p, &a, AccessTier::Cool), PENDING);
    refused(&mut p, &Error::Refused(Refused::Rehydrating));
    p.now = asked.plus(REHYDRATION);
    let view = p.blob(&read(&a)).unwrap();
    assert_eq!(view.pieces.len(), 1);
    let state = view.record.tier.unwrap();
    assert_eq!(state.at(p.now), TierState::new(AccessTier::Cool, asked.plus(REHYDRATION)));
    p.must(&writes[0]);
    assert_eq!(p.blob(&read(&a)).unwrap().record.tier, None, "a new blob has the default tier");
}

#[test]
fn archived_blob_can_be_deleted() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"1"))));
    assert_eq!(set(&mut p, &a, AccessTier::Archive), DONE);
    p.must(&delete(&a));
    assert!(p.memory.rows.is_empty());
}

#[test]
fn snapshot_has_a_tier_of_its_own() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"1"))));
    let snapshot = SnapshotBlob { key: a.clone(), guard: Guard::default(), metadata: None };
    p.must(&Write::SnapshotBlob(snapshot));
    let taken = p.now;
    assert_eq!(set_of(&mut p, &a, Some(taken), AccessTier::Archive), DONE);
    assert!(p.blob(&read(&a)).is_ok());
    let of = ReadBlob { revision: Revision::Snapshot(taken), ..read(&a) };
    assert_eq!(p.blob(&of).unwrap_err(), Error::Refused(Refused::Archived));
    let none = set_of(&mut p, &a, Some(taken.next()), AccessTier::Archive);
    assert_eq!(none, Err(Error::Refused(Refused::BlobNotFound)));
}

#[test]
fn storage_class_is_forgotten_with_its_tier() {
    let mut p = partition();
    let a = key("a");
    let class = |p: &Partition| {
        let head = ReadBlob { pieces: false, ..read(&a) };
        p.blob(&head).unwrap().record.fields.and_then(|fields| fields.storage_class)
    };
    let kept = |class: StorageClass| {
        let object =
            ObjectProperties { storage_class: class.kept(), ..ObjectProperties::default() };
        let fields = NewBlobFields { object: object.if_any(), ..NewBlobFields::default() };
        let tier = Some(class.tier());
        Write::PutBlob(PutBlob { fields, tier, ..put(&a, inline(b"1")) })
    };
    p.must(&kept(StorageClass::OnezoneIa));
    assert_eq!(set(&mut p, &a, AccessTier::Cool), DONE);
    assert_eq!(class(&p).as_deref(), Some("ONEZONE_IA"));
    assert_eq!(set(&mut p, &a, AccessTier::Hot), DONE);
    assert_eq!(class(&p), None);
    p.must(&delete(&a));
    p.must(&kept(StorageClass::DeepArchive));
    assert_eq!(set(&mut p, &a, AccessTier::Hot), PENDING);
    assert_eq!(class(&p).as_deref(), Some("DEEP_ARCHIVE"), "it is still archived");
    p.now = p.now.plus(REHYDRATION);
    assert_eq!(set(&mut p, &a, AccessTier::Archive), DONE);
    assert_eq!(class(&p), None, "it was restored since");
}

#[test]
fn archived_blob_is_replaced_where_the_request_may() {
    let mut p = partition();
    let a = key("a");
    let mut archived = put(&a, inline(b"1"));
    archived.tier = Some(AccessTier::Archive);
    p.must(&Write::PutBlob(archived));
    let refused = p.write(&Write::PutBlob(put(&a, inline(b"2")))).unwrap_err();
    assert_eq!(refused, Error::Refused(Refused::Archived));
    let guard = Guard { over_archived: true, ..Guard::default() };
    p.must(&Write::PutBlob(PutBlob { guard, ..put(&a, inline(b"2")) }));
    assert_eq!(p.blob(&read(&a)).unwrap().record.tier, None);
}

/// A page blob of this many GiB.
fn disk(key: &BlobKey, gib: u64, tier: Option<AccessTier>) -> Write {
    let kind = NewKind::Page { len: gib << 30, sequence: 0 };
    Write::PutBlob(PutBlob { kind, tier, ..put(key, inline(b"")) })
}

fn tier_of(p: &mut Partition, key: &BlobKey) -> Option<AccessTier> {
    p.blob(&read(key)).unwrap().record.tier.map(|tier| tier.tier)
}

#[test]
fn a_premium_tier_has_room_for_its_page_blob_and_is_never_lowered() {
    let mut p = partition();
    let a = key("a");
    p.must(&disk(&a, 33, None));
    let refused = |refused| Err(Error::Refused(refused));
    assert_eq!(set(&mut p, &a, AccessTier::P4), refused(Refused::TierTooSmall));
    assert_eq!(tier_of(&mut p, &a), None);
    assert_eq!(set(&mut p, &a, AccessTier::P6), DONE);
    assert_eq!(set(&mut p, &a, AccessTier::P20), DONE);
    let set_first = p.blob(&read(&a)).unwrap().record.tier;
    assert_eq!(set(&mut p, &a, AccessTier::P20), DONE);
    assert_eq!(p.blob(&read(&a)).unwrap().record.tier, set_first, "it is not set anew");
    for lower in [AccessTier::P4, AccessTier::P10, AccessTier::P15] {
        assert_eq!(set(&mut p, &a, lower), refused(Refused::LowerTier), "{lower:?}");
    }
    assert_eq!(tier_of(&mut p, &a), Some(AccessTier::P20));
    p.must(&disk(&a, 32, Some(AccessTier::P4)));
    assert_eq!(tier_of(&mut p, &a), Some(AccessTier::P4), "a new blob has its own");
    let beyond = p.write(&disk(&a, 33, Some(AccessTier::P4)));
    assert_eq!(beyond, refused(Refused::TierTooSmall));
}

#[test]
fn a_page_blob_does_not_outgrow_the_tier_that_it_was_given() {
    let mut p = partition();
    let (given, inferred) = (key("given"), key("inferred"));
    p.must(&disk(&given, 1, Some(AccessTier::P4)));
    p.must(&disk(&inferred, 1, None));
    let mut resize = |key: &BlobKey, gib: u64| {
        p.write(&Write::UpdatePages(UpdatePages {
            key: key.clone(),
            guard: Guard::default(),
            properties: None,
            len: Some(gib << 30),
            sequence: None,
        }))
    };
    resize(&given, 32).unwrap();
    assert_eq!(resize(&given, 33), Err(Error::Refused(Refused::BeyondTier)));
    resize(&given, 1).unwrap();
    resize(&inferred, 8 << 10).unwrap();
}

#[test]
fn blobs_have_only_the_tiers_of_their_kind() {
    let mut p = partition();
    let of_kind = Err(Error::Refused(Refused::TierOfKind));
    let new = |name: &str, kind, tier| {
        Write::PutBlob(PutBlob { kind, tier: Some(tier), ..put(&key(name), inline(b"")) })
    };
    let page = NewKind::Page { len: 512, sequence: 0 };
    for (kind, tier) in [
        (NewKind::Block, AccessTier::P10),
        (NewKind::Append, AccessTier::P10),
        (NewKind::Append, AccessTier::Hot),
        (page, AccessTier::Archive),
    ] {
        assert_eq!(p.write(&new("new", kind, tier)), of_kind, "{kind:?} {tier:?}");
    }
    p.must(&new("page", page, AccessTier::P4));
    assert_eq!(set(&mut p, &key("page"), AccessTier::Hot), of_kind);
    p.must(&new("block", NewKind::Block, AccessTier::Hot));
    assert_eq!(set(&mut p, &key("block"), AccessTier::P4), of_kind);
    let mut list = commit(&key("block"), &[]);
    list.tier = Some(AccessTier::P4);
    assert_eq!(p.write(&Write::CommitBlocks(list)), of_kind);
}
