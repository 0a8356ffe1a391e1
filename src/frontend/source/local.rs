//! Which URLs name this same store.

use http::Uri;
use http::uri::Authority;

use crate::frontend::client::port;
use crate::frontend::config::FrontEndConfig;
use crate::frontend::source::requester::Requester;

/// Whether the URL names this store: under the name the request itself came by, at an address
/// listened on, or under one of the served domains at a port listened on. A wrong yes costs nothing
/// but a refusal: what is here is authorized as any request is.
pub(super) fn is_here(config: &FrontEndConfig, requester: Requester<'_>, url: &Uri) -> bool {
    let Some(authority) = url.authority() else { return false };
    let own =
        requester.arrival.head.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    let own = own.or_else(|| requester.arrival.head.uri.authority().map(Authority::as_str));
    if own.is_some_and(|own| own.eq_ignore_ascii_case(authority.as_str())) {
        return true;
    }
    let port = port(url, authority);
    let listened = config.listening.0.iter().any(|own| own.port() == port);
    (listened && config.dialects.are_served_under(authority.host()))
        || config.listening.is_at(authority.host(), port)
}
