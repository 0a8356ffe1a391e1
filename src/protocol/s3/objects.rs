//! Operations on objects.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CACHE_CONTROL;
use http::header::CONTENT_DISPOSITION;
use http::header::CONTENT_ENCODING;
use http::header::CONTENT_LANGUAGE;
use http::header::CONTENT_TYPE;
use http::header::EXPIRES;
use http::header::IF_RANGE;
use http::header::RANGE;

use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::Upload;
use crate::protocol::s3::acl;
use crate::protocol::s3::conditions;
use crate::protocol::s3::locks;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::tagging;
use crate::protocol::s3::upload::upload;
use crate::protocol::wire::headers;
use crate::protocol::wire::range::any_byte_range;
use crate::types::BlobProperties;
use crate::types::ByteRange;
use crate::types::CannedAcl;
use crate::types::ContentMd5;
use crate::types::DeleteScope;
use crate::types::Metadata;
use crate::types::MetadataError;
use crate::types::NewKind;
use crate::types::ObjectProperties;
use crate::types::PartNumber;
use crate::types::Revision;
use crate::types::StorageClass;
use crate::types::Tags;

/// The longest object of one PUT, bytes: 5 GiB.
pub(super) const PUT_BYTES_MAX: u64 = 5 << 30;
/// The most bytes of names and values of metadata.
const METADATA_BYTES_MAX: usize = 2 * 1024;
/// The longest redirect location, bytes.
const REDIRECT_BYTES_MAX: usize = 2 * 1024;
/// The prefix of headers with metadata.
const META: &str = "x-amz-meta-";
/// The coding of bodies in chunks. It describes the body, not the object.
const AWS_CHUNKED: &str = "aws-chunked";

/// `GetObject`.
pub(super) fn get(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let path = request.object()?;
    let precondition = conditions::read(request.headers)?;
    let range = range(request.headers);
    if let Some(number) = part(request, range.as_ref())? {
        let is_head = false;
        let part = BlobOperation::GetBlobPart { path, precondition, number, is_head };
        return Ok(Parsed::ready(part.into()));
    }
    Ok(Parsed::ready(BlobOperation::GetBlob { path, precondition, range, checksum: None }.into()))
}

/// `HeadObject`.
pub(super) fn head(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let path = request.object()?;
    let precondition = conditions::read(request.headers)?;
    if let Some(number) = part(request, range(request.headers).as_ref())? {
        let is_head = true;
        let part = BlobOperation::GetBlobPart { path, precondition, number, is_head };
        return Ok(Parsed::ready(part.into()));
    }
    Ok(Parsed::ready(BlobOperation::GetBlobProperties { path, precondition }.into()))
}

/// Reads `partNumber`, which cannot be combined with a range.
fn part(request: &Request<'_>, range: Option<&ByteRange>) -> Result<Option<PartNumber>, Refusal> {
    if !request.query.has("partNumber") {
        return Ok(None);
    }
    let number = request.part_number()?;
    if range.is_some() {
        return Err(Refusal::new(Reason::InvalidInput)
            .message("Cannot specify both Range header and partNumber query parameter"));
    }
    Ok(Some(number))
}

/// `PutObject`.
pub(super) fn put(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let (tags, upload) =
        (tagging::header(request.headers)?, upload(request.headers, PUT_BYTES_MAX)?);
    locks::check_integrity(&locks::claim(request.headers)?, &upload)?;
    put_of(request, tags, upload)
}

/// `PutObject` with these tags and this body.
pub(super) fn put_of(request: &Request<'_>, tags: Tags, upload: Upload) -> Result<Parsed, Refusal> {
    let all = request.headers;
    let class = storage_class(all)?;
    let put = ContentOperation::PutBlob {
        path: request.object()?,
        precondition: Precondition { lock: locks::claim(all)?, ..conditions::write(all)? },
        properties: properties(all)?,
        metadata: metadata(all)?,
        tags,
        kind: NewKind::Block,
        tier: class.map(StorageClass::tier),
        object: object(all, class)?.if_any(),
        upload,
    };
    Ok(Parsed::ready(put.into()))
}

/// `DeleteObject`.
pub(super) fn delete(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let (path, mut precondition) = (request.object()?, conditions::delete(request.headers)?);
    let bypass = locks::bypass(request.headers)?;
    let scope = match path.revision {
        Revision::Current | Revision::Snapshot(_) => DeleteScope::Object,
        version @ (Revision::Version(_) | Revision::Null) => DeleteScope::Version(version),
    };
    // Callers that may delete versions have this permission.
    precondition.lock.bypass = bypass && scope.is_version();
    Ok(Parsed::ready(BlobOperation::DeleteBlob { path, precondition, scope }.into()))
}

