//! What a queued write occupies: bounds on queues count in it.

use crate::index::api::AccountChange;
use crate::index::api::BlobChange;
use crate::index::api::ContainerChange;
use crate::index::api::CopiedContent;
use crate::index::api::CopyEnd;
use crate::index::api::EncryptionClaim;
use crate::index::api::Guard;
use crate::index::api::NewContent;
use crate::index::api::PutCopy;
use crate::index::api::Write;
use crate::types::BlobProperties;
use crate::types::BlockListEntry;
use crate::types::ContainerName;
use crate::types::CorsRule;
use crate::types::Encryption;
use crate::types::EtagMatch;
use crate::types::Metadata;
use crate::types::Secret;
use crate::types::TagClause;
use crate::types::TagCondition;
use crate::types::Tags;
use crate::types::Website;

/// What the heap takes beside the bytes of one allocation.
const ALLOCATION: usize = 16;
/// A queued write without what it points to, and its answer.
const FIXED: usize = size_of::<Write>() + 512;

/// Bytes of memory, not less than the write takes.
pub(super) fn of(write: &Write) -> usize {
    let more = match write {
        Write::PutBlob(put) => {
            name(put.key.name.as_str())
                + guard(&put.guard)
                + properties(&put.properties)
                + metadata(&put.metadata)
                + tags(&put.tags)
                + content(&put.content)
        }
        Write::PutCopy(copy) => put_copy(copy),
        Write::Share(share) => name(share.key.name.as_str()) + guard(&share.guard),
        Write::SharePages(share) => name(share.key.name.as_str()) + guard(&share.guard),
        Write::FillLayer(fill) => {
            let spans = fill.spans.iter().map(|span| content(&span.content));
            bytes(fill.blob.as_bytes()) + list(&fill.spans) + spans.sum::<usize>()
        }
        Write::EndCopy(end) => {
            let what = match &end.end {
                CopyEnd::Success { content, .. } => copied(content),
                CopyEnd::Failed(why) => text(why),
                CopyEnd::Aborted(_) => 0,
            };
            bytes(end.blob.as_bytes()) + what
        }
        Write::ResealCopy(again) => {
            bytes(again.blob.as_bytes()) + secret(&again.from) + secret(&again.to)
        }
        Write::StageBlock(stage) => {
            name(stage.key.name.as_str())
                + guard(&stage.guard)
                + bytes(stage.id.as_bytes())
                + content(&stage.content)
        }
        Write::CommitBlocks(commit) => {
            name(commit.key.name.as_str())
                + guard(&commit.guard)
                + properties(&commit.properties)
                + metadata(&commit.metadata)
                + tags(&commit.tags)
                + blocks(&commit.list)
        }
        Write::AppendBlock(append) => {
            name(append.key.name.as_str()) + guard(&append.guard) + content(&append.content)
        }
        Write::SealBlob(seal) => name(seal.key.name.as_str()) + guard(&seal.guard),
        Write::WritePages(pages) => {
            let content = pages.content.as_ref().map_or(0, content);
            name(pages.key.name.as_str()) + guard(&pages.guard) + content
        }
        Write::UpdatePages(update) => {
            let properties = update.properties.as_ref().map_or(0, properties);
            name(update.key.name.as_str()) + guard(&update.guard) + properties
        }
        Write::UpdateBlob(update) => {
            let change = match &update.change {
                BlobChange::Properties(new) => properties(new),
                BlobChange::Metadata(new) => metadata(new),
                BlobChange::Tags(new) => tags(new),
            };
            name(update.key.name.as_str()) + guard(&update.guard) + change
        }
        Write::DeleteBlob(delete) => name(delete.key.name.as_str()) + guard(&delete.guard),
        Write::LeaseBlob(lease) => name(lease.key.name.as_str()) + guard(&lease.guard),
        Write::SnapshotBlob(snapshot) => {
            let new = snapshot.metadata.as_ref().map_or(0, metadata);
            name(snapshot.key.name.as_str()) + guard(&snapshot.guard) + new
        }
        Write::SetTier(set) => name(set.key.name.as_str()) + guard(&set.guard),
        Write::NoteRead(note) => name(note.key.name.as_str()),
        Write::CreateContainer(create) => {
            let scope = create.encryption_scope.as_ref().map(|scope| scope.name.as_str());
            name(create.name.as_str()) + metadata(&create.metadata) + option(scope)
        }
        Write::UpdateContainer(update) => {
            let change = match &update.change {
                ContainerChange::Metadata(new) => metadata(new),
                ContainerChange::Access { policies, .. } => {
                    let inside = policies.iter();
                    let inside = inside.map(|p| text(&p.id) + option(p.permissions.as_deref()));
                    list(policies) + inside.sum::<usize>()
                }
            };
            name(update.name.as_str()) + guard(&update.guard) + change
        }
        Write::DeleteContainer(delete) => name(delete.name.as_str()) + guard(&delete.guard),
        Write::LeaseContainer(lease) => name(lease.name.as_str()) + guard(&lease.guard),
        Write::UpdateAccount { name: of, change } => name(of.as_str()) + account(change),
        Write::IndexTag(tag) => {
            let container = tag.container.as_ref().map(ContainerName::as_str);
            bytes(tag.entry.as_bytes()) + option(container)
        }
        Write::ForgetGarbage { keys: rows } | Write::ForgetTagWork { rows } => {
            list(rows) + rows.iter().map(|row| bytes(row)).sum::<usize>()
        }
        Write::ExpireStaged { key, .. } => bytes(key.as_bytes()),
        Write::PurgeContainer { from, .. } => bytes(from),
        Write::CreateAccount { name: of, .. } | Write::DeleteAccount { name: of, .. } => {
            name(of.as_str())
        }
        Write::ForgetContainer { .. } | Write::Prove => 0,
    };
    FIXED + more
}

