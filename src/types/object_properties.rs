//! The fields of objects of S3 that Azure's blobs do not have.

use serde::{Deserialize, Serialize};

use crate::types::CannedAcl;

/// The properties of an S3 object that Azure's blobs do not have. `None` means that it was never
/// set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectProperties {
    /// `Expires`, as the client sent it.
    pub expires: Option<String>,
    /// `x-amz-website-redirect-location`.
    pub redirect: Option<String>,
    /// The storage class that S3 shows, if the tier does not determine it.
    pub storage_class: Option<String>,
    /// The canonical id of its owner; `None` means the account's root user.
    pub owner: Option<String>,
    /// The access control list: who may use it in addition to principals with a role.
    pub acl: Option<CannedAcl>,
}

impl ObjectProperties {
    /// Itself, unless nothing is set.
    #[must_use]
    pub fn if_any(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}
