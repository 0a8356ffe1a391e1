//! Operations on an account: its service, keys and containers, and searches over all of its blobs.

use crate::protocol::model::operation::parts::Batch;
use crate::protocol::model::operation::parts::FindBlobs;
use crate::protocol::model::operation::parts::Holder;
use crate::protocol::model::operation::parts::KeyInfo;
use crate::protocol::model::operation::parts::ListContainers;
use crate::types::ServicePropertiesChange;

/// Operations on an account: its service, keys and containers, and searches over all of its blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountOperation {
    /// Get Account Information.
    GetAccountInformation,
    /// Get Blob Service Properties.
    GetServiceProperties,
    /// Set Blob Service Properties.
    SetServiceProperties {
        /// The change, from the body.
        change: Box<ServicePropertiesChange>,
    },
    /// Get User Delegation Key.
    GetUserDelegationKey {
        /// The parameters of the key, from the body.
        wanted: KeyInfo,
        /// The version it is asked at.
        version: String,
        /// The principal of the token, once it is known; `None` without a token.
        holder: Option<Holder>,
    },
    /// Get Blob Service Stats; on the secondary only.
    GetServiceStats,
    /// List Containers.
    ListContainers(ListContainers),
    /// Find Blobs by Tags.
    FindBlobs(FindBlobs),
    /// Blob Batch.
    Batch(Batch),
}
