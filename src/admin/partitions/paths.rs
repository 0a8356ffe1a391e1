//! The paths of partitions.

use axum::Json;
use axum::extract::Query;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::admin::answer::Failure;
use crate::admin::audit_log::Note;
use crate::admin::state::AdminState;
use crate::audit_log::Thing;
use crate::index;
use crate::index::ChangeError;

use super::error::PartitionError;
use super::load_views::HistoryView;
use super::prepare::Prepare;
use super::views::Made;
use super::views::MapView;

/// Query of `GET /admin/partitions`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Since {
    #[serde(default)]
    after: u64,
    since: Option<u64>,
}

/// Query of `GET /admin/partitions/history`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SinceLook {
    after: Option<u64>,
    names: Option<u64>,
}

/// Body of `POST /admin/partitions/split`: either keys, or a partition and the number of parts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Split {
    #[serde(default)]
    at: Vec<String>,
    partition: Option<u64>,
    ways: Option<usize>,
}

/// Body of `POST /admin/partitions/stripe`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stripe {
    partition: u64,
    stripes: u8,
}

/// Body of `POST /admin/partitions/unstripe`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unstripe {
    /// Any of the stripes.
    partition: u64,
}

/// Body of `POST /admin/partitions/merge`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Merge {
    partitions: Vec<u64>,
}

/// Body of `POST /admin/partitions/move`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Move {
    partition: u64,
    /// Host 0 if only a node is given.
    host: Option<u64>,
    /// In a cluster, another node than that of the partition.
    node: Option<String>,
}

type Answer = Result<Json<Made>, Failure>;

/// `GET /admin/partitions?after=N&since=NUMBER`
pub(crate) async fn list(
    State(state): State<AdminState>,
    query: Result<Query<Since>, QueryRejection>,
) -> Result<Json<MapView>, Failure> {
    let Query(query) = query.map_err(|error| Failure::invalid(error.body_text()))?;
    let map = state.partitions()?.map_view(query.after, query.since).await;
    map.map(Json).map_err(|error| refused(&error))
}

/// `GET /admin/partitions/history?after=LOOK&names=NUMBER`
pub(crate) async fn history(
    State(state): State<AdminState>,
    query: Result<Query<SinceLook>, QueryRejection>,
) -> Result<Json<HistoryView>, Failure> {
    let Query(query) = query.map_err(|error| Failure::invalid(error.body_text()))?;
    Ok(Json(state.partitions()?.history_view(query.after, query.names).await))
}

/// `POST /admin/partitions/split`
pub(crate) async fn split(
    State(state): State<AdminState>,
    note: Note,
    body: Result<Json<Split>, JsonRejection>,
) -> Answer {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    let which = body.partition.map_or_else(|| body.at.join(","), |id| id.to_string());
    note.thing(Thing::PartitionMap, "SplitPartition", which, json!({ "ways": body.ways }));
    let partitions = state.partitions()?;
    let split = match (body.at.as_slice(), body.partition, body.ways) {
        ([_, ..], None, None) => partitions.split_at(&body.at).await,
        ([], Some(partition), Some(ways)) => partitions.split_evenly(partition, ways).await,
        _ => {
            return Err(Failure::invalid(
                "give either `at`, a list of keys, or `partition` and `ways`",
            ));
        }
    };
    split.map(Json).map_err(|error| refused(&error))
}

/// `POST /admin/partitions/stripe`
pub(crate) async fn stripe(
    State(state): State<AdminState>,
    note: Note,
    body: Result<Json<Stripe>, JsonRejection>,
) -> Answer {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    let detail = json!({ "stripes": body.stripes });
    note.thing(Thing::PartitionMap, "StripePartition", body.partition.to_string(), detail);
    let striped = state.partitions()?.stripe(body.partition, body.stripes).await;
    striped.map(Json).map_err(|error| refused(&error))
}

/// `POST /admin/partitions/unstripe`
pub(crate) async fn unstripe(
    State(state): State<AdminState>,
    note: Note,
    body: Result<Json<Unstripe>, JsonRejection>,
) -> Answer {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    let which = body.partition.to_string();
    note.thing(Thing::PartitionMap, "UnstripePartition", which, Value::Null);
    let merged = state.partitions()?.unstripe(body.partition).await;
    merged.map(Json).map_err(|error| refused(&error))
}

