//! Routes of the admin listener and their limits.

use std::sync::Arc;
use std::time::Duration;

use axum::BoxError;
use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::extract::DefaultBodyLimit;
use axum::extract::RawQuery;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::ACCEPT;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::delete;
use axum::routing::get;
use axum::routing::patch;
use axum::routing::post;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceBuilder;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::timeout::error::Elapsed;

use crate::env::Env;
use crate::env::net::Listener;
use crate::frontend::Tls;
use crate::frontend::answers::StallLimits;
use crate::telemetry;
use crate::telemetry::Exposition;

use super::accounts;
use super::answer::Failure;
use super::audit_log;
use super::audit_log::CommandLog;
use super::backups;
use super::connections;
use super::connections::Endpoint;
use super::console::Console;
use super::console::access;
use super::console::access::Readers;
use super::console::assets;
use super::console::login;
use super::console::turns;
use super::console::turns::Turns;
use super::disks;
use super::faults;
use super::hosts;
use super::keys;
use super::partitions;
use super::readiness::Phase;
use super::scopes;
use super::state::AdminState;
use super::token;
use super::trace;
use super::users;
use super::work::WORK_MAX;
use super::work::bounded;
use super::work::busy;

/// Concurrent admin commands. More are refused immediately.
const COMMANDS_MAX: usize = 16;
/// The longest time until the answer of a command begins.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(60);
/// Reads of partitions at a time.
const READS_MAX: usize = 4;
/// The longest time that a log-in takes, its body included.
const LOGIN_TIME_MAX: Duration = Duration::from_secs(5);
/// The most bytes of a log-in: a code and the words around it.
const LOGIN_BYTES_MAX: usize = 1024;

/// Serves the admin routes on a listener.
#[derive(Debug)]
pub struct AdminServer {
    listener: Box<dyn Listener>,
    tls: Option<Tls>,
    stall: StallLimits,
    state: AdminState,
    env: Env,
}

impl AdminServer {
    /// Serves `state` on `listener`.
    #[must_use]
    pub fn new(listener: Box<dyn Listener>, state: AdminState, env: Env) -> Self {
        let readiness = state.readiness.with_tasks(env.tasks.health());
        let stall = StallLimits::default();
        Self { listener, tls: None, stall, state: AdminState { readiness, ..state }, env }
    }

    /// The same over TLS only, when there is a certificate.
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Self {
        Self { tls, ..self }
    }

    /// The same with limits for clients that do not read: one that reads nothing of an answer for
    /// `stall`, or fewer than `rate_min` bytes per second, is disconnected.
    #[must_use]
    pub fn with_stall_limits(self, stall: Duration, rate_min: u64) -> Self {
        Self { stall: StallLimits { stall, rate_min, ..self.stall }, ..self }
    }

    /// Serves until `stop` fires. Panics do not end it.
    pub fn start(self, stop: CancellationToken) {
        let commands = CommandLog { log: self.state.audit_log.clone(), env: self.env.clone() };
        let (sessions, clock) = (self.state.sessions.clone(), Arc::clone(&self.env.clock));
        let console = Console { sessions, clock, secure: self.tls.is_some() };
        let routes =
            routes(self.state, console).layer(from_fn_with_state(commands, audit_log::record));
        let (listener, tls, stall) = (self.listener, self.tls, self.stall);
        let (name, plain) = ("admin", false);
        let endpoint = Endpoint { name, listener, tls, plain, routes, stall };
        connections::serve(endpoint, &self.env, stop);
    }
}

fn routes(state: AdminState, console: Console) -> Router {
    let work = Arc::new(Semaphore::new(WORK_MAX));
    // The client is not known yet: its body is short and must arrive soon, and commands do not
    // wait for it.
    let limits = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(overrun))
        .timeout(LOGIN_TIME_MAX)
        .layer(from_fn_with_state(Turns::default(), turns::in_turn))
        .layer(DefaultBodyLimit::max(LOGIN_BYTES_MAX));
    let login = post(login::open).with_state(console.clone()).layer(limits.clone());
    let logout = post(login::close).with_state(console.clone()).layer(limits);
    Router::new()
        .nest("/admin", control(&state, console))
        .route("/metrics", get(metrics))
        .route("/", get(assets::root))
        .route("/partitions", get(assets::partitions))
        .route("/login", get(assets::login).merge(login))
        .route("/logout", logout)
        .route("/console/{*name}", get(assets::named))
        .layer(from_fn_with_state(work, bounded))
        // Not limited: health checks never wait for other requests.
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .layer(from_fn_with_state(state.known_hosts.clone(), hosts::known))
        .with_state(state)
}