fn account(change: &AccountChange) -> usize {
    match change {
        AccountChange::Keys(keys) => list(keys) + keys.iter().map(secret).sum::<usize>(),
        AccountChange::DelegationSecret(new) => secret(new),
        AccountChange::Reseal(pairs) => {
            let inside = pairs.iter().map(|(from, to)| secret(from) + secret(to));
            list(pairs) + inside.sum::<usize>()
        }
        AccountChange::Properties(change) => {
            let rules = change.cors.iter().flatten().map(cors);
            let version = change.default_version.iter().flatten().map(|version| text(version));
            let website = change.website.iter().flatten().map(website);
            let texts = rules.chain(version).chain(website);
            size_of_val(change.as_ref()) + texts.sum::<usize>()
        }
        AccountChange::Anonymous(_) => 0,
        AccountChange::Assign(role) | AccountChange::Unassign(role) => {
            let container = role.container.as_ref().map(ContainerName::as_str);
            text(&role.issuer) + text(&role.principal) + option(container)
        }
    }
}

fn website(site: &Website) -> usize {
    let texts = [&site.index_document, &site.error_document, &site.default_index_path];
    texts.into_iter().map(|text| option(text.as_deref())).sum()
}

fn put_copy(copy: &PutCopy) -> usize {
    let told = copy.copy.as_ref().map_or(0, |told| {
        size_of_val(told.as_ref()) + text(&told.source) + option(told.description.as_deref())
    });
    let job = copy.job.as_ref().map_or(0, |job| {
        size_of_val(job.as_ref()) + secret(&job.source) + option(job.etag.as_deref())
    });
    size_of_val(copy)
        + name(copy.key.name.as_str())
        + guard(&copy.guard)
        + properties(&copy.properties)
        + metadata(&copy.metadata)
        + tags(&copy.tags)
        + copied(&copy.content)
        + told
        + job
}

fn secret(secret: &Secret) -> usize {
    bytes(secret.as_bytes())
}

fn content(new: &NewContent) -> usize {
    match new {
        NewContent::Inline(inline) => bytes(inline),
        NewContent::Stored(locations) | NewContent::Shared(locations) => list(locations),
        NewContent::Encrypted(_, inner) | NewContent::Authenticated(_, inner) => {
            size_of::<NewContent>() + ALLOCATION + content(inner)
        }
    }
}

fn copied(copied: &CopiedContent) -> usize {
    match copied {
        CopiedContent::Whole(whole) => content(whole),
        CopiedContent::Pages { .. } => 0,
        CopiedContent::Blocks(blocks) => {
            let inside = blocks.iter().map(|b| bytes(b.id.as_bytes()) + content(&b.content));
            list(blocks) + inside.sum::<usize>()
        }
    }
}

