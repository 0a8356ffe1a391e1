//! GetObjectAttributes.

use http::HeaderMap;

use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::WantedParts;
use crate::protocol::s3::conditions;
use crate::protocol::s3::request::Request;
use crate::protocol::wire::headers;

/// The header that names the attributes.
const NAME: &str = "x-amz-object-attributes";

/// Parts of one page at most.
const PARTS_MAX: u32 = 1_000;

/// The attributes that are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    /// `ETag`.
    pub(super) etag: bool,
    /// `Checksum`.
    pub(super) checksum: bool,
    /// `ObjectParts`.
    pub(super) parts: bool,
    /// `StorageClass`.
    pub(super) class: bool,
    /// `ObjectSize`.
    pub(super) size: bool,
}

/// `GetObjectAttributes`.
pub(super) fn get(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let attributes = wanted(request.headers)?;
    let path = request.object()?;
    let precondition = conditions::read(request.headers)?;
    let number = |name: &str| {
        let number = headers::number(request.headers, name)?;
        Ok::<_, Refusal>(number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
    };
    let limit = number("x-amz-max-parts")?.unwrap_or(PARTS_MAX).min(PARTS_MAX);
    let after = number("x-amz-part-number-marker")?.unwrap_or(0);
    let limit = if attributes.parts { limit } else { 0 };
    let parts = WantedParts { after, limit };
    Ok(Parsed::ready(BlobOperation::GetBlobAttributes { path, precondition, parts }.into()))
}

/// The attributes that a request names, in one header or several.
///
/// # Errors
/// `InvalidHeaderValue` for none, or one that S3 does not have.
pub(super) fn wanted(all: &HeaderMap) -> Result<Attributes, Refusal> {
    let mut wanted = Attributes::default();
    for value in all.get_all(NAME) {
        let text = value.to_str().map_err(|_| invalid(""))?;
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let attribute = match name {
                "ETag" => &mut wanted.etag,
                "Checksum" => &mut wanted.checksum,
                "ObjectParts" => &mut wanted.parts,
                "StorageClass" => &mut wanted.class,
                "ObjectSize" => &mut wanted.size,
                _ => return Err(invalid(name)),
            };
            *attribute = true;
        }
    }
    if wanted == Attributes::default() { Err(invalid("")) } else { Ok(wanted) }
}

fn invalid(value: &str) -> Refusal {
    headers::invalid(NAME, value).message("Invalid attribute name specified.")
}
