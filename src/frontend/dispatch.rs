//! From an operation to the function that carries it out: one exhaustive match.

use crate::env::boxed;
use crate::frontend::accounts::Account;
use crate::frontend::answers::AnswerMemory;
use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::errors;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::ContainerTarget;
use crate::frontend::ops::Answer;
use crate::frontend::ops::acl;
use crate::frontend::ops::acl::NewAcl;
use crate::frontend::ops::appends;
use crate::frontend::ops::appends::Append;
use crate::frontend::ops::blobs;
use crate::frontend::ops::blocks;
use crate::frontend::ops::blocks::NewBlock;
use crate::frontend::ops::blocks::PutList;
use crate::frontend::ops::containers;
use crate::frontend::ops::containers::NewContainer;
use crate::frontend::ops::content;
use crate::frontend::ops::content::WantedBytes;
use crate::frontend::ops::copies;
use crate::frontend::ops::delegation;
use crate::frontend::ops::delegation::KeyRequest;
use crate::frontend::ops::find;
use crate::frontend::ops::leases;
use crate::frontend::ops::listing;
use crate::frontend::ops::pages;
use crate::frontend::ops::pages::PropertyChange;
use crate::frontend::ops::pages::RangeQuery;
use crate::frontend::ops::pages::TargetPages;
use crate::frontend::ops::service_properties;
use crate::frontend::ops::tags;
use crate::frontend::ops::versions;
use crate::frontend::ops::versions::NewTier;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::index::BlobChange;
use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;

/// Whether the operation may add rows to a container. Assumed of all that is not known to add none.
const fn may_change_blobs(operation: &Operation) -> bool {
    use Operation as O;
    !matches!(
        operation,
        O::GetAccountInformation
            | O::GetServiceProperties
            | O::GetServiceStats
            | O::GetUserDelegationKey { .. }
            | O::ListContainers(_)
            | O::GetContainer { .. }
            | O::GetContainerAcl { .. }
            | O::ListBlobs(_)
            | O::GetPageRanges { .. }
            | O::GetBlockList { .. }
            | O::GetBlob { .. }
            | O::GetBlobProperties { .. }
            | O::GetBlobMetadata { .. }
            | O::GetBlobTags { .. }
            | O::FindBlobs(_)
            // Its parts are dispatched one by one.
            | O::Batch(_)
    )
}

/// Refuses what the account or its sender does not permit, before a document is read.
///
/// # Errors
/// `PublicAccessNotPermitted`, `AuthenticationFailed`.
pub(crate) fn check_before_document(
    account: &Account,
    operation: &Operation,
) -> Result<(), Refusal> {
    if let Operation::SetContainerAcl { public_access, .. } = operation {
        acl::check_switch(account, *public_access)?;
    }
    if let Operation::GetUserDelegationKey { holder: None, .. } = operation {
        return Err(errors::only_bearer());
    }
    Ok(())
}

/// What comes with a request after its head.
pub(crate) struct RequestContent<'a> {
    /// The body, as far as it is not read.
    pub(crate) body: &'a mut RequestBody,
    /// The memory of the document that the operation was completed with.
    pub(crate) document: Option<DocumentMemory>,
}

/// Carries out one operation.
pub(crate) async fn dispatch(
    front: &FrontEnd,
    requester: Requester<'_>,
    operation: Operation,
    content: RequestContent<'_>,
) -> Answer {
    // From before the look-up of the container until the answer: the purge of a deleted container
    // waits for this. It does not wait for documents.
    let _change = may_change_blobs(&operation).then(|| front.rows.inflight.change());
    let mut room = match listing::room(&operation) {
        Some(bytes) => {
            Some(AnswerMemory::new(&front.load.answers, requester.payer()).begin(bytes).await?)
        }
        None => None,
    };
    let (reply, stream) = carry_out(front, requester, operation, content).await?;
    if let (Reply::BlockList { .. }, Some(room)) = (&reply, &mut room) {
        // Now the length of the list is known.
        room.shrink(blocks::room(&reply));
    }
    Ok((reply, stream.or_else(|| room.map(ResponseBody::reserved))))
}

