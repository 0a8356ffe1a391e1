//! The answer to DeleteObjects.

use crate::protocol::model::reply::BlobDeleted;
use crate::protocol::model::reply::BlobsDeleted;
use crate::protocol::s3::errors::error_row;
use crate::protocol::s3::render::document;
use crate::protocol::wire::escape;

/// `DeleteResult`.
pub(super) fn deleted(deleted: &BlobsDeleted) -> String {
    let mut out = document::begin("DeleteResult");
    for BlobDeleted { name, refused } in &deleted.items {
        match refused {
            Some(refused) => {
                let row = error_row(refused.reason);
                out.push_str("<Error>");
                escape::referenced(&mut out, "Key", name);
                escape::element(&mut out, "Code", row.code);
                let message = refused.message.as_deref().unwrap_or(row.message);
                escape::referenced(&mut out, "Message", message);
                out.push_str("</Error>");
            }
            None if deleted.quiet => {}
            None => {
                out.push_str("<Deleted>");
                escape::referenced(&mut out, "Key", name);
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

    #[test]
    fn each_key_has_its_outcome() {
        let item = |name: &str, reason: Option<Reason>| BlobDeleted {
            name: name.to_owned(),
            refused: reason.map(Into::into),
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
