//! What a command shows until ctrl-C.

use std::io::IsTerminal;

use crate::env::Signals;

use super::error::CliError;
use super::output::print;

/// A screen of its own, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// Whether what is shown is drawn on the whole screen: it is a terminal.
pub(super) fn draws() -> bool {
    std::io::stdout().is_terminal()
}

/// Shows something until it ends or a signal comes. On a terminal `for_people` gets a screen of its
/// own, which is left in any case.
///
/// # Errors
/// Those of `shows`, and of the terminal.
pub(super) async fn live(
    for_people: bool,
    shows: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    let mut signals = Signals::new().map_err(|error| CliError::system("signals", &error))?;
    let draws = for_people && draws();
    if draws {
        print(ENTER)?;
    }
    let shown = tokio::select! {
        biased;
        _ = signals.next() => Ok(()),
        shown = shows => shown,
    };
    if draws {
        print(LEAVE)?;
    }
    shown
}
