//! Tables of commands that list.

use super::escaped::shown;

/// A line of heads and a line for each row: columns as wide as their longest cell, and bold heads,
/// on a terminal, where columns of quantities are aligned at the right; tabs between the cells
/// elsewhere. Cells may come from elsewhere.
pub(super) fn table<const N: usize>(
    on_terminal: bool,
    heads: [&str; N],
    rows: &[[String; N]],
) -> String {
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| shown(cell))).collect();
    let mut widths = heads.map(str::len);
    let mut right = [true; N];
    for row in &rows {
        for ((width, right), cell) in widths.iter_mut().zip(&mut right).zip(row) {
            *width = (*width).max(cell.chars().count());
            *right &= is_quantity(cell);
        }
    }
    let line = |cells: &[String]| {
        if !on_terminal {
            return cells.join("\t");
        }
        let cells = cells.iter().zip(widths).zip(right).map(|((cell, width), right)| match right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let heads = line(&heads.map(str::to_owned));
    let mut text = if on_terminal { format!("\x1b[1m{heads}\x1b[0m\n") } else { heads + "\n" };
    for row in &rows {
        text += &line(row);
        text.push('\n');
    }
    text
}

/// Whether a cell is a number, a size or a duration, such as `0.5`, `20KiB` and `12 ms`, or the
/// sign for a missing one.
fn is_quantity(cell: &str) -> bool {
    let number = |character: char| character.is_ascii_digit() || character == '.';
    let unit = cell.trim_start_matches(number);
    let is_unit = unit.len() <= LONGEST_UNIT && unit.trim_start().chars().all(char::is_alphabetic);
    matches!(cell, "" | "?" | "-") || (cell.starts_with(|c: char| c.is_ascii_digit()) && is_unit)
}

/// Bytes of the longest unit with the space before it.
const LONGEST_UNIT: usize = 3;

/// One row for people: its first cell, and a line for each other cell with its head.
pub(super) fn fields<const N: usize>(heads: [&str; N], row: [String; N]) -> String {
    let mut text = String::new();
    for (number, (head, cell)) in heads.into_iter().zip(row).enumerate() {
        text += &match number {
            0 => format!("{}\n", shown(&cell)),
            _ => format!("  {head:18} {}\n", shown(&cell)),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_on_a_terminal_and_tabs_elsewhere() {
        let rows = [["photos", "7"], ["a\tb", ""]].map(|row| row.map(str::to_owned));
        let heads = ["name", "size"];
        assert_eq!(table(false, heads, &rows), "name\tsize\nphotos\t7\na\\tb\t\n");
        let columns = "\x1b[1mname    size\x1b[0m\nphotos     7\na\\tb\n";
        assert_eq!(table(true, heads, &rows), columns);
    }

    #[test]
    fn quantities_are_at_the_right() {
        let rows = [["7", "9 us", "20KiB", "0.5", "7a11-"], ["1200", "12 ms", "1MiB", "?", "7"]];
        let rows = rows.map(|row| row.map(str::to_owned));
        let text = table(true, ["rows", "cpu", "log", "rate", "from"], &rows);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, ["   7   9 us  20KiB   0.5  7a11-", "1200  12 ms   1MiB     ?  7"]);
    }
}
