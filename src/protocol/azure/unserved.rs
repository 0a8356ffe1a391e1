//! Headers and parameters that are not served yet but must not be ignored, because they would
//! change conditions, encryption or placement.

use http::HeaderMap;
use http::Method;

use crate::protocol::azure::copy_headers;
use crate::protocol::azure::encryption;
use crate::protocol::azure::immutability;
use crate::protocol::azure::structured;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::query::Query;
use crate::protocol::wire::query::invalid as invalid_parameter;

/// Headers refused wherever they stand; an entry ending in `-` is a prefix.
const HEADERS: &[&str] = &["x-ms-expiry-", "x-ms-rename-source", "x-ms-file-"];

/// Parameters that are refused everywhere, and their meaning.
const PARAMETERS: &[(&str, &str)] = &[("showonly", "listing by kind")];

/// Parameters of the file-system dialect, which shares URLs with this one.
const FILE_SYSTEM: &[&str] = &["resource", "action", "recursive"];

/// Values of `action` that ask for access control lists, which only hierarchical accounts have.
const ACL_ACTIONS: &[&str] = &["getaccesscontrol", "setaccesscontrol", "setaccesscontrolrecursive"];

/// 501 that names the unserved feature.
pub(super) fn not_served(what: &str) -> Refusal {
    Refusal::new(Reason::NotImplemented).message(format!("Blockyard does not serve {what} yet."))
}

/// Refuses headers and parameters whose meaning would be lost. `of_blob`: the URL names a blob.
pub(super) fn check(
    (method, of_blob): (&Method, bool),
    all: &HeaderMap,
    query: &Query,
) -> Result<(), Refusal> {
    check_file_system(query)?;
    for (name, what) in PARAMETERS {
        match query.get(name)? {
            Some(_) => return Err(not_served(&format!("{what} ({name}=)"))),
            None if query.has(name) => return Err(invalid_parameter(name, "")),
            None => {}
        }
    }
    let comp = query.get("comp")?.map(str::to_ascii_lowercase);
    let encryption = || encryption::is_served(method, comp.as_deref(), all);
    let source_key = || encryption::takes_source_key(method, comp.as_deref(), all);
    let structured = || structured::is_served(method, comp.as_deref(), all);
    for name in all.keys().map(http::HeaderName::as_str).filter(|n| n.starts_with("x-ms-")) {
        if (name.starts_with("x-ms-encryption-") && !encryption())
            || (name.starts_with("x-ms-source-encryption-") && !source_key())
            || (name.starts_with("x-ms-structured-") && !structured())
            || ((name.starts_with(immutability::POLICY)
                || name.starts_with(immutability::LEGAL_HOLD))
                && !(of_blob && immutability::is_served(name, method, comp.as_deref())))
            || (name == copy_headers::SEAL && !copy_headers::is_copy_blob(comp.as_deref(), all))
        {
            return Err(Refusal::new(Reason::UnsupportedHeader).detail(Detail::HeaderName, name));
        }
        let refused = |entry: &&&str| {
            if entry.ends_with('-') { name.starts_with(**entry) } else { name == **entry }
        };
        if HEADERS.iter().find(refused).is_some() {
            return Err(not_served(&format!("the header {name}")).detail(Detail::HeaderName, name));
        }
    }
    Ok(())
}

/// 501 for a request of Data Lake Storage. `what` shows that it is one.
pub(super) fn data_lake(what: &str) -> Refusal {
    Refusal::new(Reason::NotImplemented).message(format!(
        "Blockyard does not serve Data Lake Storage ({what}) yet. It serves Azure Blob at \
         ACCOUNT.blob.DOMAIN and HOST/ACCOUNT, and S3."
    ))
}

fn check_file_system(query: &Query) -> Result<(), Refusal> {
    let is = |action: &str| ACL_ACTIONS.iter().any(|known| known.eq_ignore_ascii_case(action));
    if query.get("action")?.is_some_and(is) {
        return Err(Reason::HierarchicalNamespaceNotEnabled.into());
    }
    match FILE_SYSTEM.iter().find(|name| query.has(name)) {
        Some(name) => Err(data_lake(&format!("{name}="))),
        None => Ok(()),
    }
}
