//! `blockyard key`: its requests, its changes and its output.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use http::Method;

use crate::admin::KeyRingView;
use crate::admin::MasterKeyView;
use crate::auth::KeyRing;
use crate::env::DiskError;
use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;
use crate::node::config::DATA;
use crate::node::config::master_key_beside;
use crate::node::disks::directories;
use crate::node::error::NodeError;
use crate::node::keys::master_key;
use crate::node::keys::view;
use crate::node::storage::coordinator_copy;
use crate::node::storage::open_disk;

use super::admin::args::AdminArgs;
use super::admin::client::AdminClient;
use super::error::CliError;
use super::output::on_terminal;
use super::output::print;
use super::table::table;

const PATH: &str = "/admin/keys";

/// The subcommands of `key`.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Show the numbers and ages of the master keys, never a key
    List(KeyArgs),
    /// Add a master key and seal all secrets under it; content is not rewritten. Copy the master
    /// key file afterwards
    Rotate(KeyArgs),
}

/// Arguments of `key list` and `key rotate`.
#[derive(clap::Args, Debug)]
pub struct KeyArgs {
    /// The node is stopped: read or change its master key file only. After a rotation the next
    /// start seals the secrets. A rotation needs --data and is refused while a process uses the
    /// store
    #[arg(long)]
    pub stopped: bool,
    /// The master key file of a stopped node [default: the first data directory with .key behind
    /// its name]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_MASTER_KEY_FILE")]
    pub master_key_file: Option<PathBuf>,
    /// Print the key ring as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

impl KeyArgs {
    fn file(&self) -> Result<PathBuf, CliError> {
        if let Some(file) = &self.master_key_file {
            return Ok(file.clone());
        }
        let data = self.admin.place.data.first().map_or(Path::new(DATA), PathBuf::as_path);
        Ok(master_key_beside(data)?)
    }
}

/// Runs `blockyard key`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn key(command: &KeyCommand) -> Result<(), CliError> {
    let (args, ring) = match command {
        KeyCommand::List(args) if args.stopped => {
            let file = args.file()?;
            let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
            let missing = master_key::MasterKeyError::File { path: file.clone(), error: missing };
            (args, view(&file, &master_key::read(&file)?.ok_or(missing)?))
        }
        KeyCommand::Rotate(args) if args.stopped => {
            let file = args.file()?;
            let env = Env {
                clock: Arc::new(OsClock::new()),
                rand: Arc::new(OsRand),
                tasks: Tasks::new(),
            };
            let rotated = rotate_stopped(args, &file, &env).await;
            env.tasks.shutdown().await;
            (args, view(&file, &rotated?))
        }
        KeyCommand::List(args) => (args, send(args, Method::GET, PATH).await?),
        KeyCommand::Rotate(args) => {
            (args, send(args, Method::POST, &format!("{PATH}/rotate")).await?)
        }
    };
    if args.json {
        let json = serde_json::to_string(&ring).map_err(|error| CliError::System {
            what: "the key ring as JSON",
            reason: error.to_string(),
        })?;
        return print(&format!("{json}\n"));
    }
    print(&text(&ring))
}

/// Rotates the keys of a stopped node. It holds the lock of `serve` meanwhile, so that no node uses
/// the old ring.
async fn rotate_stopped(args: &KeyArgs, file: &Path, env: &Env) -> Result<KeyRing, CliError> {
    let given = args.admin.place.data.clone();
    let data = if given.is_empty() { vec![PathBuf::from(DATA)] } else { given };
    directories::check(&data)?;
    let mut locked = Vec::new();
    for path in &data {
        locked.push(open_disk(path, env).map_err(|error| {
            if let NodeError::Data { path, error: DiskError::Locked { by } } = error {
                CliError::Running { path, by }
            } else {
                error.into()
            }
        })?);
    }
    // Without this check, the file of another store would be changed without its lock.
    let coordinator = coordinator_copy(&data, env).await?;
    master_key::open_for_check(file, &coordinator).await?;
    Ok(master_key::rotate(file, env.clock.now())?)
}

async fn send(args: &KeyArgs, method: Method, path: &str) -> Result<KeyRingView, CliError> {
    let answer = AdminClient::new(&args.admin)?.call(method, path, None).await?;
    serde_json::from_value(answer)
        .map_err(|error| CliError::System { what: "the node's answer", reason: error.to_string() })
}

fn text(ring: &KeyRingView) -> String {
    let mut text = format!("key ring {} in {}\n", ring.ring, ring.file);
    let row =
        |key: &MasterKeyView| [key.id.to_string(), key.state.to_string(), key.created.to_string()];
    let rows: Vec<[String; 3]> = ring.keys.iter().map(row).collect();
    text.push_str(&table(on_terminal(), ["key", "state", "created"], &rows));
    if let Some(resealed) = ring.resealed {
        text.push_str(&format!("{resealed} secrets sealed anew; copy the file now\n"));
    }
    text
}
