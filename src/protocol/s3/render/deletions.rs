//! The answer to DeleteObjects.

use crate::protocol::model::reply::BlobDeleted;
use crate::protocol::model::reply::BlobsDeleted;
use crate::protocol::s3::errors::error_row;
use crate::protocol::s3::render::document;
use crate::protocol::s3::versions;
use crate::protocol::wire::escape;

/// `DeleteResult`.
pub(super) fn deleted(deleted: &BlobsDeleted) -> String {
    let mut out = document::begin("DeleteResult");
    for BlobDeleted { name, version, outcome } in &deleted.items {
        let named = |out: &mut String| {
            escape::referenced(out, "Key", name);
            if let Some(version) = version {
                escape::referenced(out, "VersionId", version);
            }
        };
        match outcome {
            Err(refused) => {
                let row = error_row(refused.reason);
                out.push_str("<Error>");
                named(&mut out);
                escape::element(&mut out, "Code", row.code);
                let message = refused.message.as_deref().unwrap_or(row.message);
                escape::referenced(&mut out, "Message", message);
                out.push_str("</Error>");
            }
            Ok(_) if deleted.quiet => {}
            Ok(deletion) => {
                out.push_str("<Deleted>");
                named(&mut out);
                if let Some(marker) = deletion.version.filter(|_| deletion.is_marker) {
                    escape::plain(&mut out, "DeleteMarker", true);
                    escape::plain(&mut out, "DeleteMarkerVersionId", versions::id(marker));
                }
                out.push_str("</Deleted>");
            }
        }
    }
    out.push_str("</DeleteResult>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::model::Reason;
    use crate::protocol::model::reply::Deletion;

    #[test]
    fn each_key_has_its_outcome() {
        let item = |name: &str, reason: Option<Reason>| BlobDeleted {
            name: name.to_owned(),
            version: None,
            outcome: reason.map_or(Ok(Deletion::default()), |reason| Err(reason.into())),
        };
        let items =
            vec![item("a<\u{1}", None), item("b", None), item("c", Some(Reason::ConditionNotMet))];
        let text = deleted(&BlobsDeleted { items: items.clone(), quiet: false });
        assert!(text.contains("<Deleted><Key>a&lt;&#x1;</Key></Deleted><Deleted><Key>b</Key>"));
        let refused = "<Error><Key>c</Key><Code>PreconditionFailed</Code><Message>";
        assert!(text.contains(refused), "{text}");
        let text = deleted(&BlobsDeleted { items, quiet: true });
        assert!(text.contains(refused) && !text.contains("<Deleted>"), "{text}");
    }
}
