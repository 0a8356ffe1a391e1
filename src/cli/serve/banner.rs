//! The text that `serve` prints when the node serves: how to connect, with lines to paste.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::auth::TrustedIssuer;
use crate::cli::console::base;
use crate::cli::sas::mint::link;
use crate::node::config::AccountConfig;
use crate::node::config::AdminAddress;
use crate::node::config::DEVELOPMENT_KEY;
use crate::node::config::reachable;
use crate::types::Timestamp;

/// Printed in the place of a secret: only the published development key is printed.
const KEY_PLACEHOLDER: &str = "<your key>";

/// The warning that these accounts for development are served under every host name.
pub(super) fn anywhere<'a>(accounts: impl Iterator<Item = &'a AccountConfig>) -> String {
    let names: Vec<&str> = accounts.map(|account| account.name().as_str()).collect();
    format!(
        "whoever reaches the port, a web page too, can read, change and delete everything in {}",
        names.join(", ")
    )
}

/// The lifetime of the signed URLs in the banner.
const LINK_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// An admin address as text.
struct AdminTexts {
    /// For the flag `--admin-listen`.
    flag: String,
    /// For curl.
    curl: String,
}

/// The content of the banner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Banner<'a> {
    /// The bound address of the blob listener.
    pub blob: SocketAddr,
    /// The bound address of the listener of S3 alone.
    pub s3: Option<SocketAddr>,
    /// The bound address of the admin listener.
    pub admin: &'a AdminAddress,
    /// Whether the admin listener serves https.
    pub admin_tls: bool,
    /// The path of a login link of the console; only for a terminal, since logs are kept.
    pub login: Option<&'a str>,
    /// The accounts; examples use the first.
    pub accounts: &'a [AccountConfig],
    /// The file with the admin token.
    pub token_file: &'a Path,
    /// The data directories, as text.
    pub data: &'a str,
    /// Set if https is served. The inner value is the file of the node's own authority, if it has
    /// one.
    pub certificate: Option<Option<&'a Path>>,
    /// The issuers of accepted tokens.
    pub issuers: &'a [TrustedIssuer],
    /// Whether http is not served.
    pub https_only: bool,
    /// Whether an account for development is served on every address.
    pub development_anywhere: bool,
    /// The time of the start.
    pub now: Timestamp,
    /// From the start of the program to serving.
    pub started_in_ms: u128,
}

