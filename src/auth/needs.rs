//! The table of permissions: what permits each action.
//!
//! Source: Storage REST "Create an account SAS" (table of operations), "Create a service SAS"
//! (permissions by resource), "Authorize with Microsoft Entra ID" (permissions by operation).

use crate::auth::SasPermissions;
use crate::auth::action::Action;
use crate::auth::action::Exposure;
use crate::types::Role;

const NONE: SasPermissions = SasPermissions::NONE;

/// On what an action acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The account.
    Service,
    /// A container.
    Container,
    /// A blob.
    Object,
    /// Whatever the URL names.
    Any,
}

/// A row of the table: the permissions of which an action needs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// On what it acts.
    pub(super) level: Level,
    /// Letters of which an account signature has to have one.
    pub(super) account: SasPermissions,
    /// Letters of which a service signature has to have one; none means that no service signature
    /// is enough.
    pub(super) service: SasPermissions,
    /// Letters that a signature has to have besides, each of them.
    pub(super) also: SasPermissions,
    /// Letters of which a signature has to have one to replace what exists; none when there is
    /// nothing to replace.
    pub(super) replace: SasPermissions,
    /// The least role that permits it to the principal of a token; `None` when no role does.
    pub(super) role: Option<Role>,
    /// The least public access that permits it to anonymous callers; `None` when none does.
    pub(super) anonymous: Option<Exposure>,
}

/// Reads of the account.
const READ_ACCOUNT: Need = row(Level::Service, "r", "", Role::Owner);
/// Changes of the account.
const WRITE_ACCOUNT: Need = row(Level::Service, "w", "", Role::Owner);
/// Lists of the account.
const LIST_ACCOUNT: Need = row(Level::Service, "l", "", Role::Reader);
/// Readers may have a delegation key: its signatures permit no more than its holder's role.
const DELEGATE_KEY: Need = row(Level::Service, "", "", Role::Reader);
/// Reads of a container itself: no service signature is enough.
const READ_CONTAINER: Need =
    open(row(Level::Container, "r", "", Role::Reader), Exposure::Container);
/// Changes of a container itself.
const WRITE_CONTAINER: Need = row(Level::Container, "w", "", Role::Contributor);
/// Access policies: only for holders of an account key and owners of the account.
const POLICY: Need = row(Level::Container, "", "", Role::Owner);
/// Settings of a container: no signature is enough.
const READ_SETTINGS: Need = row(Level::Container, "", "", Role::Reader);
const WRITE_SETTINGS: Need = row(Level::Container, "", "", Role::Owner);
/// Access control lists of blobs: as policies of containers.
const BLOB_POLICY: Need = row(Level::Object, "", "", Role::Owner);
const CREATE_CONTAINER: Need = row(Level::Container, "cw", "", Role::Contributor);
const DELETE_CONTAINER: Need = row(Level::Container, "d", "", Role::Contributor);
const LIST_BLOBS: Need = open(row(Level::Container, "l", "l", Role::Reader), Exposure::Container);
/// Tags are never public.
const LIST_TAGS: Need =
    Need { also: SasPermissions::of("t"), ..row(Level::Container, "l", "l", Role::Reader) };
/// Lists of uploads are never public.
const LIST_UPLOADS: Need = row(Level::Container, "l", "l", Role::Reader);
const LIST_PARTS: Need = row(Level::Object, "r", "r", Role::Reader);
const READ_BLOB: Need = open(row(Level::Object, "r", "r", Role::Reader), Exposure::Blob);
const WRITE_BLOB: Need = row(Level::Object, "w", "w", Role::Contributor);
const STAGE_BLOCK: Need = row(Level::Object, "cw", "cw", Role::Contributor);
/// Adds to existing content.
const APPEND_BLOB: Need = row(Level::Object, "aw", "aw", Role::Contributor);
/// Makes a blob: `c` suffices to create one, `w` also replaces one.
const PUT_BLOB: Need =
    Need { replace: SasPermissions::of("w"), ..row(Level::Object, "cw", "cw", Role::Contributor) };
