//! The failure of a pending copy, as its row keeps it: the refusal as JSON, independent of
//! dialects. Earlier releases kept a line of Azure's text, which is shown unchanged.
//! `api-spec/rows.md` describes the field.

use serde::Deserialize;
use serde::Serialize;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::SourceRefusal;
use crate::protocol::model::copy::CopyFailure;

#[derive(Serialize, Deserialize)]
struct Kept {
    /// The name of the reason.
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<KeptSource>,
}

/// The refusal of a source in this store.
#[derive(Serialize, Deserialize)]
struct KeptSource {
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

/// Encodes the refusal that ended a copy, for a row.
pub(crate) fn write(refusal: &Refusal) -> String {
    let kept = Kept {
        reason: refusal.reason.name().to_owned(),
        status: refusal.status,
        message: refusal.message.clone(),
        source: refusal.source.as_ref().map(|source| KeptSource {
            reason: source.reason.name().to_owned(),
            status: source.status,
        }),
    };
    serde_json::to_string(&kept).expect("texts and numbers are JSON")
}

/// Reads what a row keeps.
pub(crate) fn read(kept: String) -> CopyFailure {
    match refusal(&kept) {
        Some(refusal) => CopyFailure::Refused(Box::new(refusal)),
        None => CopyFailure::Line(kept),
    }
}

/// `None` for a line of an earlier release, and for a reason that only a later one knows.
fn refusal(kept: &str) -> Option<Refusal> {
    let Kept { reason: name, status, message, source } = serde_json::from_str(kept).ok()?;
    let source = match source {
        Some(KeptSource { reason: name, status }) => {
            Some(SourceRefusal { reason: reason(&name)?, status })
        }
        None => None,
    };
    Some(Refusal { status, message, source, ..Refusal::new(reason(&name)?) })
}

fn reason(name: &str) -> Option<Reason> {
    Reason::ALL.iter().copied().find(|reason| reason.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::dialect::Dialects;
    use crate::protocol::model::Reply;
    use crate::protocol::model::copy::CopyFacts;
    use crate::protocol::model::copy::CopyState;
    use crate::protocol::model::reply::BlobFacts;
    use crate::protocol::model::reply::Change;
    use crate::types::Etag;
    use crate::types::Protocols;
    use crate::types::Timestamp;

    #[test]
    fn refusal_comes_back_as_it_was() {
        let gone = Refusal::new(Reason::CannotVerifyCopySource).status(409);
        let source = Some(SourceRefusal { reason: Reason::BlobNotFound, status: Some(418) });
        for refusal in [
            gone.clone(),
            gone.clone().message("Line\n\"two\""),
            Refusal { source, ..gone },
            Reason::InternalError.into(),
        ] {
            let kept = write(&refusal);
            assert!(kept.starts_with("{\"reason\":"), "{kept}");
            assert_eq!(read(kept), CopyFailure::Refused(Box::new(refusal)));
        }
    }

    #[test]
    fn other_texts_are_lines() {
        let later = r#"{"reason":"SomethingNew"}"#;
        let source = r#"{"reason":"InternalError","source":{"reason":"SomethingNew"}}"#;
        for line in ["404 CannotVerifyCopySource \"Could not verify.\"", "", "7", later, source] {
            assert_eq!(read(line.to_owned()), CopyFailure::Line(line.to_owned()));
        }
    }

    /// The text that Azure shows of a copy with this failure in its row.
    fn shown(kept: String) -> String {
        let (head, ()) = http::Request::head("/acct/con/b").body(()).unwrap().into_parts();
        let dialects = Dialects::default();
        let echo = dialects.of(&head, Protocols::All).echo(&head, "id".to_owned(), Timestamp::ZERO);
        let change = Change {
            etag: Etag::from_commit(Timestamp::ZERO),
            last_modified: Timestamp::ZERO,
            version: None,
        };
        let copy = CopyFacts {
            id: uuid::Uuid::nil(),
            source: String::new(),
            state: CopyState::Failed,
            failure: Some(read(kept)),
            copied: 0,
            total: 1,
            completed: None,
            incremental: None,
        };
        let facts = BlobFacts::new(change, Timestamp::ZERO, 0);
        let facts = BlobFacts { copy: Some(Box::new(copy)), ..facts };
        let response = echo.render(&Reply::BlobProperties(Box::new(facts)));
        let header = response.headers().get("x-ms-copy-status-description");
        header.map_or("", |value| value.to_str().unwrap()).to_owned()
    }

    #[test]
    fn failures_are_worded_as_they_were_before_they_were_neutral() {
        let line = "404 CannotVerifyCopySource \"The specified blob does not exist.\"";
        let source = Some(SourceRefusal { reason: Reason::BlobNotFound, status: None });
        let refusal = Refusal { source, ..Refusal::new(Reason::CannotVerifyCopySource) };
        assert_eq!(shown(write(&refusal)), line);
        assert_eq!(shown(line.to_owned()), line);
        let given_up = Refusal::new(Reason::InternalError).message("Try it again.");
        assert_eq!(shown(write(&given_up)), "500 InternalError \"Try it again.\"");
    }
}
