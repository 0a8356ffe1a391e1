//! Common code for the documents of answers.

use std::borrow::Cow;

use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::utf8_percent_encode;

use crate::protocol::s3::echo::S3Echo;
use crate::protocol::s3::upload_checksums;
use crate::protocol::wire::escape;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;

const BEGIN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
/// The namespace of every document.
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// The XML declaration and the root element's start tag.
pub(super) fn begin(root: &str) -> String {
    format!("{BEGIN}<{root} xmlns=\"{NAMESPACE}\">")
}

/// An owner.
pub(super) fn owner(out: &mut String, id: &str, echo: &S3Echo) {
    out.push_str("<Owner>");
    person(out, id, echo);
    out.push_str("</Owner>");
}

/// The canonical id and the name of a user. The root user has the name of the account; users other
/// than the sender are shown by their ids.
pub(super) fn person(out: &mut String, id: &str, echo: &S3Echo) {
    escape::element(out, "ID", id);
    let name = match &echo.sender {
        Some([canonical, display]) if id == canonical => display,
        Some(_) | None if id == echo.owner => echo.owner_name.as_str(),
        Some(_) | None => id,
    };
    escape::element(out, "DisplayName", name);
}

/// The element with a checksum; none for an algorithm that S3 does not have.
pub(super) fn checksum(out: &mut String, checksum: &ContentChecksum) {
    if let Some(name) = upload_checksums::element(checksum.algorithm) {
        escape::plain(out, &name, upload_checksums::value(checksum));
    }
}

/// The element with a quoted tag.
pub(super) fn etag(out: &mut String, tag: ContentEtag) {
    escape::plain(out, "ETag", format_args!("&quot;{tag}&quot;"));
}

/// The characters that S3 escapes with `encoding-type=url`. A space becomes a plus.
const URL: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'*').remove(b'/').remove(b' ');

/// Writes keys, and parts of keys, in the encoding that a request specifies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    /// Whether they are percent-encoded. Otherwise characters that XML cannot contain become
    /// character references.
    pub(super) encoded: bool,
}

impl Keys {
    /// Appends `<tag>key</tag>`.
    pub(super) fn element(self, out: &mut String, tag: &str, key: &str) {
        if self.encoded {
            escape::element(out, tag, &encode(key));
        } else {
            escape::referenced(out, tag, key);
        }
    }
}

fn encode(key: &str) -> Cow<'_, str> {
    let encoded: Cow<'_, str> = utf8_percent_encode(key, &URL).into();
    if encoded.contains(' ') { Cow::Owned(encoded.replace(' ', "+")) } else { encoded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_encoded_as_s3_encodes_them() {
        for (key, url, plain) in [
            ("a/b-c_d.e*f", "a/b-c_d.e*f", "a/b-c_d.e*f"),
            ("a b+c%~", "a+b%2Bc%25%7E", "a b+c%~"),
            ("\u{1}<\u{20ac}", "%01%3C%E2%82%AC", "&#x1;&lt;\u{20ac}"),
            ("\r\n", "%0D%0A", "&#xD;&#xA;"),
        ] {
            for (encoded, text) in [(true, url), (false, plain)] {
                let mut out = String::new();
                Keys { encoded }.element(&mut out, "Key", key);
                assert_eq!(out, format!("<Key>{text}</Key>"));
            }
        }
    }
}
