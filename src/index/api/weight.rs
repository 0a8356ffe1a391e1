//! The memory that a queued write occupies, for the bounds of queues.

use bytes::Bytes;

use crate::index::api::AccountChange;
use crate::index::api::BlobChange;
use crate::index::api::CommitBlocks;
use crate::index::api::CompleteUpload;
use crate::index::api::ContainerChange;
use crate::index::api::CopiedContent;
use crate::index::api::CopyEnd;
use crate::index::api::CreateContainer;
use crate::index::api::EncryptionClaim;
use crate::index::api::EndCopy;
use crate::index::api::FillLayer;
use crate::index::api::Guard;
use crate::index::api::NewBlobFields;
use crate::index::api::NewContent;
use crate::index::api::PutBlob;
use crate::index::api::PutCopy;
use crate::index::api::ResealCopy;
use crate::index::api::SettingChange;
use crate::index::api::StagePart;
use crate::index::api::StartUpload;
use crate::index::api::Write;
use crate::types::BlobKey;
use crate::types::BlobProperties;
use crate::types::ContainerName;
use crate::types::ContentChecksum;
use crate::types::CorsRule;
use crate::types::Encryption;
use crate::types::EtagMatch;
use crate::types::Metadata;
use crate::types::ObjectProperties;
use crate::types::Secret;
use crate::types::TagClause;
use crate::types::TagCondition;
use crate::types::Tags;
use crate::types::Website;

/// The memory that one allocation takes beside its bytes.
const ALLOCATION: usize = 16;
/// A queued write without its heap allocations, and its answer.
const FIXED: usize = size_of::<Write>() + 512;

impl Write {
    /// The bytes it occupies while it waits, for bounds on queues; not less.
    #[must_use]
    pub fn weight(&self) -> usize {
        of(self)
    }
}

/// Bytes of memory, not less than the write takes.
fn of(write: &Write) -> usize {
    let more = match write {
        Write::PutBlob(put) => put_blob(put),
        Write::PutCopy(copy) => put_copy(copy),
        Write::Share(share) => guarded(&share.key, &share.guard),
        Write::SharePages(share) => guarded(&share.key, &share.guard),
        Write::FillLayer(fill) => fill_layer(fill),
        Write::EndCopy(end) => end_copy(end),
        Write::LeaseCopy(lease) => bytes(lease.blob.as_bytes()),
        Write::Settle { key } => bytes(key.as_bytes()),
        Write::ResealCopy(reseal) => reseal_copy(reseal),
        Write::StageBlock(stage) => guarded(&stage.key, &stage.guard) + content(&stage.content),
        Write::CommitBlocks(commit) => commit_blocks(commit),
        Write::StartUpload(start) => start_upload(start),
        Write::StagePart(stage) => stage_part(stage),
        Write::CompleteUpload(complete) => complete_upload(complete),
        Write::AbortUpload(abort) => text(abort.key.name.as_str()),
        Write::AppendBlock(append) => {
            guarded(&append.key, &append.guard) + content(&append.content)
        }
        Write::SealBlob(seal) => guarded(&seal.key, &seal.guard),
        Write::WritePages(pages) => {
            guarded(&pages.key, &pages.guard) + pages.content.as_ref().map_or(0, content)
        }
        Write::UpdatePages(update) => {
            guarded(&update.key, &update.guard) + update.properties.as_ref().map_or(0, properties)
        }
        Write::UpdateBlob(update) => {
            guarded(&update.key, &update.guard) + blob_change(&update.change)
        }
        Write::DeleteBlob(delete) => guarded(&delete.key, &delete.guard),
        Write::LeaseBlob(lease) => guarded(&lease.key, &lease.guard),
        Write::SnapshotBlob(snapshot) => {
            guarded(&snapshot.key, &snapshot.guard) + snapshot.metadata.as_ref().map_or(0, metadata)
        }
        Write::UndeleteBlob(undelete) => guarded(&undelete.key, &undelete.guard),
        Write::SetTier(set) => guarded(&set.key, &set.guard),
        Write::NoteRead(note) => text(note.key.name.as_str()),
        Write::CreateContainer(create) => create_container(create),
        Write::UpdateContainer(update) => {
            text(update.name.as_str()) + guard(&update.guard) + container_change(&update.change)
        }
        Write::ChangeSetting(change) => text(change.name.as_str()) + setting(&change.change),
        Write::DeleteContainer(delete) => text(delete.name.as_str()) + guard(&delete.guard),
        Write::RestoreContainer(restore) => {
            text(restore.name.as_str()) + text(restore.deleted.as_str())
        }
        Write::CloseContainer(close) => text(close.name.as_str()) + guard(&close.guard),
        Write::ReopenContainer(reopen) => text(reopen.name.as_str()),
        Write::LeaseContainer(lease) => text(lease.name.as_str()) + guard(&lease.guard),
        Write::UpdateAccount { name, change } => text(name.as_str()) + account_change(change),
        Write::IndexTag(tag) => {
            let container = tag.container.as_ref().map(ContainerName::as_str);
            bytes(tag.entry.as_bytes()) + option(container)
        }
        Write::ForgetGarbage { keys: rows } | Write::ForgetTagWork { rows } => {
            list(rows) + rows.iter().map(|row| bytes(row)).sum::<usize>()
        }
        Write::ExpireStaged { key, .. } | Write::ExpireDeleted { key, .. } => bytes(key.as_bytes()),
        Write::PurgeContainer { from, .. } => bytes(from),
        Write::SetUpAccount(made) => {
            let secrets: usize = made.keys.iter().map(secret).sum();
            text(made.name.as_str()) + list(&made.keys) + secrets + secret(&made.delegation_secret)
        }
        Write::CreateAccount { name, .. } | Write::DeleteAccount { name, .. } => {
            text(name.as_str())
        }
        Write::ForgetContainer { .. } | Write::Prove => 0,
    };
    FIXED + more
}

