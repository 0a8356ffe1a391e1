//! Messages, one of each variant at least.

use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use crate::index::api::*;
use crate::index::record::AccountRecord;
use crate::index::record::BlobFields;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerFields;
use crate::index::record::ContainerRecord;
use crate::index::record::CopyJob;
use crate::index::record::CopyRecord;
use crate::index::record::CopyStatus;
use crate::index::record::StoredPolicy;
use crate::index::record::UploadFields;
use crate::index::record::UploadRecord;
use crate::index::record::UserKey;
use crate::index::record::UserRecord;
use crate::types::Protection;
use crate::types::Revision;
use crate::types::*;

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

pub(super) fn account_changes() -> Vec<AccountChange> {
    let properties = ServicePropertiesChange {
        logging: Some(Logging::default()),
        cors: Some(vec![CorsRule { max_age: 5, ..CorsRule::default() }]),
        default_version: Some(None),
        delete_retention_days: Some(Some(7)),
        website: Some(Some(Website::default())),
        ..ServicePropertiesChange::default()
    };
    vec![
        AccountChange::Properties(Box::new(properties)),
        AccountChange::Keys(vec![secret()]),
        AccountChange::Anonymous(true),
        AccountChange::Versioning(true),
        AccountChange::ContainerRetention(Some(7)),
        AccountChange::ObjectLock(true),
        AccountChange::DelegationSecret(secret()),
        AccountChange::Reseal(vec![(Secret::Plain(Bytes::from_static(b"old")), secret())]),
        AccountChange::Assign(assignment()),
        AccountChange::Unassign(assignment()),
        AccountChange::PutUser(Box::new(user())),
        AccountChange::RemoveUser(UserName::new("u").unwrap()),
    ]
}

pub(super) fn contents() -> Vec<NewContent> {
    let inline = || NewContent::Inline(Bytes::from_static(b"bytes"));
    let shared = NewContent::Shared(vec![location(0), location(1 << 40)]);
    vec![
        inline(),
        NewContent::Stored(vec![location(0)]),
        NewContent::Encrypted(NONCE, Box::new(inline())),
        NewContent::Authenticated(NONCE, Box::new(shared.clone())),
        NewContent::Authenticated(NONCE, Box::new(NewContent::Stored(Vec::new()))),
        shared,
    ]
}

pub(super) fn pieces() -> Vec<Piece> {
    let inline = || Piece::Inline(Bytes::from_static(b"bytes"));
    let stored = || Piece::Stored { location: location(3), range: 0..1 };
    let piece = |piece| Box::new(piece);
    vec![
        inline(),
        stored(),
        Piece::Encrypted { nonce: NONCE, at: 1 << 33, piece: piece(inline()) },
        Piece::Encrypted { nonce: NONCE, at: 0, piece: piece(stored()) },
        Piece::Authenticated { nonce: NONCE, len: 9, range: 0..1, piece: piece(stored()) },
        Piece::Zeros(u64::MAX),
    ]
}

/// Writes whose bytes are few.
pub(super) fn small_writes() -> Vec<Write> {
    let put = |content| PutBlob {
        key: key(),
        guard: guard(),
        properties: BlobProperties::default(),
        metadata: metadata(),
        tags: tags(),
        kind: NewKind::Page { len: 512, sequence: 1 },
        content,
        crc64: Crc64::of(b"x"),
        tier: Some(AccessTier::Cool),
        fields: new_fields(),
    };
    let changes = account_changes().into_iter();
    let name = AccountName::new("account").unwrap();
    let change = |change| Write::UpdateAccount { name: name.clone(), change };
    let puts = contents().into_iter().map(|content| Write::PutBlob(put(content)));
    puts.chain(changes.map(change)).collect()
}

