//! Documents of tags and of settings of buckets.

use crate::protocol::s3::render::document::begin;
use crate::protocol::s3::settings::FixedDocument;
use crate::protocol::wire::escape;
use crate::types::CrossOriginRule;
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

/// Whether a bucket keeps versions. One that never did says nothing.
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
