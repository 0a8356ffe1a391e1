//! Operations on uploads in parts.

use http::HeaderMap;
use http::HeaderName;

use crate::protocol::model::Detail;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::CompleteUpload;
use crate::protocol::model::operation::CreateUpload;
use crate::protocol::model::operation::DocumentBody;
use crate::protocol::model::operation::ListUploads;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::UploadOperation;
use crate::protocol::model::operation::UploadPart;
use crate::protocol::model::operation::UploadPath;
use crate::protocol::s3::arguments;
use crate::protocol::s3::completion;
use crate::protocol::s3::conditions;
use crate::protocol::s3::encryption;
use crate::protocol::s3::locks;
use crate::protocol::s3::objects;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::tagging;
use crate::protocol::s3::upload::upload;
use crate::protocol::s3::upload_checksums;
use crate::protocol::wire::headers;
use crate::types::PART_BYTES_MAX;
use crate::types::PART_BYTES_MIN;
use crate::types::StorageClass;
use crate::types::UploadId;

/// `CreateMultipartUpload`.
pub(super) fn create(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let all = request.headers;
    let class = objects::storage_class(all)?;
    let create = CreateUpload {
        path: request.object()?,
        precondition: Precondition { lock: locks::claim(all)?, ..encrypted(all)? },
        properties: objects::properties(all)?,
        metadata: objects::metadata(all)?,
        tags: tagging::header(all)?,
        tier: class.map(StorageClass::tier),
        object: objects::object(all, class)?.if_any(),
        checksum: upload_checksums::of_upload(all)?,
    };
    Ok(Parsed::ready(UploadOperation::Create(Box::new(create)).into()))
}

/// `UploadPart`.
pub(super) fn part(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let part = UploadPart {
        upload: path(request, encrypted(request.headers)?)?,
        number: request.part_number()?,
        body: upload(request.headers, PART_BYTES_MAX)?,
    };
    Ok(Parsed::ready(UploadOperation::UploadPart(part).into()))
}

/// `CompleteMultipartUpload`.
pub(super) fn complete(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let all = request.headers;
    let complete = CompleteUpload {
        upload: path(request, conditions::write(all)?)?,
        parts: Vec::new(),
        part_len_min: PART_BYTES_MIN,
        len: object_size(all)?,
        checksum: upload_checksums::of_whole(all)?,
        coverage: upload_checksums::coverage(all)?,
    };
    let operation = UploadOperation::Complete(Box::new(complete)).into();
    // Checksums in the head are of the whole object, not of the document.
    let is_of_object = |name: &HeaderName| name.as_str().starts_with("x-amz-checksum-");
    let of_document = all.iter().filter(|(name, _)| !is_of_object(name));
    let of_document = of_document.map(|(name, value)| (name.clone(), value.clone())).collect();
    let upload = upload(&of_document, completion::DOCUMENT_BYTES_MAX)?;
    let body = DocumentBody { upload, decode: completion::decode };
    Ok(Parsed::NeedsBody { operation: Box::new(operation), body })
}

/// `AbortMultipartUpload`.
pub(super) fn abort(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let upload = path(request, Precondition::default())?;
    Ok(Parsed::ready(UploadOperation::Abort(upload).into()))
}

/// `ListParts`.
pub(super) fn parts(request: &Request<'_>) -> Result<Parsed, Refusal> {
    arguments::is_encoded(request.query)?;
    let after = arguments::number(request.query, "part-number-marker")?.unwrap_or(0);
    let list = UploadOperation::ListParts {
        upload: path(request, Precondition::default())?,
        after,
        limit: limit(request, "max-parts")?,
    };
    Ok(Parsed::ready(list.into()))
}

/// `ListMultipartUploads`.
pub(super) fn list(request: &Request<'_>) -> Result<Parsed, Refusal> {
    arguments::is_encoded(request.query)?;
    let text = |name: &str| {
        let value = request.query.get(name)?.filter(|value| !value.is_empty());
        Ok::<_, Refusal>(value.map(str::to_owned))
    };
    let after = text("key-marker")?;
    // The id is used only together with the key.
    let marker = text("upload-id-marker")?.filter(|_| after.is_some());
    let after_upload = marker.map(|marker| {
        UploadId::parse(&marker).ok_or_else(|| {
            Refusal::new(Reason::InvalidQueryParameterValue)
                .message("Invalid uploadId marker")
                .detail(Detail::ParameterName, "upload-id-marker")
                .detail(Detail::ParameterValue, marker)
        })
    });
    let list = ListUploads {
        container: request.bucket()?,
        prefix: text("prefix")?,
        delimiter: text("delimiter")?,
        after,
        after_upload: after_upload.transpose()?,
        limit: limit(request, "max-uploads")?,
    };
    Ok(Parsed::ready(UploadOperation::ListUploads(Box::new(list)).into()))
}

/// No condition, and content that is plain or under a key.
fn encrypted(all: &HeaderMap) -> Result<Precondition, Refusal> {
    let encryption = encryption::read(all, &encryption::OF_OBJECT)?;
    Ok(Precondition { encryption, ..Precondition::default() })
}

/// The upload that the request names. A malformed id is treated as the id of a missing upload.
pub(super) fn path(
    request: &Request<'_>,
    precondition: Precondition,
) -> Result<UploadPath, Refusal> {
    let path = request.object()?;
    let id = request.query.get("uploadId")?.and_then(UploadId::parse);
    Ok(UploadPath { path, precondition, id: id.ok_or(Reason::UploadNotFound)? })
}

/// `x-amz-mp-object-size`.
fn object_size(all: &HeaderMap) -> Result<Option<u64>, Refusal> {
    headers::number(all, "x-amz-mp-object-size")
}

/// The entries that a page has at most.
fn limit(request: &Request<'_>, name: &str) -> Result<usize, Refusal> {
    let size = arguments::served(arguments::page_size(request.query, name)?);
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}
