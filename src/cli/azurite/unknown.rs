//! Flags that `blockyard azurite` does not know. They are left out and named in a warning, because
//! a script that was written for Azurite has to start.

use clap::Arg;
use clap::Command;

/// Splits the arguments of a command into those that it knows and the names of the others. A word
/// without a dash that follows an unknown flag is its value.
pub(super) fn split(command: &Command, arguments: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    let mut words = arguments.into_iter().peekable();
    while let Some(word) = words.next() {
        if let Some(takes_next) = of_known(command, &word) {
            known.push(word);
            known.extend(takes_next.then(|| words.next()).flatten());
        } else {
            if word.starts_with('-') && !word.contains('=') {
                words.next_if(|next| !next.starts_with('-'));
            }
            unknown.push(word.split('=').next().unwrap_or_default().to_owned());
        }
    }
    (known, unknown)
}

/// Whether the next word is the value of a known flag; `None` if the flag is not known.
fn of_known(command: &Command, word: &str) -> Option<bool> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(a, b)| (a, Some(b)));
        if name == "help" {
            return Some(false);
        }
        let argument =
            command.get_arguments().find(|argument| argument.get_long() == Some(name))?;
        return Some(value.is_none() && takes_value(argument));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let first = letters.next()?;
    if first == 'h' {
        return Some(false);
    }
    let argument = command.get_arguments().find(|argument| argument.get_short() == Some(first))?;
    Some(letters.next().is_none() && takes_value(argument))
}

/// Whether a flag has a value that must follow.
fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
        && argument.get_num_args().is_none_or(|number| number.min_values() > 0)
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
            ("-x 1 -l/data more -d", "-l/data -d", "-x more"),
            ("--last-access-time --blobPort 1", "--last-access-time --blobPort 1", ""),
            ("--help", "--help", ""),
        ] {
            assert_eq!(split(text), (known.to_owned(), unknown.to_owned()), "{text}");
        }
    }
}
