//! Blobs whose name has a backslash, addressed through Azure, which reads a backslash in a URL as a
//! slash.
//!
//! Such names are in stores of earlier releases, and other dialects create them. To make them
//! accessible, a URL with a backslash means the blob of exactly that name if it exists and the one
//! with slashes does not. Only authenticated senders can use this, and a signature of one blob is
//! valid only for the name that it signs.

use crate::auth::Reach;
use crate::frontend::access::admitted::AddressedRequest;
use crate::frontend::access::caller::Caller;
use crate::frontend::accounts::Account;
use crate::frontend::dialect::identify::identify;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::Guard;
use crate::index::ReadBlob;
use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::Revision;

/// Identifies the sender of a request whose URL has a backslash. Also returns the address with the
/// name as it was sent, if that blob is meant.
///
/// # Errors
/// Why the signature or token is refused, and the index's.
pub(super) async fn identify_with_backslash(
    front: &FrontEnd,
    request: AddressedRequest<'_>,
    (account, as_sent): (&Account, &BlobName),
) -> Result<(Caller, Option<Address>), Refusal> {
    let address = Address { blob: Some(as_sent.clone()), ..request.address.clone() };
    let caller = match identify(front, request, account).await {
        Ok(caller) if may_mean_another(&caller) => caller,
        Ok(caller) => return Ok((caller, None)),
        Err(refused) => {
            // It may be a signature of the name with the backslash.
            let request = AddressedRequest { address: &address, ..request };
            let Ok(caller @ Caller::Signature(..)) = identify(front, request, account).await else {
                return Err(refused);
            };
            if !is_meant(front, account, (request.address, as_sent)).await? {
                return Err(refused);
            }
            return Ok((caller, Some(address)));
        }
    };
    let meant = is_meant(front, account, (request.address, as_sent)).await?;
    Ok((caller, meant.then_some(address)))
}

/// Whether the caller may access other names than the one with slashes.
const fn may_mean_another(caller: &Caller) -> bool {
    match caller {
        Caller::Key | Caller::Principal(_) | Caller::User(_) => true,
        Caller::Signature(grant, _) => match grant.reach {
            Reach::Account { .. } | Reach::Resource { container: true } => true,
            Reach::Resource { container: false } | Reach::Directory => false,
        },
        Caller::Outsider | Caller::Anyone => false,
    }
}

/// Whether an address means the blob of the name `as_sent`.
///
/// # Errors
/// The index's.
pub(super) async fn is_meant(
    front: &FrontEnd,
    account: &Account,
    (address, as_sent): (&Address, &BlobName),
) -> Result<bool, Refusal> {
    let (Some(container), Some(_)) = (&address.container, &address.blob) else { return Ok(false) };
    let container = match lookup::container(&front.rows, account, container).await {
        Ok(container) => container,
        Err(refused) if refused.reason == Reason::ContainerNotFound => return Ok(false),
        Err(refused) => return Err(refused),
    };
    let Ok(slashes) = BlobName::new(&as_sent.as_str().replace('\\', "/")) else { return Ok(false) };
    let key = |name| lookup::key_in(account, &container, name);
    Ok(!exists(front, key(slashes)).await? && exists(front, key(as_sent.clone())).await?)
}

async fn exists(front: &FrontEnd, key: BlobKey) -> Result<bool, Refusal> {
    let guard = Guard::default();
    let read = ReadBlob { key, revision: Revision::Current, guard, range: None, pieces: false };
    let Err(error) = front.rows.router.ask(read).await else { return Ok(true) };
    let refused = errors::from_index(&error, Subject::Blob);
    let is_answer = matches!(error, index::Error::Refused(_));
    let is_absent = matches!(refused.reason, Reason::BlobNotFound | Reason::DeleteMarker);
    if is_answer { Ok(!is_absent) } else { Err(refused) }
}
