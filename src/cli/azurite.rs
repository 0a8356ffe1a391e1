//! `blockyard azurite`: takes the place of Azurite in a script or a container. It takes Azurite's
//! flags and variables, listens on its ports and prints the lines that tools wait for.
//!
//! `args.rs` has the flags, `unknown.rs` drops unknown ones.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;

use clap::CommandFactory;

use crate::env::make_files_private;
use crate::node::config::DevelopmentAccount;
use crate::node::config::ListenAddress;
use crate::node::config::PfxFile;
use crate::node::config::Settings;
use crate::node::config::Switch;
use crate::node::config::UnservedPort;
use crate::node::config::UnservedService;

use super::args::Cli;
use super::error::CliError;
use super::serve;
use super::serve::Announcement;
use super::serve::Start;

pub(super) mod args;
pub(super) mod error;
mod unknown;

use args::AzuriteArgs;
use args::OauthLevel;
use error::AzuriteError;

/// The commands, which are also the names by which the program can be called.
const COMMANDS: [&str; 2] = ["azurite", "azurite-blob"];
/// The port of Azurite.
const BLOB_PORT: u16 = 10_000;
/// The folder of the data in `--location`.
const FOLDER: &str = "blockyard-data";
/// The master key file in `--location`.
const MASTER_KEY: &str = "blockyard-data.key";

/// The requested services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Services {
    /// All, although only Blob is served.
    All,
    /// Blob.
    Blob,
}

/// The arguments of the program, as the parser takes them. Under a name of Azurite's they are those
/// of the command of the name. Flags that such a command does not know are left out, with a
/// warning.
#[must_use]
pub fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut given: Vec<OsString> = given.collect();
    let called = given.first().and_then(|name| Path::new(name).file_stem()?.to_str());
    if let Some(command) = COMMANDS.iter().find(|command| Some(**command) == called) {
        given.insert(1, (*command).into());
    }
    let command = given.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    if !COMMANDS.contains(&command) {
        return given;
    }
    let cli = Cli::command();
    let Some(command) = cli.find_subcommand(command) else { return given };
    let words = given.split_off(2);
    let text: Option<Vec<String>> =
        words.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    let Some(text) = text else {
        given.extend(words);
        return given;
    };
    let (known, unknown) = unknown::split(command, text);
    given.extend(known.into_iter().map(OsString::from));
    given.extend(unknown.iter().map(|name| format!("--unknown-flag={name}").into()));
    given
}

/// Runs `blockyard azurite`, and returns the exit code.
///
/// # Errors
/// [`CliError`].
pub(super) fn run(args: AzuriteArgs, services: Services) -> Result<i32, CliError> {
    make_files_private();
    let silent = args.silent;
    let mut warnings: Vec<String> = args
        .unknown_flag
        .iter()
        .map(|flag| format!("{flag} is not known, and is ignored"))
        .collect();
    if let Some(file) = &args.debug {
        let file = file.display();
        warnings.push(format!("the log goes to standard error; {file} of --debug is not written"));
    }
    let (config_file, in_memory) = (args.serve.config.clone(), args.in_memory);
    let mut settings = settings(args, services)?;
    let temporary = if in_memory { Some(Temporary::new()?) } else { None };
    if let Some(Temporary(folder)) = &temporary {
        settings.data = Some(vec![folder.join(FOLDER)]);
        settings.master_key_file = Some(folder.join(MASTER_KEY));
    }
    let announcement = Announcement::Azurite { silent, warnings };
    serve::start(Start { settings, config_file, defaults: defaults(), announcement })
}

/// A folder for data that is removed at the end.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            let folder = self.0.display();
            tracing::warn!(%error, "{folder} has the data of this run and is not removed");
        }
    }
}

impl Temporary {
    fn new() -> Result<Self, CliError> {
        let mut last = None;
        for number in 0..100 {
            let name = format!("blockyard-azurite-{}-{number}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            // Not `create_dir_all`: an existing folder may belong to another user.
            match std::fs::create_dir(&folder) {
                Ok(()) => return Ok(Self(folder)),
                Err(error) => last = Some(error),
            }
        }
        let error = last.unwrap_or_else(|| std::io::Error::other("no name is free"));
        Err(CliError::system("a temporary folder", &error))
    }
}

/// The defaults of Azurite where they are not those of `serve`.
fn defaults() -> Settings {
    // Several may run on one machine, each with ports of its own.
    Settings { admin_listen: "127.0.0.1:0".parse().ok(), ..Settings::default() }
}

/// The settings of `serve` that the flags of Azurite mean.
fn settings(args: AzuriteArgs, services: Services) -> Result<Settings, CliError> {
    let given = args.serve.settings;
    // As in Azurite, a key makes it a PEM file, whatever else is given.
    let pwd = args.pwd.filter(|_| args.key.is_none()).map(|pwd| pwd.0);
    let (cert, pfx) = match (args.cert, pwd) {
        (Some(path), Some(password)) => (None, Some(PfxFile { path, password })),
        (cert, _) => (cert, None),
    };
    let unserved = match services {
        Services::All => vec![
            UnservedPort {
                service: UnservedService::Queue,
                address: address("--queueHost", args.queue_host.as_deref(), args.queue_port)?,
            },
            UnservedPort {
                service: UnservedService::Table,
                address: address("--tableHost", args.table_host.as_deref(), args.table_port)?,
            },
        ],
        Services::Blob => Vec::new(),
    };
    let blob =
        address("--blobHost", args.blob_host.as_deref(), args.blob_port.unwrap_or(BLOB_PORT))?;
    // A container has variables of its own for the address, so that Azurite's default counts too.
    let blob_listen = Some(ListenAddress(blob));
    // A user that names an address that others reach thereby permits access.
    let is_reachable = !blob.ip().to_canonical().is_loopback();
    let anywhere = is_reachable.then_some(DevelopmentAccount::Anywhere);
    let log = if args.debug.is_some() { Some("debug") } else { args.silent.then_some("warn") };
    // The master key file lies beside the data: a folder that is mounted in the next container has
    // both.
    let master_key = args.location.as_ref().map(|folder| folder.join(MASTER_KEY));
    let data = args.location.map(|folder| vec![folder.join(FOLDER)]);
    let tokens = args.oauth.map(|OauthLevel::Basic| Switch::On);
    let no_domain = args.disable_product_style_url.then(Vec::new);
    Ok(Settings {
        blob_listen,
        unserved: Some(unserved),
        development_account: given.development_account.or(anywhere),
        development_tokens: tokens.or(given.development_tokens),
        data: data.or(given.data),
        master_key_file: master_key.or(given.master_key_file),
        blob_domain: no_domain.or(given.blob_domain),
        tls_cert: cert.or(given.tls_cert),
        tls_key: args.key.or(given.tls_key),
        pfx,
        log: given.log.or(log.map(str::to_owned)),
        ..given
    })
}

fn address(flag: &'static str, host: Option<&str>, port: u16) -> Result<SocketAddr, AzuriteError> {
    let host = host.unwrap_or("127.0.0.1");
    let text =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let refused = |_| AzuriteError::Host { flag, host: host.to_owned() };
    text.parse().map(|ListenAddress(address)| address).map_err(refused)
}

#[cfg(test)]
mod tests;
