//! Operations on one blob.

use http::HeaderMap;
use http::Method;

use crate::protocol::azure::appends;
use crate::protocol::azure::block_id;
use crate::protocol::azure::block_id::BlockIdError;
use crate::protocol::azure::conditions;
use crate::protocol::azure::conditions::Dates;
use crate::protocol::azure::copy;
use crate::protocol::azure::copy_headers;
use crate::protocol::azure::encryption;
use crate::protocol::azure::headers;
use crate::protocol::azure::immutability;
use crate::protocol::azure::leases;
use crate::protocol::azure::limits;
use crate::protocol::azure::names;
use crate::protocol::azure::pages;
use crate::protocol::azure::query as blob_query;
use crate::protocol::azure::range;
use crate::protocol::azure::request::Request;
use crate::protocol::azure::snapshots;
use crate::protocol::azure::structured;
use crate::protocol::azure::tags;
use crate::protocol::azure::tiers;
use crate::protocol::azure::unserved;
use crate::protocol::azure::upload;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::BlockListKind;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::wire::query;
use crate::protocol::wire::query::Query;
use crate::types::BlockId;
use crate::types::ContentMd5;
use crate::types::Crc64;
use crate::types::NewKind;
use crate::types::Tags;

/// `comp` values of blobs that are served, by some methods.
const SERVED: &[&str] = &[
    "appendblock",
    "seal",
    "page",
    "pagelist",
    "block",
    "blocklist",
    "properties",
    "metadata",
    "lease",
    "snapshot",
    "tier",
    "incrementalcopy",
    "undelete",
    "immutabilitypolicies",
    "legalhold",
    "query",
];

/// `comp` values of blobs that exist in the service and not here.
const UNSERVED: &[&str] = &["expiry"];

/// Routes by `comp` and method.
pub(super) fn parse(
    request: &Request<'_>,
    path: BlobPath,
    comp: Option<&str>,
) -> Result<Operation, Refusal> {
    let all = request.headers;
    copy::check(comp, all)?;
    match (comp, request.method) {
        (None, &Method::GET) => get(all, path),
        (None, &Method::HEAD) => get_properties(all, path),
        (None, &Method::PUT) if copy_headers::has_source(all) => copy::put(request, path),
        (None, &Method::PUT) => put(request, path),
        (Some("appendblock"), &Method::PUT) if copy_headers::has_source(all) => {
            copy::append(all, path)
        }
        (Some("appendblock"), &Method::PUT) => appends::append(request, path),
        (Some("seal"), &Method::PUT) => appends::seal(all, path),
        (Some("copy"), &Method::PUT) => copy::abort(request, path),
        (Some("incrementalcopy"), &Method::PUT) => copy::increment(all, path),
        (None, &Method::DELETE) => delete(request, path),
        (Some("snapshot"), &Method::PUT) => snapshots::take(all, path),
        (Some("tier"), &Method::PUT) => tiers::set(all, path),
        (Some("undelete"), &Method::PUT) => Ok(BlobOperation::UndeleteBlob { path }.into()),
        (Some("immutabilitypolicies"), &Method::PUT) => immutability::set(all, path),
        (Some("immutabilitypolicies"), &Method::DELETE) => immutability::delete(all, path),
        (Some("legalhold"), &Method::PUT) => immutability::set_hold(all, path),
        (Some("page"), &Method::PUT) if copy_headers::has_source(all) => {
            pages::put_from_url(all, path)
        }
        (Some("page"), &Method::PUT) => pages::put(request, path),
        (Some("pagelist"), &Method::GET) => pages::ranges(all, request.query, path),
        (Some("block"), &Method::PUT) => put_block(request, path),
        (Some("blocklist"), &Method::PUT) => put_block_list(all, path),
        (Some("blocklist"), &Method::GET) => get_block_list(request, path),
        (Some("properties"), &Method::PUT) => set_properties(all, path),
        (Some("tags"), &Method::GET) => {
            let precondition = conditions::of_tags(all, conditions::read)?;
            Ok(BlobOperation::GetBlobTags { path, precondition }.into())
        }
        (Some("tags"), &Method::PUT) => {
            let precondition = conditions::of_tags(all, conditions::write)?;
            let tags = Tags::default();
            Ok(BlobOperation::SetBlobTags { path, precondition, tags }.into())
        }
        (Some("metadata"), &Method::GET | &Method::HEAD) => {
            let precondition = encryption::with(all, conditions::read(all)?)?;
            Ok(BlobOperation::GetBlobMetadata { path, precondition }.into())
        }
        (Some("metadata"), &Method::PUT) => {
            let precondition = encryption::with(all, conditions::write(all)?)?;
            let metadata = headers::metadata(all)?;
            Ok(BlobOperation::SetBlobMetadata { path, precondition, metadata }.into())
        }
        (Some("lease"), &Method::PUT) => {
            let (precondition, action) = (conditions::write(all)?, leases::action(all)?);
            Ok(BlobOperation::LeaseBlob { path, precondition, action }.into())
        }
        (Some("query"), &Method::POST) => blob_query::query(all, path),
        (None, _) => Err(Reason::UnsupportedHttpVerb.into()),
        (Some(comp), _) if SERVED.contains(&comp) => Err(Reason::UnsupportedHttpVerb.into()),
        (Some(comp), _) if UNSERVED.contains(&comp) => {
            Err(unserved::not_served(&format!("comp={comp} on blobs")))
        }
        (Some(other), _) => Err(query::invalid("comp", other)),
    }
}

