//! Azure's rules of names, which are narrower than those of the store. They are checked only when a
//! request creates a name. A container or blob that another dialect made is read, changed and
//! deleted whatever its name.
//!
//! Source: "Naming and referencing containers, blobs, and metadata".

use http::Method;

use crate::protocol::model::Address;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::query::Query;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::NameError;

/// Parts of a blob name between slashes.
const SEGMENTS_MAX: usize = 254;

/// The refusal of a malformed name.
pub(super) fn refused(error: NameError) -> Refusal {
    match error {
        NameError::Length => Refusal::new(Reason::OutOfRangeInput).detail(
            Detail::Explanation,
            "The name of a blob has 1 to 1,024 characters, in at most 254 segments.",
        ),
        NameError::Invalid => Reason::InvalidResourceName.into(),
    }
}

/// The refusal of a malformed container name. Azure reports a forbidden character before a wrong
/// length. Dots and double hyphens are forbidden in Azure, although the store accepts them.
pub(super) fn refused_container(text: &str, error: NameError) -> Refusal {
    let has_foreign = text.contains('.') || text.contains("--");
    match error {
        NameError::Length if !has_foreign => Refusal::new(Reason::OutOfRangeInput)
            .message("The specified resource name length is not within the permissible limits."),
        NameError::Length | NameError::Invalid => refused(NameError::Invalid),
    }
}

/// The refusal of a malformed blob name. Azure reports too many path segments first.
pub(super) fn refused_blob(text: &str, error: NameError) -> Refusal {
    let is_deep = text.split('/').count() > SEGMENTS_MAX;
    refused(if is_deep { NameError::Length } else { error })
}

/// Whether Azure would let a request make a container of this name.
#[must_use]
pub fn may_be_made(name: &ContainerName) -> bool {
    container(name).is_ok()
}

/// Single hyphens, no dots.
fn container(name: &ContainerName) -> Result<(), Refusal> {
    let name = name.as_str();
    if name.contains('.') || name.contains("--") {
        return Err(refused(NameError::Invalid));
    }
    Ok(())
}

/// At most 254 segments, no control characters.
fn blob(name: &BlobName) -> Result<(), Refusal> {
    if name.as_str().chars().any(char::is_control) {
        return Err(refused(NameError::Invalid));
    }
    if name.as_str().split('/').count() > SEGMENTS_MAX {
        return Err(refused(NameError::Length));
    }
    Ok(())
}

