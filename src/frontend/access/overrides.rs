//! Response headers that a shared access signature, or the query of a signed request, overrides.

use crate::auth::Overrides;
use crate::protocol::model::Reply;

/// Replaces the blob's own headers in answers that show them.
pub(crate) fn apply(overrides: Overrides, reply: &mut Reply) {
    let (Reply::Blob { facts, .. } | Reply::BlobProperties(facts)) = reply else { return };
    if overrides.expires.is_some() {
        facts.object.get_or_insert_default().expires = overrides.expires;
    }
    let properties = &mut facts.properties;
    let pairs = [
        (overrides.cache_control, &mut properties.cache_control),
        (overrides.content_disposition, &mut properties.content_disposition),
        (overrides.content_encoding, &mut properties.content_encoding),
        (overrides.content_language, &mut properties.content_language),
        (overrides.content_type, &mut properties.content_type),
    ];
    for (wanted, own) in pairs {
        if wanted.is_some() {
            *own = wanted;
        }
    }
}
