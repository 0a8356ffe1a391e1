//! Access to a container: public access, stored access policies.
//!
//! Source: "Set Container ACL", "Get Container ACL", "Define a stored access policy".

use http::HeaderMap;

use crate::protocol::azure::headers;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::AccessPolicy;
use crate::protocol::wire::escape;
use crate::protocol::wire::xml;
use crate::protocol::wire::xml::Element;
use crate::protocol::wire::xml::invalid_value;
use crate::types::PublicAccess;
use crate::types::Timestamp;

/// Bytes of a Set Container ACL body.
pub(super) const POLICIES_BYTES_MAX: u64 = 64 * 1024;

/// Policies of a container.
const POLICIES_MAX: usize = 5;
/// Characters of a policy's id.
const ID_CHARS_MAX: usize = 64;
/// Letters a policy may have: those of containers.
const LETTERS: &str = "racwdxyltfmeopi";

/// Reads `x-ms-blob-public-access`; without it anonymous callers may not read.
pub(super) fn public_access(all: &HeaderMap) -> Result<PublicAccess, Refusal> {
    match headers::text(all, "x-ms-blob-public-access")? {
        None => Ok(PublicAccess::Private),
        Some(text) if text.eq_ignore_ascii_case("blob") => Ok(PublicAccess::Blob),
        Some(text) if text.eq_ignore_ascii_case("container") => Ok(PublicAccess::Container),
        Some(text) => Err(headers::invalid("x-ms-blob-public-access", text)),
    }
}

/// Reads the body of Set Container ACL; an empty one has no policies.
///
/// # Errors
/// `InvalidXmlDocument`, `UnsupportedXmlNode`, `MissingRequiredXmlNode`, `InvalidXmlNodeValue`.
pub(super) fn read_policies(body: &[u8]) -> Result<Vec<AccessPolicy>, Refusal> {
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let root = xml::parse(body, "SignedIdentifiers")?;
    if let Some(other) = root.children.iter().find(|child| child.name != "SignedIdentifier") {
        return Err(Refusal::new(Reason::UnsupportedElement)
            .detail(Detail::ElementName, other.name.as_str()));
    }
    if root.children.len() > POLICIES_MAX {
        return Err(Refusal::new(Reason::InvalidDocument)
            .message("A container has at most 5 stored access policies."));
    }
    let policies: Vec<AccessPolicy> = root.children.iter().map(policy).collect::<Result<_, _>>()?;
    for (at, policy) in policies.iter().enumerate() {
        if policies.iter().skip(at + 1).any(|other| other.id == policy.id) {
            return Err(invalid_value("Id", &policy.id));
        }
    }
    Ok(policies)
}

fn policy(element: &Element) -> Result<AccessPolicy, Refusal> {
    element.only(&["Id", "AccessPolicy"])?;
    let id = element.child_text("Id").ok_or_else(|| xml::missing("Id"))?;
    if id.is_empty() || id.chars().count() > ID_CHARS_MAX {
        return Err(invalid_value("Id", id));
    }
    let mut policy = AccessPolicy { id: id.to_owned(), ..AccessPolicy::default() };
    let Some(fields) = element.child("AccessPolicy") else { return Ok(policy) };
    fields.only(&["Start", "Expiry", "Permission"])?;
    policy.start = time(fields, "Start")?;
    policy.expiry = time(fields, "Expiry")?;
    if let Some(letters) = fields.child_text("Permission").filter(|text| !text.is_empty()) {
        if !letters.chars().all(|letter| LETTERS.contains(letter)) {
            return Err(invalid_value("Permission", letters));
        }
        policy.permissions = Some(letters.to_owned());
    }
    Ok(policy)
}

fn time(fields: &Element, name: &str) -> Result<Option<Timestamp>, Refusal> {
    match fields.child_text(name) {
        None | Some("") => Ok(None),
        Some(text) => Timestamp::from_iso(text).map(Some).ok_or_else(|| invalid_value(name, text)),
    }
}

