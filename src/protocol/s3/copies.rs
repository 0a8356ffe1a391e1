//! Copies of objects.

use http::HeaderMap;

use crate::protocol::model::Detail;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::TagOption;
use crate::protocol::model::named_copy::CopiedProperties;
use crate::protocol::model::named_copy::CopyNamed;
use crate::protocol::model::named_copy::NamedSource;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::CopyPart;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::RequestEncryption;
use crate::protocol::model::operation::UploadOperation;
use crate::protocol::s3::checksums;
use crate::protocol::s3::conditions;
use crate::protocol::s3::copy_source;
use crate::protocol::s3::encryption;
use crate::protocol::s3::encryption::OF_OBJECT;
use crate::protocol::s3::locks;
use crate::protocol::s3::objects;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::tagging;
use crate::protocol::s3::uploads;
use crate::protocol::wire::headers;
use crate::types::ChecksumAlgorithm;
use crate::types::ObjectProperties;
use crate::types::PART_BYTES_MAX;
use crate::types::StorageClass;

/// The longest source of a copy, bytes: 5 GiB.
const COPY_BYTES_MAX: u64 = 5 << 30;

/// Whether something of the source is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directive {
    Copy,
    Replace,
}

/// `CopyObject`.
pub(super) fn copy(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let all = request.headers;
    if all.contains_key(copy_source::RANGE) {
        let refusal = Refusal::new(Reason::UnsupportedHeader);
        return Err(refusal.detail(Detail::HeaderName, copy_source::RANGE));
    }
    let directive = directive(all, "x-amz-metadata-directive", "Unknown metadata directive.")?;
    let tag_directive =
        self::directive(all, "x-amz-tagging-directive", "Unknown tagging directive.")?;
    let class = objects::storage_class(all)?;
    let given = objects::object(all, class)?;
    let (properties, object) = match directive {
        Directive::Copy => (CopiedProperties::Keep, ObjectProperties { expires: None, ..given }),
        Directive::Replace => {
            let properties = Box::new(objects::properties(all)?);
            (CopiedProperties::Replace { properties, metadata: objects::metadata(all)? }, given)
        }
    };
    let conditions = conditions::write(all)?;
    let precondition = Precondition {
        encryption: encryption::read(all, &OF_OBJECT)?,
        lock: locks::claim(all)?,
        ..conditions
    };
    let copy = CopyNamed {
        may_copy_tags: false,
        path: request.object()?,
        precondition,
        source: copy_source::source(all)?,
        len_max: COPY_BYTES_MAX,
        properties,
        object,
        tags: match tag_directive {
            Directive::Copy => TagOption::Copy,
            Directive::Replace => TagOption::Replace(tagging::header(all)?),
        },
        tier: class.map(StorageClass::tier),
        checksum: checksum(all)?,
    };
    check_changes(&copy, class)?;
    Ok(Parsed::ready(ContentOperation::CopyNamed(Box::new(copy)).into()))
}

/// `UploadPartCopy`.
pub(super) fn part(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let all = request.headers;
    let encryption = encryption::read(all, &OF_OBJECT)?;
    let precondition = Precondition { encryption, ..Precondition::default() };
    let range = copy_source::range(all)?;
    let copy = CopyPart {
        upload: uploads::path(request, precondition)?,
        number: request.part_number()?,
        source: NamedSource { range, ..copy_source::source(all)? },
        len_max: PART_BYTES_MAX,
    };
    Ok(Parsed::ready(UploadOperation::CopyPart(Box::new(copy)).into()))
}

/// Refuses a copy of an object onto itself that changes nothing.
fn check_changes(copy: &CopyNamed, class: Option<StorageClass>) -> Result<(), Refusal> {
    let keeps = copy.path == copy.source.path
        && copy.properties == CopiedProperties::Keep
        && class.is_none()
        && copy.object.redirect.is_none()
        && !copy.precondition.lock.protects()
        && copy.checksum.is_none()
        && copy.precondition.encryption == RequestEncryption::Plain
        && copy.source.precondition.encryption == RequestEncryption::Plain;
    if !keeps {
        return Ok(());
    }
    Err(Refusal::new(Reason::InvalidInput).message(
        "This copy request is illegal because it is trying to copy an object to itself without \
         changing the object's metadata, storage class, website redirect location or encryption \
         attributes.",
    ))
}

/// A directive: `COPY`, which is the default, or `REPLACE`.
fn directive(all: &HeaderMap, name: &'static str, unknown: &str) -> Result<Directive, Refusal> {
    match headers::text(all, name)? {
        None | Some("COPY") => Ok(Directive::Copy),
        Some("REPLACE") => Ok(Directive::Replace),
        Some(other) => Err(headers::invalid(name, other).message(unknown)),
    }
}

/// `x-amz-checksum-algorithm`: the checksum that the copy must have.
fn checksum(all: &HeaderMap) -> Result<Option<ChecksumAlgorithm>, Refusal> {
    const NAME: &str = "x-amz-checksum-algorithm";
    let Some(text) = headers::text(all, NAME)? else { return Ok(None) };
    checksums::of_name(text).map(Some).ok_or_else(|| {
        Refusal::new(Reason::InvalidInput)
            .message("Checksum algorithm provided is unsupported.")
            .detail(Detail::HeaderName, NAME)
            .detail(Detail::HeaderValue, text)
    })
}
