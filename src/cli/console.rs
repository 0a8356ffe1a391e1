//! `blockyard console`: its request and its output.

use std::net::SocketAddr;

use http::Method;
use serde_json::json;

use crate::node::config::AdminAddress;
use crate::node::config::Switch;
use crate::node::config::reachable;

use super::admin::args::AdminArgs;
use super::admin::client::AdminClient;
use super::error::CliError;
use super::output::print;

/// The port that the link names when the listener is a Unix socket, which no browser opens.
const FORWARDED: u16 = 10080;

/// Arguments of `console`.
#[derive(clap::Args, Debug)]
pub struct ConsoleArgs {
    /// Print the link as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Runs `blockyard console`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn console(args: &ConsoleArgs) -> Result<(), CliError> {
    let client = AdminClient::new(&args.admin)?;
    let made = client.call(Method::POST, "/admin/console", None).await?;
    let path = made["path"].as_str().unwrap_or_default();
    let place = &args.admin.place;
    let tls = place.admin_tls.is_some_and(Switch::is_on);
    let url = format!("{}{path}", base(&place.admin_listen, tls));
    if args.json {
        let link = json!({ "url": url, "expires_s": made["expires_s"] });
        return print(&format!("{link}\n"));
    }
    let mut text = format!("{url}\nOpen it in a browser within a minute. It works once.\n");
    if let AdminAddress::Unix(socket) = &place.admin_listen {
        text += &format!(
            "No browser opens a Unix socket: forward port {FORWARDED} to it first, for example with\n\
             ssh -L {FORWARDED}:{} THIS-HOST\n",
            socket.display()
        );
    }
    print(&text)
}

/// Where a browser finds the admin listener.
pub(super) fn base(address: &AdminAddress, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    match address {
        AdminAddress::Tcp(address) => format!("{scheme}://{}", reachable(*address)),
        AdminAddress::Unix(_) => {
            format!("http://{}", SocketAddr::from(([127, 0, 0, 1], FORWARDED)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_name_an_address_that_a_browser_can_open() {
        for (address, tls, expected) in [
            ("127.0.0.1:7", false, "http://127.0.0.1:7"),
            ("0.0.0.0:7", true, "https://127.0.0.1:7"),
            ("[::]:7", false, "http://[::1]:7"),
            ("unix:/run/b.sock", true, "http://127.0.0.1:10080"),
        ] {
            assert_eq!(base(&address.parse().unwrap(), tls), expected);
        }
    }
}
