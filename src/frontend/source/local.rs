//! Recognises URLs of this store.

use http::Uri;
use http::uri::Authority;

use crate::frontend::client::port;
use crate::frontend::config::FrontEndConfig;
use crate::frontend::source::requester::Requester;

/// Whether the URL names this store: by the host of the request, by an address that this process
/// listens on, or by a served domain and a port that it listens on or that the request itself
/// names: a balancer may listen on another port than this process. A false positive only causes a
/// refusal, because each source in this store is authorized like a request.
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
    // A host without a port means the default port of a scheme, which only the balancer knows.
    let own = own.and_then(|own| own.parse::<Authority>().ok());
    let as_named = own.is_some_and(|own| own.port_u16() == authority.port_u16());
    ((listened || as_named) && config.dialects.are_served_under(authority.host()))
        || config.listening.is_at(authority.host(), port)
}
