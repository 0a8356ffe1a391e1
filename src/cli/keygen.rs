//! `blockyard keygen`: a new account key.

use serde_json::json;

use crate::admin::new_key;

use super::error::CliError;
use super::output::print;

/// Arguments of `keygen`.
#[derive(clap::Args, Debug)]
pub struct KeygenArgs {
    /// Print a JSON object: key
    #[arg(long)]
    pub json: bool,
}

/// Runs `blockyard keygen`.
///
/// # Errors
/// [`CliError`].
pub(super) fn run(args: &KeygenArgs) -> Result<i32, CliError> {
    let key = new_key().map_err(|error| CliError::system("randomness", &error))?;
    print(&if args.json { format!("{}\n", json!({ "key": key })) } else { format!("{key}\n") })?;
    Ok(0)
}
