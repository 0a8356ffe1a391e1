//! `blockyard sas`: prints a shared access signature.

use crate::env::Clock;
use crate::env::OsClock;

use super::error::CliError;
use super::output::print;
use super::output::warn;

pub(super) mod args;
pub(super) mod mint;

use args::SasArgs;
use mint::mint;

/// Runs `blockyard sas`, and returns the exit code.
///
/// # Errors
/// [`CliError`].
pub(super) fn run(args: &SasArgs) -> Result<i32, CliError> {
    let minted = mint(args, OsClock::new().now())?;
    if let Some(warning) = &minted.warning {
        warn(&format!("blockyard: warning: {warning}\n"))?;
    }
    if args.json {
        let json = serde_json::to_string(&minted)
            .map_err(|error| CliError::system("the signature", &error))?;
        print(&format!("{json}\n"))?;
    } else {
        print(&format!("{}\n", minted.url))?;
    }
    Ok(0)
}
