use crate::types::ExtentOffset;
use std::collections::BTreeSet;

use crate::index::api::RestoreContainer;
use crate::index::api::UndeleteBlob;
use crate::index::api::*;
use crate::index::record::{CopyJob, CopyRecord, CopyStatus, StoredPolicy, UserKey, UserRecord};
use crate::types::Revision;
use crate::types::*;

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

/// The write, and what its payload takes at least.
fn writes() -> Vec<(Write, usize)> {
    let list: Vec<BlockListEntry> =
        (0..50_000).map(|n| BlockListEntry { source: BlockSource::Latest, id: id(n) }).collect();
    let commit = CommitBlocks {
        key: key("n"),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: metadata(8_000),
        tags: tags(),
        list,
        tier: None,
    };
    let update = |change| {
        let guard = Guard::default();
        Write::UpdateBlob(UpdateBlob { key: key("n"), revision: Revision::Current, guard, change })
    };
    let inline = NewContent::Inline(vec![0; 4_096].into());
    let empty = NewContent::Inline(bytes::Bytes::new());
    let rows: Vec<bytes::Bytes> = (0..1_000).map(|_| vec![0; 1_000].into()).collect();
    let etags = 500 * size_of::<Option<Etag>>();
    let of_tags = 10 * (128 + 256);
    let of_list = 50_000 * size_of::<BlockListEntry>();
    vec![
        (put(inline, metadata(0), Tags::default()), 4_096 + 1_024 + 1_000 + etags + 3 * LONG),
        (put(empty, metadata(8_000), tags()), 8_000 + of_tags + 3 * LONG),
        (Write::CommitBlocks(commit), of_list + 8_000 + of_tags),
        end_copy(),
        fill_layer(),
        (Write::ForgetGarbage { keys: rows }, 1_000 * (1_000 + size_of::<bytes::Bytes>())),
        (update(BlobChange::Metadata(metadata(8_000))), 8_000),
        (update(BlobChange::Tags(tags())), of_tags),
        (Write::Prove, 0),
    ]
}

/// A long name, under 500 entity tags.
fn put(content: NewContent, metadata: Metadata, tags: Tags) -> Write {
    let conditions =
        Conditions { if_match: Some(EtagMatch::Tags(vec![None; 500])), ..Conditions::default() };
    let properties =
        BlobProperties { content_type: Some("t".repeat(1_000)), ..BlobProperties::default() };
    Write::PutBlob(PutBlob {
        key: key(&"n".repeat(1_024)),
        guard: Guard { conditions, ..Guard::default() },
        properties,
        metadata,
        tags,
        kind: NewKind::Block,
        content,
        crc64: Crc64::EMPTY,
        tier: None,
        fields: new_fields(),
    })
}

/// Texts of 3 times [`LONG`].
fn new_fields() -> NewBlobFields {
    let object = ObjectProperties {
        expires: Some(long()),
        redirect: Some(long()),
        owner: Some(long()),
        ..ObjectProperties::default()
    };
    NewBlobFields { object: object.if_any(), ..NewBlobFields::default() }
}

fn end_copy() -> (Write, usize) {
    let block = |n: usize| CopiedBlock {
        id: id(n),
        len: 1,
        crc64: Crc64::EMPTY,
        content: NewContent::Shared(locations(2)),
        checksums: vec![ChecksumValue::from(Crc64::EMPTY).of_whole()],
    };
    let content = CopiedContent::Blocks((0..50_000).map(block).collect());
    let end = EndCopy {
        blob: RoutingKey::blob(&key("n")),
        id: uuid::Uuid::nil(),
        end: CopyEnd::Success { content, crc64: Crc64::EMPTY },
    };
    let inside = 2 * size_of::<Location>() + size_of::<ContentChecksum>() + 8;
    let least = 50_000 * (size_of::<CopiedBlock>() + inside);
    (Write::EndCopy(Box::new(end)), least)
}

