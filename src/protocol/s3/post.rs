//! `PostObject`: forms of browsers.

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::Upload;
use crate::protocol::s3::checksums;
use crate::protocol::s3::form::no_form;
use crate::protocol::s3::objects;
use crate::protocol::s3::objects::PUT_BYTES_MAX;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::tagging;
use crate::protocol::wire::headers;
use crate::types::Tags;

/// The field with the tags of the object: a document like that of `PutObjectTagging`.
const TAGGING: &str = "tagging";

/// `PostObject`. Its fields have become headers. The length of the file is known only at its end.
pub(super) fn post(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let form = request.form.ok_or_else(no_form)?;
    let all = request.headers;
    let upload = Upload {
        framing: Framing::Open { len_max: PUT_BYTES_MAX },
        md5: headers::md5(all, "content-md5")?,
        crc64: None,
        checksums: checksums::claimed(all)?,
    };
    objects::put_of(request, tags(request, form.get(TAGGING))?, upload)
}

/// The tags of the object, in the field or in the header of a PUT.
fn tags(request: &Request<'_>, document: Option<&str>) -> Result<Tags, Refusal> {
    let stated = tagging::header(request.headers)?;
    let Some(document) = document.filter(|document| !document.trim().is_empty()) else {
        return Ok(stated);
    };
    if !stated.is_empty() {
        return Err(Refusal::new(Reason::InvalidHeaderValue)
            .message("A form has tags in the field tagging or in x-amz-tagging, not in both.")
            .detail(Detail::HeaderName, TAGGING));
    }
    tagging::read(document.trim().as_bytes()).and_then(tagging::of_object)
}
