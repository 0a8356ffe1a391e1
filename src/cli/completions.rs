//! `blockyard completions`: scripts with which shells complete commands and flags.

use clap::Command;
use clap_complete::Shell;

use super::error::CliError;
use super::output::print;

/// Arguments of `completions`.
#[derive(clap::Args, Debug)]
pub struct CompletionsArgs {
    /// The shell that will read them
    pub shell: Shell,
}

/// Prints the completions of the program's `command`.
///
/// # Errors
/// [`CliError::System`].
pub(super) fn run(args: &CompletionsArgs, command: Command) -> Result<(), CliError> {
    let text = text(args.shell, command);
    print(&String::from_utf8_lossy(&text))
}

/// The completions for a shell.
fn text(shell: Shell, mut command: Command) -> Vec<u8> {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::ValueEnum;

    use super::*;
    use crate::cli::args::Cli;

    #[test]
    fn each_shell_completes_commands_and_flags() {
        for shell in Shell::value_variants() {
            let text = String::from_utf8(text(*shell, Cli::command())).unwrap();
            for word in ["serve", "account", "completions", "master-key-file"] {
                assert!(text.contains(word), "{shell} lacks {word}");
            }
        }
    }
}
