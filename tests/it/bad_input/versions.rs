//! Snapshots, tiers, and restoring what was deleted.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Message;

const TAKEN: &str = "snapshot=2026-11-21T02:13:18.1310000Z";
const ID: &str = "x-ms-lease-id: 5f6b2f9a-7c1d-4f6e-8a90-0123456789ab";
const TIER: &str = "PUT /acct1/con1/blob?comp=tier";
const RESTORE: &str = "PUT /acct1/con1?restype=container&comp=undelete";

const POLICY: &str = "PUT /acct1/con1/blob?comp=immutabilitypolicies";
const UNTIL: &str = "x-ms-immutability-policy-until-date: Wed, 07 Jul 2055 09:33:36 GMT";
const HOLD: &str = "PUT /acct1/con1/blob?comp=legalhold";

/// A request line, header lines, status and code.
const ROWS: &[(&str, &[&str], u16, &str)] = &[
    ("GET /acct1/con1/blob?comp=snapshot", &[], 405, "UnsupportedHttpVerb"),
    ("PUT /acct1/con1/none?comp=snapshot", &[], 404, "BlobNotFound"),
    ("PUT /acct1/none/blob?comp=snapshot", &[], 404, "ContainerNotFound"),
    ("PUT /acct1/con1/blob?comp=snapshot", &[ID], 412, "LeaseNotPresentWithBlobOperation"),
    ("PUT /acct1/con1/blob?comp=snapshot", &["if-match: \"0x1\""], 412, "ConditionNotMet"),
    ("PUT /acct1/con1/blob?comp=snapshot", &["x-ms-meta-1: x"], 400, "InvalidMetadata"),
    ("GET /acct1/con1/blob?snapshot=yesterday", &[], 400, "InvalidQueryParameterValue"),
    ("GET /acct1/con1/blob?snapshot=2026-02-30T00:00:00Z", &[], 400, "InvalidQueryParameterValue"),
    ("DELETE /acct1/con1/blob?snapshot=", &[], 400, "InvalidQueryParameterValue"),
    ("DELETE /acct1/con1/blob?deletetype=permanent", &[], 409, "FeatureNotSupportedForAccount"),
    ("DELETE /acct1/con1/none", &["x-ms-delete-snapshots: include"], 404, "BlobNotFound"),
    (POLICY, &[], 400, "MissingRequiredHeader"),
    (POLICY, &["x-ms-immutability-policy-until-date: 2030"], 400, "InvalidHeaderValue"),
    (POLICY, &[UNTIL, "x-ms-immutability-policy-mode: x"], 400, "InvalidHeaderValue"),
    (POLICY, &[UNTIL, "if-match: *"], 400, "ConditionHeadersNotSupported"),
    (POLICY, &[UNTIL, "x-ms-legal-hold: true"], 400, "UnsupportedHeader"),
    (POLICY, &[UNTIL], 409, "FeatureNotSupportedForAccount"),
    ("GET /acct1/con1/blob?comp=immutabilitypolicies", &[], 405, "UnsupportedHttpVerb"),
    ("DELETE /acct1/con1/none?comp=immutabilitypolicies", &[], 404, "BlobNotFound"),
    (HOLD, &[], 400, "MissingRequiredHeader"),
    (HOLD, &["x-ms-legal-hold: on"], 400, "InvalidHeaderValue"),
    (HOLD, &["x-ms-legal-hold: true"], 409, "FeatureNotSupportedForAccount"),
    ("DELETE /acct1/con1/blob?comp=legalhold", &[], 405, "UnsupportedHttpVerb"),
    ("PUT /acct1/con1/blob?comp=metadata", &["x-ms-legal-hold: true"], 400, "UnsupportedHeader"),
    (TIER, &[], 400, "MissingRequiredHeader"),
    (TIER, &["x-ms-access-tier: Tepid"], 400, "InvalidHeaderValue"),
    (TIER, &["x-ms-access-tier: P10"], 409, "BlobAccessTierNotSupportedForAccountType"),
    (TIER, &["x-ms-access-tier: Premium"], 409, "BlobAccessTierNotSupportedForAccountType"),
    (TIER, &["x-ms-access-tier: Hot", "x-ms-rehydrate-priority: Soon"], 400, "InvalidHeaderValue"),
    (TIER, &["x-ms-access-tier: Cool", ID], 412, "LeaseNotPresentWithBlobOperation"),
    (TIER, &["x-ms-access-tier: Cool", "if-match: *"], 400, "ConditionHeadersNotSupported"),
    ("GET /acct1/con1/blob?comp=tier", &[], 405, "UnsupportedHttpVerb"),
    ("PUT /acct1/con1/none?comp=tier", &["x-ms-access-tier: Cool"], 404, "BlobNotFound"),
    ("PUT /acct1/con1/staged?comp=tier", &["x-ms-access-tier: Cool"], 404, "BlobNotFound"),
    ("PUT /acct1/con1/none?comp=undelete", &[], 404, "BlobNotFound"),
    ("POST /acct1/con1/blob?comp=undelete", &[], 405, "UnsupportedHttpVerb"),
    (RESTORE, &[], 400, "MissingRequiredHeader"),
    (RESTORE, &["x-ms-deleted-container-name: con1"], 400, "MissingRequiredHeader"),
    (
        RESTORE,
        &["x-ms-deleted-container-name: con1", "x-ms-deleted-container-version: 01D69540C360196E"],
        409,
        "ContainerAlreadyExists",
    ),
    (
        "PUT /acct1/none?restype=container&comp=undelete",
        &["x-ms-deleted-container-name: con1", "x-ms-deleted-container-version: 01D69540C360196E"],
        404,
        "ContainerNotFound",
    ),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = ROWS
        .iter()
        .map(|(line, headers, status, code)| {
            let message = headers.iter().fold(Message::new(line), |m, header| m.header(header));
            case(&format!("{line} {headers:?}"), message, *status, code)
        })
        .collect();
    for method in ["GET", "HEAD", "DELETE"] {
        let line = format!("{method} /acct1/con1/blob?{TAKEN}");
        cases.push(case(&line, Message::new(&line), 404, "BlobNotFound"));
    }
    let tier = format!("{TIER}&{TAKEN}");
    let message = Message::new(&tier).header("x-ms-access-tier: Cool");
    cases.push(case("tier of no snapshot", message, 404, "BlobNotFound"));
    let scoped = format!("DELETE /acct1/con1/blob?{TAKEN}");
    let message = Message::new(&scoped).header("x-ms-delete-snapshots: include");
    cases.push(case("snapshots of a snapshot", message, 400, "InvalidHeaderValue"));
    for comp in ["metadata", "properties", "snapshot", "lease", "undelete", "block&blockid=YWFh"] {
        let line = format!("PUT /acct1/con1/blob?comp={comp}&{TAKEN}");
        cases.push(case(&line, Message::new(&line), 400, "InvalidQueryParameterValue"));
    }
    let put = format!("PUT /acct1/con1/blob?{TAKEN}");
    let message = Message::new(&put).header("x-ms-blob-type: BlockBlob").body("x");
    cases.push(case("put over a snapshot", message, 400, "InvalidQueryParameterValue"));
    cases
}
