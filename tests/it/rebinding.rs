//! A web page whose host name leads to this server (DNS rebinding) gets nothing of the account
//! whose key is public, by any request, preflight or document of its website.

use blockyard::node::config::DEVELOPMENT_KEY;

use crate::server::Server;
use crate::wire::Message;
use crate::wire::Sign;
use crate::wire::send;

const KNOWN: &str = "127.0.0.1";
const REBOUND: &str = "page.test";
/// The account that is there without being named.
const PUBLIC: &str = "devstoreaccount1";

/// Of one way in: its status and code under a host name.
fn asked(server: &Server, host: &str, line: &str, headers: &[&str]) -> (u16, String) {
    let mut message = Message::new(line);
    for header in headers {
        message = message.header(header);
    }
    message.sign = Sign::Not;
    message.unsigned.push(("host".to_owned(), host.to_owned()));
    let answer = send(server.address, &message).unwrap();
    (answer.status, answer.text())
}

#[test]
fn rebound_name_is_refused_by_every_way_in() {
    let server = Server::start(&["--account", &format!("{PUBLIC}:{DEVELOPMENT_KEY}")]);
    let origin: [&str; 2] =
        [&format!("origin: http://{REBOUND}"), "access-control-request-method: GET"];
    let (blob, site) = (format!("/{PUBLIC}/con/blob"), format!("/{PUBLIC}-web/index.html"));
    let ways = [
        ("a request", format!("GET {blob}"), &[][..], (401, "NoAuthenticationInformation")),
        ("a preflight", format!("OPTIONS {blob}"), &origin[..], (403, "CorsPreflightFailure")),
        ("a document", format!("GET {site}"), &[][..], (404, "WebContentNotFound")),
    ];
    for (way, line, headers, (status, code)) in ways {
        let (known, text) = asked(&server, KNOWN, &line, headers);
        assert!(known == status && text.contains(code), "{way}: {known} {text}");
        let (rebound, text) = asked(&server, REBOUND, &line, headers);
        let explained = text.contains("AuthorizationFailure") && text.contains("--allow-host");
        assert!(rebound == 403 && explained, "{way}: {rebound} {text}");
    }
}
