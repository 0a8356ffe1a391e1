//! DeleteObjects.

use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobDeletion;
use crate::protocol::model::operation::ChecksumClaim;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::DELETIONS_MAX;
use crate::protocol::model::operation::DeleteBlobs;
use crate::protocol::model::operation::Document;
use crate::protocol::model::operation::DocumentBody;
use crate::protocol::model::operation::Parsed;
use crate::protocol::s3::conditions;
use crate::protocol::s3::locks;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::upload::upload;
use crate::protocol::s3::versions;
use crate::protocol::wire::xml;
use crate::protocol::wire::xml::Element;
use crate::types::BlobName;
use crate::types::Conditions;
use crate::types::DeleteScope;
use crate::types::NameError;
use crate::types::Pairing;

/// The longest document, bytes: 1,000 keys of 1,024 bytes, and conditions.
const DOCUMENT_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// The most elements of the document: six for each object.
const ELEMENTS_MAX: usize = 8 * DELETIONS_MAX;

/// `DeleteObjects`.
///
/// # Errors
/// `InvalidInput` without an MD5 or another checksum of the document.
pub(super) fn delete(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let container = request.bucket()?;
    let upload = upload(request.headers, DOCUMENT_BYTES_MAX)?;
    if upload.md5.is_none() && upload.checksums.claim == ChecksumClaim::None {
        return Err(Refusal::new(Reason::InvalidInput)
            .message("Missing required header for this request: Content-MD5 OR x-amz-checksum-*"));
    }
    let bypass = locks::bypass(request.headers)?;
    let deletions = DeleteBlobs {
        container,
        items: Vec::new(),
        quiet: false,
        bypass,
        may_delete_versions: false,
    };
    Ok(Parsed::NeedsBody {
        operation: Box::new(ContainerOperation::DeleteBlobs(deletions).into()),
        body: DocumentBody { upload, decode },
    })
}

fn decode(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    let Operation::Container(ContainerOperation::DeleteBlobs(deletions)) = operation else {
        return Err(Reason::InternalError.into());
    };
    let DeletionDocument { items, quiet } = read(document.bytes)?;
    deletions.items = items;
    deletions.quiet = quiet;
    Ok(())
}

/// The parsed document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionDocument {
    /// The objects, 1 to 1,000.
    pub items: Vec<BlobDeletion>,
    /// Whether the answer names only objects that were not deleted.
    pub quiet: bool,
}

/// Reads the document.
///
/// # Errors
/// `InvalidDocument`, `InvalidElementValue`, `MissingElement`, `UnsupportedElement`,
/// `ExceedsMaxBatchRequestCount`.
pub fn read(bytes: &[u8]) -> Result<DeletionDocument, Refusal> {
    let root = xml::parse_long(bytes, "Delete", ELEMENTS_MAX)?;
    let (mut items, mut quiet) = (Vec::new(), None);
    for child in &root.children {
        match child.name.as_str() {
            "Object" => items.push(object(child)?),
            "Quiet" if quiet.is_none() => quiet = Some(flag(child)?),
            _ => {
                return Err(Refusal::new(Reason::UnsupportedElement)
                    .detail(Detail::ElementName, child.name.as_str()));
            }
        }
    }
    match items.len() {
        0 => Err(xml::missing("Object")),
        1..=DELETIONS_MAX => Ok(DeletionDocument { items, quiet: quiet.unwrap_or(false) }),
        _ => Err(Reason::ExceedsMaxBatchRequestCount.into()),
    }
}

fn flag(element: &Element) -> Result<bool, Refusal> {
    match element.text.trim() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(xml::invalid_value("Quiet", other)),
    }
}

/// An object to delete. If only its key or version is invalid, only this object is refused.
fn object(element: &Element) -> Result<BlobDeletion, Refusal> {
    element.only(&["Key", "VersionId", "ETag", "LastModifiedTime", "Size"])?;
    let key = element.child("Key").filter(|key| !key.text.is_empty());
    let name = key.ok_or_else(|| xml::missing("Key"))?.text.clone();
    let invalid = |name: &'static str| move |text: &str| xml::invalid_value(name, text);
    let conditions = Conditions {
        if_match: element
            .child_text("ETag")
            .map(|text| conditions::tags_of(text).ok_or_else(|| invalid("ETag")(text)))
            .transpose()?,
        if_modified_at: element
            .child_text("LastModifiedTime")
            .map(|text| conditions::time(text).ok_or_else(|| invalid("LastModifiedTime")(text)))
            .transpose()?,
        if_len: element
            .child_text("Size")
            .map(|text| size(text).ok_or_else(|| invalid("Size")(text)))
            .transpose()?,
        pairing: Pairing::TagFirst,
        ..Conditions::default()
    };
    let version = element.child_text("VersionId").filter(|text| !text.is_empty());
    let revision = version.map(|text| versions::of_id(text).ok_or_else(|| invalid_version(text)));
    let (blob, scope) = match revision.transpose() {
        Ok(None) => (blob(&name), DeleteScope::Object),
        Ok(Some(revision)) => (blob(&name), DeleteScope::Version(revision)),
        // No object has a version with this id.
        Err(refused) => (Err(refused), DeleteScope::Object),
    };
    Ok(BlobDeletion {
        name,
        blob,
        scope,
        version: version.map(str::to_owned),
        precondition: Precondition { conditions, ..Precondition::default() },
    })
}