/// `x-amz-storage-class`.
pub(super) fn storage_class(all: &HeaderMap) -> Result<Option<StorageClass>, Refusal> {
    let Some(text) = headers::text(all, "x-amz-storage-class")? else { return Ok(None) };
    let unknown = || Reason::InvalidStorageClass.into();
    StorageClass::parse(text).map(Some).ok_or_else(unknown)
}

/// Reads the fields of an object that Azure's blobs do not have.
pub(super) fn object(
    all: &HeaderMap,
    class: Option<StorageClass>,
) -> Result<ObjectProperties, Refusal> {
    Ok(ObjectProperties {
        expires: headers::text(all, &EXPIRES)?.map(str::to_owned),
        redirect: redirect(all)?,
        storage_class: class.and_then(StorageClass::kept),
        owner: None,
        acl: acl::header(all)?.and_then(CannedAcl::if_any),
    })
}

/// `x-amz-website-redirect-location`: a path or a URL, at most 2 KiB.
fn redirect(all: &HeaderMap) -> Result<Option<String>, Refusal> {
    const NAME: &str = "x-amz-website-redirect-location";
    let Some(text) = headers::text(all, NAME)? else { return Ok(None) };
    let is_location = ["/", "http://", "https://"].iter().any(|begin| text.starts_with(begin));
    if is_location && text.len() <= REDIRECT_BYTES_MAX {
        return Ok(Some(text.to_owned()));
    }
    Err(Refusal::new(Reason::InvalidHeaderValue).message(
        "The website redirect location must have a prefix of 'http://' or 'https://' or '/', and at \
         most 2,048 bytes.",
    ))
}

/// The requested range. A malformed range means the whole object, as HTTP says. So does a range
/// with `If-Range`: the whole object is correct whether the condition holds or not.
pub(super) fn range(all: &HeaderMap) -> Option<ByteRange> {
    all.get(RANGE)
        .filter(|_| !all.contains_key(IF_RANGE))
        .and_then(|value| value.to_str().ok())
        .and_then(any_byte_range)
}

/// Properties of the object.
pub(super) fn properties(all: &HeaderMap) -> Result<BlobProperties, Refusal> {
    let read = |name| Ok::<_, Refusal>(headers::text(all, name)?.map(str::to_owned));
    Ok(BlobProperties {
        content_type: read(&CONTENT_TYPE)?,
        content_encoding: headers::text(all, &CONTENT_ENCODING)?.and_then(content_encoding),
        content_language: read(&CONTENT_LANGUAGE)?,
        content_disposition: read(&CONTENT_DISPOSITION)?,
        cache_control: read(&CACHE_CONTROL)?,
        content_md5: ContentMd5::Absent,
    })
}

/// The codings of the object: those of the body except `aws-chunked`.
fn content_encoding(text: &str) -> Option<String> {
    let codings = text.split(',').map(str::trim);
    let own: Vec<&str> =
        codings.filter(|coding| !coding.eq_ignore_ascii_case(AWS_CHUNKED)).collect();
    Some(own.join(",")).filter(|text| !text.is_empty())
}

/// `x-amz-meta-*`: values byte for byte. Several headers of one name are joined by commas.
///
/// # Errors
/// `InvalidMetadata`, `MetadataTooLarge`.
pub(super) fn metadata(all: &HeaderMap) -> Result<Metadata, Refusal> {
    let mut pairs: Vec<(String, Bytes)> = Vec::new();
    let mut bytes = 0;
    for name in all.keys() {
        let Some(own) = name.as_str().strip_prefix(META) else { continue };
        let values: Vec<&[u8]> =
            all.get_all(name).iter().map(http::HeaderValue::as_bytes).collect();
        let value = values.join(&b","[..]);
        bytes += own.len() + value.len();
        pairs.push((own.to_owned(), value.into()));
    }
    if bytes > METADATA_BYTES_MAX {
        return Err(Reason::MetadataTooLarge.into());
    }
    Metadata::new(pairs).map_err(|error| match error {
        MetadataError::EmptyKey | MetadataError::Invalid => Reason::InvalidMetadata.into(),
        MetadataError::TooLarge => Reason::MetadataTooLarge.into(),
    })
}
