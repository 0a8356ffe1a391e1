//! The output of commands.

use std::io::IsTerminal;
use std::io::Write;

use serde::Serialize;

use super::error::CliError;
use super::escaped::controls;
use super::escaped::lines;

/// Prints the result to standard output.
///
/// # Errors
/// [`CliError::System`].
pub(super) fn print(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| CliError::system("standard output", &error))
}

/// Whether standard output is a terminal, where tables have columns and colours.
pub(super) fn on_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Prints a remark to standard error. It may have lines, and texts from elsewhere in them.
///
/// # Errors
/// [`CliError::System`].
pub(super) fn warn(text: &str) -> Result<(), CliError> {
    let written = std::io::stderr().write_all(lines(text).as_bytes());
    written.map_err(|error| CliError::system("standard error", &error))
}

/// The error message of the program.
#[must_use]
pub fn complaint(error: &CliError) -> String {
    format!("blockyard: {}", lines(&error.to_string()))
}

/// A value as one line of JSON. It may reach a terminal too, so that what `escaped` shows is
/// escaped here in JSON's way.
pub(super) fn json_line(value: &impl Serialize) -> String {
    #[expect(clippy::expect_used, reason = "answers of the program are texts, numbers and lists")]
    json_text(&serde_json::to_string(value).expect("it is plain data"))
}

/// The same for JSON that is written already, on one line.
pub(super) fn json_text(json: &str) -> String {
    let mut line = String::with_capacity(json.len() + 1);
    for character in json.trim_end_matches('\n').chars() {
        if controls(character) {
            // All of them have four digits.
            line.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_complaints_do_not_control_a_terminal() {
        let hostile = "a\x1b]0;x\x07\u{9b}2J\u{202e}b\u{7f}\r\n\tc\u{2028}";
        let line = json_line(&hostile);
        assert!(!line.trim_end_matches('\n').chars().any(controls), "{line}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), hostile, "JSON says the same");
        assert_eq!(json_text("{\"a\":\"\u{9b}\"}\n"), "{\"a\":\"\\u009b\"}\n");
        let error = CliError::system("a\u{1b}[2J", &"\u{202e}b");
        let said = complaint(&error);
        assert!(!said.chars().any(controls) && said.contains("a\\u{1b}[2J"), "{said}");
    }
}