fn fill_layer() -> (Write, usize) {
    let span = |n| PageSpan { range: n..n + 1, skip: 0, content: NewContent::Shared(locations(1)) };
    let spans = (0..10_000).map(span).collect();
    let fill = FillLayer { blob: RoutingKey::blob(&key("n")), layer: None, spans };
    (Write::FillLayer(fill), 10_000 * (size_of::<PageSpan>() + size_of::<Location>()))
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

fn user() -> UserRecord {
    let key = UserKey {
        id: AccessKeyId::new(&"K".repeat(128)).unwrap(),
        created: Timestamp::ZERO,
        secret: secret(),
    };
    UserRecord {
        name: UserName::new(&"u".repeat(64)).unwrap(),
        display: long(),
        canonical: long(),
        created: Timestamp::ZERO,
        keys: vec![key],
    }
}

/// Changes of accounts and containers.
fn of_accounts() -> Vec<(Write, usize)> {
    let (id, of) = (AccountId::new(1), ContainerId::new(2));
    let (guard, guarded) = long_guard();
    let scope = EncryptionScope { name: long(), deny_override: true };
    let create = CreateContainer {
        account: id,
        name: container(),
        id: of,
        collation: Collation::Utf8,
        metadata: metadata(LONG),
        public_access: PublicAccess::Private,
        encryption_scope: Some(scope),
        owner: Some(long()),
        region: Some(long()),
        acl: CannedAcl::Private,
        object_lock: false,
    };
    let (name, written) = (container(), guard);
    let policy =
        |_| StoredPolicy { id: long(), start: None, expiry: None, permissions: Some(long()) };
    let policies = (0..5).map(policy).collect();
    let change = ContainerChange::Access { public_access: PublicAccess::Private, policies };
    let update = UpdateContainer { account: id, name, guard: written, change };
    let tag = |n| (format!("{n:\u{10400}>128}"), "\u{10400}".repeat(256));
    let tags = ContainerTags::new((0..50).map(tag).collect()).unwrap();
    let change = SettingChange::Set(Setting::Tags(tags));
    let change = ChangeSetting { account: id, name: container(), change };
    let website = Website {
        index_document: Some(long()),
        error_document: Some(long()),
        default_index_path: Some(long()),
    };
    let rule = |_| CorsRule {
        allowed_origins: long(),
        allowed_methods: long(),
        allowed_headers: long(),
        exposed_headers: long(),
        max_age: 0,
    };
    let properties = ServicePropertiesChange {
        cors: Some((0..5).map(rule).collect()),
        default_version: Some(Some(long())),
        website: Some(Some(website)),
        ..ServicePropertiesChange::default()
    };
    let changed = |change| Write::UpdateAccount { name: account(), change };
    let role = RoleAssignment {
        issuer: long(),
        kind: PrincipalKind::Group,
        principal: long(),
        role: Role::Reader,
        container: Some(container()),
    };
    vec![
        (Write::CreateAccount { name: account(), id, anonymous: false }, 24),
        (changed(AccountChange::Keys(vec![secret(), secret()])), 2 * LONG),
        (changed(AccountChange::DelegationSecret(secret())), LONG),
        (changed(AccountChange::Reseal(vec![(secret(), secret())])), 2 * LONG),
        (changed(AccountChange::Properties(Box::new(properties))), (5 * 4 + 1 + 3) * LONG),
        (changed(AccountChange::Assign(role)), 2 * LONG + 63),
        (changed(AccountChange::PutUser(Box::new(user()))), 3 * LONG + 64 + 128),
        (changed(AccountChange::RemoveUser(user().name)), 64),
        (Write::DeleteAccount { name: account(), id }, 24),
        (Write::CreateContainer(create), 4 * LONG + 63),
        (Write::UpdateContainer(update), 10 * LONG + guarded + 63),
        (Write::ChangeSetting(change), 50 * 4 * (128 + 256) + 63),
    ]
}

/// How containers end, and their leases.
fn of_ends() -> Vec<(Write, usize)> {
    let (account, name, closed) = (AccountId::new(1), container(), Timestamp::ZERO);
    let (guard, guarded) = long_guard();
    let delete = {
        let (name, guard) = (name.clone(), guard.clone());
        DeleteContainer { account, name, guard, closed: Some(closed), restorable_for: None }
    };
    let close = CloseContainer { account, name: name.clone(), guard: guard.clone() };
    let action = LeaseAction::Renew { id: uuid::Uuid::nil() };
    let lease = LeaseContainer { account, name: name.clone(), guard, action };
    let restore =
        RestoreContainer { account, name: name.clone(), deleted: name.clone(), since: closed };
    let reopen = ReopenContainer { account, name, closed };
    vec![
        (Write::DeleteContainer(delete), guarded + 63),
        (Write::RestoreContainer(restore), 2 * 63),
        (Write::CloseContainer(close), guarded + 63),
        (Write::ReopenContainer(reopen), 63),
        (Write::LeaseContainer(lease), guarded + 63),
        (Write::ForgetContainer { account, container: ContainerId::new(2) }, 0),
    ]
}

/// Changes of blobs that the list above lacks.
fn of_blobs() -> Vec<(Write, usize)> {
    let (guard, guarded) = long_guard();
    let guarded = guarded + 1_024;
    let (guard, revision) = (|| guard.clone(), Revision::Current);
    let share = Share { key: long_key(), revision, guard: guard(), range: None };
    let pages = SharePages { key: long_key(), revision, guard: guard(), from: 0 };
    let seal = SealBlob { key: long_key(), guard: guard(), position: None };
    let delete = DeleteBlob { key: long_key(), guard: guard(), scope: DeleteScope::Blob };
    let action = LeaseAction::Renew { id: uuid::Uuid::nil() };
    let lease = LeaseBlob { key: long_key(), guard: guard(), action };
    let taken = SnapshotBlob { key: long_key(), guard: guard(), metadata: Some(metadata(LONG)) };
    let tier = SetTier {
        key: long_key(),
        revision,
        guard: guard(),
        tier: AccessTier::Hot,
        priority: RehydratePriority::Standard,
        rehydration: std::time::Duration::ZERO,
    };
    vec![
        put_copy(),
        (Write::Share(Box::new(share)), guarded),
        (Write::SharePages(Box::new(pages)), guarded),
        (Write::SealBlob(seal), guarded),
        (Write::DeleteBlob(delete), guarded),
        (Write::LeaseBlob(lease), guarded),
        (Write::SnapshotBlob(taken), guarded + LONG),
        (Write::UndeleteBlob(UndeleteBlob { key: long_key(), guard: guard() }), guarded),
        (Write::SetTier(tier), guarded),
    ]
}

fn put_copy() -> (Write, usize) {
    let (guard, guarded) = long_guard();
    let copy = CopyRecord {
        id: uuid::Uuid::nil(),
        source: long(),
        status: CopyStatus::Pending,
        description: Some(long()),
        copied: 0,
        total: 0,
        completed: None,
    };
    let job = CopyJob {
        id: uuid::Uuid::nil(),
        source: secret(),
        etag: Some(long()),
        md5: None,
        crc64: None,
    };
    let put = PutCopy {
        key: long_key(),
        guard,
        kind: BlobKind::Block,
        properties: long_properties(),
        metadata: metadata(LONG),
        tags: tags(),
        tier: None,
        content: CopiedContent::Whole(inline()),
        crc64: Crc64::EMPTY,
        copy: Some(Box::new(copy)),
        job: Some(Box::new(job)),
        fields: NewBlobFields::default(),
    };
    (Write::PutCopy(Box::new(put)), guarded + 1_024 + 6 * LONG + 10 * (128 + 256))
}

/// Writes of blocks and pages.
fn of_content() -> Vec<(Write, usize)> {
    let (guard, guarded) = long_guard();
    let guarded = guarded + 1_024;
    let guard = || guard.clone();
    let nonce = KeyedNonce { bytes: [0; 16], key_sha256: [0; 32] };
    let stage = StageBlock {
        key: long_key(),
        guard: guard(),
        id: id(0),
        content: NewContent::Encrypted(nonce, Box::new(inline())),
        crc64: Crc64::EMPTY,
    };
    let append = AppendBlock {
        key: long_key(),
        guard: guard(),
        position: None,
        len_max: None,
        content: inline(),
        crc64: Crc64::EMPTY,
    };
    let write = WritePages {
        key: long_key(),
        guard: guard(),
        sequence: SequenceBounds::default(),
        range: 0..512,
        content: Some(inline()),
    };
    let update = UpdatePages {
        key: long_key(),
        guard: guard(),
        properties: Some(long_properties()),
        len: None,
        sequence: None,
    };
    vec![
        (Write::StageBlock(stage), guarded + LONG + 64),
        (Write::AppendBlock(append), guarded + LONG),
        (Write::WritePages(write), guarded + LONG),
        (Write::UpdatePages(update), guarded + LONG),
    ]
}

/// Writes of uploads in parts.
fn of_uploads() -> Vec<(Write, usize)> {
    let upload = UploadId::from_bytes([7; 16]);
    let number = |n| PartNumber::new(n).unwrap();
    let checksum = || ContentChecksum {
        algorithm: ChecksumAlgorithm::Sha256,
        kind: ChecksumKind::FullObject,
        digest: vec![0; 32].into(),
    };
    let start = StartUpload {
        lock: LockClaim::default(),
        key: long_key(),
        id: upload,
        properties: long_properties(),
        metadata: metadata(8_000),
        tags: tags(),
        tier: Some(AccessTier::Cool),
        encryption: EncryptionClaim::Given(Some(Encryption::Scope("scope".to_owned()))),
        checksum: UploadChecksum::new(ChecksumAlgorithm::Sha256, None),
        object: Some(Box::new(ObjectProperties {
            owner: Some(long()),
            ..ObjectProperties::default()
        })),
        initiator: Some(long()),
    };
    let stage = StagePart {
        key: long_key(),
        upload,
        number: number(7),
        encryption: EncryptionClaim::Given(None),
        content: inline(),
        crc64: Crc64::EMPTY,
        checksums: vec![checksum()],
    };
    let part = |n| NamedPart {
        number: number(n),
        tag: ContentEtag::md5(Md5::of(b"")),
        checksum: Some(checksum()),
    };
    let complete = CompleteUpload {
        key: long_key(),
        upload,
        guard: Guard::default(),
        parts: (1..=10_000).map(part).collect(),
        part_len_min: 1,
        len: Some(1),
        checksum: Some(checksum()),
        coverage: Some(Coverage::Composite),
    };
    let of_start = size_of::<StartUpload>() + 1_024 + 3 * LONG + 8_000 + 10 * (128 + 256);
    vec![
        (Write::StartUpload(Box::new(start)), of_start),
        (Write::StagePart(stage), 1_024 + LONG),
        (Write::CompleteUpload(Box::new(complete)), 10_000 * (size_of::<NamedPart>() + 32)),
        (Write::AbortUpload(AbortUpload { key: long_key(), upload }), 1_024),
    ]
}

/// Writes of background tasks.
fn of_tasks() -> Vec<(Write, usize)> {
    let blob = RoutingKey::blob(&long_key());
    let at = Timestamp::ZERO;
    let reseal = ResealCopy { blob: blob.clone(), from: secret(), to: secret() };
    let (entry, from) = (blob.clone(), blob.as_bytes().clone());
    let tag = IndexTag { entry, time: at, container: Some(container()) };
    let rows = (0..100).map(|_| vec![0; 1_000].into()).collect();
    let (account, container) = (AccountId::new(1), ContainerId::new(2));
    vec![
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

fn long_properties() -> BlobProperties {
    BlobProperties { cache_control: Some(long()), ..BlobProperties::default() }
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
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), (0..=42).collect::<Vec<_>>());
}
