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
        /// What changes; in the body.
        change: Box<ServicePropertiesChange>,
    },
    /// Get User Delegation Key.
    GetUserDelegationKey {
        /// What is wanted of the key; in the body.
        wanted: KeyInfo,
        /// The version it is asked at.
        version: String,
        /// Who asks, once that is known; none when they came without a token.
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
