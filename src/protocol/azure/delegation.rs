//! The bodies of Get User Delegation Key.
//!
//! Source: "Get User Delegation Key".

use crate::protocol::model::Refusal;
use crate::protocol::model::operation::KeyInfo;
use crate::protocol::model::reply::UserDelegationKey;
use crate::protocol::wire::escape;
use crate::protocol::wire::xml;
use crate::protocol::wire::xml::Element;
use crate::protocol::wire::xml::invalid_value;
use crate::types::Timestamp;

/// Bytes of a Get User Delegation Key body.
pub(super) const KEY_INFO_BYTES_MAX: u64 = 8 * 1024;

/// Reads the request's body.
///
/// # Errors
/// `InvalidXmlDocument`, `UnsupportedXmlNode`, `MissingRequiredXmlNode`, `InvalidXmlNodeValue`.
pub(super) fn read_key_info(body: &[u8]) -> Result<KeyInfo, Refusal> {
    let root = xml::parse(body, "KeyInfo")?;
    root.only(&["Start", "Expiry", "DelegatedUserTid"])?;
    let expiry = time(&root, "Expiry")?.ok_or_else(|| xml::missing("Expiry"))?;
    let delegated_tenant = root.child_text("DelegatedUserTid").unwrap_or("").to_owned();
    Ok(KeyInfo { start: time(&root, "Start")?, expiry, delegated_tenant })
}

fn time(root: &Element, name: &str) -> Result<Option<Timestamp>, Refusal> {
    match root.child_text(name) {
        None | Some("") => Ok(None),
        Some(text) => Timestamp::from_iso(text).map(Some).ok_or_else(|| invalid_value(name, text)),
    }
}

/// Reads the answer's body, as clients keep it.
///
/// # Errors
/// `InvalidXmlDocument`, `MissingRequiredXmlNode`.
pub fn read_key(body: &[u8]) -> Result<UserDelegationKey, Refusal> {
    let root = xml::parse(body, "UserDelegationKey")?;
    let text = |name: &str| root.child_text(name).map(str::to_owned);
    let required = |name: &str| text(name).ok_or_else(|| xml::missing(name));
    Ok(UserDelegationKey {
        object: required("SignedOid")?,
        tenant: required("SignedTid")?,
        start: required("SignedStart")?,
        expiry: required("SignedExpiry")?,
        service: required("SignedService")?,
        version: required("SignedVersion")?,
        delegated_tenant: text("SignedDelegatedUserTid").unwrap_or_default(),
        value: required("Value")?,
    })
}

/// Writes the answer's body.
pub(super) fn write_key(key: &UserDelegationKey) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><UserDelegationKey>");
    let fields = [
        ("SignedOid", &key.object),
        ("SignedTid", &key.tenant),
        ("SignedStart", &key.start),
        ("SignedExpiry", &key.expiry),
        ("SignedService", &key.service),
        ("SignedVersion", &key.version),
        ("SignedDelegatedUserTid", &key.delegated_tenant),
        ("Value", &key.value),
    ];
    for (name, value) in fields {
        if !value.is_empty() {
            escape::element(&mut out, name, value);
        }
    }
    out.push_str("</UserDelegationKey>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::model::Reason;

    #[test]
    fn key_info_has_an_expiry_and_maybe_a_start() {
        let text = "<KeyInfo><Start>2026-11-21T05:00:00Z</Start><Expiry>2026-11-22T05:00:00Z</Expiry></KeyInfo>";
        let info = read_key_info(text.as_bytes()).unwrap();
        assert_eq!(info.start, Timestamp::from_iso("2026-11-21T05:00:00Z"));
        assert_eq!(Some(info.expiry), Timestamp::from_iso("2026-11-22T05:00:00Z"));
        let info = read_key_info(b"<KeyInfo><Expiry>2026-11-22</Expiry></KeyInfo>").unwrap();
        assert_eq!((info.start, info.delegated_tenant.as_str()), (None, ""));
    }

    #[test]
    fn keys_are_written_and_read_back() {
        let text = |text: &str| text.to_owned();
        let key = UserDelegationKey {
            object: text("o"),
            tenant: text("t & u"),
            start: text("2026-11-21T05:00:00Z"),
            expiry: text("2026-11-22T05:00:00Z"),
            service: text("b"),
            version: text("2022-11-02"),
            delegated_tenant: String::new(),
            value: text("AAAA"),
        };
        assert_eq!(read_key(write_key(&key).as_bytes()).unwrap(), key);
        let refused = read_key(b"<UserDelegationKey><SignedOid>o</SignedOid></UserDelegationKey>");
        assert_eq!(refused.unwrap_err().reason, Reason::MissingElement);
    }

    #[test]
    fn malformed_key_info_has_its_codes() {
        let code = |text: &str| read_key_info(text.as_bytes()).unwrap_err().reason;
        assert_eq!(code(""), Reason::InvalidDocument);
        assert_eq!(code("<Key/>"), Reason::InvalidDocument);
        assert_eq!(code("<KeyInfo/>"), Reason::MissingElement);
        assert_eq!(code("<KeyInfo><Expiry>soon</Expiry></KeyInfo>"), Reason::InvalidElementValue);
        assert_eq!(code("<KeyInfo><End/></KeyInfo>"), Reason::UnsupportedElement);
    }
}
