//! Checks that a request sends the key, or names the scope, under which a blob or block is
//! encrypted.

use crate::index::api::EncryptionClaim;
use crate::index::api::EncryptionFault;
use crate::index::api::Error;
use crate::index::api::Refused;
use crate::index::objects::values::Entry;
use crate::types::BlobProperties;
use crate::types::Encryption;

/// Checks a request against the blob that it reads. It need not name the scope of a blob that is
/// under one.
pub(super) fn check(claim: &EncryptionClaim, blob: Option<&Encryption>) -> Result<(), Error> {
    let EncryptionClaim::Given(given) = claim else { return Ok(()) };
    // The request names a scope, but does not say whether the scope has a key.
    if let (Some(given), Some(blob)) = (given, blob)
        && let (Some(given), Some(blob)) = (given.scope(), blob.scope())
        && given == blob
    {
        return Ok(());
    }
    compare(given.as_ref(), blob)
}

/// As [`check`], but a scope with a key differs from a scope of this name without one.
fn compare(given: Option<&Encryption>, blob: Option<&Encryption>) -> Result<(), Error> {
    use Encryption as E;
    let fault = match (given, blob) {
        (None, None | Some(E::Scope(_) | E::KeyedScope { .. })) => return Ok(()),
        (given, blob) if given == blob => return Ok(()),
        (None | Some(E::Scope(_) | E::KeyedScope { .. }), Some(E::Customer(_))) => {
            EncryptionFault::KeyMissing
        }
        (Some(E::Customer(_)), Some(E::Scope(_) | E::KeyedScope { .. })) | (Some(_), None) => {
            EncryptionFault::NotEncrypted
        }
        (Some(_), Some(_)) => EncryptionFault::Mismatch,
    };
    Err(Refused::Encryption(fault).into())
}

/// As [`check`], for a request that changes the blob. It must name the scope of a blob that is
/// under one.
///
/// Source: recorded answers of the service (2021-08-06).
pub(super) fn check_change(
    claim: &EncryptionClaim,
    blob: Option<&Encryption>,
) -> Result<(), Error> {
    let EncryptionClaim::Given(given) = claim else { return Ok(()) };
    if given.is_none() && blob.is_some_and(|blob| blob.scope().is_some()) {
        return Err(Refused::Encryption(EncryptionFault::KeyMissing).into());
    }
    compare(given.as_ref(), blob)
}

/// As [`check_change`], for a request that adds content. A request without encryption headers adds
/// plain content.
pub(super) fn check_content(
    claim: &EncryptionClaim,
    blob: Option<&Encryption>,
) -> Result<(), Error> {
    check_change(&EncryptionClaim::Given(claim.applied()), blob)
}

/// As [`check_content`], for a part of an upload. It need not name the scope of the upload, if that
/// has no key.
pub(super) fn check_part(
    claim: &EncryptionClaim,
    upload: Option<&Encryption>,
) -> Result<(), Error> {
    compare(claim.applied().as_ref(), upload)
}

/// Checks a block list against the blob that it replaces. It must name a scope if the blob is under
/// one. The new blob is under the scope that the list names.
pub(super) fn check_replaced(
    claim: &EncryptionClaim,
    before: Option<&Encryption>,
) -> Result<(), Error> {
    let was_scoped = before.is_some_and(|before| before.scope().is_some());
    if was_scoped && claim.applied().is_none() {
        return Err(Refused::Encryption(EncryptionFault::KeyMissing).into());
    }
    Ok(())
}

/// Refuses a plain digest for a blob under a key. Such a digest is stored only encrypted under that
/// key, so the request must send the key or name the scope.
pub(super) fn check_properties(
    properties: &BlobProperties,
    blob: Option<&Encryption>,
) -> Result<(), Error> {
    let by_key = blob.is_some_and(|blob| blob.key_sha256().is_some());
    if by_key && properties.content_md5.to_base64().is_some() {
        return Err(Refused::Encryption(EncryptionFault::KeyMissing).into());
    }
    Ok(())
}

/// Checks the blocks of a block list: all of them are under the key of the list, or none is under a
/// key.
pub(super) fn check_blocks(claim: &EncryptionClaim, entries: &[Entry]) -> Result<(), Error> {
    let key = claim.applied().and_then(|under| under.key_sha256()).map(Encryption::Customer);
    entries.iter().try_for_each(|entry| {
        let under = entry.content.nonce().map(|nonce| Encryption::Customer(nonce.key_sha256));
        compare(key.as_ref(), under.as_ref())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_held_against_the_blob() {
        let key = |n: u8| Some(Encryption::Customer([n; 32]));
        let scope = |s: &str| Some(Encryption::Scope(s.to_owned()));
        let rows = [
            (None, None, None),
            (None, scope("a"), None),
            (scope("a"), scope("a"), None),
            (key(1), key(1), None),
            (None, key(1), Some(EncryptionFault::KeyMissing)),
            (scope("a"), key(1), Some(EncryptionFault::KeyMissing)),
            (key(1), None, Some(EncryptionFault::NotEncrypted)),
            (scope("a"), None, Some(EncryptionFault::NotEncrypted)),
            (key(1), scope("a"), Some(EncryptionFault::NotEncrypted)),
            (key(1), key(2), Some(EncryptionFault::Mismatch)),
            (scope("a"), scope("b"), Some(EncryptionFault::Mismatch)),
        ];
        for (given, blob, fault) in rows {
            let expected = fault.map_or(Ok(()), |fault| Err(Refused::Encryption(fault).into()));
            let claim = EncryptionClaim::Given(given);
            assert_eq!(check(&claim, blob.as_ref()), expected, "{claim:?} {blob:?}");
            assert_eq!(check(&EncryptionClaim::Unchecked, blob.as_ref()), Ok(()));
        }
    }

    #[test]
    fn a_change_names_the_scope_of_the_blob() {
        let missing = Err(Refused::Encryption(EncryptionFault::KeyMissing).into());
        let scope = |s: &str| Some(Encryption::Scope(s.to_owned()));
        let (own, blob) = (scope("a"), scope("a"));
        let given = |encryption: &Option<Encryption>| EncryptionClaim::Given(encryption.clone());
        for checked in [check_change, check_content, check_replaced] {
            assert_eq!(checked(&given(&None), blob.as_ref()), missing);
            assert_eq!(checked(&given(&own), blob.as_ref()), Ok(()));
            assert_eq!(checked(&given(&None), None), Ok(()));
        }
        assert_eq!(check_change(&EncryptionClaim::Unchecked, blob.as_ref()), Ok(()));
        assert_eq!(check_part(&given(&None), blob.as_ref()), Ok(()));
        let other = Err(Refused::Encryption(EncryptionFault::Mismatch).into());
        assert_eq!(check_change(&given(&scope("b")), blob.as_ref()), other);
        assert_eq!(check_replaced(&given(&scope("b")), blob.as_ref()), Ok(()));
    }
}
