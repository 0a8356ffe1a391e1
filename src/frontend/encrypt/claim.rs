//! The encryption of a write: the key or scope that the request names, else the container's default
//! scope.

use crate::index::ContainerRecord;
use crate::index::EncryptionClaim;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::RequestEncryption;
use crate::types::Encryption;

/// The encryption headers of a request, as the index checks them.
pub(crate) fn claim(request: &RequestEncryption) -> EncryptionClaim {
    EncryptionClaim::Given(match request {
        RequestEncryption::Unchecked => return EncryptionClaim::Unchecked,
        RequestEncryption::Plain => None,
        RequestEncryption::Key(key) => Some(key.encryption()),
        RequestEncryption::Scope(name) => Some(Encryption::Scope(name.clone())),
        RequestEncryption::KeyedScope { name, key } => {
            Some(Encryption::KeyedScope { name: name.clone(), key_sha256: key.sha256() })
        }
    })
}

/// Checks the encryption of a request that writes or changes a blob against its container's rules,
/// and fills in the default scope. The default counts as named.
///
/// # Errors
/// `RequestForbiddenByContainerEncryptionPolicy` when the container allows its own scope only.
pub(crate) fn settle(
    container: &ContainerRecord,
    precondition: &mut Precondition,
) -> Result<(), Refusal> {
    let Some(default) = &container.encryption_scope else { return Ok(()) };
    let request = &mut precondition.encryption;
    let own = match request {
        RequestEncryption::Unchecked => return Ok(()),
        RequestEncryption::Plain => {
            // A default of `$account-encryption-key` stands for the account's own key: no scope.
            if !default.name.starts_with('$') {
                *request = RequestEncryption::Scope(default.name.clone());
            }
            return Ok(());
        }
        RequestEncryption::Key(_) => false,
        RequestEncryption::Scope(name) | RequestEncryption::KeyedScope { name, .. } => {
            *name == default.name
        }
    };
    if own || !default.deny_override {
        return Ok(());
    }
    Err(Reason::RequestForbiddenByContainerEncryptionPolicy.into())
}

/// Adds the encryption of the change to a reply.
pub(crate) fn with_encryption_header(reply: Reply, claim: &EncryptionClaim) -> Reply {
    match claim.applied() {
        Some(encryption) => Reply::Encrypted(Box::new(reply), encryption),
        None => reply,
    }
}

#[cfg(test)]
mod tests;
