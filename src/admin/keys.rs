//! Master keys: what the node tells of them, and the command that rotates them. Never a key.

use std::fmt::Debug;

use async_trait::async_trait;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::audit_log::Thing;

use super::answer::Failure;
use super::audit_log::Note;
use super::server::AdminState;

/// A master key as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MasterKeyView {
    /// Its number in the ring.
    pub id: u32,
    /// When it was made, as ISO 8601.
    pub created: String,
    /// `active`: it seals; `retired`: it opens what was sealed before a rotation.
    pub state: String,
}

/// A key ring as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRingView {
    /// The ring's id.
    pub ring: String,
    /// The master key file.
    pub file: String,
    /// All keys, by number.
    pub keys: Vec<MasterKeyView>,
    /// After a rotation: secrets that were sealed anew.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resealed: Option<usize>,
}

/// The key ring of a node.
#[async_trait]
pub trait KeyControl: Send + Sync + Debug {
    /// The ring as of now.
    fn list(&self) -> KeyRingView;

    /// Adds a key, which is durable when it is used first, and seals all secrets under it.
    ///
    /// # Errors
    /// What went wrong, also that some secrets are damaged and stay as they are; both keys are in
    /// the file then, or the old ones alone.
    async fn rotate(&self) -> Result<KeyRingView, String>;
}

/// `GET /admin/keys`
pub(super) async fn list(State(state): State<AdminState>) -> Result<Json<KeyRingView>, Failure> {
    Ok(Json(state.keys()?.list()))
}

/// `POST /admin/keys/rotate`
pub(super) async fn rotate(
    State(state): State<AdminState>,
    note: Note,
) -> Result<Json<KeyRingView>, Failure> {
    note.thing(Thing::Key, "RotateMasterKey", "key ring".to_owned(), Value::Null);
    state.keys()?.rotate().await.map(Json).map_err(|error| {
        tracing::error!(%error, "the master key was not rotated");
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "Failed", error)
    })
}