pub(super) fn reads() -> Vec<Read> {
    let prefix = || "p".to_owned();
    let (account, limit, deleted) = (ACCOUNT, 5_000, true);
    let containers = ListContainers { account, prefix: prefix(), from: None, limit, deleted };
    let blob_read = ReadBlob {
        key: key(),
        revision: Revision::Snapshot(TIME),
        guard: guard_of_content(),
        range: ByteRange::new(1, Some(2)),
        pieces: true,
    };
    let pages = ReadPages {
        key: key(),
        revision: Revision::Current,
        since: Some(TIME),
        guard: Guard::default(),
        range: ByteRange::new(0, None),
        limit: 1,
    };
    let blobs = ListBlobs {
        delimiter: Some("/".to_owned()),
        from: Some(position()),
        ..ListBlobs::first_page(ACCOUNT, CONTAINER, Collation::Utf8, 7)
    };
    let references = ListReferences {
        from: ReferencePlace { key: position(), after: Some(location(1)) },
        ..ListReferences::all()
    };
    vec![
        Read::Account(AccountName::new("account").unwrap()),
        Read::Accounts(ListAccounts { from: Some(position()), limit: 1 }),
        Read::Container(ACCOUNT, container_name()),
        Read::Setting(ReadSetting {
            account: ACCOUNT,
            name: container_name(),
            kind: SettingKind::Cors,
        }),
        Read::Containers(containers),
        Read::Blob(blob_read),
        Read::BlockList(key(), Revision::Snapshot(TIME), guard()),
        Read::BlobParts(ReadBlobParts {
            key: key(),
            revision: Revision::Snapshot(TIME),
            guard: guard(),
            after: 7,
            limit: u32::MAX,
        }),
        Read::Pages(pages),
        Read::Blobs(blobs),
        Read::Parts(ListParts { key: key(), upload: upload_id(), after: 7, limit: 1 }),
        Read::Part(ReadPart {
            key: key(),
            revision: Revision::Snapshot(TIME),
            guard: guard(),
            number: PartNumber::new(7).unwrap(),
        }),
        Read::Uploads(ListUploads {
            list: ListBlobs::first_page(ACCOUNT, CONTAINER, Collation::Utf8, 7),
            after: Some(UploadMarker { name: key().name, upload: Some(upload_id()) }),
        }),
        Read::Tags(ListTags { from: position(), to: Some(Bytes::new()), limit: usize::MAX }),
        Read::CopyJobs { from: position(), limit: 1 },
        Read::TagWork { blob: Some(blob()), from: Bytes::new(), limit: 1 },
        Read::References(references),
    ]
    .into_iter()
    .chain(reads_of_sweeps())
    .collect()
}

fn reads_of_sweeps() -> [Read; 4] {
    [
        Read::Garbage { from: position(), limit: 1 },
        Read::DeadContainers,
        Read::Expired { from: position(), before: TIME, limit: 1 },
        Read::EndedDeletions { from: position(), now: TIME, limit: 1 },
    ]
}

pub(super) fn read_replies() -> Vec<ReadReply> {
    let mut replies = of_objects();
    replies.extend(of_sweeps());
    replies
}

/// Answers about accounts, containers and blobs.
fn of_objects() -> Vec<ReadReply> {
    let (after, next) = (vec![position()], Some(position()));
    let entry = ContainerEntry { name: container_name(), record: container_record() };
    let containers = ContainerPage {
        entries: vec![entry],
        after: after.clone(),
        weight: 9,
        next: next.clone(),
        seen: 3,
    };
    let entries = vec![AccountEntry { name: "account".to_owned(), record: account_record() }];
    let view = BlobView {
        is_current: true,
        record: record(),
        range: 0..5,
        pieces: pieces(),
        pieces_end: 5,
        generation: Some(1),
    };
    let block = BlockView { id: BlockId::from_bytes(b"id").unwrap(), len: 1 };
    let list =
        BlockListView { record: None, committed: vec![block.clone()], uncommitted: vec![block] };
    let checksums = vec![ChecksumValue::from(Crc64::EMPTY).of_whole()];
    let parts = vec![BlobPartView { number: 3, len: u64::MAX, checksums }];
    let parts = BlobPartsView { record: record(), total: Some(9), parts, more: true };
    let ranges = vec![PageRange { range: 0..512, cleared: true }];
    let pages = PageRanges { record: record(), ranges, next: Some(512) };
    let (name, record) = ("n".to_owned(), Box::new(record()));
    let entries_of_list = vec![
        ListEntry::Blob { name: name.clone(), revision: Revision::Snapshot(TIME), record },
        ListEntry::Uncommitted { name: name.clone() },
        ListEntry::Upload { name: name.clone(), id: upload_id(), record: Box::new(upload()) },
        ListEntry::Prefix { name },
    ];
    let blobs =
        ListPage { entries: entries_of_list, after, weight: 1, next: next.clone(), seen: 3 };
    vec![
        ReadReply::Account(account_record()),
        ReadReply::Accounts(AccountPage { entries, next }),
        ReadReply::Container(Box::new(container_record())),
        ReadReply::Setting(Some(Box::new(setting()))),
        ReadReply::Containers(containers),
        ReadReply::Blob(Box::new(view)),
        ReadReply::BlockList(Box::new(list)),
        ReadReply::BlobParts(Box::new(parts)),
        ReadReply::Pages(Box::new(pages)),
        ReadReply::Blobs(blobs),
        ReadReply::Part(PartRange { range: 1..9, parts: Some(2), etag: Etag::from_commit(TIME) }),
        ReadReply::Parts(Box::new(PartPage {
            record: upload(),
            parts: vec![part()],
            is_truncated: true,
        })),
    ]
}

