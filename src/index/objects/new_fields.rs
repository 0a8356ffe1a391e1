//! The tagged fields of a blob that a request makes.

use crate::index::api::NewBlobFields;
use crate::index::record::BlobFields;
use crate::types::BlobKind;
use crate::types::ObjectProperties;

/// The tagged fields of a new blob; `None` if it has none. Append and page blobs have no content
/// tag and no checksums, because their content changes in place.
pub(super) fn of(kind: BlobKind, new: &NewBlobFields) -> Option<Box<BlobFields>> {
    let NewBlobFields { content_tag, checksums, object } = new;
    let is_fixed = kind == BlobKind::Block;
    let content_tag = content_tag.filter(|_| is_fixed);
    let has_checksums = is_fixed && !checksums.is_empty();
    if content_tag.is_none() && !has_checksums && object.is_none() {
        return None;
    }
    let checksums = if has_checksums { checksums.clone() } else { Vec::new() };
    let ObjectProperties { expires, redirect, storage_class, owner, acl } =
        object.as_deref().cloned().unwrap_or_default();
    let fields = BlobFields {
        content_tag,
        checksums,
        expires,
        redirect,
        storage_class,
        owner,
        acl,
        ..BlobFields::default()
    };
    (fields != BlobFields::default()).then(|| Box::new(fields))
}
