//! `blockyard serve`: a node that serves until a signal stops it.

use std::io::IsTerminal;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::audit_log::Destination;
use crate::env::Clock;
use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Signals;
use crate::env::Tasks;
use crate::env::make_files_private;
use crate::node::config::AccountText;
use crate::node::config::Config;
use crate::node::config::OidcConfig;
use crate::node::config::Settings;
use crate::node::config::TlsSource;
use crate::node::listeners::Listeners;
use crate::node::running::Node;
use crate::node::running::Serving;
use crate::telemetry::log;

use super::error::CliError;
use super::runtime::block_on;
use super::variables;

pub(super) mod args;
mod banner;
mod open_files;

use args::ServeArgs;
use banner::Banner;

/// A start of a node that serves.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) settings: Settings,
    pub(super) config_file: Option<PathBuf>,
    /// Taken where neither flags, variables nor the file say anything.
    pub(super) defaults: Settings,
    pub(super) announcement: Announcement,
}

/// The text that is printed when the node serves.
#[derive(Debug)]
pub(super) enum Announcement {
    /// How to connect.
    Banner,
    /// The same, unless `silent`, and the lines of Azurite.
    Azurite {
        silent: bool,
        /// Printed at the start.
        warnings: Vec<String>,
    },
}

/// Runs `blockyard serve`, and returns the exit code.
///
/// # Errors
/// [`CliError`].
pub(super) fn run(args: ServeArgs) -> Result<i32, CliError> {
    let ServeArgs { settings, config: config_file } = args;
    let (defaults, announcement) = (Settings::default(), Announcement::Banner);
    start(Start { settings, config_file, defaults, announcement })
}

/// Serves until a signal, and returns the exit code.
///
/// # Errors
/// [`CliError`].
pub(super) fn start(start: Start) -> Result<i32, CliError> {
    let Start { settings, config_file, defaults, announcement } = start;
    let config = load(settings, config_file.as_deref(), defaults)?;
    if let Announcement::Azurite { warnings, .. } = &announcement {
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    }
    Ok(block_on(serve(config, announcement))??.code())
}

/// Loads the configuration of a node and begins its log.
///
/// # Errors
/// [`CliError`].
pub(super) fn load(
    mut settings: Settings,
    config_file: Option<&Path>,
    defaults: Settings,
) -> Result<Config, CliError> {
    variables::check(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
    make_files_private();
    settings.azurite_accounts = AccountText::all_of_azurite(std::env::var_os("AZURITE_ACCOUNTS"));
    // Keys in flags and variables; other users cannot see those in the file.
    let exposed = settings.account.as_ref().is_some_and(|accounts| !accounts.is_empty());
    let has_users = settings.user.as_ref().is_some_and(|users| !users.is_empty());
    let config = Config::load_over(settings, config_file, defaults)?;
    log::start(&config.log, config.log_format)?;
    if exposed && config.accounts.iter().any(|account| !account.is_public()) {
        tracing::warn!(
            "keys given with --account or BLOCKYARD_ACCOUNT can be read by others on this machine: \
             use --account-file"
        );
    }
    if has_users {
        tracing::warn!(
            "keys given with --user or BLOCKYARD_USER can be read by others on this machine: use \
             --account-file"
        );
    }
    if config.serves_development_anywhere() {
        tracing::warn!("{}", banner::anywhere(config.development_accounts()));
    }
    open_files::raise();
    Ok(config)
}

/// How the node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Running requests were answered, and the next start has nothing to replay.
    Drained,
    /// A second signal interrupted the drain: the next start recovers, as after a crash.
    Cut,
}

impl Ended {
    /// The exit code.
    pub(super) const fn code(self) -> i32 {
        match self {
            Self::Drained => 0,
            Self::Cut => 1,
        }
    }
}

/// Drains a node after a signal. Another signal ends that.
pub(super) async fn drained(
    signal: &str,
    signals: &mut Signals,
    stopped: impl Future<Output = ()>,
) -> Ended {
    tracing::info!(signal, "draining; a second signal ends the program immediately");
    tokio::select! {
        biased;
        () = stopped => Ended::Drained,
        signal = signals.next() => {
            tracing::warn!(signal, "ended immediately");
            Ended::Cut
        }
    }
}