impl Banner<'_> {
    /// The text, ending in a newline.
    #[must_use]
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "Blockyard {} serves Blob and S3 on {} from {} (ready after {} ms)\n",
            env!("CARGO_PKG_VERSION"),
            self.blob,
            self.data,
            self.started_in_ms
        );
        for account in self.accounts {
            text += &format!("  endpoint           {}\n", self.endpoint(account));
            if self.certificate.is_some() && !self.https_only {
                let endpoint = self.endpoint(account).replacen("http", "https", 1);
                text += &format!("                     {endpoint}\n");
            }
        }
        if self.accounts.is_empty() {
            text += &format!("  accounts           {}\n", self.account_command());
        }
        text += &format!("  S3 endpoint        {}\n", self.s3_endpoint());
        if let Some(s3) = self.s3 {
            let s3 = reachable(s3);
            text += &format!(
                "                     {}://{s3} takes unsigned requests too\n",
                self.scheme()
            );
        }
        if self.development_anywhere {
            let accounts =
                self.accounts.iter().filter(|one| one.is_public() || one.is_for_development());
            text += &format!("  for development    {}\n", anywhere(accounts));
        }
        text += &self.console();
        text += &format!("  health, metrics    {}/readyz  /metrics\n", self.admin().curl);
        text += &format!("  live requests      blockyard trace {}\n", self.admin_flags());
        for issuer in self.issuers {
            text += &format!("  tokens             {}\n", tokens(issuer));
        }
        text += "  fault dial         off; `blockyard fault set` turns it on\n";
        text += "  documentation      `blockyard help`, `man blockyard`; docs/README.md of the source\n";
        if let Some(Some(authority)) = self.certificate {
            text += &format!("  trust https        {}\n", trust(authority));
        }
        if let Some(account) = self.accounts.first() {
            self.examples(account, &mut text).expect("a string takes all text");
        }
        text
    }

    fn endpoint(&self, account: &AccountConfig) -> String {
        format!("{}://{}/{}", self.scheme(), reachable(self.blob), account.name().as_str())
    }

    /// S3 clients name the account by its access key, not in the URL.
    fn s3_endpoint(&self) -> String {
        format!("{}://{}", self.scheme(), reachable(self.blob))
    }

    /// The admin address.
    fn admin(&self) -> AdminTexts {
        match self.admin {
            AdminAddress::Tcp(address) => {
                let scheme = if self.admin_tls { "https" } else { "http" };
                let address = reachable(*address);
                let curl = format!("{scheme}://{address}");
                AdminTexts { flag: address.to_string(), curl }
            }
            AdminAddress::Unix(path) => {
                let curl = format!("--unix-socket '{}' http://localhost", path.display());
                AdminTexts { flag: format!("'{}'", self.admin), curl }
            }
        }
    }

    /// The console, and how a browser is logged in to it.
    fn console(&self) -> String {
        let base = base(self.admin, self.admin_tls);
        let command = format!("`blockyard console {}` prints a login link", self.admin_flags());
        match (self.admin, self.login) {
            (AdminAddress::Tcp(_), Some(login)) => format!(
                "  console            {base}{login}\n                     \
                 works once, within a minute; then {command}\n"
            ),
            (AdminAddress::Tcp(_), None) => {
                format!("  console            {base}/  {command}\n")
            }
            (AdminAddress::Unix(_), _) => format!("  console            {command}\n"),
        }
    }

    /// The flags of a command to this node.
    fn admin_flags(&self) -> String {
        let tls = if self.admin_tls { " --admin-tls" } else { "" };
        let (admin, token) = (self.admin().flag, self.token_file.display());
        format!("--admin-listen {admin}{tls} --admin-token-file '{token}'")
    }

    /// The command that makes an account, for when the configuration has none.
    fn account_command(&self) -> String {
        format!("`blockyard account create NAME {}` makes one", self.admin_flags())
    }

    const fn scheme(&self) -> &'static str {
        if self.https_only { "https" } else { "http" }
    }

    fn examples(&self, account: &AccountConfig, text: &mut String) -> std::fmt::Result {
        let name = account.name().as_str();
        let key = if account.is_public() { DEVELOPMENT_KEY } else { KEY_PLACEHOLDER };
        let endpoint = self.endpoint(account);
        let connection = format!(
            "DefaultEndpointsProtocol={};AccountName={name};AccountKey={key};BlobEndpoint={endpoint};",
            self.scheme()
        );
        writeln!(text, "  connection string  {connection}\n")?;
        writeln!(text, "Python (pip install azure-storage-blob):")?;
        writeln!(
            text,
            "  python3 -c \"from azure.storage.blob import ContainerClient as C; \
             c = C.from_connection_string('{connection}', 'demo'); \
             c.exists() or c.create_container(); \
             c.upload_blob('hello.txt', b'hello\\n', overwrite=True); \
             print(c.download_blob('hello.txt').readall())\""
        )?;
        writeln!(text, "az:")?;
        writeln!(
            text,
            "  az storage container list --output table --connection-string '{connection}'"
        )?;
        writeln!(text, "rclone:")?;
        writeln!(
            text,
            "  rclone lsf ':azureblob,account={name},key=\"{key}\",endpoint=\"{endpoint}\":'"
        )?;
        writeln!(
            text,
            "AzCopy (signs by URL only; `blockyard sas` makes such a URL for anything):"
        )?;
        writeln!(text, "  azcopy list \"{}\" --location=Blob", self.signed(account, "demo"))?;
        let s3 = self.s3_endpoint();
        writeln!(
            text,
            "S3, here with the AWS CLI (the access key is the account, its secret the key):"
        )?;
        writeln!(
            text,
            "  AWS_ACCESS_KEY_ID={name} AWS_SECRET_ACCESS_KEY='{key}' AWS_REGION=us-east-1 \
             aws --endpoint-url {s3} s3 ls"
        )?;
        writeln!(text, "curl:")?;
        writeln!(text, "  curl \"{}\"", self.signed(account, "demo/hello.txt"))?;
        writeln!(text, "  curl {}/metrics", self.admin().curl)
    }

    /// A URL with a signature: made here if the key is not secret, else the command that makes it.
    fn signed(&self, account: &AccountConfig, path: &str) -> String {
        let (name, endpoint) = (account.name().as_str(), self.endpoint(account));
        let made = if account.is_public() {
            link(account, &endpoint, path, self.now.plus(LINK_LIFE)).ok()
        } else {
            None
        };
        let letters = if path.contains('/') { "" } else { " --permissions rl" };
        made.unwrap_or_else(|| {
            format!(
                "$(blockyard sas {path} --account '{name}:{KEY_PLACEHOLDER}'{letters} \
                 --endpoint {endpoint})"
            )
        })
    }
}