/// The routes that need the token, with a limit of concurrent commands and a time limit. A session
/// of the console suffices for what its pages read.
fn control(state: &AdminState, console: Console) -> Router<AdminState> {
    let limits = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(overrun))
        .load_shed()
        // One limit for all routes.
        .layer(GlobalConcurrencyLimitLayer::new(COMMANDS_MAX))
        .timeout(COMMAND_TIME_MAX);
    // Open pages read every two seconds and take no turn of a command.
    let reading = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(overrun))
        .load_shed()
        .layer(GlobalConcurrencyLimitLayer::new(READS_MAX))
        .timeout(COMMAND_TIME_MAX);
    let readers = Readers { token: state.token, console: console.clone() };
    let read = Router::new()
        .route("/partitions", get(partitions::paths::list))
        .route("/partitions/history", get(partitions::paths::history))
        .layer(reading)
        .layer(from_fn_with_state(readers, access::required));
    let commands = commands()
        .route("/console", post(login::make).with_state(console))
        .fallback(no_such_path)
        .layer(limits)
        .layer(from_fn_with_state(state.token, token::required));
    read.merge(commands)
}

fn commands() -> Router<AdminState> {
    Router::new()
        .route("/accounts", get(accounts::list).post(accounts::create))
        .route(
            "/accounts/{name}",
            get(accounts::show).patch(accounts::change).delete(accounts::remove),
        )
        .route("/accounts/{name}/rotate", post(accounts::rotate))
        .route("/accounts/{name}/revoke", post(accounts::revoke))
        .route("/accounts/{name}/grants", get(accounts::assignments).post(accounts::assign))
        .route("/accounts/{name}/grants/revoke", post(accounts::unassign))
        .route("/accounts/{name}/users", get(users::list).post(users::create))
        .route("/accounts/{name}/users/{user}", get(users::show).delete(users::remove))
        .route("/accounts/{name}/users/{user}/rotate", post(users::rotate))
        .route("/accounts/{name}/scopes", get(scopes::list).post(scopes::create))
        .route("/accounts/{name}/scopes/{scope}", patch(scopes::change))
        .route("/disks", get(disks::list))
        .route("/disks/drain", post(disks::drain))
        .route("/disks/remove", post(disks::remove))
        .route("/backup", get(backups::show).post(backups::begin))
        .route("/keys", get(keys::list))
        .route("/keys/rotate", post(keys::rotate))
        .route("/faults", get(faults::list).post(faults::set).delete(faults::clear))
        .route("/faults/{id}", delete(faults::clear_one))
        .route("/partitions/split", post(partitions::paths::split))
        .route("/partitions/merge", post(partitions::paths::merge))
        .route("/partitions/stripe", post(partitions::paths::stripe))
        .route("/partitions/unstripe", post(partitions::paths::unstripe))
        .route("/partitions/move", post(partitions::paths::move_to))
        .route("/partitions/prepare", post(partitions::paths::prepare))
        .route("/trace", get(trace::watch))
}

async fn no_such_path() -> Failure {
    let text = "no such admin path: api-spec/admin.yaml lists them";
    Failure::new(StatusCode::NOT_FOUND, "NoSuchPath", text)
}

/// A limit was reached before the command ran, or while it ran.
async fn overrun(error: BoxError) -> Failure {
    if error.is::<Elapsed>() {
        let text =
            "the command took too long; it may still be carried out: look before you repeat it";
        Failure::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", text)
    } else {
        busy()
    }
}

async fn readyz(State(state): State<AdminState>, RawQuery(query): RawQuery) -> Response {
    let phase = state.readiness.phase();
    let stopped = state.readiness.stopped();
    let status = match phase {
        Phase::Ready if stopped.is_empty() => StatusCode::OK,
        Phase::Starting | Phase::Standby | Phase::Ready | Phase::Draining => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    let mut text = format!("{}\n", phase.word());
    for (task, why) in stopped {
        text.push_str(&format!("stopped: {task} panicked: {why}; restart the node\n"));
    }
    let verbose = query.is_some_and(|query| query.split('&').any(|part| part == "verbose"));
    if let Some(disks) = state.disks.get().filter(|_| verbose) {
        disks.troubles().iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    (status, text).into_response()
}

async fn metrics(State(state): State<AdminState>, headers: HeaderMap) -> Response {
    let Some(registry) = state.registry.get() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response();
    };
    let accept = headers.get(ACCEPT).and_then(|types| types.to_str().ok());
    let form = Exposition::accepted(accept);
    let later = [state.registry_of_roles.get(), state.registry_of_index.get()];
    match telemetry::render_all([registry].into_iter().chain(later.into_iter().flatten()), form) {
        Ok(text) => ([(CONTENT_TYPE, form.content_type())], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written as text");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests;
