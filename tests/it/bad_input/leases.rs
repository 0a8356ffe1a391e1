//! Leases: the action, its ids and times, and actions on what is not leased.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Message;

const BLOB: &str = "PUT /acct1/con1/blob?comp=lease";
const CONTAINER: &str = "PUT /acct1/con1?restype=container&comp=lease";
const ID: &str = "x-ms-lease-id: 5f6b2f9a-7c1d-4f6e-8a90-0123456789ab";

/// Header lines, status and code; for blobs and containers alike.
const ROWS: &[(&[&str], u16, &str)] = &[
    (&[], 400, "MissingRequiredHeader"),
    (&["x-ms-lease-action: take"], 400, "InvalidHeaderValue"),
    (&["x-ms-lease-action: acquire"], 400, "MissingRequiredHeader"),
    (&["x-ms-lease-action: acquire", "x-ms-lease-duration: 14"], 400, "InvalidHeaderValue"),
    (&["x-ms-lease-action: acquire", "x-ms-lease-duration: 61"], 400, "InvalidHeaderValue"),
    (&["x-ms-lease-action: acquire", "x-ms-lease-duration: 0"], 400, "InvalidHeaderValue"),
    (&["x-ms-lease-action: acquire", "x-ms-lease-duration: -2"], 400, "InvalidHeaderValue"),
    (&["x-ms-lease-action: acquire", "x-ms-lease-duration: forever"], 400, "InvalidHeaderValue"),
    (
        &["x-ms-lease-action: acquire", "x-ms-lease-duration: 15", "x-ms-proposed-lease-id: mine"],
        400,
        "InvalidHeaderValue",
    ),
    (&["x-ms-lease-action: renew"], 400, "MissingRequiredHeader"),
    (&["x-ms-lease-action: renew", "x-ms-lease-id: mine"], 400, "InvalidHeaderValue"),
    (&["x-ms-lease-action: renew", ID], 409, "LeaseNotPresentWithLeaseOperation"),
    (&["x-ms-lease-action: change", ID], 400, "MissingRequiredHeader"),
    (
        &[
            "x-ms-lease-action: change",
            ID,
            "x-ms-proposed-lease-id: 00000000-0000-4000-8000-000000000001",
        ],
        409,
        "LeaseNotPresentWithLeaseOperation",
    ),
    (&["x-ms-lease-action: release"], 400, "MissingRequiredHeader"),
    (&["x-ms-lease-action: release", ID], 409, "LeaseNotPresentWithLeaseOperation"),
    (&["x-ms-lease-action: break"], 409, "LeaseNotPresentWithLeaseOperation"),
    (&["x-ms-lease-action: break", "x-ms-lease-break-period: 61"], 400, "InvalidHeaderValue"),
    (&["x-ms-lease-action: break", "x-ms-lease-break-period: -1"], 400, "InvalidHeaderValue"),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for line in [BLOB, CONTAINER] {
        for (headers, status, code) in ROWS {
            let message = headers.iter().fold(Message::new(line), |m, header| m.header(header));
            cases.push(case(&format!("{line} {headers:?}"), message, *status, code));
        }
    }
    let get = Message::new("GET /acct1/con1/blob?comp=lease");
    cases.push(case("lease by GET", get, 405, "UnsupportedHttpVerb"));
    let missing = Message::new("PUT /acct1/con1/none?comp=lease")
        .header("x-ms-lease-action: acquire")
        .header("x-ms-lease-duration: -1");
    cases.push(case("lease of no blob", missing, 404, "BlobNotFound"));
    let missing = Message::new("PUT /acct1/none?restype=container&comp=lease")
        .header("x-ms-lease-action: break");
    cases.push(case("lease of no container", missing, 404, "ContainerNotFound"));
    for line in [
        "DELETE /acct1/con1?restype=container",
        "GET /acct1/con1?restype=container",
        "PUT /acct1/con1?restype=container&comp=metadata",
    ] {
        let message = Message::new(line).header(ID);
        let code = "LeaseNotPresentWithContainerOperation";
        cases.push(case(&format!("{line} with a lease id"), message, 412, code));
    }
    for line in [
        "DELETE /acct1/con1/blob",
        "PUT /acct1/con1/blob?comp=metadata",
        "PUT /acct1/con1/blob?comp=properties",
        "PUT /acct1/con1/blob?comp=block&blockid=YWFh",
        "HEAD /acct1/con1/blob",
    ] {
        let body = if line.contains("comp=block") { "x" } else { "" };
        let message = Message::new(line).header(ID).body(body);
        let code = "LeaseNotPresentWithBlobOperation";
        cases.push(case(&format!("{line} with a lease id"), message, 412, code));
    }
    cases
}
