//! Refuses environment variables that look like settings and are none. Otherwise a misspelled one
//! would be ignored without a message.

use clap::Command;
use clap::CommandFactory;

use crate::types::nearest;

use super::args::Cli;
use super::error::CliError;

/// The prefix of the variables of all settings.
const PREFIX: &str = "BLOCKYARD_";
/// Prefixes of variables that Kubernetes sets in containers for a service with the name
/// `blockyard`. They are ignored.
const SERVICE_LINKS: [&str; 2] = ["BLOCKYARD_SERVICE_", "BLOCKYARD_PORT_"];
/// The same, complete names.
const SERVICE_LINK: &str = "BLOCKYARD_PORT";

/// Checks the names of the environment's variables.
///
/// # Errors
/// [`CliError::UnknownVariable`] with the most similar name.
pub(super) fn check(names: impl Iterator<Item = String>) -> Result<(), CliError> {
    let mut names = names.filter(|name| name.starts_with(PREFIX)).peekable();
    if names.peek().is_none() {
        // The description of all commands takes a MiB of memory.
        return Ok(());
    }
    let mut known = Vec::new();
    collect(&Cli::command(), &mut known);
    for name in names {
        let link = name == SERVICE_LINK || SERVICE_LINKS.iter().any(|l| name.starts_with(l));
        if link || known.contains(&name) {
            continue;
        }
        let nearest = nearest(&name, known.iter().map(String::as_str)).unwrap_or_default();
        return Err(CliError::UnknownVariable { nearest: nearest.to_owned(), name });
    }
    Ok(())
}

/// The variables of a command and of its subcommands.
fn collect(command: &Command, known: &mut Vec<String>) {
    let variables = command.get_arguments().filter_map(|argument| argument.get_env());
    known.extend(variables.filter_map(|name| name.to_str()).map(str::to_owned));
    for inner in command.get_subcommands() {
        collect(inner, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str) -> Option<String> {
        check(std::iter::once(name.to_owned())).err().map(|error| error.to_string())
    }

    #[test]
    fn misspelled_variables_are_refused_with_the_nearest_name() {
        for (wrong, right) in [
            ("BLOCKYARD_DATAS", "BLOCKYARD_DATA"),
            ("BLOCKYARD_BLOB_LISTN", "BLOCKYARD_BLOB_LISTEN"),
            ("BLOCKYARD_TLSCERT", "BLOCKYARD_TLS_CERT"),
            ("BLOCKYARD_ADMIN_TOKN", "BLOCKYARD_ADMIN_TOKEN"),
        ] {
            let text = refusal(wrong).unwrap();
            assert!(text.contains(&format!("{wrong} ")), "{text}");
            assert!(text.contains(&format!("{right}?")), "{text}");
        }
    }

    #[test]
    fn known_foreign_and_service_link_variables_pass() {
        for name in [
            "BLOCKYARD_DATA",
            "BLOCKYARD_CONFIG",
            "BLOCKYARD_ADMIN_TOKEN",
            "PATH",
            "BLOCKYARDS",
            "BLOCKYARD_PORT",
            "BLOCKYARD_PORT_10000_TCP_ADDR",
            "BLOCKYARD_SERVICE_HOST",
        ] {
            assert_eq!(refusal(name), None, "{name}");
        }
    }
}
