//! Sends batches over the front end's HTTP client.

use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use http::Response;
use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::Limited;
use opentelemetry_http::HttpClient;
use opentelemetry_http::HttpError;

use super::answer::Answer;
use super::answer::LastAnswer;
use crate::env::Tasks;
use crate::frontend::client::Client;
use crate::frontend::client::ClientError;
use crate::frontend::client::port;

/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Posts to the collector. Each batch has a connection of its own.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) client: Client,
    pub(super) tasks: Tasks,
    /// Where answers are kept for the exporter.
    pub(super) answer: LastAnswer,
}

#[async_trait]
impl HttpClient for Post {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let url = request.uri().clone();
        let authority = url.authority().ok_or(ClientError::Url)?;
        let mut refused: HttpError = "its host has no address".into();
        for address in self.client.resolve(authority.host(), port(&url, authority)).await? {
            let request = request.clone().map(Full::new);
            match self.client.send(request, address, &self.tasks).await {
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
                    self.answer.keep(Answer { status: head.status, body: body.clone() });
                    return Ok(Response::from_parts(head, body));
                }
                Err(error) => refused = error.into(),
            }
        }
        Err(refused)
    }
}
