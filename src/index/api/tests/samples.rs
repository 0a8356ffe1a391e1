//! What messages are made of, and messages, one of each variant at least.

mod answers;
mod refusals;
mod requests;

use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use crate::index::api::*;
use crate::index::record::AccountRecord;
use crate::index::record::BlobFields;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerFields;
use crate::index::record::ContainerRecord;
use crate::index::record::CopyRecord;
use crate::index::record::CopyStatus;
use crate::index::record::ScopeRecord;
use crate::index::record::StoredPolicy;
use crate::index::record::UploadFields;
use crate::index::record::UploadRecord;
use crate::index::record::UserKey;
use crate::index::record::UserRecord;
use crate::types::Protection;
use crate::types::Revision;
use crate::types::*;

pub(super) use answers::{lease_results, pieces, read_replies, write_replies};
pub(super) use refusals::{damages, errors, refused};
pub(super) use requests::{account_changes, contents, reads, small_writes};

pub(super) const NONCE: KeyedNonce = KeyedNonce { bytes: [7; 16], key_sha256: [8; 32] };
const TIME: Timestamp = Timestamp::from_ticks(638_000_000_000_000_000);
const ACCOUNT: AccountId = AccountId::new(1);
const CONTAINER: ContainerId = ContainerId::new(1 << 48);

fn key() -> BlobKey {
    let name = BlobName::new("a/\u{1F600}").unwrap();
    BlobKey { account: ACCOUNT, container: CONTAINER, collation: Collation::Utf16, name }
}

fn blob() -> RoutingKey {
    RoutingKey::blob(&key())
}

fn position() -> Bytes {
    blob().as_bytes().clone()
}

fn container_name() -> ContainerName {
    ContainerName::new("c-1").unwrap()
}

fn metadata() -> Metadata {
    Metadata::new(vec![("name".to_owned(), "ü".to_owned())]).unwrap()
}

fn tags() -> Tags {
    Tags::new(vec![("k".to_owned(), "v".to_owned())]).unwrap()
}

fn location(offset: u64) -> Location {
    Location {
        extent: ExtentId::new(u64::MAX),
        offset: ExtentOffset::new(offset),
        len: ByteLen::new(1),
        crc: Crc32c::of(b"x"),
    }
}

fn guard_of_content() -> Guard {
    let tag = ContentEtag::parts(Md5::of(b"x"), 2);
    let if_match = Some(EtagMatch::Content(vec![tag]));
    Guard { conditions: Conditions { if_match, ..Conditions::default() }, ..Guard::default() }
}

fn new_fields() -> NewBlobFields {
    let object = ObjectProperties {
        expires: Some("never".to_owned()),
        acl: Some(CannedAcl::PublicRead),
        ..ObjectProperties::default()
    };
    let checksum = ChecksumValue::new(ChecksumAlgorithm::Crc32, &[1, 2, 3, 4]).unwrap();
    NewBlobFields {
        content_tag: Some(ContentTag::Opaque([7; 16], 2)),
        checksums: vec![checksum.of_whole()],
        object: object.if_any(),
    }
}

fn guard() -> Guard {
    let conditions = Conditions {
        if_match: Some(EtagMatch::Tags(vec![Some(Etag::from_commit(TIME)), None])),
        if_none_match: Some(EtagMatch::Any),
        if_modified_since: Some(TIME),
        if_unmodified_since: None,
        if_modified_at: Some(TIME),
        if_len: Some(u64::MAX),
        if_tier_modified_since: Some(TIME),
        if_tier_unmodified_since: None,
        pairing: Pairing::TagFirst,
    };
    Guard {
        conditions,
        lease: Some(Uuid::from_u128(9)),
        if_tags: Some(TagCondition::parse("a = '1' OR \"b c\" <> '' AND d >= '2'").unwrap()),
        encryption: EncryptionClaim::Given(Some(Encryption::Customer([3; 32]))),
        open_to: Some(Audience::Authenticated),
        over_archived: true,
        protection: Protection {
            versioning: Some(Versioning::Suspended),
            restorable_for: Some(Duration::from_secs(7)),
            lock: Some(object_lock()),
        },
        lock: lock_claim(),
    }
}

fn object_lock() -> ObjectLock {
    let period = RetentionPeriod::Years(10);
    ObjectLock { default: Some(DefaultRetention { mode: RetentionMode::Unlocked, period }) }
}

