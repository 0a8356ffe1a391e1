//! Recognises URLs of this store.

use http::Uri;
use http::uri::Authority;

use crate::frontend::client::port;
use crate::frontend::config::FrontEndConfig;
use crate::frontend::source::requester::Requester;

/// Whether the URL names this store: by the host of the request, by an address that this process
/// listens on, or by a served domain and a port that it listens on. A wrong yes only causes a
/// refusal, because each source in this store is authorized like a request.
pub(super) fn is_here(config: &FrontEndConfig, requester: Requester<'_>, url: &Uri) -> bool {
    let Some(authority) = url.authority() else { return false };
    let own = requester.head.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    let own = own.or_else(|| requester.head.uri.authority().map(Authority::as_str));
    if own.is_some_and(|own| own.eq_ignore_ascii_case(authority.as_str())) {
        return true;
    }
    let port = port(url, authority);
    let under = |domain: &String| {
        let rest = authority.host().split_once('.').map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split_once('.')).is_some_and(|(service, name)| {
            service.eq_ignore_ascii_case("blob") && name.eq_ignore_ascii_case(domain)
        })
    };
    let listened = config.listening.0.iter().any(|own| own.port() == port);
    (listened && config.addressing.domains.iter().any(under))
        || config.listening.is_at(authority.host(), port)
}
