//! Answers about settings that no bucket of Blockyard has, or that have the same value for all
//! buckets. Some tools request them.
//!
//! Source: S3 API reference, the pages of these operations and "List of error codes".

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::SettingAction;
use crate::protocol::model::operation::SettingOperation;
use crate::protocol::s3::errors::ErrorRow;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::wire::query;

use S3Operation as O;

/// An operation on a setting of the bucket.
pub(super) fn operation(request: &Request<'_>, action: SettingAction) -> Result<Parsed, Refusal> {
    let setting = SettingOperation { container: request.bucket()?, action };
    Ok(Parsed::ready(ContainerOperation::Setting(setting).into()))
}

/// Reads a setting that no bucket has.
pub(super) fn get_absent(request: &Request<'_>) -> Result<Parsed, Refusal> {
    operation(request, SettingAction::GetAbsent)
}

/// Reads or removes a configuration of an id; no bucket has any.
pub(super) fn absent_of_id(request: &Request<'_>) -> Result<Parsed, Refusal> {
    request.query.get("id")?.ok_or_else(|| query::missing("id"))?;
    operation(request, SettingAction::GetAbsent)
}

/// Reads a setting that all buckets have.
pub(super) fn get_fixed(request: &Request<'_>) -> Result<Parsed, Refusal> {
    operation(request, SettingAction::GetFixed)
}

/// Removes a setting that no bucket has.
pub(super) fn remove_absent(request: &Request<'_>) -> Result<Parsed, Refusal> {
    operation(request, SettingAction::RemoveAbsent)
}

/// `GetObjectTorrent`: no object has one.
pub(super) fn torrent(_: &Request<'_>) -> Result<Parsed, Refusal> {
    Err(Refusal::new(Reason::ResourceNotFound).message("Objects have no torrents."))
}

/// The code, status and text for a bucket without the setting that an operation asks for.
#[expect(clippy::wildcard_enum_match_arm, reason = "few operations ask for a setting")]
pub(super) const fn not_found(operation: Option<S3Operation>) -> Option<ErrorRow> {
    let Some(operation) = operation else { return None };
    let (code, message) = match operation {
        O::GetBucketTagging => ("NoSuchTagSet", "The TagSet does not exist"),
        O::GetBucketCors => ("NoSuchCORSConfiguration", "The CORS configuration does not exist"),
        O::GetBucketPolicy | O::GetBucketPolicyStatus => {
            ("NoSuchBucketPolicy", "The bucket policy does not exist")
        }
        O::GetBucketLifecycleConfiguration => {
            ("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist")
        }
        O::GetBucketWebsite => (
            "NoSuchWebsiteConfiguration",
            "The specified bucket does not have a website configuration",
        ),
        O::GetBucketEncryption => (
            "ServerSideEncryptionConfigurationNotFoundError",
            "The server side encryption configuration was not found",
        ),
        O::GetBucketReplication => {
            ("ReplicationConfigurationNotFoundError", "The replication configuration was not found")
        }
        O::GetPublicAccessBlock => (
            "NoSuchPublicAccessBlockConfiguration",
            "The public access block configuration was not found",
        ),
        O::GetObjectLockConfiguration => (
            "ObjectLockConfigurationNotFoundError",
            "Object Lock configuration does not exist for this bucket",
        ),
        _ => return None,
    };
    Some(ErrorRow { code, status: 404, message })
}

/// The document of a setting that all buckets have: root element and content.
#[expect(clippy::wildcard_enum_match_arm, reason = "few operations ask for a setting")]
pub(super) const fn fixed(operation: S3Operation) -> Option<FixedDocument> {
    const LAST: &str = "<IsTruncated>false</IsTruncated>";
    let (root, content) = match operation {
        O::GetBucketAccelerateConfiguration => ("AccelerateConfiguration", ""),
        O::GetBucketLogging => ("BucketLoggingStatus", ""),
        O::GetBucketNotificationConfiguration => ("NotificationConfiguration", ""),
        O::GetBucketRequestPayment => ("RequestPaymentConfiguration", "<Payer>BucketOwner</Payer>"),
        // Access control lists are in force, and the writer of an object owns it.
        O::GetBucketOwnershipControls => {
            ("OwnershipControls", "<Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule>")
        }
        O::ListBucketAnalyticsConfigurations => ("ListBucketAnalyticsConfigurationResult", LAST),
        O::ListBucketIntelligentTieringConfigurations => {
            ("ListBucketIntelligentTieringConfigurationsOutput", LAST)
        }
        O::ListBucketInventoryConfigurations => ("ListInventoryConfigurationsResult", LAST),
        O::ListBucketMetricsConfigurations => ("ListMetricsConfigurationsResult", LAST),
        _ => return None,
    };
    Some(FixedDocument { root, content })
}

/// A document that is the same for all buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FixedDocument {
    /// The root element.
    pub(super) root: &'static str,
    /// Its content.
    pub(super) content: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation that reads a setting has a document or a code, not both.
    #[test]
    fn operations_have_a_document_or_a_code() {
        for operation in S3Operation::ALL {
            let (document, code) = (fixed(*operation), not_found(Some(*operation)));
            assert!(document.is_none() || code.is_none(), "{operation:?}");
        }
        assert_eq!(not_found(None), None);
    }
}