/// Answers to reclaim.
fn of_sweeps() -> Vec<ReadReply> {
    let tag = TagEntryKey { key: "k".to_owned(), value: "v".to_owned(), blob: blob() };
    let entry = TagEntry { key: tag, time: TIME, container: container_name() };
    let job = CopyJob {
        id: Uuid::from_u128(4),
        source: secret(),
        etag: Some("\"e\"".to_owned()),
        md5: Some(Md5::of(b"x")),
        crc64: Some(Crc64::of(b"x")),
    };
    let row = position();
    let work = TagWork { row, blob: blob(), time: TIME, removed: tags(), added: Tags::default() };
    let garbage = GarbageRow {
        key: position(),
        since: TIME,
        locations: vec![location(0)],
        layer: Some(blob()),
    };
    let dead = DeletedContainer { account: ACCOUNT, container: CONTAINER, deleted: TIME };
    let staged = StagedBlocks { key: blob(), last_staged: TIME };
    let next = || Some(position());
    vec![
        ReadReply::Tags(TagPage { entries: vec![entry], next: next(), seen: 1 }),
        ReadReply::CopyJobs(CopyJobPage {
            jobs: vec![PendingCopy { blob: blob(), job }],
            next: next(),
        }),
        ReadReply::TagWork(TagWorkPage { work: vec![work], next: next() }),
        ReadReply::Garbage(GarbagePage { rows: vec![garbage], next: next() }),
        ReadReply::DeadContainers(vec![dead]),
        ReadReply::Expired(ExpiredPage { blobs: vec![staged], next: next() }),
        ReadReply::EndedDeletions(EndedPage { blobs: vec![blob()], next: Some(position()) }),
        ReadReply::References(References {
            locations: vec![location(0)],
            next: Some(ReferencePlace { key: position(), after: Some(location(0)) }),
        }),
    ]
}

pub(super) fn lease_results() -> Vec<LeaseResult> {
    vec![
        LeaseResult::Acquired(lease()),
        LeaseResult::Renewed(lease()),
        LeaseResult::Changed(lease()),
        LeaseResult::Released,
        LeaseResult::Broken { lease: lease(), left: Duration::from_nanos(100) },
    ]
}

pub(super) fn write_replies() -> Vec<WriteReply> {
    let block = CopiedBlock {
        id: BlockId::from_bytes(&[0; 64]).unwrap(),
        len: 1,
        crc64: Crc64::EMPTY,
        content: NewContent::Shared(vec![location(0)]),
        checksums: vec![ChecksumValue::from(Crc64::EMPTY).of_whole()],
    };
    let content = Some(CopiedContent::Blocks(vec![block]));
    let whole = CopiedContent::Whole(NewContent::Shared(vec![location(0)]));
    let share = |content| {
        let Location { extent, offset, len, .. } = location(0);
        let frames = vec![Frames { extent, offset, len }];
        WriteReply::Shared(Box::new(SharedBlob { record: record(), content, frames }))
    };
    let span = PageSpan { range: 0..512, skip: 1, content: NewContent::Shared(Vec::new()) };
    let pages = PagesWritten { written: written(), sequence: 4, rest: Some(512) };
    let taken = Snapshotted { snapshot: TIME, written: written() };
    let results = lease_results().into_iter();
    let leased = results.map(|result| Leased { written: written(), result, now: TIME });
    let mut replies: Vec<WriteReply> = leased.map(WriteReply::Leased).collect();
    replies.extend([
        WriteReply::Account(Box::new(account_record())),
        WriteReply::Closed(Box::new(container_record())),
        WriteReply::Written(written()),
        share(content),
        share(Some(whole)),
        share(Some(CopiedContent::Pages { layer: 1, len: 512 })),
        share(None),
        WriteReply::SharedPages(SharedPages { spans: vec![span], next: Some(1) }),
        WriteReply::Layer(u64::MAX),
        WriteReply::Pages(pages),
        WriteReply::PartStaged(Box::new(part())),
        WriteReply::UploadCompleted(Box::new(UploadCompleted {
            written: written(),
            tag: ContentEtag::parts(Md5::of(b"x"), 2),
            checksums: vec![checksum()],
        })),
        WriteReply::Appended(AppendedBlock { written: written(), offset: 1, blocks: 2 }),
        WriteReply::Snapshotted(taken),
        WriteReply::TierSet { pending: true },
        WriteReply::Done,
        WriteReply::Deleted(Deleted {
            version: Some(VersionId::null(TIME)),
            is_marker: true,
            is_kept: true,
        }),
        WriteReply::Undeleted { has_more: true },
        WriteReply::Purged { next: Some(position()) },
    ]);
    replies
}

