//! The keys of encryption scopes: content that a request writes under a scope is encrypted under
//! its key, and is decrypted for everyone who may read it.
//!
//! Source: "Encryption scopes for Blob storage". A disabled scope refuses reads and writes with
//! 403; the service's code for it is not documented.

use crate::frontend::accounts::Account;
use crate::frontend::accounts::Scope;
use crate::frontend::errors;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::RequestEncryption;
use crate::protocol::model::reply::BlobFacts;
use crate::types::ContentMd5;
use crate::types::CustomerKey;
use crate::types::Encryption;

/// Puts the key of the scope that a write names into its precondition. A scope without a key stays
/// without one.
///
/// # Errors
/// `AuthorizationFailure` for a disabled scope.
pub(crate) fn fill(account: &Account, precondition: &mut Precondition) -> Result<(), Refusal> {
    let RequestEncryption::Scope(name) = &precondition.encryption else { return Ok(()) };
    if let Some(scope) = account.scopes.get(name) {
        let (name, key) = (name.clone(), key_of(scope, name)?);
        precondition.encryption = RequestEncryption::KeyedScope { name, key };
    }
    Ok(())
}

/// As [`fill`], for a part of an upload, which need not name the scope of the upload.
///
/// # Errors
/// As [`fill`].
pub(crate) fn fill_of_upload(
    account: &Account,
    upload: Option<&Encryption>,
    precondition: &mut Precondition,
) -> Result<(), Refusal> {
    if let Some(Encryption::KeyedScope { name, .. }) = upload
        && matches!(
            precondition.encryption,
            RequestEncryption::Plain | RequestEncryption::Unchecked
        )
    {
        precondition.encryption = RequestEncryption::Scope(name.clone());
    }
    fill(account, precondition)
}

/// Refuses blobs under a disabled scope, also those that only have its name.
///
/// # Errors
/// `AuthorizationFailure`.
pub(crate) fn check(account: &Account, under: Option<&Encryption>) -> Result<(), Refusal> {
    let Some(name) = under.and_then(Encryption::scope) else { return Ok(()) };
    match account.scopes.get(name) {
        Some(Scope::Disabled) => Err(disabled(name)),
        Some(Scope::Enabled(_) | Scope::Sealed) | None => Ok(()),
    }
}

pub(super) fn key_of(scope: &Scope, name: &str) -> Result<CustomerKey, Refusal> {
    match scope {
        Scope::Enabled(key) => Ok(key.clone()),
        Scope::Disabled => Err(disabled(name)),
        Scope::Sealed => Err(errors::internal("A key cannot be opened; see the server's log.")),
    }
}

pub(super) fn disabled(name: &str) -> Refusal {
    Refusal::new(Reason::AuthorizationFailure)
        .message(format!("The encryption scope {name} is disabled."))
}

/// Decrypts the Content-MD5 of a listed blob under an enabled scope. That of any other blob under a
/// key stays encrypted, and a list does not show it.
pub(crate) fn show_md5(account: &Account, facts: &mut BlobFacts) {
    if let (Some(Encryption::KeyedScope { name, .. }), ContentMd5::Encrypted(encrypted)) =
        (&facts.encryption, &facts.properties.content_md5)
        && let Some(Scope::Enabled(key)) = account.scopes.get(name)
        && let Some(md5) = key.decrypt_md5(encrypted)
    {
        facts.properties.content_md5 = ContentMd5::Plain(md5);
    }
}
