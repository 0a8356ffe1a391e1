//! Heads of operations that take their bytes from a URL.
//!
//! Source: Blob REST "Put Blob From URL", "Put Block From URL", "Copy Blob", "Copy Blob From URL",
//! "Incremental Copy Blob", "Abort Copy Blob".

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Uri;
use uuid::Uuid;

use crate::protocol::azure::ServiceVersion;
use crate::protocol::azure::conditions;
use crate::protocol::azure::conditions::Dates;
use crate::protocol::azure::copy_headers::SEAL;
use crate::protocol::azure::copy_headers::SOURCE;
use crate::protocol::azure::copy_headers::has_source;
use crate::protocol::azure::encryption;
use crate::protocol::azure::headers;
use crate::protocol::azure::immutability;
use crate::protocol::azure::names;
use crate::protocol::azure::request::Request;
use crate::protocol::azure::tags;
use crate::protocol::azure::tiers;
use crate::protocol::azure::unserved;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::ArchivedSource;
use crate::protocol::model::copy::CopyBlob;
use crate::protocol::model::copy::CopyIncrement;
use crate::protocol::model::copy::CopyPurpose;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::copy::PutBlobFromUrl;
use crate::protocol::model::copy::SourceConditions;
use crate::protocol::model::copy::TagOption;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::wire::query;
use crate::protocol::wire::range::byte_range;
use crate::types::AccessTier;
use crate::types::BlobProperties;
use crate::types::BlockId;
use crate::types::ContentMd5;
use crate::types::Crc64;
use crate::types::Metadata;

/// From this version on an archived source may be in another account.
const REHYDRATED_ABROAD_SINCE: ServiceVersion = ServiceVersion::new(2021, 2, 12);
/// Bytes of a source URL, as the service has it.
const URL_BYTES_MAX: usize = 2048;
/// Prefix of the source's conditions.
const SOURCE_PREFIX: &str = "x-ms-source-";

/// Refuses a source where none can be taken: ignored, it would make an empty blob.
pub(super) fn check(comp: Option<&str>, all: &HeaderMap) -> Result<(), Refusal> {
    if !has_source(all)
        || matches!(comp, None | Some("block" | "appendblock" | "page" | "incrementalcopy"))
    {
        return Ok(());
    }
    let what = format!("the header {SOURCE} on comp={}", comp.unwrap_or_default());
    Err(unserved::not_served(&what).detail(Detail::HeaderName, SOURCE))
}

/// Put Blob with a source: with a blob type Put Blob From URL, without one Copy Blob.
pub(super) fn put(request: &Request<'_>, path: BlobPath) -> Result<Operation, Refusal> {
    let all = request.headers;
    no_body(all)?;
    match headers::text(all, "x-ms-blob-type")? {
        None => copy(request, path),
        Some("BlockBlob") => put_blob(all, path),
        Some(other) => Err(headers::invalid("x-ms-blob-type", other)),
    }
}

fn put_blob(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    let source = source(all, CopyPurpose::Blob)?;
    if source.range.is_some() {
        return Err(
            Refusal::new(Reason::UnsupportedHeader).detail(Detail::HeaderName, "x-ms-source-range")
        );
    }
    let source_properties = match headers::text(all, "x-ms-copy-source-blob-properties")? {
        None => true,
        Some(_) => headers::flag(all, "x-ms-copy-source-blob-properties")?,
    };
    Ok(ContentOperation::PutBlobFromUrl(Box::new(PutBlobFromUrl {
        path,
        precondition: immutability::with(all, encryption::with(all, conditions::write(all)?)?)?,
        source,
        properties: headers::properties(all, false)?,
        source_properties,
        metadata: headers::metadata(all)?,
        tier: tiers::tier(all)?,
        tags: tag_option(all)?,
    }))
    .into())
}

fn copy(request: &Request<'_>, path: BlobPath) -> Result<Operation, Refusal> {
    let all = request.headers;
    let sync = match headers::text(all, "x-ms-requires-sync")? {
        None => false,
        Some(value) if value.eq_ignore_ascii_case("true") => true,
        Some(value) => return Err(headers::invalid("x-ms-requires-sync", value)),
    };
    let mut source = source(all, CopyPurpose::Copy { sync })?;
    let (tier, priority) = (tiers::tier(all)?, tiers::priority(all)?);
    source.archived = match tier {
        None | Some(AccessTier::Archive) => ArchivedSource::Refused,
        Some(_) if sync => ArchivedSource::Refused,
        Some(_) if request.version < REHYDRATED_ABROAD_SINCE => ArchivedSource::OwnAccount,
        Some(_) => ArchivedSource::AnyAccount,
    };
    if source.range.is_some() {
        return Err(
            Refusal::new(Reason::UnsupportedHeader).detail(Detail::HeaderName, "x-ms-source-range")
        );
    }
    let seal = match headers::text(all, SEAL)? {
        None => None,
        Some(_) if sync => {
            return Err(Refusal::new(Reason::UnsupportedHeader).detail(Detail::HeaderName, SEAL));
        }
        Some(_) => Some(headers::flag(all, SEAL)?),
    };
    Ok(ContentOperation::CopyBlob(Box::new(CopyBlob {
        path,
        seal,
        precondition: immutability::with(all, encryption::with(all, conditions::write(all)?)?)?,
        source,
        metadata: headers::metadata(all)?,
        tier,
        priority,
        tags: tag_option(all)?,
        sync,
    }))
    .into())
}