/// The match of operations. It is long because it is exhaustive: the compiler names the operations
/// that are missing. Large futures are boxed, because each smaller one would reserve their space.
async fn carry_out(
    front: &FrontEnd,
    requester: Requester<'_>,
    operation: Operation,
    RequestContent { body, document }: RequestContent<'_>,
) -> Answer {
    use Operation as O;
    let account = requester.account;
    let memory = document.unwrap_or_default();
    let blob = |path, precondition| BlobTarget { account, path, precondition };
    let container = |name, precondition| ContainerTarget { account, name, precondition };
    let reply = match operation {
        O::GetAccountInformation => Ok(Reply::AccountInformation),
        O::GetServiceProperties => Ok(service_properties::get(account)),
        O::SetServiceProperties { change } => {
            service_properties::set(front, account, change, memory).await
        }
        O::GetUserDelegationKey { wanted, version, holder } => {
            delegation::get(front, account, KeyRequest { holder, version, wanted })
        }
        O::GetServiceStats => Ok(Reply::ServiceStats { last_sync: front.env.clock.now() }),
        O::ListContainers(list) => listing::containers(front, account, list).await,
        O::CreateContainer { container, metadata, public_access, encryption_scope } => {
            let new = NewContainer { metadata, public_access, encryption_scope };
            containers::create(front, account, container, new).await
        }
        O::GetContainer { container: name, precondition } => {
            containers::get(front, &container(name, precondition)).await
        }
        O::GetContainerAcl { container: name, precondition } => {
            acl::get(front, &container(name, precondition)).await
        }
        O::SetContainerAcl { container: name, precondition, public_access, policies } => {
            let new = NewAcl { public_access, policies };
            acl::set(front, container(name, precondition), new, memory).await
        }
        O::SetContainerMetadata { container: name, precondition, metadata } => {
            containers::set_metadata(front, container(name, precondition), metadata).await
        }
        O::DeleteContainer { container: name, precondition } => {
            containers::delete(front, container(name, precondition)).await
        }
        O::RestoreContainer { container } => versions::restore(front, account, &container).await,
        O::LeaseContainer { container: name, precondition, action } => {
            leases::container(front, container(name, precondition), action).await
        }
        O::ListBlobs(list) => listing::blobs(front, account, list).await,
        O::PutBlob { path, precondition, properties, metadata, tags, tier, kind, upload } => {
            let blob = blob(path, precondition);
            let put = blobs::Put { blob, properties, metadata, tags, tier, kind, upload };
            boxed(|| blobs::put(front, put, body)).await
        }
        O::AppendBlock { path, precondition, position, len_max, upload } => {
            let append = Append { blob: blob(path, precondition), position, len_max };
            boxed(|| appends::append(front, append, &upload, body)).await
        }
        O::PutPage { path, precondition, sequence, write, range, upload } => {
            let pages = TargetPages { blob: blob(path, precondition), sequence, range };
            boxed(|| pages::put(front, pages::Put { pages, write, upload }, body)).await
        }
        O::PutPageFromUrl { path, precondition, sequence, range, source } => {
            let pages = TargetPages { blob: blob(path, precondition), sequence, range };
            boxed(|| copies::blocks::put_pages(front, requester, pages, &source)).await
        }
        O::SetPageProperties { path, precondition, properties, len, sequence } => {
            let change = PropertyChange { properties, len, sequence };
            pages::set(front, blob(path, precondition), change).await
        }
        O::GetPageRanges { path, since, precondition, range, marker, max_results } => {
            let query = RangeQuery { since, range, marker, max_results };
            pages::ranges(front, blob(path, precondition), query).await
        }
        O::SealBlob { path, precondition, position } => {
            appends::seal(front, blob(path, precondition), position).await
        }
        O::PutBlobFromUrl(put) => boxed(|| copies::put_blob(front, requester, *put)).await,
        O::CopyBlob(copy) => boxed(|| copies::copy(front, requester, *copy)).await,
        O::AbortCopy { path, id, precondition } => {
            copies::abort(front, blob(path, precondition), id).await
        }
        O::AppendBlockFromUrl { path, precondition, position, len_max, source } => {
            let append = Append { blob: blob(path, precondition), position, len_max };
            boxed(|| copies::blocks::append(front, requester, append, &source)).await
        }
        O::PutBlockFromUrl { path, id, precondition, source } => {
            let block = NewBlock { blob: blob(path, precondition), id };
            boxed(|| copies::blocks::put_block(front, requester, block, &source)).await
        }
        O::PutBlock { path, id, precondition, upload } => {
            let block = NewBlock { blob: blob(path, precondition), id };
            boxed(|| blocks::stage(front, block, &upload, body)).await
        }
        O::PutBlockList {
            path,
            precondition,
            properties,
            metadata,
            tags,
            tier,
            list,
            checksum,
        } => {
            let blob = blob(path, precondition);
            let put = PutList { blob, properties, metadata, tags, tier, list, checksum };
            boxed(|| blocks::commit(front, put, memory)).await
        }
        O::GetBlockList { path, precondition, kind } => {
            blocks::list(front, blob(path, precondition), kind).await
        }
        O::GetBlob { path, precondition, range, checksum } => {
            let (blob, bytes) = (blob(path, precondition), WantedBytes { range, checksum });
            return content::get(front, blob, bytes, requester.payer()).await;
        }
        O::GetBlobProperties { path, precondition } => {
            content::facts(front, blob(path, precondition)).await.map(Reply::BlobProperties)
        }
        O::GetBlobMetadata { path, precondition } => {
            content::facts(front, blob(path, precondition)).await.map(Reply::BlobMetadata)
        }
        O::SetBlobProperties { path, precondition, properties } => {
            let change = BlobChange::Properties(properties);
            let changed = blobs::update(front, blob(path, precondition), change).await;
            changed.map(Reply::BlobPropertiesSet)
        }
        O::SetBlobMetadata { path, precondition, metadata } => {
            let change = BlobChange::Metadata(metadata);
            let changed = blobs::update(front, blob(path, precondition), change).await;
            changed.map(Reply::BlobMetadataSet)
        }
        O::SnapshotBlob { path, precondition, metadata } => {
            versions::snapshot(front, blob(path, precondition), metadata).await
        }
        O::SetBlobTier { path, precondition, tier, priority } => {
            let tier = NewTier { tier, priority };
            versions::set_tier(front, blob(path, precondition), tier).await
        }
        // Without soft delete there is nothing to restore; the blob must exist.
        O::UndeleteBlob { path } => {
            let facts = content::facts(front, blob(path, Precondition::default())).await;
            facts.map(|_| Reply::BlobUndeleted)
        }
        O::LeaseBlob { path, precondition, action } => {
            leases::blob(front, blob(path, precondition), action).await
        }
        O::GetBlobTags { path, precondition } => tags::get(front, blob(path, precondition)).await,
        O::SetBlobTags { path, precondition, tags } => {
            tags::set(front, blob(path, precondition), tags, memory).await
        }
        O::Batch(_) => {
            Err(Refusal::new(Reason::InvalidInput).message("A part of a batch cannot be a batch."))
        }
        O::FindBlobs(wanted) => find::find(front, account, wanted).await,
        O::DeleteBlob { path, precondition, scope } => {
            blobs::delete(front, blob(path, precondition), scope).await
        }
    };
    Ok((reply?, None))
}
