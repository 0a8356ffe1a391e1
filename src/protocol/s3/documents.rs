//! Common code for the documents of requests.

use crate::protocol::model::Operation;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Decode;
use crate::protocol::model::operation::DocumentBody;
use crate::protocol::model::operation::Parsed;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::upload::upload;
use crate::protocol::wire::xml;
use crate::protocol::wire::xml::Element;

/// An operation that a document completes; its length is at most `len_max`.
///
/// # Errors
/// Those of the body's length and checksums.
pub(super) fn completed_by(
    request: &Request<'_>,
    operation: impl Into<Operation>,
    len_max: u64,
    decode: Decode,
) -> Result<Parsed, Refusal> {
    let upload = upload(request.headers, len_max)?;
    Ok(Parsed::NeedsBody {
        operation: Box::new(operation.into()),
        body: DocumentBody { upload, decode },
    })
}

/// The text of a child that must exist.
///
/// # Errors
/// `MissingElement`.
pub(super) fn needed<'a>(of: &'a Element, name: &str) -> Result<&'a str, Refusal> {
    of.child(name).map(|child| child.text.as_str()).ok_or_else(|| xml::missing(name))
}

/// The children of a list, each of which must have that name.
///
/// # Errors
/// `UnsupportedElement`, `InvalidElementValue`.
pub(super) fn items<'a>(of: &'a Element, name: &str) -> Result<&'a [Element], Refusal> {
    match of.children.iter().find(|child| child.name != name) {
        Some(other) => Err(xml::unsupported(&other.name)),
        None if of.text.trim().is_empty() => Ok(&of.children),
        None => Err(xml::invalid_value(&of.name, of.text.trim())),
    }
}

/// The texts of all children of that name, without surrounding white space.
pub(super) fn texts(of: &Element, name: &str) -> Vec<String> {
    let children = of.children.iter().filter(|child| child.name == name);
    children.map(|child| child.text.trim().to_owned()).collect()
}