/// The weight of the parts that most writes of a blob have: a name and a guard.
fn guarded(key: &BlobKey, of: &Guard) -> usize {
    text(key.name.as_str()) + guard(of)
}

fn put_blob(put: &PutBlob) -> usize {
    guarded(&put.key, &put.guard)
        + properties(&put.properties)
        + metadata(&put.metadata)
        + tags(&put.tags)
        + content(&put.content)
        + new_fields(&put.fields)
}

fn new_fields(fields: &NewBlobFields) -> usize {
    let object = fields.object.as_deref().map_or(0, object);
    checksums(&fields.checksums) + object
}

fn checksums(all: &[ContentChecksum]) -> usize {
    list(all) + all.iter().map(|checksum| bytes(&checksum.digest)).sum::<usize>()
}

fn object(object: &ObjectProperties) -> usize {
    let ObjectProperties { expires, redirect, storage_class, owner, acl: _ } = object;
    let texts = [expires, redirect, storage_class, owner];
    let texts = texts.into_iter().map(|text| option(text.as_deref()));
    size_of_val(object) + ALLOCATION + texts.sum::<usize>()
}

fn commit_blocks(commit: &CommitBlocks) -> usize {
    guarded(&commit.key, &commit.guard)
        + properties(&commit.properties)
        + metadata(&commit.metadata)
        + tags(&commit.tags)
        + list(&commit.list)
}

fn start_upload(start: &StartUpload) -> usize {
    size_of_val(start)
        + text(start.key.name.as_str())
        + properties(&start.properties)
        + metadata(&start.metadata)
        + tags(&start.tags)
        + claim(&start.encryption)
        + start.object.as_deref().map_or(0, object)
        + option(start.initiator.as_deref())
}

fn stage_part(stage: &StagePart) -> usize {
    text(stage.key.name.as_str())
        + claim(&stage.encryption)
        + content(&stage.content)
        + list(&stage.checksums)
        + stage.checksums.iter().map(|checksum| bytes(&checksum.digest)).sum::<usize>()
}

fn complete_upload(complete: &CompleteUpload) -> usize {
    let parts = complete.parts.iter().filter_map(|part| part.checksum.as_ref());
    let checksums = parts.chain(&complete.checksum).map(|checksum| bytes(&checksum.digest));
    size_of_val(complete)
        + guarded(&complete.key, &complete.guard)
        + list(&complete.parts)
        + checksums.sum::<usize>()
}

fn fill_layer(fill: &FillLayer) -> usize {
    let spans = fill.spans.iter().filter_map(|span| span.content.as_ref()).map(content);
    bytes(fill.blob.as_bytes()) + list(&fill.spans) + spans.sum::<usize>()
}

fn reseal_copy(reseal: &ResealCopy) -> usize {
    bytes(reseal.blob.as_bytes()) + secret(&reseal.from) + secret(&reseal.to)
}

fn end_copy(end: &EndCopy) -> usize {
    let outcome = match &end.end {
        CopyEnd::Success { content, .. } => copied(content),
        CopyEnd::Failed(why) => text(why),
        CopyEnd::Aborted(_) => 0,
    };
    bytes(end.blob.as_bytes()) + outcome
}

fn blob_change(change: &BlobChange) -> usize {
    match change {
        BlobChange::Properties(new) => properties(new),
        BlobChange::Metadata(new) => metadata(new),
        BlobChange::Tags(new) => tags(new),
        BlobChange::Acl(_) | BlobChange::Retention(_) | BlobChange::LegalHold(_) => 0,
    }
}

fn create_container(create: &CreateContainer) -> usize {
    let scope = create.encryption_scope.as_ref().map(|scope| scope.name.as_str());
    let texts = [scope, create.owner.as_deref(), create.region.as_deref()];
    let texts = texts.into_iter().map(option).sum::<usize>();
    text(create.name.as_str()) + metadata(&create.metadata) + texts
}