pub(super) fn damages() -> Vec<Damage> {
    vec![
        Damage::Rows("a block".to_owned()),
        Damage::DiskOut("disk 2".to_owned()),
        Damage::Quarantined(PartitionId::new(7)),
    ]
}

pub(super) fn errors() -> Vec<Error> {
    let mut errors = vec![
        Error::WrongPartition,
        Error::Overloaded,
        Error::Full(Full::Disks),
        Error::Full(Full::Coordinator("no space".to_owned())),
        Error::Unavailable("stopping".to_owned()),
    ];
    errors.extend(damages().into_iter().map(Error::Corrupt));
    errors.extend(refused().into_iter().map(Error::Refused));
    errors
}

fn refused_by_locks() -> [Refused; 7] {
    [
        Refused::LegalHold,
        Refused::Retained(RetentionMode::Locked),
        Refused::NoObjectLock,
        Refused::RetentionInPast,
        Refused::ObjectLocked,
        Refused::NotClosed,
        Refused::NotVersioned,
    ]
}

pub(super) fn refused() -> Vec<Refused> {
    let leases = [
        LeaseRefusal::NotPresent,
        LeaseRefusal::Lost,
        LeaseRefusal::Mismatch,
        LeaseRefusal::Missing,
        LeaseRefusal::NothingToActOn,
        LeaseRefusal::ActsOnOther,
        LeaseRefusal::AlreadyPresent,
        LeaseRefusal::BreakingNotAcquired,
        LeaseRefusal::BreakingNotChanged,
        LeaseRefusal::BrokenNotRenewed,
    ];
    let outcomes = [Outcome::Failed, Outcome::AlreadyExists, Outcome::NothingToMatch];
    let faults =
        [EncryptionFault::KeyMissing, EncryptionFault::NotEncrypted, EncryptionFault::Mismatch];
    let mut all = vec![
        Refused::AccountNotFound,
        Refused::ContainerNotFound,
        Refused::ContainerExists,
        Refused::ContainerNotEmpty,
        Refused::ContainerClosed,
        Refused::ContainerReopened,
        Refused::BlobNotFound,
        Refused::NotOpen,
        Refused::BlobDeleted(VersionId::null(TIME)),
        Refused::VersionNotFound,
        Refused::DeleteMarker(VersionId { time: TIME, is_null: false }),
        Refused::CurrentVersion,
        Refused::NotSoftlyDeleted,
        Refused::SnapshotsPresent,
        Refused::NotModified { content_etag: Some(ContentEtag::opaque([3; 16], 4)) },
        Refused::Archived,
        Refused::Rehydrating,
        Refused::TierOfKind,
        Refused::InvalidRange { len: 1 },
        Refused::UnknownBlock,
        Refused::BlockIdLength,
        Refused::WrongKind,
        Refused::CopyPending,
        Refused::NoPendingCopy,
        Refused::OtherCopy,
        Refused::Sealed,
        Refused::AppendPosition { len: u64::MAX },
        Refused::LongerThanAllowed,
        Refused::TooManyAppends,
        Refused::InvalidPages { len: 512 },
        Refused::SequenceCondition,
        Refused::SequenceExhausted,
        Refused::ComparedWithNewer,
        Refused::ComparedWithNothing,
        Refused::MadeAnew,
        Refused::TooManyBlocks,
    ];
    let uploads = [
        UploadRefusal::NotFound,
        UploadRefusal::Order,
        UploadRefusal::UnknownPart(1),
        UploadRefusal::NoPartChecksum(2),
        UploadRefusal::NoSuchPart,
        UploadRefusal::SmallPart { number: 3, len: 4 },
        UploadRefusal::Length { len: 5 },
        UploadRefusal::ChecksumKind,
        UploadRefusal::Checksum,
    ];
    all.extend(refused_by_locks());
    all.extend(uploads.map(Refused::Upload));
    all.extend(leases.map(Refused::Lease));
    all.extend(outcomes.map(Refused::Condition));
    all.extend(faults.map(Refused::Encryption));
    all
}