fn blocks(entries: &[BlockListEntry]) -> usize {
    list(entries) + entries.iter().map(|entry| bytes(entry.id.as_bytes())).sum::<usize>()
}

fn guard(guard: &Guard) -> usize {
    let conditions = &guard.conditions;
    let tags = [&conditions.if_match, &conditions.if_none_match].into_iter().flatten();
    // A group of clauses is a list of its own.
    let clause = |clause: &TagClause| {
        size_of::<TagClause>() + 2 * ALLOCATION + text(&clause.key) + text(&clause.value)
    };
    let if_tags = guard.if_tags.iter().flat_map(TagCondition::clauses).map(clause);
    let scope = match &guard.encryption {
        EncryptionClaim::Given(Some(Encryption::Scope(name))) => text(name),
        EncryptionClaim::Given(Some(Encryption::Customer(_)) | None)
        | EncryptionClaim::Unchecked => 0,
    };
    tags.map(etags).sum::<usize>() + if_tags.sum::<usize>() + scope
}

fn etags(wanted: &EtagMatch) -> usize {
    match wanted {
        EtagMatch::Any => 0,
        EtagMatch::Tags(all) => list(all),
    }
}

fn properties(properties: &BlobProperties) -> usize {
    let texts = [
        &properties.content_type,
        &properties.content_encoding,
        &properties.content_language,
        &properties.content_disposition,
        &properties.cache_control,
    ];
    texts.into_iter().map(|text| option(text.as_deref())).sum()
}

fn metadata(metadata: &Metadata) -> usize {
    pairs(metadata.iter())
}

fn tags(tags: &Tags) -> usize {
    pairs(tags.iter())
}

fn pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    pairs.map(|(key, value)| size_of::<(String, String)>() + text(key) + text(value)).sum()
}

fn cors(rule: &CorsRule) -> usize {
    let texts = [
        &rule.allowed_origins,
        &rule.allowed_methods,
        &rule.allowed_headers,
        &rule.exposed_headers,
    ];
    size_of::<CorsRule>() + texts.into_iter().map(|it| text(it)).sum::<usize>()
}

fn name(name: &str) -> usize {
    text(name)
}

fn option(text: Option<&str>) -> usize {
    text.map_or(0, |text| bytes(text.as_bytes()))
}

fn text(text: &str) -> usize {
    bytes(text.as_bytes())
}

fn bytes(bytes: &[u8]) -> usize {
    bytes.len() + ALLOCATION
}

