//! The paths of the login: `blockyard console` asks for a code with the admin token; the page
//! `/login` takes the code from behind the `#` of its address and exchanges it for a session.

use std::time::Duration;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::AppendHeaders;
use axum::response::IntoResponse;
use rand::rngs::SysError;
use serde::Deserialize;
use serde::Serialize;

use crate::admin::answer::Failure;
use crate::admin::audit_log::Note;
use crate::audit_log::Principal;

use super::Console;
use super::access::cookie;
use super::access::is_own_page;
use super::access::session;
use super::sessions::CODE_LIFE;
use super::sessions::SESSION_LIFE;

/// The path of a login link with this code.
pub(in crate::admin) fn link(code: &str) -> String {
    format!("/login#{code}")
}

/// The answer of `POST /admin/console`.
#[derive(Debug, Serialize)]
pub(in crate::admin) struct Link {
    /// Path and fragment, to be put behind the address of the listener.
    path: String,
    /// For how long it works, once.
    expires_s: u64,
}

/// Body of `POST /login`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct Login {
    code: String,
}

/// `POST /admin/console`
pub(in crate::admin) async fn make(
    State(console): State<Console>,
    note: Note,
) -> Result<impl IntoResponse, Failure> {
    note.session("MakeLoginLink", Principal::AdminToken);
    let code = console.sessions.new_code(console.now()).map_err(|error| random(&error))?;
    let made = Link { path: link(&code), expires_s: CODE_LIFE.as_secs() };
    Ok((StatusCode::CREATED, Json(made)))
}

/// `POST /login`
pub(in crate::admin) async fn open(
    State(console): State<Console>,
    headers: HeaderMap,
    note: Note,
    body: Result<Json<Login>, JsonRejection>,
) -> Result<impl IntoResponse, Failure> {
    own_page(&headers)?;
    let Json(Login { code }) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    note.session("OpenSession", Principal::Console);
    let opened = console.sessions.open(&code, console.now()).map_err(|error| random(&error))?;
    let session = opened.ok_or_else(|| {
        let text =
            "this login link was used, or is older than a minute: run `blockyard console` again";
        Failure::new(StatusCode::FORBIDDEN, "LoginRefused", text)
    })?;
    tracing::info!("a browser was logged in to the console");
    let set = cookie(&headers, &session, SESSION_LIFE, console.secure);
    Ok((StatusCode::NO_CONTENT, Extension(Principal::Console), AppendHeaders([(SET_COOKIE, set)])))
}

/// `POST /logout`
pub(in crate::admin) async fn close(
    State(console): State<Console>,
    headers: HeaderMap,
    note: Note,
) -> Result<impl IntoResponse, Failure> {
    own_page(&headers)?;
    let mut principal = Principal::Unknown;
    if session(&headers).is_some_and(|session| console.sessions.close(session, console.now())) {
        principal = Principal::Console;
        note.session("CloseSession", principal.clone());
    }
    let set = cookie(&headers, "", Duration::ZERO, console.secure);
    Ok((StatusCode::NO_CONTENT, Extension(principal), AppendHeaders([(SET_COOKIE, set)])))
}

fn own_page(headers: &HeaderMap) -> Result<(), Failure> {
    let text = "a page of another site cannot log in here or out: open the console's own page";
    let refused = || Failure::new(StatusCode::FORBIDDEN, "OtherSite", text);
    is_own_page(headers).then_some(()).ok_or_else(refused)
}

fn random(error: &SysError) -> Failure {
    tracing::error!(%error, "the operating system returns no random bytes");
    let text = "the operating system returns no random bytes: try again";
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "Failed", text)
}
