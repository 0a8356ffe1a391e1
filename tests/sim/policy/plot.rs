//! The plot of a replay.

use std::fmt::Write;

use super::*;

pub(super) fn plot(points: &[Point]) -> String {
    let end = points.last().map_or(1.0, |point| point.at).max(1.0);
    let x = |at: f64| 70.0 + at / end * (WIDTH - 90.0);
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {}' font-family='sans-serif' font-size='11'>\n\
         <rect width='100%' height='100%' fill='white'/>\n",
        4.0 * PANEL + 40.0
    );
    let panels: [Panel; 4] = [
        ("requests a second", "#205090", |point| point.load),
        ("partitions", "#207040", |point| point.pieces as f64),
        ("busiest host / mean", "#a05010", |point| point.uneven),
        ("changes in 10 min", "#803080", |point| point.changes.iter().sum::<usize>() as f64),
    ];
    for (number, (title, colour, value)) in panels.iter().enumerate() {
        let top = 20.0 + number as f64 * PANEL;
        let most = points.iter().map(value).fold(1.0, f64::max);
        let y = |value: f64| top + (PANEL - 25.0) * (1.0 - value / most);
        let line: String = points.iter().fold(String::new(), |mut line, point| {
            write!(line, "{:.1},{:.1} ", x(point.at), y(value(point))).unwrap();
            line
        });
        writeln!(svg, "<text x='70' y='{:.0}'>{title}</text>", top - 5.0).unwrap();
        writeln!(svg, "<text x='65' y='{:.0}' text-anchor='end'>{most:.1}</text>", top + 8.0)
            .unwrap();
        writeln!(svg, "<text x='65' y='{:.0}' text-anchor='end'>0</text>", y(0.0)).unwrap();
        writeln!(svg, "<polyline points='{line}' fill='none' stroke='{colour}'/>").unwrap();
    }
    for day in 0..=(end / (24.0 * HOUR)) as usize {
        let at = x(day as f64 * 24.0 * HOUR);
        let bottom = 4.0 * PANEL + 20.0;
        writeln!(svg, "<path d='M{at:.1} 20V{bottom}' stroke='#ccc' stroke-width='0.5'/>").unwrap();
        writeln!(svg, "<text x='{at:.1}' y='{:.0}'>day {day}</text>", bottom + 12.0).unwrap();
    }
    svg + "</svg>\n"
}