fn invalid_version(text: &str) -> Refusal {
    Refusal::new(Reason::VersionNotFound).detail(Detail::ElementValue, text)
}

fn size(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn blob(name: &str) -> Result<BlobName, Refusal> {
    BlobName::new(name).map_err(|error| match error {
        NameError::Length => Reason::OutOfRangeInput.into(),
        NameError::Invalid => Reason::InvalidUri.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ContentEtag;
    use crate::types::EtagMatch;
    use crate::types::Timestamp;

    fn read_all(inner: &str) -> Result<DeletionDocument, Refusal> {
        let document =
            format!("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{inner}</Delete>");
        read(document.as_bytes())
    }

    #[test]
    fn keys_come_with_conditions() {
        let tag = "d41d8cd98f00b204e9800998ecf8427e";
        let found = read_all(&format!(
            "<Object><Key>a b&#x1F;</Key></Object><Quiet>true</Quiet>\
             <Object><Key> </Key><ETag>&quot;{tag}&quot;</ETag><Size>7</Size>\
             <LastModifiedTime>Thu, 01 Jan 1970 00:00:09 GMT</LastModifiedTime></Object>\
             <Object><Key>c</Key><ETag>*</ETag><VersionId>null</VersionId>\
             <LastModifiedTime>1970-01-01T00:00:09Z</LastModifiedTime></Object>"
        ));
        let found = found.unwrap();
        assert!(found.quiet);
        let names: Vec<&str> = found.items.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["a b\u{1f}", " ", "c"]);
        assert!(found.items.iter().all(|item| item.blob.is_ok()));
        let conditions: Vec<_> =
            found.items.iter().map(|item| &item.precondition.conditions).collect();
        assert!(conditions[0].is_empty());
        let tags = vec![ContentEtag::parse(tag).unwrap()];
        assert_eq!(conditions[1].if_match, Some(EtagMatch::Content(tags)));
        assert_eq!(conditions[1].if_len, Some(7));
        let nine = Timestamp::from_unix(std::time::Duration::from_secs(9));
        assert_eq!(conditions[1].if_modified_at, Some(nine));
        assert_eq!(conditions[2].if_modified_at, Some(nine));
        assert_eq!(conditions[2].if_match, Some(EtagMatch::Any));
    }

    #[test]
    fn what_is_wrong_with_one_key_does_not_stop_the_others() {
        let long = "k".repeat(1_025);
        let found = read_all(&format!(
            "<Object><Key>{long}</Key></Object><Object><Key>a</Key></Object>\
             <Object><Key>b</Key><VersionId>v1</VersionId></Object>"
        ));
        let reasons: Vec<_> = found
            .unwrap()
            .items
            .into_iter()
            .map(|item| item.blob.err().map(|refused| refused.reason))
            .collect();
        let expected = [Some(Reason::OutOfRangeInput), None, Some(Reason::VersionNotFound)];
        assert_eq!(reasons, expected);
    }

    #[test]
    fn documents_have_one_to_a_thousand_keys() {
        let many = |count| "<Object><Key>a</Key></Object>".repeat(count);
        assert_eq!(read_all(&many(1000)).unwrap().items.len(), 1000);
        for (inner, reason) in [
            (many(1001), Reason::ExceedsMaxBatchRequestCount),
            (String::new(), Reason::MissingElement),
            ("<Object/>".to_owned(), Reason::MissingElement),
            ("<Object><Key/></Object>".to_owned(), Reason::MissingElement),
            ("<Object><Key>a</Key><Key>b</Key></Object>".to_owned(), Reason::InvalidDocument),
            ("<Object><Key>a</Key><Size>x</Size></Object>".to_owned(), Reason::InvalidElementValue),
            (many(1) + "<Quiet>yes</Quiet>", Reason::InvalidElementValue),
            (many(1) + "<Quiet>true</Quiet><Quiet>true</Quiet>", Reason::UnsupportedElement),
            (many(1) + "<Other/>", Reason::UnsupportedElement),
            (
                "<Object><Key>a</Key><LastModifiedTime>now</LastModifiedTime></Object>".to_owned(),
                Reason::InvalidElementValue,
            ),
        ] {
            assert_eq!(read_all(&inner).unwrap_err().reason, reason, "{inner:.80}");
        }
    }
}
