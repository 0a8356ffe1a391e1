//! The host name check of the admin listener, and the header of all its answers.

use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;

use crate::protocol::KnownHosts;
use crate::protocol::host;

use super::answer::Failure;

/// Refuses requests for unknown host names, which protects against DNS rebinding.
pub(super) async fn known(
    State(known): State<KnownHosts>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let mut response = match check(&known, &head) {
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(failure) => failure.into_response(),
    };
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

fn check(known: &KnownHosts, head: &Parts) -> Result<(), Failure> {
    let host = host::host(head).map_err(|error| Failure::invalid(error.to_string()))?;
    if known.know(host) {
        return Ok(());
    }
    let name = host::name(host);
    let text = format!(
        "the admin listener does not answer under the host name '{name}', because a web page could reach it by DNS rebinding: \
         start the node with --allow-host {name} (or '*' for every name), or use an IP address or localhost"
    );
    Err(Failure::new(StatusCode::FORBIDDEN, "HostNotAllowed", text))
}
