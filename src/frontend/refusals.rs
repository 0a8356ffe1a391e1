//! Error answers that are being sent: clients that do not read them must not fill the memory.

use std::sync::Arc;

use hyper::Response;
use tokio::sync::Semaphore;

use crate::frontend::body::ResponseBody;
use crate::frontend::dialect::echo::Echo;
use crate::protocol::model::Refusal;

/// The most error answers with a text that are being sent at a time; each takes a few KiB, with its
/// stream.
const TEXTS_MAX: usize = 8192;

/// Renders error answers. While too many are being sent, further ones have the code in their header
/// only: an answer without a body holds no memory once its head is sent.
#[derive(Debug)]
pub(crate) struct Refusals {
    texts: Arc<Semaphore>,
}

impl Default for Refusals {
    fn default() -> Self {
        Self { texts: Arc::new(Semaphore::new(TEXTS_MAX)) }
    }
}

impl Refusals {
    /// The answer of an error.
    pub(crate) fn render(&self, error: &Refusal, echo: &Echo<'_>) -> Response<ResponseBody> {
        match Arc::clone(&self.texts).try_acquire_owned() {
            Ok(text) => {
                echo.render_refusal(error).map(|bytes| ResponseBody::full(bytes).refusing(text))
            }
            Err(_) => echo.render_brief_refusal(error).map(ResponseBody::full),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body;
    use hyper::Request;

    use super::*;
    use crate::frontend::dialect::Dialects;
    use crate::frontend::errors;
    use crate::types::Protocols;
    use crate::types::Timestamp;

    #[test]
    fn beyond_so_many_on_their_way_refusals_have_no_text() {
        let refusals = Refusals::default();
        let (head, ()) = Request::get("/a/c/b").body(()).unwrap().into_parts();
        let dialects = Dialects::default();
        let echo = dialects.of(&head, Protocols::All).echo(&head, "id".to_owned(), Timestamp::ZERO);
        let refused = || refusals.render(&errors::busy(errors::Busy::Requests), &echo);
        let has_text = |response: &Response<ResponseBody>| !response.body().is_end_stream();
        let mut unread: Vec<_> = (0..TEXTS_MAX).map(|_| refused()).collect();
        assert!(unread.iter().all(has_text));
        let brief = refused();
        assert!(!has_text(&brief));
        assert_eq!(brief.status().as_u16(), 503);
        assert_eq!(brief.headers()["content-length"], "0");
        assert_eq!(brief.headers()["x-ms-error-code"], "ServerBusy");
        assert_eq!(brief.headers()["retry-after"], "1");
        unread.pop();
        assert!(has_text(&refused()), "one was read");
    }
}
