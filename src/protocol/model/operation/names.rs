//! The REST names of operations.

use super::AccountOperation;
use super::BlobOperation;
use super::ContainerOperation;
use super::ContentOperation;
use super::FindBlobs;
use super::Operation;

impl Operation {
    /// The operation's name as metrics and logs show it: the REST name without spaces.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Account(operation) => operation.name(),
            Self::Container(operation) => operation.name(),
            Self::Content(operation) => operation.name(),
            Self::Blob(operation) => operation.name(),
            Self::Upload(operation) => operation.name(),
        }
    }
}

impl AccountOperation {
    const fn name(&self) -> &'static str {
        match self {
            Self::GetAccountInformation => "GetAccountInformation",
            Self::GetServiceProperties => "GetServiceProperties",
            Self::SetServiceProperties { .. } => "SetServiceProperties",
            Self::GetUserDelegationKey { .. } => "GetUserDelegationKey",
            Self::GetServiceStats => "GetServiceStats",
            Self::ListContainers(_) => "ListContainers",
            Self::FindBlobs(FindBlobs { container: None, .. }) => "FindBlobsByTags",
            Self::Batch(_) => "BlobBatch",
            Self::FindBlobs(_) => "FindBlobsByTagsInContainer",
        }
    }
}

impl ContainerOperation {
    const fn name(&self) -> &'static str {
        match self {
            Self::CreateContainer { .. } => "CreateContainer",
            Self::GetContainer { .. } => "GetContainerProperties",
            Self::GetContainerAcl { .. } => "GetContainerAcl",
            Self::SetContainerAcl { .. } => "SetContainerAcl",
            Self::GetContainerGrants { .. } => "GetContainerGrants",
            Self::SetContainerGrants { .. } => "SetContainerGrants",
            Self::SetContainerMetadata { .. } => "SetContainerMetadata",
            Self::DeleteContainer { .. } | Self::DeleteIfEmpty { .. } => "DeleteContainer",
            Self::RestoreContainer { .. } => "RestoreContainer",
            Self::LeaseContainer { .. } => "LeaseContainer",
            Self::Setting(setting) if setting.is_read() => "GetContainerSetting",
            Self::Setting(setting) if setting.is_removal() => "RemoveContainerSetting",
            Self::Setting(_) => "SetContainerSetting",
            Self::ListBlobs(_) => "ListBlobs",
            Self::DeleteBlobs(_) => "DeleteBlobs",
        }
    }
}

impl ContentOperation {
    const fn name(&self) -> &'static str {
        match self {
            Self::PutBlob { .. } => "PutBlob",
            Self::AppendBlockFromUrl { .. } => "AppendBlockFromUrl",
            Self::AppendBlock { .. } => "AppendBlock",
            Self::PutPage { .. } => "PutPage",
            Self::PutPageFromUrl { .. } => "PutPageFromUrl",
            Self::PutBlobFromUrl(_) => "PutBlobFromUrl",
            Self::CopyBlob(copy) if copy.sync => "CopyBlobFromUrl",
            Self::CopyBlob(_) => "CopyBlob",
            Self::CopyIncrement(_) => "IncrementalCopyBlob",
            Self::CopyNamed(_) => "CopyNamedBlob",
            Self::AbortCopy { .. } => "AbortCopy",
            Self::PutBlockFromUrl { .. } => "PutBlockFromUrl",
            Self::PutBlock { .. } => "PutBlock",
            Self::PutBlockList { .. } => "PutBlockList",
        }
    }
}