fn lock_claim() -> LockClaim {
    let retention = Some(Retention { mode: RetentionMode::Locked, until: TIME });
    LockClaim { retention, legal_hold: Some(true), bypass: true }
}

fn written() -> Written {
    Written::at(TIME, Some(VersionId::null(TIME)))
}

fn lease() -> Lease {
    let (id, duration) = (Uuid::from_u128(1), Some(Duration::from_millis(15_001)));
    Lease { id, duration, since: TIME, breaks_at: Some(TIME) }
}

fn secret() -> Secret {
    Secret::Sealed(Bytes::from_static(b"sealed"))
}

/// With a field of its tail.
fn record() -> BlobRecord {
    let tier = TierState {
        tier: AccessTier::Archive,
        changed: TIME,
        rehydrating: Some(Rehydration {
            to: AccessTier::Hot,
            priority: RehydratePriority::High,
            ready: TIME,
        }),
    };
    let copy = CopyRecord {
        id: Uuid::from_u128(2),
        source: "https://example.com/".to_owned(),
        status: CopyStatus::Success,
        description: None,
        copied: 1,
        total: 2,
        completed: Some(TIME),
    };
    BlobRecord {
        metadata: metadata(),
        tags: tags(),
        lease: Some(lease()),
        tier: Some(tier),
        copy: Some(Box::new(copy)),
        encryption: Some(Encryption::Scope("scope".to_owned())),
        fields: Some(Box::new(BlobFields {
            legal_hold: Some(true),
            expires: Some("never".to_owned()),
            ..BlobFields::default()
        })),
        ..BlobRecord::new(TIME, TIME.next(), 5, Crc64::of(b"x"))
    }
}

fn upload_id() -> UploadId {
    UploadId::from_bytes([0x5A; 16])
}

/// With a field of its tail.
fn upload() -> UploadRecord {
    let checksum = UploadChecksum::new(ChecksumAlgorithm::Sha256, None);
    let fields = UploadFields { checksum, ..UploadFields::default() };
    UploadRecord { blob: record(), fields: Some(Box::new(fields)) }
}

fn checksum() -> ContentChecksum {
    ContentChecksum {
        algorithm: ChecksumAlgorithm::Sha256,
        kind: ChecksumKind::Composite(2),
        digest: Bytes::from_static(&[4; 32]),
    }
}

fn part() -> PartView {
    PartView {
        number: PartNumber::new(10_000).unwrap(),
        len: 5,
        staged: TIME,
        tag: ContentEtag::opaque([1; 16], 1),
        checksum: Some(checksum()),
    }
}

fn container_record() -> ContainerRecord {
    let policy =
        StoredPolicy { id: "p".to_owned(), start: Some(TIME), expiry: None, permissions: None };
    ContainerRecord {
        metadata: metadata(),
        policies: vec![policy],
        lease: Some(lease()),
        encryption_scope: Some(EncryptionScope { name: "scope".to_owned(), deny_override: true }),
        fields: Some(Box::new(ContainerFields {
            region: Some("here".to_owned()),
            ..ContainerFields::default()
        })),
        ..ContainerRecord::new(CONTAINER, Collation::Utf8, TIME)
    }
}

fn setting() -> Setting {
    let rule = CrossOriginRule {
        id: Some("id".to_owned()),
        origins: vec!["http://*.a".to_owned()],
        methods: vec!["GET".to_owned()],
        headers: vec!["*".to_owned()],
        exposed: vec!["etag".to_owned()],
        max_age: Some(7),
    };
    Setting::Cors(vec![rule])
}

fn account_record() -> AccountRecord {
    AccountRecord {
        keys: vec![secret(), Secret::Plain(Bytes::from_static(b"plain"))],
        delegation_secret: Some(secret()),
        assignments: vec![assignment()],
        ..AccountRecord::new(ACCOUNT, TIME, true)
    }
}

fn assignment() -> RoleAssignment {
    RoleAssignment {
        issuer: "https://example.com/".to_owned(),
        kind: PrincipalKind::Group,
        principal: "g".to_owned(),
        role: Role::Owner,
        container: Some(container_name()),
    }
}

fn user() -> UserRecord {
    let id = AccessKeyId::new("KEY").unwrap();
    UserRecord {
        name: UserName::new("u").unwrap(),
        display: "U".to_owned(),
        canonical: "c".repeat(64),
        created: Timestamp::from_ticks(5),
        keys: vec![UserKey { id, created: Timestamp::from_ticks(6), secret: secret() }],
    }
}
