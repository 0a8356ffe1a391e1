//! Live requests as a stream of JSON lines.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::Query;
use axum::extract::State;
use axum::extract::rejection::QueryRejection;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::response::Response;
use futures_util::stream;

use crate::frontend::trace::TraceEvent;
use crate::frontend::trace::TraceFilter;
use crate::frontend::trace::TraceWatch;

use super::answer::Failure;
use super::state::AdminState;

/// `GET /admin/trace`: a line with a JSON object for each request that passes the filter, until the
/// client disconnects; `{"lost": N}` when it reads too slowly.
pub(super) async fn watch(
    State(state): State<AdminState>,
    filter: Result<Query<TraceFilter>, QueryRejection>,
) -> Result<Response, Failure> {
    let Query(filter) = filter.map_err(|error| Failure::invalid(error.body_text()))?;
    filter.check().map_err(|error| Failure::invalid(error.to_string()))?;
    let watch = state.control()?.trace.watch();
    let lines = stream::unfold((watch, filter), |(mut watch, filter)| async move {
        let line = next(&mut watch, &filter).await?;
        Some((Ok::<_, Infallible>(line), (watch, filter)))
    });
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}

async fn next(watch: &mut TraceWatch, filter: &TraceFilter) -> Option<String> {
    loop {
        match watch.next().await? {
            TraceEvent::Lost(lost) => return Some(format!("{{\"lost\":{lost}}}\n")),
            TraceEvent::Line(line) if filter.wants(&line) => {
                let text = serde_json::to_string(line.as_ref()).ok()?;
                return Some(text + "\n");
            }
            TraceEvent::Line(_) => {}
        }
    }
}
