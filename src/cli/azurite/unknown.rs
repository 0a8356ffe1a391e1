//! Flags that `blockyard azurite` does not know. They are left out and named in a warning, because
//! a script that was written for Azurite has to start. One that resembles a known flag is left to
//! the parser, which refuses it.

use clap::Arg;
use clap::Command;

use crate::types::resembles;

/// Splits the arguments of a command into those for the parser and the names of unknown flags. A
/// word without a dash that follows an unknown flag is its value.
pub(super) fn split(command: &Command, arguments: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    let mut words = arguments.into_iter().peekable();
    while let Some(word) = words.next() {
        // Azurite's letter for its version, which would start a server otherwise.
        let word = if word == "-v" { "-V".to_owned() } else { word };
        if let Some(value) = of_known(command, &word) {
            known.push(word);
            known.extend(match value {
                Value::None => None,
                Value::Next => words.next(),
                Value::MayFollow => words.next_if(|next| !next.starts_with('-')),
            });
        } else if !word.starts_with('-') || is_misspelled(command, &word) {
            // The parser refuses it.
            known.push(word);
        } else {
            if !word.contains('=') {
                words.next_if(|next| !next.starts_with('-'));
            }
            unknown.push(word.split('=').next().unwrap_or_default().to_owned());
        }
    }
    (known, unknown)
}

/// Whether a flag resembles a known one: to ignore `--acount` would serve another account.
fn is_misspelled(command: &Command, word: &str) -> bool {
    let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
    let mut known = command.get_arguments().filter_map(Arg::get_long);
    word.starts_with("--") && known.any(|known| resembles(name, known))
}

/// The value of a flag, as far as it is in the next word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// There is none.
    None,
    /// It is the next word.
    Next,
    /// It is the next word, unless that is a flag.
    MayFollow,
}

/// Where the value of a known flag is; `None` if the flag is not known.
fn of_known(command: &Command, word: &str) -> Option<Value> {
    let mut arguments = command.get_arguments();
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(a, b)| (a, Some(b)));
        if matches!(name, "help" | "version") {
            return Some(Value::None);
        }
        let argument = arguments.find(|argument| argument.get_long() == Some(name))?;
        return Some(if value.is_some() { Value::None } else { value_of(argument) });
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let first = letters.next()?;
    if matches!(first, 'h' | 'V') {
        return Some(Value::None);
    }
    let argument = arguments.find(|argument| argument.get_short() == Some(first))?;
    Some(if letters.next().is_some() { Value::None } else { value_of(argument) })
}

fn value_of(argument: &Arg) -> Value {
    let least = argument.get_num_args().map_or(1, |number| number.min_values());
    match (argument.get_action().takes_values(), least) {
        (false, _) => Value::None,
        (true, 0) => Value::MayFollow,
        (true, _) => Value::Next,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::cli::args::Cli;

    use super::*;

    #[test]
    fn unknown_flags_are_left_out_with_their_values() {
        let cli = Cli::command();
        let command = cli.find_subcommand("azurite").unwrap();
        let split = |text: &str| {
            let words = text.split_whitespace().map(str::to_owned).collect();
            let (known, unknown) = split(command, words);
            (known.join(" "), unknown.join(" "))
        };
        for (text, known, unknown) in [
            ("--blobHost 0.0.0.0 -s -l /data", "--blobHost 0.0.0.0 -s -l /data", ""),
            ("--blobHost=0.0.0.0 --new=1 -s", "--blobHost=0.0.0.0 -s", "--new"),
            ("--new 1 --blobPort 1", "--blobPort 1", "--new"),
            ("--new --other -L", "-L", "--new --other"),
            ("-x 1 -l/data more -d", "-l/data more -d", "-x"),
            ("--acount one:KEY --blobhost 1", "--acount one:KEY --blobhost 1", ""),
            ("--last-access-time --blobPort 1", "--last-access-time --blobPort 1", ""),
            ("--public-access off -s", "--public-access off -s", ""),
            ("--https-only on --blobPort 1", "--https-only on --blobPort 1", ""),
            ("--https-only --blobPort 1", "--https-only --blobPort 1", ""),
            ("--help", "--help", ""),
            ("-V", "-V", ""),
            ("-v", "-V", ""),
            ("--version", "--version", ""),
        ] {
            assert_eq!(split(text), (known.to_owned(), unknown.to_owned()), "{text}");
        }
    }
}
