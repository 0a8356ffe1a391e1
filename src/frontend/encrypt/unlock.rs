//! Unlocks blobs: finds the key of a blob, and refuses blobs under a disabled scope.

use prometheus_client::metrics::counter::Counter;

use crate::frontend::accounts::Account;
use crate::frontend::accounts::Scope;
use crate::frontend::accounts::Scopes;
use crate::frontend::encrypt::Decrypting;
use crate::frontend::encrypt::scope::check;
use crate::frontend::encrypt::scope::disabled;
use crate::frontend::encrypt::scope::fill_of_upload;
use crate::frontend::encrypt::scope::key_of;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::BlobRecord;
use crate::index::Guard;
use crate::index::ReadBlob;
use crate::protocol::model::Precondition;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::RequestEncryption;
use crate::types::AccountName;
use crate::types::Encryption;

/// The means to decrypt a blob that is about to be looked up.
pub(crate) enum Unlocking {
    /// Nothing: no key came with the request, and the account has no scopes with keys.
    Nothing,
    /// The key of the request.
    Key(Decrypting),
    /// The keys of the account's scopes.
    Scopes(Box<Locked>),
}

/// A blob that may be under a scope.
pub(crate) struct Locked {
    scopes: Scopes,
    account: AccountName,
    path: BlobPath,
    not_authentic: Counter,
}

impl Unlocking {
    /// For the blob of a request.
    pub(crate) fn of(front: &FrontEnd, blob: &BlobTarget<'_>) -> Self {
        let account = blob.account;
        if let Some(key) = blob.precondition.encryption.key() {
            let not_authentic = front.not_authentic();
            return Self::Key(Decrypting::new(key, &account.name, &blob.path, not_authentic));
        }
        if account.scopes.is_empty() {
            return Self::Nothing;
        }
        Self::Scopes(Box::new(Locked {
            scopes: account.scopes.clone(),
            account: account.name.clone(),
            path: blob.path.clone(),
            not_authentic: front.not_authentic(),
        }))
    }

    /// For the blob that was found; `None` if it is not under a key.
    ///
    /// # Errors
    /// `AuthorizationFailure` for a blob under a disabled scope.
    pub(crate) fn found(self, record: &BlobRecord) -> Result<Option<Decrypting>, Refusal> {
        match (self, record.under()) {
            (Self::Scopes(locked), Some(Encryption::KeyedScope { name, .. })) => {
                let Locked { scopes, account, path, not_authentic } = *locked;
                let scope = scopes.get(&name).ok_or_else(|| disabled(&name))?;
                let key = key_of(scope, &name)?;
                Ok(Some(Decrypting::new(&key, &account, &path, not_authentic)))
            }
            (Self::Nothing, Some(Encryption::KeyedScope { name, .. })) => Err(disabled(&name)),
            (Self::Scopes(locked), Some(Encryption::Scope(name)))
                if matches!(locked.scopes.get(&name), Some(Scope::Disabled)) =>
            {
                Err(disabled(&name))
            }
            (Self::Key(decrypting), _) => Ok(Some(decrypting)),
            (Self::Nothing | Self::Scopes(_), _) => Ok(None),
        }
    }
}

/// As [`check`], for an operation that neither reads nor writes content. It looks the blob up only
/// in accounts with disabled scopes.
///
/// # Errors
/// As [`check`].
pub(crate) async fn check_blob(
    front: &FrontEnd,
    account: &Account,
    blob: &BlobVersion,
) -> Result<(), Refusal> {
    if !account.scopes.has_disabled() {
        return Ok(());
    }
    check(account, under(front, blob).await?.as_ref())
}

/// Puts the key of a blob's scope into the precondition of a change of its properties, which need
/// not name the scope: a Content-MD5 among them is stored under that key.
///
/// # Errors
/// As [`fill_of_upload`].
pub(crate) async fn fill_of_blob(
    front: &FrontEnd,
    account: &Account,
    (blob, precondition): (&BlobVersion, &mut Precondition),
) -> Result<(), Refusal> {
    if account.scopes.is_empty() || precondition.encryption != RequestEncryption::Unchecked {
        return Ok(());
    }
    let under = under(front, blob).await?;
    check(account, under.as_ref())?;
    fill_of_upload(account, under.as_ref(), precondition)
}

/// The encryption of a blob; `None` if the look-up is refused. The operation itself then reports
/// the refusal.
async fn under(front: &FrontEnd, blob: &BlobVersion) -> Result<Option<Encryption>, Refusal> {
    let (key, revision, guard) = (blob.key.clone(), blob.revision, Guard::default());
    let read = ReadBlob { key, revision, guard, range: None, pieces: false };
    match front.rows.router.ask(read).await {
        Ok(view) => Ok(view.record.under()),
        Err(index::Error::Refused(_)) => Ok(None),
        // The scope may be disabled.
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}
