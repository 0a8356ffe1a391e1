//! Tables of commands that list.

use super::escaped::shown;

/// A line of heads and a line for each row: columns as wide as their longest cell, and bold heads,
/// on a terminal; tabs between the cells elsewhere. Cells may come from elsewhere.
pub(super) fn table<const N: usize>(
    on_terminal: bool,
    heads: [&str; N],
    rows: &[[String; N]],
) -> String {
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| shown(cell))).collect();
    let mut widths = heads.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String]| {
        if !on_terminal {
            return cells.join("\t");
        }
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
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
        let columns = "\x1b[1mname    size\x1b[0m\nphotos  7\na\\tb\n";
        assert_eq!(table(true, heads, &rows), columns);
    }
}