/// Incremental Copy Blob. Its source must be public or signed, in the same account too, and is not
/// under a customer's key.
pub(super) fn increment(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    no_body(all)?;
    let source = CopySource { key: None, ..source(all, CopyPurpose::Copy { sync: true })? };
    if source.range.is_some() {
        return Err(
            Refusal::new(Reason::UnsupportedHeader).detail(Detail::HeaderName, "x-ms-source-range")
        );
    }
    let precondition = encryption::with(all, conditions::write(all)?)?;
    let copy = CopyIncrement { path, precondition, source };
    Ok(ContentOperation::CopyIncrement(Box::new(copy)).into())
}

/// Put Block with a source.
pub(super) fn put_block(
    request: &Request<'_>,
    path: BlobPath,
    id: BlockId,
) -> Result<Operation, Refusal> {
    no_body(request.headers)?;
    let precondition = conditions::dated(request.headers, Dates::None)?;
    let precondition = encryption::with(request.headers, precondition)?;
    let source = Box::new(source(request.headers, CopyPurpose::Part)?);
    Ok(ContentOperation::PutBlockFromUrl { path, id, precondition, source }.into())
}

/// Append Block with a source.
pub(super) fn append(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    no_body(all)?;
    Ok(ContentOperation::AppendBlockFromUrl {
        path,
        precondition: encryption::with(all, conditions::write(all)?)?,
        position: headers::number(all, "x-ms-blob-condition-appendpos")?,
        len_max: headers::number(all, "x-ms-blob-condition-maxsize")?,
        source: Box::new(source(all, CopyPurpose::Part)?),
    }
    .into())
}

/// Abort Copy Blob.
pub(super) fn abort(request: &Request<'_>, path: BlobPath) -> Result<Operation, Refusal> {
    let all = request.headers;
    match headers::text(all, "x-ms-copy-action")? {
        Some(action) if action.eq_ignore_ascii_case("abort") => {}
        Some(other) => return Err(headers::invalid("x-ms-copy-action", other)),
        None => {
            return Err(Refusal::new(Reason::MissingRequiredHeader)
                .detail(Detail::HeaderName, "x-ms-copy-action"));
        }
    }
    let text = request.query.get("copyid")?.ok_or_else(|| query::missing("copyid"))?;
    let id = Uuid::try_parse(text).map_err(|_| query::invalid("copyid", text))?;
    Ok(ContentOperation::AbortCopy { path, id, precondition: conditions::dated(all, Dates::None)? }
        .into())
}

/// The source: its URL, authorization, key, conditions, range and checksums.
pub(super) fn source(all: &HeaderMap, purpose: CopyPurpose) -> Result<CopySource, Refusal> {
    let text = headers::text(all, SOURCE)?.ok_or_else(|| {
        Refusal::new(Reason::MissingRequiredHeader).detail(Detail::HeaderName, SOURCE)
    })?;
    let md5 = headers::md5(all, "x-ms-source-content-md5")?;
    let crc64 = match headers::text(all, "x-ms-source-content-crc64")? {
        None => None,
        Some(value) => Some(
            Crc64::from_base64(value)
                .ok_or_else(|| headers::invalid("x-ms-source-content-crc64", value))?,
        ),
    };
    if md5.is_some() && crc64.is_some() {
        return Err(Reason::BothCrc64AndMd5HeaderPresent.into());
    }
    let range = match headers::text(all, "x-ms-source-range")? {
        None => None,
        Some(value) => {
            Some(byte_range(value).ok_or_else(|| headers::invalid("x-ms-source-range", value))?)
        }
    };
    Ok(CopySource {
        url: url(text)?,
        authorization: authorization(all)?,
        key: encryption::source_key(all)?,
        conditions: source_conditions(all)?,
        range,
        md5,
        crc64,
        purpose,
        archived: ArchivedSource::Refused,
    })
}

fn url(text: &str) -> Result<Uri, Refusal> {
    let refused = || headers::invalid(SOURCE, without_query(text));
    if text.len() > URL_BYTES_MAX {
        return Err(refused());
    }
    let url: Uri = text.parse().map_err(|_| refused())?;
    let known = matches!(url.scheme_str(), Some("http" | "https"));
    // A name and a password before the host would be sent nowhere.
    let plain = url.authority().is_some_and(|authority| {
        // `port_u16` is `None` for a number that is too large for a port.
        let after = authority.as_str().rsplit_once(':').map_or("", |(_, after)| after);
        let numbered = !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit());
        let port = !numbered || authority.port_u16().is_some();
        port && !authority.host().is_empty() && !authority.as_str().contains('@')
    });
    if known && plain { Ok(url) } else { Err(refused()) }
}

