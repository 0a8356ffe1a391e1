//! Ports of services of Azure Storage that are not served. Every request is answered 501 and names
//! the service, in the form that its clients read.

use std::time::Duration;

use axum::Router;
use axum::http::HeaderName;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::env::Env;
use crate::env::net::Listener;
use crate::frontend::Tls;
use crate::frontend::answers::StallLimits;

use super::connections;
use super::connections::Endpoint;

/// How errors of a service are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorForm {
    /// An `Error` element.
    Xml,
    /// An `odata.error` object.
    Odata,
}

/// A port of a service that is not served.
#[derive(Debug)]
pub struct UnservedServer {
    /// Accepts connections.
    pub listener: Box<dyn Listener>,
    /// https, if it is served beside http.
    pub tls: Option<Tls>,
    /// The name of the service.
    pub service: &'static str,
    /// How its errors are written.
    pub form: ErrorForm,
    /// After this time a client that does not read is disconnected.
    pub stall: Duration,
}

impl UnservedServer {
    /// Answers until `stop` fires.
    pub fn start(self, env: &Env, stop: CancellationToken) {
        let Self { listener, tls, service, form, stall } = self;
        let routes = routes(service, form);
        let stall = StallLimits { stall, ..StallLimits::default() };
        let (name, plain) = (service, true);
        connections::serve(Endpoint { name, listener, tls, plain, routes, stall }, env, stop);
    }
}

fn routes(service: &'static str, form: ErrorForm) -> Router {
    Router::new().fallback(async move || answer(service, form))
}

fn answer(service: &str, form: ErrorForm) -> Response {
    const CODE: &str = "NotImplemented";
    let text = format!(
        "{service} Storage is not served: Blockyard serves Blob Storage and S3, on its Blob port."
    );
    let (kind, body) = match form {
        ErrorForm::Xml => (
            "application/xml",
            format!(
                "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
                 <Error><Code>{CODE}</Code><Message>{text}</Message></Error>"
            ),
        ),
        ErrorForm::Odata => {
            let message = json!({ "lang": "en-US", "value": text });
            let error = json!({ "odata.error": { "code": CODE, "message": message } });
            ("application/json;odata=minimalmetadata", error.to_string())
        }
    };
    let code = HeaderName::from_static("x-ms-error-code");
    (StatusCode::NOT_IMPLEMENTED, [(CONTENT_TYPE, kind), (code, CODE)], body).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    async fn asked(form: ErrorForm, method: &str) -> (StatusCode, String) {
        let request = Request::builder().method(method).uri("/acct/x?comp=list");
        let request = request.body(Body::empty()).unwrap();
        let response = routes("Queue", form).oneshot(request).await.unwrap();
        assert_eq!(response.headers()["x-ms-error-code"], "NotImplemented");
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn every_request_is_answered_that_the_service_is_not_served() {
        for method in ["GET", "PUT", "DELETE"] {
            let (status, body) = asked(ErrorForm::Xml, method).await;
            assert_eq!(status, StatusCode::NOT_IMPLEMENTED);
            assert!(body.contains("<Message>Queue Storage is not served"), "{body}");
        }
        let (_, body) = asked(ErrorForm::Odata, "GET").await;
        let error: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(error["odata.error"]["code"], "NotImplemented");
    }
}
