//! The admin token, which the paths below `/admin` require.

use std::fmt;

use axum::extract::Request;
use axum::extract::State;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use sha2::Digest;
use sha2::Sha256;

use super::answer::Failure;

/// The digest of the token. The time that comparing digests takes reveals nothing about the token.
#[derive(Clone, Copy)]
pub struct Token([u8; 32]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// Keeps the digest of `token`.
    #[must_use]
    pub fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Whether `sent` is the token.
    #[must_use]
    pub fn is(&self, sent: &str) -> bool {
        self.0 == Self::new(sent).0
    }
}

/// Refuses requests without the token.
pub(super) async fn required(
    State(token): State<Token>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let shown = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match shown.and_then(|value| value.strip_prefix("Bearer ")) {
        Some(shown) if token.is(shown.trim()) => Ok(next.run(request).await),
        Some(_) => Err(Failure::unauthorized("this is not the admin token of this node")),
        None => Err(Failure::unauthorized(
            "send the token of the file admin-token in the first data directory as `Authorization: Bearer TOKEN`",
        )),
    }
}