fn get_properties(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    let precondition = encryption::with(all, conditions::read(all)?)?;
    Ok(BlobOperation::GetBlobProperties { path, precondition }.into())
}

fn set_properties(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    if let Some(operation) = pages::set(all, &path)? {
        return Ok(operation);
    }
    let precondition = encryption::with_any(all, conditions::write(all)?)?;
    let properties = headers::properties(all, false)?.replacing();
    Ok(BlobOperation::SetBlobProperties { path, precondition, properties }.into())
}

fn delete(request: &Request<'_>, path: BlobPath) -> Result<Operation, Refusal> {
    let precondition = conditions::delete(request.headers)?;
    let scope = snapshots::scope(request.headers, request.query, &path)?;
    Ok(BlobOperation::DeleteBlob { path, precondition, scope }.into())
}

fn get_block_list(request: &Request<'_>, path: BlobPath) -> Result<Operation, Refusal> {
    let precondition = conditions::read(request.headers)?;
    let kind = block_list_kind(request.query)?;
    Ok(BlobOperation::GetBlockList { path, precondition, kind }.into())
}

fn get(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    structured::named(all)?;
    let range = range::range(all)?;
    let checksum = range::checksum(all, range)?;
    let precondition = encryption::with(all, conditions::read(all)?)?;
    Ok(BlobOperation::GetBlob { path, precondition, range, checksum }.into())
}

fn put(request: &Request<'_>, path: BlobPath) -> Result<Operation, Refusal> {
    let all = request.headers;
    let kind = match headers::text(all, &names::BLOB_TYPE)? {
        Some("BlockBlob") => NewKind::Block,
        Some("AppendBlob") => NewKind::Append,
        Some("PageBlob") => pages::kind(all)?,
        Some(other) => return Err(headers::invalid("x-ms-blob-type", other)),
        None => {
            return Err(Refusal::new(Reason::MissingRequiredHeader)
                .detail(Detail::HeaderName, "x-ms-blob-type"));
        }
    };
    let mut upload = upload::upload(all, limits::put_blob(request.version))?;
    let len = upload.framing.len_max();
    if kind != NewKind::Block && len != 0 {
        return Err(headers::invalid("Content-Length", &len.to_string()));
    }
    let properties = headers::properties(all, true)?;
    if kind == NewKind::Block {
        match properties.content_md5 {
            ContentMd5::Absent => {}
            // It takes precedence over Content-MD5.
            ContentMd5::Plain(_) => upload.md5 = None,
            ContentMd5::Encrypted(_) | ContentMd5::Other(_) => {
                return Err(Reason::InvalidMd5.into());
            }
        }
    }
    Ok(ContentOperation::PutBlob {
        path,
        precondition: immutability::with(all, encryption::with(all, conditions::write(all)?)?)?,
        properties,
        metadata: headers::metadata(all)?,
        tags: tags::header(all)?,
        kind,
        tier: tiers::tier(all)?,
        object: None,
        upload,
    }
    .into())
}

fn put_block(request: &Request<'_>, path: BlobPath) -> Result<Operation, Refusal> {
    let all = request.headers;
    let id = block_id(request.query)?;
    if copy_headers::has_source(all) {
        return copy::put_block(request, path, id);
    }
    let upload = upload::upload(all, limits::put_block(request.version))?;
    if upload.framing.len_max() == 0 {
        return Err(headers::invalid("Content-Length", "0"));
    }
    let precondition = encryption::with(all, conditions::dated(all, Dates::None)?)?;
    Ok(ContentOperation::PutBlock { path, id, precondition, upload }.into())
}

fn block_id(parameters: &Query) -> Result<BlockId, Refusal> {
    let text = parameters.get("blockid")?.ok_or_else(|| query::missing("blockid"))?;
    block_id::read(text).map_err(|error| match error {
        BlockIdError::NotBase64 => query::invalid("blockid", text)
            .detail(Detail::Explanation, "The block id is not base64."),
        BlockIdError::Length => query::parameter(Reason::InvalidBlockId, "blockid", text),
    })
}

fn put_block_list(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    Ok(ContentOperation::PutBlockList {
        path,
        precondition: immutability::with(all, encryption::with(all, conditions::write(all)?)?)?,
        properties: headers::properties(all, false)?,
        metadata: headers::metadata(all)?,
        tags: tags::header(all)?,
        tier: tiers::tier(all)?,
        list: Vec::new(),
        checksum: BodyChecksum::Crc64(Crc64::EMPTY),
    }
    .into())
}

fn block_list_kind(parameters: &Query) -> Result<BlockListKind, Refusal> {
    match parameters.get("blocklisttype")?.map(str::to_ascii_lowercase).as_deref() {
        None | Some("committed") => Ok(BlockListKind::Committed),
        Some("uncommitted") => Ok(BlockListKind::Uncommitted),
        Some("all") => Ok(BlockListKind::All),
        Some(other) => Err(query::invalid("blocklisttype", other)),
    }
}