impl BlobOperation {
    const fn name(&self) -> &'static str {
        match self {
            Self::SetPageProperties { .. } => "SetBlobProperties",
            Self::GetPageRanges { .. } => "GetPageRanges",
            Self::SealBlob { .. } => "SealBlob",
            Self::GetBlockList { .. } => "GetBlockList",
            Self::GetBlob { .. } => "GetBlob",
            Self::GetBlobPart { .. } => "GetBlobPart",
            Self::GetBlobProperties { .. } => "GetBlobProperties",
            Self::SetBlobProperties { .. } => "SetBlobProperties",
            Self::GetBlobMetadata { .. } => "GetBlobMetadata",
            Self::SetBlobMetadata { .. } => "SetBlobMetadata",
            Self::SnapshotBlob { .. } => "SnapshotBlob",
            Self::SetBlobTier { .. } => "SetBlobTier",
            Self::QueryBlob { .. } => "QueryBlobContents",
            Self::UndeleteBlob { .. } => "UndeleteBlob",
            Self::LeaseBlob { .. } => "LeaseBlob",
            Self::GetBlobTags { .. } => "GetBlobTags",
            Self::SetBlobTags { .. } => "SetBlobTags",
            Self::GetBlobGrants { .. } => "GetBlobGrants",
            Self::SetBlobGrants { .. } => "SetBlobGrants",
            Self::GetBlobLock { .. } => "GetBlobLock",
            Self::SetBlobRetention { retention: Some(_), .. } => "SetBlobImmutabilityPolicy",
            Self::SetBlobRetention { retention: None, .. } => "DeleteBlobImmutabilityPolicy",
            Self::SetBlobLegalHold { .. } => "SetBlobLegalHold",
            Self::DeleteBlob { .. } => "DeleteBlob",
            Self::GetBlobAttributes { .. } => "GetBlobAttributes",
            Self::RestoreBlob { .. } => "RestoreBlob",
        }
    }
}

/// All names that [`Operation::name`] returns, in alphabetical order.
pub const OPERATION_NAMES: [&str; 70] = [
    "AbortCopy",
    "AbortUpload",
    "AppendBlock",
    "AppendBlockFromUrl",
    "BlobBatch",
    "CompleteUpload",
    "CopyBlob",
    "CopyBlobFromUrl",
    "CopyNamedBlob",
    "CopyPart",
    "CreateContainer",
    "CreateUpload",
    "DeleteBlob",
    "DeleteBlobImmutabilityPolicy",
    "DeleteBlobs",
    "DeleteContainer",
    "FindBlobsByTags",
    "FindBlobsByTagsInContainer",
    "GetAccountInformation",
    "GetBlob",
    "GetBlobAttributes",
    "GetBlobGrants",
    "GetBlobLock",
    "GetBlobMetadata",
    "GetBlobPart",
    "GetBlobProperties",
    "GetBlobTags",
    "GetBlockList",
    "GetContainerAcl",
    "GetContainerGrants",
    "GetContainerProperties",
    "GetContainerSetting",
    "GetPageRanges",
    "GetServiceProperties",
    "GetServiceStats",
    "GetUserDelegationKey",
    "IncrementalCopyBlob",
    "LeaseBlob",
    "LeaseContainer",
    "ListBlobs",
    "ListContainers",
    "ListParts",
    "ListUploads",
    "PutBlob",
    "PutBlobFromUrl",
    "PutBlock",
    "PutBlockFromUrl",
    "PutBlockList",
    "PutPage",
    "PutPageFromUrl",
    "QueryBlobContents",
    "RemoveContainerSetting",
    "RestoreBlob",
    "RestoreContainer",
    "SealBlob",
    "SetBlobGrants",
    "SetBlobImmutabilityPolicy",
    "SetBlobLegalHold",
    "SetBlobMetadata",
    "SetBlobProperties",
    "SetBlobTags",
    "SetBlobTier",
    "SetContainerAcl",
    "SetContainerGrants",
    "SetContainerMetadata",
    "SetContainerSetting",
    "SetServiceProperties",
    "SnapshotBlob",
    "UndeleteBlob",
    "UploadPart",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn list_has_every_name() {
        let arms = include_str!("names.rs").split("#[cfg(test)]").next().unwrap();
        let uploads = include_str!("upload.rs");
        let named: BTreeSet<&str> = arms
            .lines()
            .chain(uploads.lines())
            .filter_map(|line| line.split_once("=> \"")?.1.split('"').next())
            .collect();
        assert_eq!(named.into_iter().collect::<Vec<_>>(), OPERATION_NAMES);
    }
}
