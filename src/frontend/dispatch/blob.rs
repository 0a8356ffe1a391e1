//! Operations that read or change a blob.

use crate::env::boxed;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::ops::Answer;
use crate::frontend::ops::Answered;
use crate::frontend::ops::appends;
use crate::frontend::ops::attributes;
use crate::frontend::ops::blobs;
use crate::frontend::ops::blocks;
use crate::frontend::ops::content;
use crate::frontend::ops::content::WantedBytes;
use crate::frontend::ops::grants;
use crate::frontend::ops::leases;
use crate::frontend::ops::locks;
use crate::frontend::ops::pages;
use crate::frontend::ops::pages::PropertyChange;
use crate::frontend::ops::pages::RangeQuery;
use crate::frontend::ops::parts;
use crate::frontend::ops::parts::WantedPart;
use crate::frontend::ops::query;
use crate::frontend::ops::restore;
use crate::frontend::ops::tags;
use crate::frontend::ops::versions;
use crate::frontend::ops::versions::NewTier;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::BlobOperation;

/// Carries out an operation that reads or changes a blob.
#[expect(clippy::too_many_lines, reason = "one arm for each operation")]
pub(super) async fn carry_out(
    front: &FrontEnd,
    requester: Requester<'_>,
    operation: BlobOperation,
    memory: DocumentMemory,
) -> Answer {
    use BlobOperation as O;
    let account = requester.account;
    let blob = |path, precondition| BlobTarget { account, path, precondition };
    let reply = match operation {
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
        O::GetBlockList { path, precondition, kind } => {
            blocks::list(front, blob(path, precondition), kind).await
        }
        O::GetBlob { path, precondition, range, checksum } => {
            let (blob, bytes) = (blob(path, precondition), WantedBytes { range, checksum });
            return content::get(front, blob, bytes, requester.payer()).await;
        }
        O::GetBlobPart { path, precondition, number, is_head } => {
            let wanted = WantedPart { number, is_head };
            return parts::get(front, blob(path, precondition), wanted, requester.payer()).await;
        }
        O::QueryBlob { path, precondition, query } => {
            // Boxed, so that other requests do not reserve its space.
            let (blob, payer) = (blob(path, precondition), requester.payer());
            return boxed(|| query::query(front, blob, *query, payer)).await;
        }
        O::GetBlobProperties { path, precondition } => {
            content::facts(front, blob(path, precondition)).await.map(Reply::BlobProperties)
        }
        O::GetBlobMetadata { path, precondition } => {
            content::facts(front, blob(path, precondition)).await.map(Reply::BlobMetadata)
        }
        O::SetBlobProperties { path, precondition, properties } => {
            blobs::set_properties(front, blob(path, precondition), properties).await
        }
        O::SetBlobMetadata { path, precondition, metadata } => {
            blobs::set_metadata(front, blob(path, precondition), metadata).await
        }
        O::SnapshotBlob { path, precondition, metadata } => {
            versions::snapshot(front, blob(path, precondition), metadata).await
        }
        O::SetBlobTier { path, precondition, tier, priority } => {
            let tier = NewTier { tier, priority };
            versions::set_tier(front, blob(path, precondition), tier).await
        }
        O::UndeleteBlob { path } => {
            versions::undelete(front, blob(path, Precondition::default())).await
        }
        O::LeaseBlob { path, precondition, action } => {
            leases::blob(front, blob(path, precondition), action).await
        }
        O::GetBlobTags { path, precondition } => tags::get(front, blob(path, precondition)).await,
        O::SetBlobTags { path, precondition, tags } => {
            tags::set(front, blob(path, precondition), tags, memory).await
        }
        O::GetBlobGrants { path } => grants::of_blob(front, account, path).await,
        O::SetBlobGrants { path, acl } => grants::set_of_blob(front, account, path, acl).await,
        O::GetBlobAttributes { path, precondition, parts } => {
            attributes::get(front, blob(path, precondition), parts).await
        }
        O::RestoreBlob { path, precondition, priority } => {
            restore::restore(front, blob(path, precondition), priority).await
        }
        O::GetBlobLock { path, part } => {
            locks::get(front, blob(path, Precondition::default()), part).await
        }
        O::SetBlobRetention { path, precondition, retention } => {
            locks::set_retention(front, blob(path, precondition), retention, memory).await
        }
        O::SetBlobLegalHold { path, precondition, on } => {
            locks::set_legal_hold(front, blob(path, precondition), on, memory).await
        }
        O::DeleteBlob { path, precondition, scope } => {
            blobs::delete(front, blob(path, precondition), scope).await
        }
    };
    reply.map(Answered::from)
}