/// Tags are for those who own the data: with a role, Contributor is not enough on the service
/// either.
const TAGS: Need = row(Level::Object, "t", "t", Role::Owner);
const FIND_BLOBS: Need = row(Level::Object, "f", "f", Role::Owner);
const SNAPSHOT_BLOB: Need = row(Level::Object, "cw", "cw", Role::Contributor);
const DELETE_BLOB: Need = row(Level::Object, "d", "d", Role::Contributor);
/// The history of blobs is for those who own the data.
const DELETE_VERSION: Need = row(Level::Object, "x", "x", Role::Owner);
const PERMANENT_DELETE: Need = row(Level::Object, "y", "y", Role::Owner);

const READ_LOCK: Need = row(Level::Object, "r", "r", Role::Reader);
/// Changes of the protection of data need the role owner.
const WRITE_LOCK: Need = row(Level::Object, "i", "i", Role::Owner);

impl Action {
    /// The public access that permits it to everyone; `None` for actions that are never public.
    #[must_use]
    pub const fn exposure(self) -> Option<Exposure> {
        need(self).anonymous
    }
}

/// The row for `action`.
pub(super) const fn need(action: Action) -> Need {
    use Action as A;
    let any = SasPermissions::ALL;
    match action {
        // Any signature may ask what kind of account it is for, wherever its URL points.
        A::DescribeAccount => {
            let role = Some(Role::Reader);
            Need { account: any, service: any, level: Level::Any, role, ..READ_ACCOUNT }
        }
        // Each part is signed for its own action.
        A::Batch => Need { account: any, service: any, level: Level::Any, ..WRITE_BLOB },
        A::ReadAccount => READ_ACCOUNT,
        A::WriteAccount => WRITE_ACCOUNT,
        A::ListContainers => LIST_ACCOUNT,
        A::DelegateKey => DELEGATE_KEY,
        A::ReadContainer => READ_CONTAINER,
        A::WriteContainer => WRITE_CONTAINER,
        A::BreakContainerLease => break_lease(WRITE_CONTAINER),
        A::CreateContainer => CREATE_CONTAINER,
        A::DeleteContainer => DELETE_CONTAINER,
        A::Policy => POLICY,
        A::ReadSettings => READ_SETTINGS,
        A::WriteSettings => WRITE_SETTINGS,
        A::BlobPolicy => BLOB_POLICY,
        A::ListBlobs { tagged: false } => LIST_BLOBS,
        A::ListBlobs { tagged: true } => LIST_TAGS,
        A::ListUploads => LIST_UPLOADS,
        A::ListParts => LIST_PARTS,
        A::ReadBlob => READ_BLOB,
        A::WriteBlob => WRITE_BLOB,
        // Signatures of earlier versions need `w`; see `Grant::permits`.
        A::StageBlock => STAGE_BLOCK,
        A::BreakBlobLease => break_lease(WRITE_BLOB),
        A::AppendBlob => APPEND_BLOB,
        A::PutBlob { tagged, locked } => put(tagged, locked),
        A::SnapshotBlob => SNAPSHOT_BLOB,
        A::DeleteBlob => DELETE_BLOB,
        A::DeleteVersion => DELETE_VERSION,
        A::PermanentDelete => PERMANENT_DELETE,
        A::ReadTags | A::WriteTags => TAGS,
        A::ReadLock => READ_LOCK,
        A::WriteLock => WRITE_LOCK,
        A::FilterByTags => FIND_BLOBS,
    }
}

/// Makes a blob, with tags or without, protected or not.
const fn put(tagged: bool, locked: bool) -> Need {
    let also = match (tagged, locked) {
        (false, false) => NONE,
        (true, false) => SasPermissions::of("t"),
        (false, true) => SasPermissions::of("i"),
        (true, true) => SasPermissions::of("ti"),
    };
    // A signature of a role's holder permits no more than the role.
    let role = if tagged || locked { Role::Owner } else { Role::Contributor };
    Need { also, role: Some(role), ..PUT_BLOB }
}

/// A caller that may delete may break a lease too.
const fn break_lease(write: Need) -> Need {
    Need { account: SasPermissions::of("wd"), service: SasPermissions::of("wd"), ..write }
}

/// A need of one letter of `account` in an account signature, of `service` in a service signature.
const fn row(level: Level, account: &str, service: &str, role: Role) -> Need {
    let (account, service) = (SasPermissions::of(account), SasPermissions::of(service));
    Need { level, account, service, also: NONE, replace: NONE, role: Some(role), anonymous: None }
}

const fn open(need: Need, exposure: Exposure) -> Need {
    Need { anonymous: Some(exposure), ..need }
}
