//! The parts of a request that its answer repeats, and the rendering of answers.

use bytes::Bytes;
use http::Response;

use crate::frontend::dialect::foreign::Foreign;
use crate::frontend::dialect::foreign::ForeignEcho;
use crate::frontend::dialect::header_case;
use crate::protocol::azure;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::s3;
use crate::protocol::s3::S3Echo;

/// The parts of a request that its answer repeats. Each dialect has its own.
#[derive(Debug)]
pub(crate) enum Echo<'a> {
    /// Azure Blob REST.
    Azure(azure::RequestEcho),
    /// S3.
    S3(Box<S3Echo>),
    /// The dialect of a test.
    Foreign(&'a dyn Foreign, ForeignEcho),
}

impl Echo<'_> {
    /// The request's id.
    pub(in crate::frontend) fn request_id(&self) -> &str {
        match self {
            Self::Azure(echo) => echo.request_id(),
            Self::S3(echo) => echo.request_id(),
            Self::Foreign(_, echo) => &echo.id,
        }
    }

    /// Adds the parts of an operation that the answer repeats; `scheme` is `http` or `https`.
    pub(super) fn operation(&mut self, operation: &Operation, address: &Address, scheme: &str) {
        match self {
            Self::Azure(echo) => echo.operation(operation, address, scheme),
            Self::S3(_) | Self::Foreign(..) => {}
        }
    }

    /// The answer to a request that was carried out. The body of [`Reply::Blob`] is left to the
    /// caller; its `Content-Length` is set.
    pub(in crate::frontend) fn render(&self, reply: &Reply) -> Response<Bytes> {
        match self {
            Self::Azure(echo) => {
                let mut response = azure::render(reply, echo);
                if let Some(spelling) = reply.metadata().and_then(header_case::spelling) {
                    response.extensions_mut().extend(spelling);
                }
                response
            }
            Self::S3(echo) => s3::render(reply, echo),
            Self::Foreign(foreign, echo) => foreign.render(reply, echo),
        }
    }

    /// The answer to a request that was refused.
    pub(in crate::frontend) fn render_refusal(&self, refusal: &Refusal) -> Response<Bytes> {
        match self {
            Self::Azure(echo) => azure::render_error(refusal, echo),
            Self::S3(echo) => s3::render_refusal(refusal, echo),
            Self::Foreign(foreign, echo) => foreign.render_refusal(refusal, echo),
        }
    }

    /// The answer to a request that was refused, without a body.
    pub(in crate::frontend) fn render_brief_refusal(&self, refusal: &Refusal) -> Response<Bytes> {
        match self {
            Self::Azure(echo) => azure::render_error_without_text(refusal, echo),
            Self::S3(echo) => s3::render_refusal_without_text(refusal, echo),
            Self::Foreign(foreign, echo) => {
                let (mut head, _) = foreign.render_refusal(refusal, echo).into_parts();
                head.headers.insert(http::header::CONTENT_LENGTH, 0.into());
                Response::from_parts(head, Bytes::new())
            }
        }
    }

    /// The answer to a refused request of a website: a page.
    pub(super) fn render_page(&self, refusal: &Refusal) -> Response<Bytes> {
        match self {
            Self::Azure(echo) => azure::web_error(refusal, echo),
            Self::S3(_) | Self::Foreign(..) => self.render_refusal(refusal),
        }
    }
}
