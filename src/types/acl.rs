//! Canned access control lists of S3.

use serde::{Deserialize, Serialize};

/// Who may use a bucket or object in addition to principals with a role. The order of the variants
/// is on disk. Source: S3, "Canned ACL".
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