fn container_change(change: &ContainerChange) -> usize {
    match change {
        ContainerChange::Metadata(new) => metadata(new),
        ContainerChange::Access { policies, .. } => {
            let texts = policies.iter().map(|p| text(&p.id) + option(p.permissions.as_deref()));
            list(policies) + texts.sum::<usize>()
        }
        ContainerChange::Acl(_)
        | ContainerChange::Versioning(_)
        | ContainerChange::ObjectLock { .. } => 0,
    }
}

fn setting(change: &SettingChange) -> usize {
    match change {
        SettingChange::Set(setting) => ALLOCATION + setting.weight(),
        SettingChange::Remove(_) => 0,
    }
}

fn account_change(change: &AccountChange) -> usize {
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
        AccountChange::Anonymous(_)
        | AccountChange::Versioning(_)
        | AccountChange::ContainerRetention(_)
        | AccountChange::ObjectLock(_)
        | AccountChange::Type(_) => 0,
        AccountChange::Assign(role) | AccountChange::Unassign(role) => {
            let container = role.container.as_ref().map(ContainerName::as_str);
            text(&role.issuer) + text(&role.principal) + option(container)
        }
        AccountChange::PutUser(user) => {
            let keys = user.keys.iter().map(|key| text(key.id.as_str()) + secret(&key.secret));
            let texts = [user.name.as_str(), &user.display, &user.canonical];
            let texts = texts.into_iter().map(text).sum::<usize>();
            size_of_val(user.as_ref()) + list(&user.keys) + keys.sum::<usize>() + texts
        }
        AccountChange::RemoveUser(name) => text(name.as_str()),
        AccountChange::AddScope(scope) => {
            size_of_val(scope.as_ref()) + text(&scope.name) + secret(&scope.key)
        }
        AccountChange::SwitchScope { name, .. } => text(name),
    }
}

fn website(site: &Website) -> usize {
    let texts = [&site.index_document, &site.error_document, &site.default_index_path];
    texts.into_iter().map(|text| option(text.as_deref())).sum()
}

fn put_copy(copy: &PutCopy) -> usize {
    let record = copy.copy.as_ref().map_or(0, |record| {
        size_of_val(record.as_ref()) + text(&record.source) + option(record.description.as_deref())
    });
    let job = copy.job.as_ref().map_or(0, |job| {
        size_of_val(job.as_ref()) + secret(&job.source) + option(job.etag.as_deref())
    });
    let source = copy.increment.as_ref().map_or(0, |it| bytes(it.source.as_bytes()));
    size_of_val(copy)
        + guarded(&copy.key, &copy.guard)
        + properties(&copy.properties)
        + metadata(&copy.metadata)
        + tags(&copy.tags)
        + copied(&copy.content)
        + new_fields(&copy.fields)
        + record
        + source
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
            let inside = blocks.iter().map(|b| content(&b.content) + checksums(&b.checksums));
            list(blocks) + inside.sum::<usize>()
        }
    }
}

fn guard(guard: &Guard) -> usize {
    let conditions = &guard.conditions;
    let tags = [&conditions.if_match, &conditions.if_none_match].into_iter().flatten();
    // A group of clauses is a list of its own.
    let clause = |clause: &TagClause| {
        size_of::<TagClause>() + 2 * ALLOCATION + text(&clause.key) + text(&clause.value)
    };
    let if_tags = guard.if_tags.iter().flat_map(TagCondition::clauses).map(clause);
    tags.map(etags).sum::<usize>() + if_tags.sum::<usize>() + claim(&guard.encryption)
}

fn claim(claim: &EncryptionClaim) -> usize {
    match claim {
        EncryptionClaim::Given(Some(
            Encryption::Scope(name) | Encryption::KeyedScope { name, .. },
        )) => text(name),
        EncryptionClaim::Given(Some(Encryption::Customer(_)) | None)
        | EncryptionClaim::Unchecked => 0,
    }
}

fn etags(wanted: &EtagMatch) -> usize {
    match wanted {
        EtagMatch::Any | EtagMatch::AnyUnleased => 0,
        EtagMatch::Tags(all) => list(all),
        EtagMatch::Content(all) => list(all),
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
    let texts = texts.into_iter().map(|text| option(text.as_deref())).sum::<usize>();
    texts + properties.content_md5.extra_len()
}

fn metadata(metadata: &Metadata) -> usize {
    let pair = |(name, value)| size_of::<(String, Bytes)>() + text(name) + bytes(value);
    metadata.iter().map(pair).sum()
}

fn tags(tags: &Tags) -> usize {
    let pair = |(key, value)| size_of::<(String, String)>() + text(key) + text(value);
    tags.iter().map(pair).sum()
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
pub(super) mod tests;
