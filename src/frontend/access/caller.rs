//! The sender of a request.

use crate::audit_log;
use crate::auth::Grant;
use crate::auth::Principal;
use crate::frontend::access::user_caller::UserCaller;
use crate::types::Audience;

/// The sender of a request.
#[derive(Debug)]
pub(crate) enum Caller {
    /// An anonymous caller.
    Anyone,
    /// The holder of an account key, who may do everything.
    Key,
    /// The holder of a key of another account of this store.
    Outsider,
    /// The holder of a verified signature, and the name of the holder in the audit log.
    Signature(Grant, audit_log::Principal),
    /// The principal of a token.
    Principal(Principal),
    /// A user of the account, or the holder of temporary keys.
    User(Box<UserCaller>),
}

impl Caller {
    /// The audience of a caller that has no permission of its own in the account.
    pub(crate) const fn audience(&self) -> Option<Audience> {
        match self {
            Self::Anyone => Some(Audience::Everyone),
            Self::Outsider => Some(Audience::Authenticated),
            Self::Key | Self::Signature(..) | Self::Principal(_) | Self::User(_) => None,
        }
    }

    /// The caller, as the audit log names them.
    pub(crate) fn named(&self) -> audit_log::Principal {
        match self {
            Self::Anyone => audit_log::Principal::Anonymous,
            Self::Key => audit_log::Principal::SharedKey,
            Self::Outsider => audit_log::Principal::OtherAccount,
            Self::Signature(_, holder) => holder.clone(),
            Self::Principal(principal) => bearer(principal),
            Self::User(caller) => match &caller.user {
                Some(user) => audit_log::Principal::User { user: user.name.as_str().to_owned() },
                None => bearer(&caller.principal),
            },
        }
    }
}

fn bearer(principal: &Principal) -> audit_log::Principal {
    audit_log::Principal::Bearer(audit_log::Subject {
        issuer: principal.issuer.name.clone(),
        subject: principal.object.clone(),
    })
}
