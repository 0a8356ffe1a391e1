//! `blockyard node`: a node of a cluster, until a signal stops it or another node takes its place.

use std::sync::Arc;

use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Signals;
use crate::env::Tasks;
use crate::node::cluster::ClusterNode;
use crate::node::cluster::NodeSettings;
use crate::node::config::Config;
use crate::node::config::Settings;

use super::error::CliError;
use super::runtime::block_on;
use super::serve::Announcement;
use super::serve::Ended;
use super::serve::Started;
use super::serve::announce;
use super::serve::drained;
use super::serve::is_login_link_seen;
use super::serve::load;

pub(super) mod args;

use args::NodeArgs;

/// Runs `blockyard node`, and returns the exit code.
///
/// # Errors
/// [`CliError`].
pub(super) fn run(args: NodeArgs) -> Result<i32, CliError> {
    let NodeArgs { config, node, settings } = args;
    let config = load(settings, config.as_deref(), Settings::default())?;
    Ok(block_on(serve(config, node))??.code())
}

/// Runs the node until a signal, or until it must end.
async fn serve(config: Config, settings: NodeSettings) -> Result<Ended, CliError> {
    let mut signals = Signals::new().map_err(|error| CliError::system("signals", &error))?;
    let env = Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() };
    let clock = Arc::clone(&env.clock);
    let mut node = tokio::select! {
        biased;
        node = ClusterNode::start(config.clone(), &settings, env) => node?,
        signal = signals.next() => {
            tracing::info!(signal, "stopped while starting");
            return Ok(Ended::Cut);
        }
    };
    let serving = tokio::select! {
        biased;
        serving = node.serve() => serving,
        signal = signals.next() => {
            return Ok(drained(signal, &mut signals, Box::pin(node.stop())).await);
        }
    };
    let serving = match serving {
        Ok(serving) => serving,
        Err(error) => {
            node.close_audit_log().await;
            return Err(error.into());
        }
    };
    let login = if is_login_link_seen() { node.login_link() } else { None };
    let announcement = Announcement::Banner;
    let (config, serving, login) = (&config, &serving, login.as_deref());
    let started = Started { config, serving, login, announcement: &announcement };
    announce(&started, clock.as_ref());
    tokio::select! {
        biased;
        error = node.ended() => {
            node.close_audit_log().await;
            Err(error.into())
        }
        signal = signals.next() => {
            Ok(drained(signal, &mut signals, Box::pin(node.stop())).await)
        }
    }
}
