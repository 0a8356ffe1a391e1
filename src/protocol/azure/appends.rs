//! Append Block and Append Blob Seal.

use http::HeaderMap;

use crate::protocol::azure::conditions;
use crate::protocol::azure::encryption;
use crate::protocol::azure::headers;
use crate::protocol::azure::limits;
use crate::protocol::azure::request::Request;
use crate::protocol::azure::upload;
use crate::protocol::model::Operation;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::ContentOperation;

/// Append Block.
pub(super) fn append(request: &Request<'_>, path: BlobPath) -> Result<Operation, Refusal> {
    let all = request.headers;
    let upload = upload::upload(all, limits::append_block(request.version))?;
    if upload.framing.len_max() == 0 {
        return Err(headers::invalid("Content-Length", "0"));
    }
    Ok(ContentOperation::AppendBlock {
        path,
        precondition: encryption::with(all, conditions::write(all)?)?,
        position: headers::number(all, "x-ms-blob-condition-appendpos")?,
        len_max: headers::number(all, "x-ms-blob-condition-maxsize")?,
        upload,
    }
    .into())
}

/// Append Blob Seal.
pub(super) fn seal(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    Ok(BlobOperation::SealBlob {
        path,
        precondition: conditions::write(all)?,
        position: headers::number(all, "x-ms-blob-condition-appendpos")?,
    }
    .into())
}