/// `POST /admin/partitions/merge`
pub(crate) async fn merge(
    State(state): State<AdminState>,
    note: Note,
    body: Result<Json<Merge>, JsonRejection>,
) -> Answer {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    let all: Vec<String> = body.partitions.iter().map(u64::to_string).collect();
    note.thing(Thing::PartitionMap, "MergePartitions", all.join(","), Value::Null);
    let merged = state.partitions()?.merge(&body.partitions).await;
    merged.map(Json).map_err(|error| refused(&error))
}

/// `POST /admin/partitions/move`
pub(crate) async fn move_to(
    State(state): State<AdminState>,
    note: Note,
    body: Result<Json<Move>, JsonRejection>,
) -> Answer {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    if body.host.is_none() && body.node.is_none() {
        return Err(Failure::invalid("give `host`, `node` or both"));
    }
    let host = body.host.unwrap_or(0);
    let detail = match &body.node {
        Some(node) => json!({ "host": host, "node": node }),
        None => json!({ "host": host }),
    };
    note.thing(Thing::PartitionMap, "MovePartition", body.partition.to_string(), detail);
    let moved = state.partitions()?.move_to(body.partition, body.node.as_deref(), host).await;
    moved.map(Json).map_err(|error| refused(&error))
}

/// `POST /admin/partitions/prepare`
pub(crate) async fn prepare(
    State(state): State<AdminState>,
    note: Note,
    body: Result<Json<Prepare>, JsonRejection>,
) -> Answer {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    let detail = json!({ "prefix": body.prefix, "ways": body.ways, "spread": body.spread });
    note.thing(Thing::PartitionMap, "PreparePartitions", body.container.clone(), detail);
    let prepared = state.partitions()?.prepare(&body).await;
    prepared.map(Json).map_err(|error| refused(&error))
}

fn refused(error: &PartitionError) -> Failure {
    use ChangeError as C;
    use PartitionError as E;
    let (status, code) = match error {
        E::NotAContainer(_) | E::NoBorder(_) | E::Parts(_) | E::Characters => {
            (StatusCode::BAD_REQUEST, "Invalid")
        }
        E::Change(C::BadKeys) => (StatusCode::BAD_REQUEST, "BadKeys"),
        E::NoSuchAccount(_) => (StatusCode::NOT_FOUND, "NoSuchAccount"),
        E::NoSuchContainer(_) => (StatusCode::NOT_FOUND, "NoSuchContainer"),
        E::Change(C::NoSuchPartition) => (StatusCode::NOT_FOUND, "NoSuchPartition"),
        E::NoSuchNode(_) => (StatusCode::NOT_FOUND, "NoSuchNode"),
        E::Change(C::NoSuchHost) => (StatusCode::NOT_FOUND, "NoSuchHost"),
        E::SeveralPartitions(..) => (StatusCode::CONFLICT, "SeveralPartitions"),
        E::AlreadyBorder(_) => (StatusCode::CONFLICT, "AlreadyBorder"),
        E::TooFewKeys(_) => (StatusCode::CONFLICT, "TooFewKeys"),
        E::NoSibling(_) => (StatusCode::CONFLICT, "NoSibling"),
        E::Change(C::NotNeighbours) => (StatusCode::CONFLICT, "NotNeighbours"),
        E::Change(C::Striped) => (StatusCode::CONFLICT, "Striped"),
        E::Change(C::NotStripable) => (StatusCode::CONFLICT, "NotStripable"),
        E::Change(C::Busy(_)) => (StatusCode::SERVICE_UNAVAILABLE, "PartitionsBusy"),
        E::Change(C::Refused(index::Error::Full(_)) | C::Failed(index::Error::Full(_)))
        | E::Index(index::Error::Full(_)) => {
            (StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage")
        }
        // Not 4xx, which stands for a change that did nothing: the audit log has a line for it.
        E::Change(C::PartlyDone(why)) if matches!(**why, C::Busy(_)) => {
            (StatusCode::SERVICE_UNAVAILABLE, "PartitionsBusy")
        }
        E::Change(C::PartlyDone(why)) if matches!(**why, C::Refused(index::Error::Full(_))) => {
            (StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage")
        }
        E::Change(C::Refused(_) | C::Failed(_) | C::PartlyDone(_)) | E::Index(_) => {
            tracing::error!(%error, "an admin command failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "Failed")
        }
    };
    Failure::new(status, code, error.to_string())
}
