//! Canned access control lists of S3.

use serde::{Deserialize, Serialize};

/// A canned access control list: who may use a bucket or object in addition to principals with a
/// role. The order of the variants is on disk. Source: S3, "Canned ACL".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CannedAcl {
    /// `private`.
    Private,
    /// `public-read`.
    PublicRead,
    /// `public-read-write`.
    PublicReadWrite,
    /// `authenticated-read`.
    AuthenticatedRead,
    /// `bucket-owner-read`.
    BucketOwnerRead,
    /// `bucket-owner-full-control`.
    BucketOwnerFullControl,
}

/// Senders without a role in the account. The order of the variants is that of their rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Audience {
    /// Anonymous callers.
    Everyone,
    /// Holders of a key of another account of this store.
    Authenticated,
}

impl CannedAcl {
    /// Whether it permits these senders to read.
    #[must_use]
    pub const fn opens_to(self, audience: Audience) -> bool {
        match (self, audience) {
            (Self::PublicRead | Self::PublicReadWrite, _)
            | (Self::AuthenticatedRead, Audience::Authenticated) => true,
            (Self::AuthenticatedRead, Audience::Everyone)
            | (Self::Private | Self::BucketOwnerRead | Self::BucketOwnerFullControl, _) => false,
        }
    }

    /// Whether it permits anything to senders without a role in the account.
    #[must_use]
    pub const fn is_public(self) -> bool {
        self.opens_to(Audience::Authenticated)
    }

    /// Itself, unless it is what applies where none was set.
    #[must_use]
    pub fn if_any(self) -> Option<Self> {
        (self != Self::Private).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_open_to_more_senders_or_fewer() {
        use CannedAcl as C;
        for (acl, everyone, authenticated) in [
            (C::Private, false, false),
            (C::PublicRead, true, true),
            (C::PublicReadWrite, true, true),
            (C::AuthenticatedRead, false, true),
            (C::BucketOwnerRead, false, false),
            (C::BucketOwnerFullControl, false, false),
        ] {
            assert_eq!(acl.opens_to(Audience::Everyone), everyone, "{acl:?}");
            assert_eq!(acl.opens_to(Audience::Authenticated), authenticated, "{acl:?}");
            assert_eq!(acl.is_public(), authenticated, "{acl:?}");
        }
    }
}