/// A refused URL is shown without its signature.
fn without_query(text: &str) -> &str {
    text.split_once('?').map_or(text, |(url, _)| url)
}

fn authorization(all: &HeaderMap) -> Result<Option<String>, Refusal> {
    const NAME: &str = "x-ms-copy-source-authorization";
    let Some(value) = headers::text(all, NAME)? else { return Ok(None) };
    let token = value.split_once(' ').filter(|(scheme, token)| {
        scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()
    });
    // The value is a secret, or was meant to be one.
    token
        .map(|_| Some(value.to_owned()))
        .ok_or_else(|| Refusal::new(Reason::InvalidHeaderValue).detail(Detail::HeaderName, NAME))
}

/// The source's conditions and lease, each of them well formed.
fn source_conditions(all: &HeaderMap) -> Result<SourceConditions, Refusal> {
    let own = |name: &str| all.get(format!("{SOURCE_PREFIX}{name}"));
    let given = [
        (http::header::IF_MATCH, own("if-match")),
        (http::header::IF_NONE_MATCH, own("if-none-match")),
        (http::header::IF_MODIFIED_SINCE, own("if-modified-since")),
        (http::header::IF_UNMODIFIED_SINCE, own("if-unmodified-since")),
        (names::LEASE_ID.clone(), own("lease-id")),
        (names::IF_TAGS.clone(), own("if-tags")),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some((name, value?.clone())));
    // A refusal names them by their plain names.
    let plain: HeaderMap = given.collect();
    conditions::read(&plain)?;
    let text = |name: &HeaderName| plain.get(name)?.to_str().ok().map(str::to_owned);
    Ok(SourceConditions {
        if_match: text(&http::header::IF_MATCH),
        if_none_match: text(&http::header::IF_NONE_MATCH),
        if_modified_since: text(&http::header::IF_MODIFIED_SINCE),
        if_unmodified_since: text(&http::header::IF_UNMODIFIED_SINCE),
        lease: text(&names::LEASE_ID),
        if_tags: text(&names::IF_TAGS),
    })
}

/// The headers of a request for the source: its conditions and its key.
///
/// # Errors
/// `InvalidHeaderValue` when a text cannot stand in a header.
pub fn source_headers(source: &CopySource) -> Result<HeaderMap, Refusal> {
    let (mut plain, wanted) = (HeaderMap::new(), &source.conditions);
    for (name, text) in [
        (http::header::IF_MATCH, &wanted.if_match),
        (http::header::IF_NONE_MATCH, &wanted.if_none_match),
        (http::header::IF_MODIFIED_SINCE, &wanted.if_modified_since),
        (http::header::IF_UNMODIFIED_SINCE, &wanted.if_unmodified_since),
        (names::LEASE_ID.clone(), &wanted.lease),
        (names::IF_TAGS.clone(), &wanted.if_tags),
    ] {
        if let Some(text) = text {
            let value = HeaderValue::from_str(text).map_err(|_| Reason::InvalidHeaderValue)?;
            plain.insert(name, value);
        }
    }
    if let Some(key) = &source.key {
        plain.extend(encryption::of_read(key)?);
    }
    Ok(plain)
}

fn tag_option(all: &HeaderMap) -> Result<TagOption, Refusal> {
    const NAME: &str = "x-ms-copy-source-tag-option";
    match headers::text(all, NAME)? {
        None => Ok(TagOption::Replace(tags::header(all)?)),
        Some(value) if value.eq_ignore_ascii_case("replace") => {
            Ok(TagOption::Replace(tags::header(all)?))
        }
        Some(value) if value.eq_ignore_ascii_case("copy") => {
            if all.contains_key("x-ms-tags") {
                return Err(headers::invalid(NAME, value).detail(
                    Detail::Explanation,
                    "x-ms-tags says which tags to set, COPY to take the source's.",
                ));
            }
            Ok(TagOption::Copy)
        }
        Some(value) => Err(headers::invalid(NAME, value)),
    }
}

/// These operations have no body: one that is sent was meant for another operation.
pub(super) fn no_body(all: &HeaderMap) -> Result<(), Refusal> {
    match headers::text(all, "content-length")? {
        None | Some("0") => Ok(()),
        Some(other) => Err(headers::invalid("Content-Length", other)),
    }
}

/// Properties and metadata of a blob, or of any file, by the headers of an answer that brings it.
/// Malformed headers are left out: the client did not send them.
#[must_use]
pub fn read_blob_headers(all: &HeaderMap) -> (BlobProperties, Metadata) {
    let text = |name: &str| headers::text(all, name).ok().flatten().map(str::to_owned);
    let md5 = |name| text(name).and_then(|text| ContentMd5::from_base64(&text));
    let properties = BlobProperties {
        content_type: text("content-type"),
        content_encoding: text("content-encoding"),
        content_language: text("content-language"),
        content_disposition: text("content-disposition"),
        cache_control: text("cache-control"),
        content_md5: md5("x-ms-blob-content-md5")
            .or_else(|| md5("content-md5"))
            .unwrap_or_default(),
    };
    (properties, headers::metadata(all).unwrap_or_default())
}
