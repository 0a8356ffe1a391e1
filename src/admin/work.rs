//! The limit of concurrent requests of the admin listener.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use tokio::sync::Semaphore;

use crate::frontend::connections::HeldUntilSent;

use super::answer::Failure;

/// Concurrent requests, except health checks. More are refused immediately.
pub(super) const WORK_MAX: usize = 64;

/// Marks an answer that counts towards [`WORK_MAX`] until it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work;

/// Refuses requests beyond the limit. A request ends when its answer is sent.
pub(super) async fn bounded(
    State(work): State<Arc<Semaphore>>,
    request: Request,
    next: Next,
) -> Response {
    let Ok(permit) = work.try_acquire_owned() else { return busy().into_response() };
    let mut response =
        next.run(request).await.map(|body| Body::new(HeldUntilSent::new(body, permit)));
    response.extensions_mut().insert(Work);
    response
}

pub(super) fn busy() -> Failure {
    let text = "too many admin requests at a time: repeat it";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "Busy", text)
}