/// The permissions that the tokens of an issuer give.
fn tokens(issuer: &TrustedIssuer) -> String {
    let claims = match issuer.accounts.as_slice() {
        [] => "roles they claim grant nothing (no account= in --oidc)".to_owned(),
        accounts => format!("roles they claim hold in {}", accounts.join(", ")),
    };
    format!("of {}; {claims}; `blockyard account grant` gives roles", issuer.name)
}

/// The line that makes SDKs, AzCopy, rclone, curl and their like trust the node's own authority in
/// one shell.
fn trust(authority: &Path) -> String {
    let path = authority.display();
    format!(
        "export REQUESTS_CA_BUNDLE='{path}' SSL_CERT_FILE='{path}' NODE_EXTRA_CA_CERTS='{path}' \
         CURL_CA_BUNDLE='{path}'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::config::ADMIN_LISTEN;

    fn text(blob: &str, account: &AccountConfig) -> String {
        banner(blob, std::slice::from_ref(account)).text()
    }

    fn banner<'a>(blob: &str, accounts: &'a [AccountConfig]) -> Banner<'a> {
        Banner {
            blob: blob.parse().unwrap(),
            s3: None,
            admin: &ADMIN_LISTEN,
            admin_tls: false,
            login: None,
            accounts,
            token_file: Path::new("./blockyard-data/admin-token"),
            data: "./blockyard-data",
            certificate: None,
            issuers: &[],
            https_only: false,
            development_anywhere: false,
            now: Timestamp::ZERO,
            started_in_ms: 12,
        }
    }

    #[test]
    fn banner_has_the_development_connection_string_verbatim() {
        let text = text("127.0.0.1:10000", &AccountConfig::development());
        let expected = format!(
            "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={DEVELOPMENT_KEY};\
             BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
        );
        assert!(text.contains(&expected), "{text}");
        for client in [
            "python3 -c",
            "az storage",
            "rclone",
            "azcopy list",
            "aws --endpoint-url http://127.0.0.1:10000 s3 ls",
            "curl \"http",
            "curl http://127.0.0.1:10080/",
        ] {
            assert!(text.contains(client), "{client} is missing in {text}");
        }
    }

    #[test]
    fn banner_never_shows_a_secret() {
        let secrets = [crate::admin::new_key().unwrap(), crate::admin::new_key().unwrap()];
        let account: AccountConfig = format!("prod:{}:{}", secrets[0], secrets[1]).parse().unwrap();
        let text = text("127.0.0.1:10000", &account);
        assert!(text.contains("AccountKey=<your key>;"), "{text}");
        assert!(
            text.contains("$(blockyard sas demo --account 'prod:<your key>' --permissions rl "),
            "{text}"
        );
        for secret in &secrets {
            assert!(!text.contains(secret));
        }
    }

    #[test]
    fn banner_without_configured_accounts_shows_the_command_that_makes_one() {
        let (account, make) = (AccountConfig::development(), "`blockyard account create NAME ");
        assert!(!text("127.0.0.1:10000", &account).contains(make));
        let text = banner("0.0.0.0:10000", &[]).text();
        let flags =
            "--admin-listen 127.0.0.1:10080 --admin-token-file './blockyard-data/admin-token'";
        assert!(text.contains(&format!("{make}{flags}` makes one\n")), "{text}");
        assert!(text.contains("S3 endpoint") && !text.contains("connection string"), "{text}");
    }

    #[test]
    fn banner_names_the_console_and_shows_a_login_link_only_if_there_is_one() {
        let account = AccountConfig::development();
        let plain = text("127.0.0.1:10000", &account);
        let flags =
            "--admin-listen 127.0.0.1:10080 --admin-token-file './blockyard-data/admin-token'";
        let command = format!("`blockyard console {flags}` prints a login link\n");
        assert!(
            plain.contains(&format!("  console            http://127.0.0.1:10080/  {command}")),
            "{plain}"
        );
        assert!(plain.contains("docs/README.md"), "{plain}");
        let accounts = std::slice::from_ref(&account);
        let banner = Banner { login: Some("/login#abc"), ..banner("127.0.0.1:10000", accounts) };
        let text = banner.text();
        assert!(text.contains("  console            http://127.0.0.1:10080/login#abc\n"), "{text}");
        assert!(text.contains(&format!("works once, within a minute; then {command}")), "{text}");
        let secure = Banner { admin_tls: true, ..banner }.text();
        assert!(secure.contains(" https://127.0.0.1:10080/login#abc\n"), "{secure}");
        let socket = "unix:/run/b.sock".parse().unwrap();
        let text = Banner { admin: &socket, ..banner }.text();
        assert!(text.contains("  console            `blockyard console "), "{text}");
        assert!(!text.contains("/login"), "{text}");
    }

    #[test]
    fn banner_names_an_address_that_clients_can_use() {
        let account: AccountConfig = "prod:AAAAAAAAAAAAAAAAAAAAAAAAAAA=".parse().unwrap();
        assert!(text("0.0.0.0:9", &account).contains("http://127.0.0.1:9/prod"));
        assert!(text("[::]:9", &account).contains("http://[::1]:9/prod"));
    }

    #[test]
    fn banner_with_a_certificate_has_both_schemes_and_the_trust_line() {
        let account = AccountConfig::development();
        let banner = Banner {
            blob: "127.0.0.1:10000".parse().unwrap(),
            s3: None,
            admin: &ADMIN_LISTEN,
            admin_tls: false,
            login: None,
            accounts: std::slice::from_ref(&account),
            token_file: Path::new("d/admin-token"),
            data: "d",
            certificate: Some(Some(Path::new("/d/tls/ca.pem"))),
            issuers: &[],
            https_only: false,
            development_anywhere: false,
            now: Timestamp::ZERO,
            started_in_ms: 1,
        };
        let text = banner.text();
        for line in [
            " http://127.0.0.1:10000/devstoreaccount1\n",
            " https://127.0.0.1:10000/devstoreaccount1\n",
            " export REQUESTS_CA_BUNDLE='/d/tls/ca.pem' SSL_CERT_FILE='/d/tls/ca.pem' ",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let issuer = |accounts: &[&str]| TrustedIssuer {
            name: "https://i".to_owned(),
            accounts: accounts.iter().map(|name| (*name).to_owned()).collect(),
        };
        let issuers = [issuer(&[]), issuer(&["one", "two"])];
        let tokens = Banner { issuers: &issuers, ..banner }.text();
        assert!(tokens.contains("of https://i; roles they claim grant nothing"), "{tokens}");
        assert!(tokens.contains("of https://i; roles they claim hold in one, two;"), "{tokens}");
        let given = Banner { certificate: Some(None), ..banner };
        assert!(given.text().contains("https://") && !given.text().contains("export"));
        let anywhere = Banner { development_anywhere: true, ..banner }.text();
        assert!(anywhere.contains("delete everything in devstoreaccount1\n"), "{anywhere}");
        assert!(!given.text().contains("whoever reaches the port"));
        let only = Banner { https_only: true, ..given }.text();
        assert!(only.contains("DefaultEndpointsProtocol=https;"), "{only}");
        assert!(!only.contains("http://127.0.0.1:10000"), "{only}");
    }
}