/// A metadata name: the ASCII part of C# identifiers, for header names carry no more.
pub(super) fn is_metadata_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Checks the name that a request makes, if it makes one.
///
/// # Errors
/// `InvalidResourceName`, `OutOfRangeInput`.
pub(super) fn check_made(
    method: &Method,
    query: Option<&str>,
    (of_container, of_blob): (Option<&ContainerName>, Option<&BlobName>),
) -> Result<(), Refusal> {
    let checked = match (of_container, of_blob) {
        (_, Some(name)) => blob(name),
        (Some(name), None) => container(name),
        (None, None) => Ok(()),
    };
    match checked {
        Err(refusal) if makes(method, query, of_blob.is_some()) => Err(refusal),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether a request may make the container or blob that it names. One whose query cannot be read
/// is refused anyway.
fn makes(method: &Method, query: Option<&str>, is_blob: bool) -> bool {
    if method != Method::PUT {
        return false;
    }
    let query = Query::parse(query);
    let comp = query.as_ref().map(|query| query.get("comp"));
    match comp {
        Ok(Ok(None)) => true,
        Ok(Ok(Some(comp))) => {
            is_blob && ["block", "blocklist"].iter().any(|made| made.eq_ignore_ascii_case(comp))
        }
        Ok(Err(_)) | Err(_) => true,
    }
}

/// The refusal for a container or blob that does not exist. If Azure's rules forbid its name, the
/// refusal names the violated rule. `address` is the address of the request.
#[must_use]
pub fn explain_missing(refusal: Refusal, address: impl FnOnce() -> Option<Address>) -> Refusal {
    let missing = [Reason::ContainerNotFound, Reason::BlobNotFound, Reason::ResourceNotFound];
    if !missing.contains(&refusal.reason) {
        return refusal;
    }
    let Some(address) = address() else { return refusal };
    let container = || address.container.as_ref().map_or(Ok(()), container);
    let blob = || address.blob.as_ref().map_or(Ok(()), blob);
    let named = if refusal.reason == Reason::ContainerNotFound {
        container()
    } else if refusal.reason == Reason::BlobNotFound {
        blob()
    } else {
        // An anonymous caller must not learn which of them exists.
        container().and_then(|()| blob())
    };
    named.err().unwrap_or(refusal)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(container: &str, blob: Option<&str>) -> Address {
        Address {
            account: crate::types::AccountName::new("acct").unwrap(),
            secondary: false,
            container: Some(ContainerName::new(container).unwrap()),
            blob: blob.map(|name| BlobName::new(name).unwrap()),
            blob_as_sent: None,
            endpoint: String::new(),
        }
    }

    fn made(line: &str, container: &str, blob: Option<&str>) -> Option<Reason> {
        let (method, query) = line.split_once(' ').unwrap();
        let address = address(container, blob);
        let names = (address.container.as_ref(), address.blob.as_ref());
        let checked = check_made(&method.parse().unwrap(), Some(query), names);
        checked.err().map(|refusal| refusal.reason)
    }

    #[test]
    fn a_name_that_no_dialect_makes_is_refused_with_the_code_it_always_had() {
        let of = |text: &str| {
            let error = ContainerName::new(text).unwrap_err();
            refused_container(text, error).reason
        };
        assert_eq!(of(&format!("{}--b", "a".repeat(61))), Reason::InvalidResourceName);
        assert_eq!(of(&format!("{}.b", "a".repeat(63))), Reason::InvalidResourceName);
        assert_eq!(of(&"a".repeat(64)), Reason::OutOfRangeInput);
        assert_eq!(of("ab"), Reason::OutOfRangeInput);
        let deep = format!("\0{}", "/".repeat(255));
        let error = BlobName::new(&deep).unwrap_err();
        assert_eq!(refused_blob(&deep, error).reason, Reason::OutOfRangeInput);
        let error = BlobName::new("a\0b").unwrap_err();
        assert_eq!(refused_blob("a\0b", error).reason, Reason::InvalidResourceName);
    }

    #[test]
    fn names_are_checked_where_they_are_made() {
        let deep = "/".repeat(254);
        for name in ["a.b", "a--b"] {
            let refused = Some(Reason::InvalidResourceName);
            assert_eq!(made("PUT restype=container", name, None), refused);
            assert_eq!(made("PUT restype=container&comp=metadata", name, None), None);
            assert_eq!(made("GET restype=container", name, None), None);
            assert_eq!(made("DELETE restype=container", name, None), None);
            // The container may be another dialect's.
            assert_eq!(made("PUT ", name, Some("b")), None);
        }
        for query in ["", "comp=block&blockid=AA==", "comp=BlockList", "comp=%zz"] {
            let line = format!("PUT {query}");
            assert_eq!(made(&line, "con", Some(&deep)), Some(Reason::OutOfRangeInput), "{query}");
            assert_eq!(made(&line, "con", Some(&deep[1..])), None, "254 segments");
        }
        for line in ["PUT comp=metadata", "PUT comp=tier", "GET ", "HEAD ", "DELETE "] {
            assert_eq!(made(line, "con", Some(&deep)), None, "{line}");
        }
    }

    #[test]
    fn missing_names_that_nobody_could_make_are_explained() {
        let deep = "/".repeat(254);
        let explained = |reason: Reason, container: &str, blob: Option<&str>| {
            explain_missing(reason.into(), || Some(address(container, blob))).reason
        };
        let (container, blob) = (Reason::ContainerNotFound, Reason::BlobNotFound);
        assert_eq!(explained(container, "a.b", None), Reason::InvalidResourceName);
        assert_eq!(explained(container, "a.b", Some("b")), Reason::InvalidResourceName);
        assert_eq!(explained(container, "a-b", Some(&deep)), container);
        assert_eq!(explained(blob, "a-b", Some(&deep)), Reason::OutOfRangeInput);
        assert_eq!(explained(blob, "a.b", Some("b")), blob, "its container exists");
        assert_eq!(explained(Reason::ResourceNotFound, "a.b", None), Reason::InvalidResourceName);
        assert_eq!(
            explained(Reason::ResourceNotFound, "a-b", Some(&deep)),
            Reason::OutOfRangeInput
        );
        assert_eq!(explained(Reason::ServerBusy, "a.b", None), Reason::ServerBusy);
    }

    proptest! {
        /// The rule as the page has it, against the two steps: what all dialects may name, and what
        /// Azure leaves of it.
        #[test]
        fn containers_are_azures(name in "[a-zA-Z0-9.$_-]{1,5}|[a-z0-9-]{60,66}") {
            let legal = (3..=63).contains(&name.len())
                && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
                && name.split('-').all(|part| !part.is_empty());
            let here = ContainerName::new(&name).is_ok_and(|name| container(&name).is_ok());
            prop_assert_eq!(here, legal);
        }

        #[test]
        fn blobs_are_azures(name in "[ -~äß\u{1F600}]{0,9}|/{200,300}a*|[aß]{1000,1030}") {
            let legal = (1..=1024).contains(&name.encode_utf16().count())
                && name.matches('/').count() < 254;
            let here = BlobName::new(&name).is_ok_and(|name| blob(&name).is_ok());
            prop_assert_eq!(here, legal);
        }

        #[test]
        fn metadata_names_are_identifiers(name in "[ -~ä]{0,4}") {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let legal = name.starts_with(|c: char| word(c) && !c.is_ascii_digit())
                && name.chars().all(word);
            prop_assert_eq!(is_metadata_name(&name), legal);
        }
    }
}