/// Serves until a signal.
async fn serve(config: Config, announcement: Announcement) -> Result<Ended, CliError> {
    let mut signals = Signals::new().map_err(|error| CliError::system("signals", &error))?;
    let env = Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() };
    let clock = Arc::clone(&env.clock);
    let listeners = Listeners::bind(&config).await?;
    let node = tokio::select! {
        biased;
        node = Node::start(&config, env, listeners) => node?,
        signal = signals.next() => {
            // A recovery can be interrupted at any point.
            tracing::info!(signal, "stopped while starting");
            return Ok(Ended::Cut);
        }
    };
    let login = if is_login_link_seen() { node.login_link() } else { None };
    let started = Started {
        config: &config,
        serving: &node.serving,
        login: login.as_deref(),
        announcement: &announcement,
    };
    announce(&started, clock.as_ref());
    let signal = signals.next().await;
    Ok(drained(signal, &mut signals, Box::pin(node.stop())).await)
}

/// Whether a login link may be printed. Text on a terminal is read immediately. Elsewhere it may be
/// kept in a log, which others can read within the minute for which a link works.
pub(super) fn is_login_link_seen() -> bool {
    std::io::stdout().is_terminal()
}

/// A node that serves, as it is announced.
pub(super) struct Started<'a> {
    pub(super) config: &'a Config,
    pub(super) serving: &'a Serving,
    /// The login link of the console.
    pub(super) login: Option<&'a str>,
    pub(super) announcement: &'a Announcement,
}

/// Prints that the node serves, and how to connect.
pub(super) fn announce(started: &Started<'_>, clock: &dyn Clock) {
    let Started { config, serving, login, announcement } = *started;
    let (blob, admin) = (serving.blob, &serving.admin);
    let data: Vec<String> = config.data.iter().map(|path| path.display().to_string()).collect();
    let issuers: Vec<_> = config.oidc.iter().map(OidcConfig::trusted).collect();
    for issuer in &issuers {
        let accounts = issuer.accounts.join(", ");
        let claims = if accounts.is_empty() { "nowhere: no account= in --oidc" } else { &accounts };
        tracing::info!(
            issuer = issuer.name,
            claims,
            "bearer tokens are accepted; roles that they claim count in the accounts of `claims`"
        );
    }
    let banner = Banner {
        blob,
        s3: serving.s3,
        admin,
        admin_tls: config.admin_tls,
        login,
        accounts: &config.accounts,
        token_file: &config.admin_token_file,
        data: &data.join(", "),
        certificate: serving.certificate.as_ref().map(Option::as_deref),
        issuers: &issuers,
        https_only: config.https_only,
        development_anywhere: config.serves_development_anywhere(),
        now: clock.now(),
        started_in_ms: clock.monotonic().as_millis(),
    };
    let text = match announcement {
        Announcement::Banner => banner.text(),
        Announcement::Azurite { silent: true, .. } => azurite_lines(config, serving),
        Announcement::Azurite { silent: false, .. } => {
            banner.text() + &azurite_lines(config, serving)
        }
    };
    // Standard output may be closed. The node serves nevertheless.
    let written = if config.audit_log.to == Some(Destination::Stdout) {
        // There are lines for machines.
        std::io::stderr().write_all(text.as_bytes())
    } else {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    if let Err(error) = written {
        tracing::debug!(%error, "the banner was not printed");
    }
    tracing::info!(%blob, %admin, "serving");
}

/// The lines that Azurite prints when it serves, for which programs wait.
fn azurite_lines(config: &Config, serving: &Serving) -> String {
    let scheme = if config.tls == TlsSource::Off { "http" } else { "https" };
    let unserved = serving.unserved.iter().map(|(service, address)| (service.name(), *address));
    let mut text = String::new();
    for (service, address) in std::iter::once(("Blob", serving.blob)).chain(unserved) {
        text += &format!(
            "Azurite {service} service is successfully listening at {scheme}://{address}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::cli::args::Cli;

    #[test]
    fn every_setting_has_a_flag_and_a_variable_of_its_name() {
        let serve = Cli::command().find_subcommand("serve").unwrap().clone();
        let mut seen = 0;
        for argument in serve.get_arguments() {
            let field = argument.get_id().as_str();
            if matches!(field, "help" | "version") {
                continue;
            }
            assert_eq!(argument.get_long(), Some(field.replace('_', "-").as_str()));
            let variable = format!("BLOCKYARD_{}", field.to_uppercase());
            assert_eq!(argument.get_env().unwrap().to_str(), Some(variable.as_str()));
            assert_eq!(
                argument.is_hide_env_values_set(),
                matches!(field, "account" | "user"),
                "{field}"
            );
            seen += 1;
        }
        assert!(seen > 15, "only {seen} settings");
    }
}
