//! The figures of workloads: a table on a terminal, with tabs elsewhere, or JSON.

use serde::Serialize;

use crate::cli::escaped;
use crate::cli::files::show::Style;
use crate::cli::output;
use crate::node::config::Size;

use super::bed::Removed;
use super::driver::tally::Achieved;
use super::driver::tally::Tally;
use super::plan::Step;

/// The columns.
const COLUMNS: [&str; 10] =
    ["workload", "size", "ops", "errors", "ops/s", "MiB/s", "p50 ms", "p90 ms", "p99 ms", "max ms"];

/// Their widths.
const WIDTHS: [usize; 10] = [8, 9, 9, 9, 9, 9, 9, 9, 9, 9];

/// The figures of one workload.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) workload: &'static str,
    /// `blob` or `s3`.
    pub(super) protocol: &'static str,
    pub(super) clients: usize,
    /// Bytes of a blob or block.
    pub(super) size: usize,
    #[serde(flatten)]
    pub(super) achieved: Achieved,
    /// Requests sent, those that failed included.
    pub(super) requests: u64,
    /// Bytes of bodies written and read.
    pub(super) bytes: u64,
    pub(super) mib_per_second: f64,
    /// Whether a signal ended it early.
    pub(super) interrupted: bool,
}

impl Figures {
    pub(super) fn new(step: &Step, protocol: &'static str, tally: &Tally) -> Self {
        let achieved = tally.achieved();
        let mib = tally.bytes as f64 / f64::from(1 << 20);
        Self {
            workload: step.workload.name,
            protocol,
            clients: step.workload.concurrency,
            size: step.size,
            mib_per_second: if achieved.seconds > 0.0 { mib / achieved.seconds } else { 0.0 },
            achieved,
            requests: tally.requests,
            bytes: tally.bytes,
            interrupted: false,
        }
    }

    /// Its lines.
    pub(super) fn shown(&self, style: Style) -> String {
        match style {
            Style::Json => output::json_line(self),
            Style::Terminal | Style::Plain => {
                let mut text = row(style, &self.cells());
                for (reason, count) in &self.achieved.failures {
                    let reason = escaped::shown(reason);
                    text += &match style {
                        Style::Terminal => format!("  {count} x {reason}\n"),
                        Style::Json | Style::Plain => format!("\t{count}\t{reason}\n"),
                    };
                }
                text
            }
        }
    }

    fn cells(&self) -> [String; 10] {
        let Achieved { ops, errors, ops_per_second, p50_us, p90_us, p99_us, max_us, .. } =
            self.achieved;
        let ms = |us: u64| format!("{:.2}", us as f64 / 1e3);
        [
            self.workload.to_owned(),
            Size::new(self.size as u64).to_string(),
            ops.to_string(),
            errors.to_string(),
            format!("{ops_per_second:.0}"),
            format!("{:.1}", self.mib_per_second),
            ms(p50_us),
            ms(p90_us),
            ms(p99_us),
            ms(max_us),
        ]
    }
}

/// The head of the table.
pub(super) fn head(style: Style) -> String {
    match style {
        Style::Json => String::new(),
        Style::Terminal => {
            format!("\x1b[1m{}\x1b[0m\n", row(style, &COLUMNS.map(str::to_owned)).trim_end())
        }
        Style::Plain => row(style, &COLUMNS.map(str::to_owned)),
    }
}

/// The numbers of removed items. Only for programs: people see a message about items that are left.
pub(super) fn removed(style: Style, removed: &Removed) -> String {
    match style {
        Style::Json => output::json_line(removed),
        Style::Terminal | Style::Plain => String::new(),
    }
}

/// One row. It is printed when its workload ends, so the widths of the columns are fixed.
fn row(style: Style, cells: &[String]) -> String {
    if style != Style::Terminal {
        return cells.join("\t") + "\n";
    }
    let cells = cells.iter().zip(WIDTHS).map(|(cell, width)| format!("{cell:>width$}"));
    cells.collect::<Vec<_>>().join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cli::bench::driver::tally::Done;
    use crate::cli::bench::driver::tally::Worth;
    use crate::cli::bench::driver::workload::Kind;
    use crate::cli::bench::driver::workload::Unit;
    use crate::cli::bench::driver::workload::Workload;

    fn figures() -> Figures {
        let mut tally = Tally { requests: 3, seconds: 2.0, ..Tally::new().unwrap() };
        for milliseconds in [1, 4] {
            let took = Duration::from_millis(milliseconds);
            let worth = Worth { units: 1.0, bytes: 1 << 20 };
            let (began, connecting) = (Duration::ZERO, Duration::ZERO);
            tally.note(Done { began, took, connecting, worth }, false).unwrap();
        }
        let refused = "503 Service Unavailable for Put x: <Code>ServerBusy</Code>";
        tally.fail(Duration::ZERO, refused, false).unwrap();
        let (kind, unit) = (Kind::Idle, Unit::Op);
        let workload = Workload { name: "put", kind, ops: 3, concurrency: 2, unit };
        Figures::new(&Step { workload, size: 1 << 20 }, "s3", &tally)
    }

    #[test]
    fn figures_are_shown_in_three_styles() {
        let read: serde_json::Value = serde_json::from_str(&figures().shown(Style::Json)).unwrap();
        let of = |name: &str| read[name].to_string();
        assert_eq!((of("ops"), of("errors"), of("requests")), ("2".into(), "1".into(), "3".into()));
        assert_eq!((of("mib_per_second"), of("ops_per_second")), ("1.0".into(), "1.0".into()));
        assert_eq!(read["failures"]["503 Service Unavailable (ServerBusy)"], 1);
        let plain = figures().shown(Style::Plain);
        assert!(plain.starts_with("put\t1MiB\t2\t1\t1\t1.0\t1.00\t"), "{plain}");
        assert!(plain.ends_with("\t1\t503 Service Unavailable (ServerBusy)\n"), "{plain}");
        let mut hostile = figures();
        hostile.achieved.failures = [("500 \u{1b}[2J\u{9b}".to_owned(), 1)].into();
        let all = [Style::Json, Style::Terminal, Style::Plain].map(|style| hostile.shown(style));
        assert!(all.iter().all(|all| !all.contains(['\u{1b}', '\u{9b}'])), "{all:?}");
        let shown = figures().shown(Style::Terminal);
        let lines: Vec<&str> = shown.lines().collect();
        let columns = row(Style::Terminal, &COLUMNS.map(str::to_owned));
        assert_eq!((lines.len(), lines[0].len()), (2, columns.trim_end().len()));
        assert!(head(Style::Plain).starts_with("workload\tsize\t"));
    }
}
