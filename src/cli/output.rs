//! The output of commands.

use std::io::IsTerminal;
use std::io::Write;

use super::error::CliError;

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

/// A row of a table: in columns of these widths on a terminal, with tabs between the cells
/// elsewhere. Cells are at the right of their columns, and those with a width of 0 are as wide as
/// they are.
pub(super) fn row(on_terminal: bool, widths: &[usize], cells: &[String]) -> String {
    if !on_terminal {
        return cells.join("\t") + "\n";
    }
    let widths = widths.iter().copied().chain(std::iter::repeat(0));
    let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}"));
    let line: Vec<String> = cells.collect();
    line.join(" ").trim_end().to_owned() + "\n"
}

/// Prints a remark to standard error.
///
/// # Errors
/// [`CliError::System`].
pub(super) fn warn(text: &str) -> Result<(), CliError> {
    let written = std::io::stderr().write_all(text.as_bytes());
    written.map_err(|error| CliError::system("standard error", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_columns_only_on_a_terminal() {
        let cells = ["put", "7", "the rest"].map(str::to_owned);
        assert_eq!(row(true, &[5, 3], &cells), "  put   7 the rest\n");
        assert_eq!(row(false, &[5, 3], &cells), "put\t7\tthe rest\n");
    }
}
