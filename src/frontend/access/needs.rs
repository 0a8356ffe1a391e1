//! What each operation needs: the one table of permissions.
//!
//! Source: Storage REST "Create an account SAS" (table of operations), "Create a service SAS"
//! (permissions by resource), "Authorize with Microsoft Entra ID" (permissions by operation).

use crate::auth::Exposure;
use crate::auth::Level;
use crate::auth::Need;
use crate::auth::SasPermissions;
use crate::protocol::model::Operation;
use crate::types::LeaseAction;
use crate::types::Role;

const NONE: SasPermissions = SasPermissions::NONE;

/// Reads of the account.
const READ_ACCOUNT: Need = need(Level::Service, "r", "", Role::Owner);
/// Changes of the account.
const WRITE_ACCOUNT: Need = need(Level::Service, "w", "", Role::Owner);
/// Lists of the account.
const LIST_ACCOUNT: Need = need(Level::Service, "l", "", Role::Reader);
/// Reads of a container itself: no service signature is enough.
const READ_CONTAINER: Need =
    open(need(Level::Container, "r", "", Role::Reader), Exposure::Container);
/// Changes of a container itself.
const WRITE_CONTAINER: Need = need(Level::Container, "w", "", Role::Contributor);
/// Who may do what is for whoever has a key, or owns the account.
const ACL: Need = need(Level::Container, "", "", Role::Owner);
const CREATE_CONTAINER: Need = need(Level::Container, "cw", "", Role::Contributor);
const DELETE_CONTAINER: Need = need(Level::Container, "d", "", Role::Contributor);
const LIST_BLOBS: Need = open(need(Level::Container, "l", "l", Role::Reader), Exposure::Container);
const READ_BLOB: Need = open(need(Level::Object, "r", "r", Role::Reader), Exposure::Blob);
const WRITE_BLOB: Need = need(Level::Object, "w", "w", Role::Contributor);
/// Adds to what is there.
const APPEND_BLOB: Need = need(Level::Object, "aw", "aw", Role::Contributor);
/// Makes a blob: `c` is enough where there is none, `w` replaces one too.
const PUT_BLOB: Need =
    Need { replace: SasPermissions::of("w"), ..need(Level::Object, "cw", "cw", Role::Contributor) };
/// Tags are for those who own the data: with a role, Contributor is not enough on the service
/// either.
const TAGS_READ: Need = need(Level::Object, "t", "t", Role::Owner);
const TAGS_WRITE: Need = need(Level::Object, "t", "t", Role::Owner);
const FIND_BLOBS: Need = need(Level::Object, "f", "f", Role::Owner);
const SNAPSHOT_BLOB: Need = need(Level::Object, "cw", "cw", Role::Contributor);
const DELETE_BLOB: Need = need(Level::Object, "d", "d", Role::Contributor);

/// What `operation` needs.
pub(super) fn needs(operation: &Operation) -> Need {
    use Operation as O;
    match operation {
        // Any signature may ask what kind of account it is for, wherever its URL points.
        O::GetAccountInformation => {
            let any = SasPermissions::ALL;
            Need { account: any, service: any, level: Level::Any, role: None, ..READ_ACCOUNT }
        }
        // Each part is signed for what it does.
        O::Batch(_) => {
            let any = SasPermissions::ALL;
            Need { account: any, service: any, level: Level::Any, ..WRITE_BLOB }
        }
        O::ListContainers(_) => LIST_ACCOUNT,
        // Whoever may read may delegate that: what a key signs grants no more than its holder may.
        O::GetUserDelegationKey { .. } => need(Level::Service, "", "", Role::Reader),
        O::GetServiceProperties | O::GetServiceStats => READ_ACCOUNT,
        O::SetServiceProperties { .. } => WRITE_ACCOUNT,
        O::CreateContainer { .. } => CREATE_CONTAINER,
        O::GetContainer { .. } => READ_CONTAINER,
        O::GetContainerAcl { .. } | O::SetContainerAcl { .. } => ACL,
        O::SetContainerMetadata { .. } => WRITE_CONTAINER,
        O::DeleteContainer { .. } => DELETE_CONTAINER,
        O::ListBlobs(_) => LIST_BLOBS,
        O::PutBlob { tags, .. } | O::PutBlockList { tags, .. } => tagging(!tags.is_empty()),
        O::PutBlobFromUrl(put) => tagging(put.tags.sets_any()),
        O::CopyBlob(copy) => tagging(copy.tags.sets_any()),
        O::AppendBlock { .. } | O::AppendBlockFromUrl { .. } => APPEND_BLOB,
        O::SealBlob { .. }
        | O::PutPage { .. }
        | O::PutPageFromUrl { .. }
        | O::SetPageProperties { .. } => WRITE_BLOB,
        O::GetPageRanges { .. } => READ_BLOB,
        O::PutBlock { .. }
        | O::PutBlockFromUrl { .. }
        | O::AbortCopy { .. }
        | O::SetBlobProperties { .. }
        | O::SetBlobMetadata { .. } => WRITE_BLOB,
        O::GetBlob { .. }
        | O::GetBlobProperties { .. }
        | O::GetBlobMetadata { .. }
        | O::GetBlockList { .. } => READ_BLOB,
        O::GetBlobTags { .. } => TAGS_READ,
        O::SetBlobTags { .. } => TAGS_WRITE,
        O::FindBlobs(_) => FIND_BLOBS,
        O::SnapshotBlob { .. } => SNAPSHOT_BLOB,
        O::SetBlobTier { .. } | O::UndeleteBlob { .. } => WRITE_BLOB,
        O::RestoreContainer { .. } => WRITE_CONTAINER,
        O::DeleteBlob { .. } => DELETE_BLOB,
        O::LeaseContainer { action, .. } => lease(action, WRITE_CONTAINER),
        O::LeaseBlob { action, .. } => lease(action, WRITE_BLOB),
    }
}

/// Makes a blob, with tags or without.
const fn tagging(tags: bool) -> Need {
    let also = if tags { SasPermissions::of("t") } else { NONE };
    Need { also, ..PUT_BLOB }
}

/// Whoever may delete may break a lease too.
const fn lease(action: &LeaseAction, write: Need) -> Need {
    match action {
        LeaseAction::Break { .. } => {
            Need { account: SasPermissions::of("wd"), service: SasPermissions::of("wd"), ..write }
        }
        LeaseAction::Acquire { .. }
        | LeaseAction::Renew { .. }
        | LeaseAction::Change { .. }
        | LeaseAction::Release { .. } => write,
    }
}

/// A need of one letter of `account` in an account signature, of `service` in a service signature.
const fn need(level: Level, account: &str, service: &str, role: Role) -> Need {
    let (account, service) = (SasPermissions::of(account), SasPermissions::of(service));
    Need { level, account, service, also: NONE, replace: NONE, role: Some(role), anonymous: None }
}

const fn open(need: Need, exposure: Exposure) -> Need {
    Need { anonymous: Some(exposure), ..need }
}
