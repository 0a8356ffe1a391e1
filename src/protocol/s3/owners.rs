//! The owner that a request expects its buckets to have.
//!
//! Source: S3, "Verifying bucket ownership with bucket owner condition".

use http::HeaderMap;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::headers;
use crate::types::AccountName;
use crate::types::OwnerIds;

/// The bucket of the request, and that of the source of a copy. Both lie in one account.
const HEADERS: [&str; 2] = ["x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"];
/// Digits of an account number.
const DIGITS: usize = 12;

/// Checks that the account is the one that a request expects.
///
/// # Errors
/// `AuthorizationFailure` for another account, `InvalidBucketOwner` for a value that is not an
/// account number.
pub(super) fn check(all: &HeaderMap, account: &AccountName) -> Result<(), Refusal> {
    for name in HEADERS {
        if !all.contains_key(name) {
            continue;
        }
        let text = headers::text(all, name)?.unwrap_or_default();
        if text.len() != DIGITS || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Reason::InvalidBucketOwner.into());
        }
        if text != OwnerIds::of(account).number {
            return Err(Reason::AuthorizationFailure.into());
        }
    }
    Ok(())
}
