//! Documents of tags and of settings of buckets.

use crate::protocol::model::reply::BlobLock;
use crate::protocol::s3::locks;
use crate::protocol::s3::render::document::begin;
use crate::protocol::s3::settings::FixedDocument;
use crate::protocol::wire::escape;
use crate::types::CrossOriginRule;
use crate::types::DefaultRetention;
use crate::types::ObjectLock;
use crate::types::Retention;
use crate::types::RetentionPeriod;
use crate::types::Setting;
use crate::types::Versioning;

/// A setting of a bucket.
pub(super) fn setting(setting: &Setting) -> String {
    match setting {
        Setting::Tags(pairs) => tags(pairs.iter()),
        Setting::Cors(rules) => cors(rules),
    }
}

/// A setting that all buckets have.
pub(super) fn fixed(FixedDocument { root, content }: FixedDocument) -> String {
    let mut out = begin(root);
    out.push_str(content);
    out.push_str("</");
    out.push_str(root);
    out.push('>');
    out
}

/// Whether a bucket keeps versions. The document is empty if it never did.
pub(super) fn versioning(state: Option<Versioning>) -> String {
    let mut out = begin("VersioningConfiguration");
    match state {
        Some(Versioning::Enabled) => escape::element(&mut out, "Status", "Enabled"),
        Some(Versioning::Suspended) => escape::element(&mut out, "Status", "Suspended"),
        None => {}
    }
    out.push_str("</VersioningConfiguration>");
    out
}

/// The object lock of a bucket.
pub(super) fn object_lock(lock: &ObjectLock) -> String {
    let mut out = begin("ObjectLockConfiguration");
    escape::element(&mut out, "ObjectLockEnabled", "Enabled");
    if let Some(DefaultRetention { mode, period }) = &lock.default {
        out.push_str("<Rule><DefaultRetention>");
        escape::element(&mut out, "Mode", locks::mode_word(*mode));
        match period {
            RetentionPeriod::Days(days) => escape::plain(&mut out, "Days", days),
            RetentionPeriod::Years(years) => escape::plain(&mut out, "Years", years),
        }
        out.push_str("</DefaultRetention></Rule>");
    }
    out.push_str("</ObjectLockConfiguration>");
    out
}

/// The document with the retention or the legal hold of an object.
pub(super) fn blob_lock(lock: &BlobLock) -> String {
    match lock {
        BlobLock::Retention(Retention { mode, until }) => {
            let mut out = begin("Retention");
            escape::element(&mut out, "Mode", locks::mode_word(*mode));
            escape::plain(&mut out, "RetainUntilDate", until.to_iso_millis());
            out.push_str("</Retention>");
            out
        }
        BlobLock::LegalHold(on) => {
            let mut out = begin("LegalHold");
            escape::element(&mut out, "Status", locks::hold_word(*on));
            out.push_str("</LegalHold>");
            out
        }
    }
}

/// Tags of an object or a bucket.
pub(super) fn tags<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = begin("Tagging");
    out.push_str("<TagSet>");
    for (key, value) in pairs {
        out.push_str("<Tag>");
        escape::element(&mut out, "Key", key);
        escape::element(&mut out, "Value", value);
        out.push_str("</Tag>");
    }
    out.push_str("</TagSet></Tagging>");
    out
}

fn cors(rules: &[CrossOriginRule]) -> String {
    let mut out = begin("CORSConfiguration");
    for rule in rules {
        let CrossOriginRule { id, origins, methods, headers, exposed, max_age } = rule;
        out.push_str("<CORSRule>");
        if let Some(id) = id {
            escape::element(&mut out, "ID", id);
        }
        for (tag, texts) in [
            ("AllowedHeader", headers),
            ("AllowedMethod", methods),
            ("AllowedOrigin", origins),
            ("ExposeHeader", exposed),
        ] {
            texts.iter().for_each(|text| escape::element(&mut out, tag, text));
        }
        if let Some(seconds) = max_age {
            escape::plain(&mut out, "MaxAgeSeconds", seconds);
        }
        out.push_str("</CORSRule>");
    }
    out.push_str("</CORSConfiguration>");
    out
}
