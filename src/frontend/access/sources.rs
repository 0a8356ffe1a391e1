//! Whether the sender of a copy is permitted to read the blob that it names as its source.

use crate::auth;
use crate::auth::Action;
use crate::auth::Scope;
use crate::frontend::access::caller::Caller;
use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::protocol::model::Refusal;
use crate::protocol::model::named_copy::NamedSource;

/// Checks permission to read a source in the requester's own account. A signature is valid for the
/// URL that it signs, so it does not permit another blob.
///
/// # Errors
/// The refusal of what the caller is not permitted.
pub(super) fn check_readable(
    account: &Account,
    caller: &Caller,
    source: &NamedSource,
) -> Result<(), Refusal> {
    let permitted = match caller {
        Caller::Key => Ok(()),
        Caller::Principal(principal) => {
            let scope = Scope {
                account: account.name.as_str(),
                container: Some(source.path.container.as_str()),
                assignments: &account.assignments,
            };
            principal.permits(Action::ReadBlob, scope)
        }
        Caller::Signature(..) => Err(auth::Error::Permission),
        Caller::Anyone => Err(auth::Error::Missing),
    };
    permitted.map_err(|error| errors::from_auth(&error))
}
