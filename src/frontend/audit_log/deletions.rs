//! The lines of blobs that one request deletes: one for each, beside that of the request.

use http::StatusCode;

use crate::frontend::audit_log::RequestStart;
use crate::frontend::audit_log::draft::AnswerFacts;
use crate::frontend::dialect::echo::Echo;
use crate::frontend::observe::RequestContext;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Address;
use crate::protocol::model::reply::BlobsDeleted;
use crate::types::BlobName;

impl FrontEnd {
    /// Writes the lines of the blobs that a request deleted, if every request has a line.
    pub(in crate::frontend) async fn log_deletions(
        &self,
        deleted: &BlobsDeleted,
        context: &RequestContext,
        (start, echo): (RequestStart<'_>, &Echo<'_>),
    ) {
        if !self.audit_log.has_requests() {
            return;
        }
        let Some(container) = start.arrival.address() else { return };
        for item in &deleted.items {
            let blob = BlobName::new(&item.name).ok();
            let address = Address { blob, blob_as_sent: None, ..container.clone() };
            let mut draft = self.draft_at(Some(&address), start);
            let refusal = item.outcome.as_ref().err();
            let refused = refusal.map(|refusal| echo.render_refusal(refusal));
            let answer = match &refused {
                Some(refused) => AnswerFacts {
                    status: refused.status(),
                    code: start.arrival.dialect.error_code(refused.headers()),
                    bytes: 0,
                },
                None => AnswerFacts { status: StatusCode::NO_CONTENT, code: None, bytes: 0 },
            };
            let principal = context.principal.clone();
            draft.answered(context.operation, principal, 0, answer).await;
        }
    }
}