/// Writes the body of Get Container ACL.
pub(super) fn write_policies(policies: &[AccessPolicy]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>");
    for policy in policies {
        out.push_str("<SignedIdentifier>");
        escape::element(&mut out, "Id", &policy.id);
        if policy.is_empty() {
            // As it came: recorded answers of the service (2021-08-06).
            out.push_str("</SignedIdentifier>");
            continue;
        }
        out.push_str("<AccessPolicy>");
        for (name, time) in [("Start", policy.start), ("Expiry", policy.expiry)] {
            if let Some(time) = time {
                escape::plain(&mut out, name, time.to_iso());
            }
        }
        if let Some(letters) = &policy.permissions {
            escape::plain(&mut out, "Permission", letters);
        }
        out.push_str("</AccessPolicy></SignedIdentifier>");
    }
    out.push_str("</SignedIdentifiers>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "<SignedIdentifier><Id>a&amp;b</Id><AccessPolicy><Start>2026-11-21</Start>\
        <Expiry>2026-11-22T05:00:00.0000001Z</Expiry><Permission>rl</Permission></AccessPolicy></SignedIdentifier>";

    fn document(inside: &str) -> String {
        format!("<?xml version=\"1.0\"?><SignedIdentifiers>{inside}</SignedIdentifiers>")
    }

    fn code(inside: &str) -> Reason {
        read_policies(document(inside).as_bytes()).unwrap_err().reason
    }

    #[test]
    fn policies_are_read_and_written_back() {
        let policies = read_policies(document(POLICY).as_bytes()).unwrap();
        let expected = AccessPolicy {
            id: "a&b".to_owned(),
            start: Timestamp::from_iso("2026-11-21"),
            expiry: Timestamp::from_iso("2026-11-22T05:00:00.0000001Z"),
            permissions: Some("rl".to_owned()),
        };
        assert_eq!(policies, [expected]);
        let text = write_policies(&policies);
        assert!(text.contains("<Start>2026-11-21T00:00:00.0000000Z</Start>"), "{text}");
        assert_eq!(read_policies(text.as_bytes()).unwrap(), policies);
    }

    #[test]
    fn empty_documents_and_policies_are_policies_too() {
        for text in ["", " \n", &document(""), "<SignedIdentifiers/>"] {
            assert_eq!(read_policies(text.as_bytes()).unwrap(), [], "{text}");
        }
        for inside in
            ["", "<AccessPolicy/>", "<AccessPolicy><Start/><Expiry></Expiry></AccessPolicy>"]
        {
            let text =
                document(&format!("<SignedIdentifier><Id>x</Id>{inside}</SignedIdentifier>"));
            let policy = AccessPolicy { id: "x".to_owned(), ..AccessPolicy::default() };
            let read = read_policies(text.as_bytes()).unwrap();
            assert_eq!(read, [policy], "{text}");
            assert!(!write_policies(&read).contains("AccessPolicy"), "{text}");
        }
    }

    #[test]
    fn malformed_policies_have_their_codes() {
        let with = |id: &str, fields: &str| {
            format!(
                "<SignedIdentifier><Id>{id}</Id><AccessPolicy>{fields}</AccessPolicy></SignedIdentifier>"
            )
        };
        let six: String = (0..6).map(|n| with(&n.to_string(), "")).collect();
        assert_eq!(code(&six), Reason::InvalidDocument);
        let five: String = (0..5).map(|n| with(&n.to_string(), "")).collect();
        assert_eq!(read_policies(document(&five).as_bytes()).unwrap().len(), 5);
        assert_eq!(code(&with(&"i".repeat(65), "")), Reason::InvalidElementValue);
        assert!(read_policies(document(&with(&"i".repeat(64), "")).as_bytes()).is_ok());
        assert_eq!(code(&with("", "")), Reason::InvalidElementValue);
        assert_eq!(code(&(with("x", "") + &with("x", ""))), Reason::InvalidElementValue);
        assert_eq!(code(&with("x", "<Start>soon</Start>")), Reason::InvalidElementValue);
        assert_eq!(code(&with("x", "<Permission>rz</Permission>")), Reason::InvalidElementValue);
        assert_eq!(code(&with("x", "<Owner>me</Owner>")), Reason::UnsupportedElement);
        assert_eq!(code("<SignedIdentifier/>"), Reason::MissingElement);
        assert_eq!(code("<Other/>"), Reason::UnsupportedElement);
        assert_eq!(code("<SignedIdentifier>"), Reason::InvalidDocument);
    }
}
