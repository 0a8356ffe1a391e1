//! The published table is the table.

use std::collections::HashSet;

use serde_json::Value;

use super::*;

#[test]
fn published_table_has_every_row_and_no_other() {
    let table: Vec<Value> =
        serde_json::from_str(include_str!("../../../../api-spec/errors.json")).unwrap();
    let published: Vec<(&str, &str, u64, &str)> = table
        .iter()
        .map(|row| {
            let azure = &row["azure"];
            (
                row["reason"].as_str().unwrap(),
                azure["code"].as_str().unwrap(),
                azure["status"].as_u64().unwrap(),
                azure["message"].as_str().unwrap(),
            )
        })
        .collect();
    let coded: Vec<(&str, &str, u64, &str)> = Reason::ALL
        .iter()
        .map(|reason| {
            let row = error_row(*reason);
            (reason.name(), row.code, u64::from(row.status), row.message)
        })
        .collect();
    assert_eq!(published, coded, "api-spec/errors.json differs from src/protocol/azure/errors.rs");
}

/// Reasons that only requests of other dialects are refused for. Blob has no code of their own.
const OF_OTHER_DIALECTS: [Reason; 32] = [
    Reason::InvalidRetentionPeriod,
    Reason::ProtectionNotFound,
    Reason::ObjectLocked,
    Reason::NotVersioned,
    Reason::IllegalVersioning,
    Reason::DeleteMarker,
    Reason::RehydrationInProgress,
    Reason::BlobNotArchived,
    Reason::UnknownEncryptionAlgorithm,
    Reason::InvalidLocation,
    Reason::SettingNotFound,
    Reason::IncompletePreflight,
    Reason::MissingGrants,
    Reason::UnexpectedBody,
    Reason::InvalidBucketOwner,
    Reason::InvalidStorageClass,
    Reason::InvalidPolicy,
    Reason::MalformedForm,
    Reason::FormTooLong,
    Reason::PartNotFound,
    Reason::UploadNotFound,
    Reason::PartOrder,
    Reason::PartTooSmall,
    Reason::UploadMismatch,
    Reason::ChecksumMismatch,
    Reason::IncompleteBody,
    Reason::UnknownAccessKey,
    Reason::InvalidSessionToken,
    Reason::ExpiredSessionToken,
    Reason::RequestTimeTooSkewed,
    Reason::MalformedQueryAuthentication,
    Reason::PayloadHashMismatch,
];

/// Reasons that Blob answers as it does another one.
const AS_ANOTHER: [Reason; 5] = [
    Reason::NothingToMatch,
    Reason::BlobNotOpen,
    Reason::VersionNotFound,
    Reason::RetentionInPast,
    Reason::NoObjectLock,
];

#[test]
fn rows_are_distinct_errors_with_messages() {
    let rows = Reason::ALL.iter().map(|reason| error_row(*reason));
    let codes: HashSet<&str> = rows.clone().map(|row| row.code).collect();
    let shared = OF_OTHER_DIALECTS.len() + AS_ANOTHER.len();
    assert_eq!(codes.len(), Reason::ALL.len() - shared);
    for row in rows {
        assert!(matches!(row.status, 304 | 400..=599), "{row:?}");
        assert!(row.message.ends_with('.'), "{row:?}");
    }
}
