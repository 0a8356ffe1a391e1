//! Refusals of paths below `/admin`: JSON with a code for programs and a text that says what to do.

use axum::Json;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::json;

use super::readiness::Phase;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(super) fn unauthorized(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
    }

    /// What a command is about is not there.
    pub(super) fn absent(phase: Phase) -> Self {
        let (status, code, text) = match phase {
            Phase::Starting => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Starting",
                "the node is starting: ask again when /readyz answers 200",
            ),
            Phase::Standby => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Standby",
                "no node of the cluster serves the index, or this one does not reach it: ask again \
                 soon",
            ),
            Phase::Ready | Phase::Draining => (
                StatusCode::NOT_IMPLEMENTED,
                "NotInCluster",
                "no node of a cluster can do this yet: backups, disks and keys are those of a node \
                 alone",
            ),
        };
        Self::new(status, code, text)
    }

    /// A node that answers no clients has no accounts to show.
    pub(super) fn no_front_end() -> Self {
        let text = "this node answers no clients: give the command to a node with the role front, \
                    which `blockyard cluster status` names";
        Self::new(StatusCode::NOT_IMPLEMENTED, "NoFrontEnd", text)
    }

    /// This node serves no partitions yet. Another one may.
    pub(super) fn elsewhere() -> Self {
        let text = "this node serves no partitions yet: ask again, or another one, which `blockyard \
                    cluster status` names";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Standby", text)
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Invalid", message)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = Json(json!({ "error": { "code": self.code, "message": self.message } }));
        let mut response = (self.status, body).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
