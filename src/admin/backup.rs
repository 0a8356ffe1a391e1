//! The command that makes a backup of the running node.

use std::convert::Infallible;
use std::fmt::Debug;
use std::path::PathBuf;

use async_trait::async_trait;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::response::Response;
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::mpsc::Receiver;

use super::answer::Failure;
use super::server::AdminState;

/// Makes backups of a running node.
#[async_trait]
pub trait BackupControl: Send + Sync + Debug {
    /// Begins a backup in a directory of the node's machine; it goes on when nobody listens. The lines are JSON objects: how far
    /// it is, then `{"done": ..}` or `{"error": ..}`. `None` while another one runs.
    async fn begin(&self, directory: PathBuf) -> Option<Receiver<String>>;
}

/// Body of `POST /admin/backup`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Where {
    directory: PathBuf,
}

/// `POST /admin/backup`: one JSON object a line until the backup has ended.
pub(super) async fn begin(
    State(state): State<AdminState>,
    body: Result<Json<Where>, JsonRejection>,
) -> Result<Response, Failure> {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    if !body.directory.is_absolute() {
        return Err(Failure::invalid("directory must be an absolute path on the node's machine"));
    }
    let backups = state.backups.get().ok_or_else(Failure::starting)?;
    let lines = backups.begin(body.directory).await.ok_or_else(|| {
        let text = "a backup of this node is running: wait until it has ended";
        Failure::new(StatusCode::CONFLICT, "BackupRuns", text)
    })?;
    let lines = stream::unfold(lines, |mut lines| async move {
        let line = lines.recv().await?;
        Some((Ok::<_, Infallible>(line + "\n"), lines))
    });
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}