/// The memory of a list itself, not of what its elements point to.
fn list<T>(elements: &[T]) -> usize {
    size_of_val(elements) + ALLOCATION
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::index::api::*;
    use crate::index::record::{CopyJob, CopyRecord, CopyStatus, StoredPolicy};
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
        let at = |offset| Location { extent: ExtentId::new(1), offset, len: 1, crc: 0 };
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
        let guard = Guard {
            conditions: Conditions {
                if_match: Some(EtagMatch::Tags(vec![None; 500])),
                ..Conditions::default()
            },
            ..Guard::default()
        };
        let put = |content, metadata, tags| PutBlob {
            key: key(&"n".repeat(1_024)),
            guard: guard.clone(),
            properties: BlobProperties {
                content_type: Some("t".repeat(1_000)),
                ..BlobProperties::default()
            },
            metadata,
            tags,
            kind: NewKind::Block,
            content,
            crc64: Crc64::EMPTY,
            tier: None,
        };
        let entry = |n| BlockListEntry { source: BlockSource::Latest, id: id(n) };
        let list: Vec<BlockListEntry> = (0..50_000).map(entry).collect();
        let commit = CommitBlocks {
            key: key("n"),
            guard: Guard::default(),
            properties: BlobProperties::default(),
            metadata: metadata(8_000),
            tags: tags(),
            list,
            tier: None,
        };
        let block = |n: usize| CopiedBlock {
            id: id(n),
            len: 1,
            crc64: Crc64::EMPTY,
            content: NewContent::Shared(locations(2)),
        };
        let (update, blob) = (
            |change| UpdateBlob { key: key("n"), snapshot: None, guard: Guard::default(), change },
            RoutingKey::blob(&key("n")),
        );
        let copied = CopiedContent::Blocks((0..50_000).map(block).collect());
        let of_copied = 50_000 * (size_of::<CopiedBlock>() + 64 + 2 * size_of::<Location>());
        let empty = || NewContent::Inline(bytes::Bytes::new());
        let rows: Vec<bytes::Bytes> = (0..1_000).map(|_| vec![0; 1_000].into()).collect();
        let etags = 500 * size_of::<Option<Etag>>();
        vec![
            (
                Write::PutBlob(put(
                    NewContent::Inline(vec![0; 4_096].into()),
                    metadata(0),
                    Tags::default(),
                )),
                4_096 + 1_024 + 1_000 + etags,
            ),
            (Write::PutBlob(put(empty(), metadata(8_000), tags())), 8_000 + 10 * (128 + 256)),
            (
                Write::CommitBlocks(commit),
                50_000 * (size_of::<BlockListEntry>() + 64) + 8_000 + 10 * (128 + 256),
            ),
            (
                Write::EndCopy(Box::new(EndCopy {
                    blob: blob.clone(),
                    id: uuid::Uuid::nil(),
                    end: CopyEnd::Success { content: copied, crc64: Crc64::EMPTY },
                })),
                of_copied,
            ),
            (
                Write::FillLayer(FillLayer {
                    blob,
                    layer: None,
                    spans: (0..10_000)
                        .map(|n| PageSpan {
                            range: n..n + 1,
                            skip: 0,
                            content: NewContent::Shared(locations(1)),
                        })
                        .collect(),
                }),
                10_000 * (size_of::<PageSpan>() + size_of::<Location>()),
            ),
            (Write::ForgetGarbage { keys: rows }, 1_000 * (1_000 + size_of::<bytes::Bytes>())),
            (Write::UpdateBlob(update(BlobChange::Metadata(metadata(8_000)))), 8_000),
            (Write::UpdateBlob(update(BlobChange::Tags(tags()))), 10 * (128 + 256)),
            (Write::Prove, 0),
        ]
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
        };
        let (name, written) = (container(), guard.clone());
        let policy =
            |_| StoredPolicy { id: long(), start: None, expiry: None, permissions: Some(long()) };
        let policies = (0..5).map(policy).collect();
        let change = ContainerChange::Access { public_access: PublicAccess::Private, policies };
        let update = UpdateContainer { account: id, name, guard: written, change };
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
        let delete = DeleteContainer { account: id, name: container(), guard: guard.clone() };
        let action = LeaseAction::Renew { id: uuid::Uuid::nil() };
        let lease = LeaseContainer { account: id, name: container(), guard, action };
        vec![
            (Write::CreateAccount { name: account(), id, anonymous: false }, 24),
            (changed(AccountChange::Keys(vec![secret(), secret()])), 2 * LONG),
            (changed(AccountChange::DelegationSecret(secret())), LONG),
            (changed(AccountChange::Reseal(vec![(secret(), secret())])), 2 * LONG),
            (changed(AccountChange::Properties(Box::new(properties))), (5 * 4 + 1 + 3) * LONG),
            (changed(AccountChange::Assign(role)), 2 * LONG + 63),
            (Write::DeleteAccount { name: account(), id }, 24),
            (Write::CreateContainer(create), 2 * LONG + 63),
            (Write::UpdateContainer(update), 10 * LONG + guarded + 63),
            (Write::DeleteContainer(delete), guarded + 63),
            (Write::LeaseContainer(lease), guarded + 63),
            (Write::ForgetContainer { account: id, container: of }, 0),
        ]
    }

    /// Changes of blobs that the list above lacks, and reclaim's.
    fn of_blobs() -> Vec<(Write, usize)> {
        let (guard, guarded) = long_guard();
        let key = || key(&"n".repeat(1_024));
        let blob = RoutingKey::blob(&key());
        let guarded = guarded + 1_024;
        let guard = || guard.clone();
        let (at, crc64, snapshot) = (Timestamp::ZERO, Crc64::EMPTY, None);
        let inline = || NewContent::Inline(vec![0; LONG].into());
        let properties =
            || BlobProperties { cache_control: Some(long()), ..BlobProperties::default() };
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
        let put_copy = PutCopy {
            key: key(),
            guard: guard(),
            kind: BlobKind::Block,
            properties: properties(),
            metadata: metadata(LONG),
            tags: tags(),
            tier: None,
            content: CopiedContent::Whole(inline()),
            crc64,
            copy: Some(Box::new(copy)),
            job: Some(Box::new(job)),
        };
        let share = Share { key: key(), snapshot, guard: guard(), range: None };
        let pages = SharePages { key: key(), snapshot, guard: guard(), from: 0 };
        let reseal = ResealCopy { blob: blob.clone(), from: secret(), to: secret() };
        let stage = StageBlock {
            key: key(),
            guard: guard(),
            id: id(0),
            content: NewContent::Encrypted(
                Seal { nonce: [0; 16], key_sha256: [0; 32] },
                Box::new(inline()),
            ),
            crc64,
        };
        let append = AppendBlock {
            key: key(),
            guard: guard(),
            position: None,
            len_max: None,
            content: inline(),
            crc64,
        };
        let seal = SealBlob { key: key(), guard: guard(), position: None };
        let write = WritePages {
            key: key(),
            guard: guard(),
            sequence: SequenceBounds::default(),
            range: 0..512,
            content: Some(inline()),
        };
        let update = UpdatePages {
            key: key(),
            guard: guard(),
            properties: Some(properties()),
            len: None,
            sequence: None,
        };
        let delete = DeleteBlob { key: key(), guard: guard(), scope: DeleteScope::Blob };
        let action = LeaseAction::Renew { id: uuid::Uuid::nil() };
        let lease = LeaseBlob { key: key(), guard: guard(), action };
        let taken = SnapshotBlob { key: key(), guard: guard(), metadata: Some(metadata(LONG)) };
        let tier = SetTier {
            key: key(),
            snapshot,
            guard: guard(),
            tier: AccessTier::Hot,
            priority: RehydratePriority::Standard,
            rehydration: std::time::Duration::ZERO,
        };
        let (entry, from) = (blob.clone(), blob.as_bytes().clone());
        let tag = IndexTag { entry, time: at, container: Some(container()) };
        let rows = (0..100).map(|_| vec![0; 1_000].into()).collect();
        let (account, container) = (AccountId::new(1), ContainerId::new(2));
        let of_put = guarded + 6 * LONG + 10 * (128 + 256);
        vec![
            (Write::PutCopy(Box::new(put_copy)), of_put),
            (Write::Share(Box::new(share)), guarded),
            (Write::SharePages(Box::new(pages)), guarded),
            (Write::ResealCopy(reseal), 2 * LONG + 1_024),
            (Write::StageBlock(stage), guarded + LONG + 64),
            (Write::AppendBlock(append), guarded + LONG),
            (Write::SealBlob(seal), guarded),
            (Write::WritePages(write), guarded + LONG),
            (Write::UpdatePages(update), guarded + LONG),
            (Write::DeleteBlob(delete), guarded),
            (Write::LeaseBlob(lease), guarded),
            (Write::SnapshotBlob(taken), guarded + LONG),
            (Write::SetTier(tier), guarded),
            (Write::NoteRead(NoteRead { key: key(), at }), 1_024),
            (Write::ExpireStaged { key: blob, before: at }, 1_024),
            (Write::PurgeContainer { account, container, from, limit: 1 }, 1_024),
            (Write::IndexTag(tag), 1_024 + 63),
            (Write::ForgetTagWork { rows }, 100 * (1_000 + size_of::<bytes::Bytes>())),
        ]
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
            Write::PurgeContainer { .. } => 27,
            Write::ForgetContainer { .. } => 28,
            Write::IndexTag(_) => 29,
            Write::ForgetTagWork { .. } => 30,
            Write::ForgetGarbage { .. } => 31,
            Write::Prove => 32,
        }
    }

    #[test]
    fn weight_is_not_less_than_the_memory_and_not_much_more() {
        let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
        for (write, least) in writes().into_iter().chain(of_accounts()).chain(of_blobs()) {
            seen.insert(number(&write));
            let (weight, least) = (write.weight(), least + size_of::<Write>());
            if weight < least || weight > 2 * least + 4_096 {
                let name = format!("{write:?}").chars().take(40).collect::<String>();
                wrong.push(format!("{name}: {weight} of {least}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), (0..=32).collect::<Vec<_>>());
    }
}
