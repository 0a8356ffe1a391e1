//! The text of `blockyard partitions watch`: the load between two observations of the partitions.

use std::collections::BTreeSet;
use std::collections::HashMap;

use crate::admin::ChangeView;
use crate::admin::MapView;
use crate::admin::PartitionView;

use super::host_of;
use crate::types::Timestamp;

/// Requests per second from which on a cell has the next colour.
const STEPS: [f64; 9] = [0.5, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0];
/// A shade for each step.
const HEAT: [Shade; STEPS.len() + 1] = [
    COLD,
    Shade::new(17, '.'),
    Shade::new(19, ':'),
    Shade::new(55, '-'),
    Shade::new(90, '='),
    Shade::new(125, '+'),
    Shade::new(161, '*'),
    Shade::new(202, '#'),
    Shade::new(208, '%'),
    Shade::new(220, '@'),
];
/// The shade of a cell without requests.
const COLD: Shade = Shade::new(236, ' ');
/// Lines of the heat map.
const MAP_LINES: usize = 4;
/// Lines of a frame other than those of partitions and changes.
const FIXED_LINES: usize = MAP_LINES + 9;
/// Seconds for which the partitions of a change are marked.
const MARK_SECONDS: f64 = 10.0;
/// Clears the rest of the line, and begins a new one.
const END: &str = "\x1b[K\n";

/// A cell's colour of 256, and a character for terminals without colours.
#[derive(Clone, Copy)]
struct Shade {
    colour: u8,
    character: char,
}

impl Shade {
    const fn new(colour: u8, character: char) -> Self {
        Self { colour, character }
    }
}

/// A partition and its requests per second.
struct Rated<'a> {
    partition: &'a PartitionView,
    rate: f64,
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    pub(super) columns: usize,
    pub(super) lines: usize,
}

/// A frame for the whole screen, with terminal codes.
pub(super) fn frame(before: &MapView, now: &MapView, screen: Screen) -> String {
    let width = screen.columns.max(20) - 1;
    let rated = rates(before, now);
    let mut page = format!("\x1b[H{}{END}{END}", truncated(&summary(now, &rated), width));
    let cells: Vec<&[Rated<'_>]> = cells(&rated, width);
    let mut heat = String::new();
    for cell in &cells {
        let hottest = cell.iter().map(|rated| rated.rate).fold(0.0, f64::max);
        let Shade { colour, character } = shade(hottest);
        heat +=
            &format!("\x1b[38;5;{};48;5;{colour}m{character}", if colour > 200 { 16 } else { 252 });
    }
    for _ in 0..MAP_LINES {
        page += &format!("{heat}\x1b[0m{END}");
    }
    let nodes = nodes(now);
    let owner = |cell: &&[Rated<'_>]| {
        cell.first().map_or(' ', |rated| digit(place_of(&nodes, rated.partition)))
    };
    page += &format!("{}{END}", cells.iter().map(owner).collect::<String>());
    page += &format!("{}{END}", marks(now, &cells));
    page += &format!("{}\x1b[0m{END}{END}", legend());
    let room = screen.lines.saturating_sub(FIXED_LINES).max(2);
    page += &truncated(
        "  busiest   host  requests/s   reads/s  writes/s  lists/s  cpu %  waits ms  log KiB/s         rows  from",
        width,
    );
    page += END;
    for line in busiest(before, now, &rated).take(room / 2) {
        page += &format!("{}{END}", truncated(&line, width));
    }
    page += &truncated("  latest changes", width);
    page += END;
    for change in now.changes.iter().rev().take(room - room / 2) {
        page += &format!("{}{END}", truncated(&line_of(change), width));
    }
    // No new line at the end, because the screen would scroll.
    page.truncate(page.len() - 1);
    page + "\x1b[J"
}

/// A few plain lines: the load, and the changes since the last observation.
pub(super) fn lines(before: &MapView, now: &MapView) -> String {
    let rated = rates(before, now);
    let mut text = summary(now, &rated);
    if let Some(line) = busiest(before, now, &rated).next() {
        text += &format!("  busiest {}", line.trim_start());
    }
    text.push('\n');
    // Numbers begin again when the node restarts.
    let seen = if before.latest_change > now.latest_change { 0 } else { before.latest_change };
    for change in now.changes.iter().filter(|change| change.number > seen) {
        text += &format!("{}\n", line_of(change));
    }
    text
}

fn summary(now: &MapView, rated: &[Rated<'_>]) -> String {
    let all: f64 = rated.iter().map(|rated| rated.rate).sum();
    format!(
        "{}  {} partitions  {} hosts  {all:.0} requests/s",
        clock(&now.now),
        now.partitions.len(),
        now.hosts
    )
}

/// Hours, minutes and seconds of a time.
fn clock(iso: &str) -> &str {
    iso.get(11..19).unwrap_or(iso)
}

/// The requests per second of each partition between two observations, in key order.
fn rates<'a>(before: &MapView, now: &'a MapView) -> Vec<Rated<'a>> {
    let counted: HashMap<u64, u64> = before.partitions.iter().map(|p| (p.id, p.requests)).collect();
    let seconds = seconds_between(&before.now, &now.now);
    let rate = |partition: &PartitionView| {
        // The counter of a new partition, or of one that moved, began at zero during this time.
        let old = counted.get(&partition.id).filter(|old| **old <= partition.requests);
        let new = partition.requests - old.copied().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "requests of a second")]
        let new = new as f64;
        if seconds > 0.0 { new / seconds } else { 0.0 }
    };
    let rated = |partition| Rated { partition, rate: rate(partition) };
    now.partitions.iter().map(rated).collect()
}

fn seconds_between(earlier: &str, later: &str) -> f64 {
    match (Timestamp::from_iso(earlier), Timestamp::from_iso(later)) {
        (Some(earlier), Some(later)) => later.since(earlier).as_secs_f64(),
        _ => 0.0,
    }
}

/// The partitions of each of `width` cells. A cell may have several, and a partition several cells.
fn cells<'a, 'b>(rated: &'b [Rated<'a>], width: usize) -> Vec<&'b [Rated<'a>]> {
    let place = |cell: usize| cell * rated.len() / width;
    let cell = |cell| {
        let from = place(cell);
        rated.get(from..place(cell + 1).max(from + 1)).unwrap_or_default()
    };
    (0..width).map(cell).collect()
}

fn shade(rate: f64) -> Shade {
    let step = STEPS.iter().take_while(|step| rate >= **step).count();
    HEAT.get(step).copied().unwrap_or(COLD)
}

/// The nodes with partitions, by name.
fn nodes(map: &MapView) -> Vec<&str> {
    let all: BTreeSet<&str> =
        map.partitions.iter().filter_map(|partition| partition.node.as_deref()).collect();
    all.into_iter().collect()
}

/// What stands for the host of a partition: in a cluster the place of its node, else its number.
fn place_of(nodes: &[&str], partition: &PartitionView) -> u64 {
    let node = partition.node.as_deref();
    let place = node.and_then(|node| nodes.iter().position(|other| *other == node));
    place.map_or(partition.host, |place| u64::try_from(place).unwrap_or(u64::MAX))
}

fn digit(host: u64) -> char {
    u32::try_from(host % 36).ok().and_then(|host| char::from_digit(host, 36)).unwrap_or('?')
}

/// `S`, `M`, `>`, `=` or `-` under partitions that were recently split, merged, moved, striped or
/// unstriped.
fn marks(now: &MapView, cells: &[&[Rated<'_>]]) -> String {
    let fresh: Vec<&ChangeView> = now
        .changes
        .iter()
        .rev()
        .filter(|change| seconds_between(&change.at, &now.now) < MARK_SECONDS)
        .collect();
    let mark = |cell: &&[Rated<'_>]| {
        let made = |change: &&&ChangeView| {
            cell.iter().any(|rated| change.to.contains(&rated.partition.id))
        };
        fresh.iter().find(made).map_or(' ', |change| match change.kind.as_str() {
            "split" => 'S',
            "merge" => 'M',
            "stripe" => '=',
            "unstripe" => '-',
            _ => '>',
        })
    };
    cells.iter().map(mark).collect()
}

fn legend() -> String {
    let steps = HEAT.iter().zip(std::iter::once(&0.0).chain(&STEPS));
    let shown = steps.map(|(Shade { colour, character }, from)| {
        format!("\x1b[48;5;{colour}m{character}\x1b[0m{from:.0} ")
    });
    format!(
        "{}requests/s; below: host, S split M merge > move = stripe - unstripe",
        shown.collect::<String>()
    )
}

fn busiest<'a>(
    before: &MapView,
    now: &MapView,
    rated: &'a [Rated<'_>],
) -> impl Iterator<Item = String> + use<'a> {
    let mut order: Vec<&Rated<'_>> = rated.iter().collect();
    order.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    let old: HashMap<u64, PartitionView> =
        before.partitions.iter().map(|p| (p.id, p.clone())).collect();
    let seconds = seconds_between(&before.now, &now.now);
    order.into_iter().map(move |Rated { partition, rate }| {
        let from = if partition.from.is_empty() { "(the beginning)" } else { &partition.from };
        let old = old.get(&partition.id).filter(|old| old.requests <= partition.requests);
        let rate_of = |count: fn(&PartitionView) -> u64| {
            let new = count(partition).saturating_sub(old.map_or(0, count));
            #[expect(clippy::cast_precision_loss, reason = "counts of a second")]
            let new = new as f64;
            if seconds > 0.0 { new / seconds } else { 0.0 }
        };
        #[expect(clippy::cast_precision_loss, reason = "a time shown in milliseconds")]
        let waits = partition.queue_age_us as f64 / 1_000.0;
        format!(
            "{:9} {:>6} {rate:11.0} {:9.0} {:9.0} {:8.0} {:6.1} {waits:9.1} {:10.0} {:12}  {}",
            partition.id,
            host_of(partition.node.as_deref(), partition.host),
            rate_of(|p| p.reads),
            rate_of(|p| p.writes),
            rate_of(|p| p.lists),
            rate_of(|p| p.cpu_us) / 10_000.0,
            rate_of(|p| p.log_bytes) / 1_024.0,
            partition.rows,
            // A name may contain control characters, which a terminal must not get.
            from.escape_debug()
        )
    })
}

fn line_of(change: &ChangeView) -> String {
    let ids = |ids: &[u64]| ids.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    format!(
        "  {} {:8} {} -> {} host {}  writes paused {:.3} ms",
        clock(&change.at),
        change.kind,
        ids(&change.from),
        ids(&change.to),
        host_of(change.node.as_deref(), change.host),
        change.pause_ms
    )
}

/// At most `width` characters.
fn truncated(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(id: u64, host: u64, requests: u64) -> PartitionView {
        PartitionView {
            id,
            host,
            requests,
            from: format!("acc/con/{id}"),
            ..PartitionView::default()
        }
    }

    fn view_of(second: u32, partitions: Vec<PartitionView>, changes: Vec<ChangeView>) -> MapView {
        MapView {
            now: format!("2026-11-21T10:00:{second:02}.5000000Z"),
            number: u64::from(second),
            since: None,
            gone: Vec::new(),
            hosts: 2,
            latest_change: changes.last().map_or(0, |change| change.number),
            partitions,
            changes,
        }
    }

    fn split(number: u64, second: u32) -> ChangeView {
        ChangeView {
            number,
            at: format!("2026-11-21T10:00:{second:02}.0000000Z"),
            kind: "split".to_owned(),
            from: vec![1],
            to: vec![3, 4],
            host: 1,
            pause_ms: 2.5,
            ..ChangeView::default()
        }
    }

    /// The text without colours, a line each.
    fn plain(frame: &str) -> Vec<String> {
        let mut text = String::new();
        let mut rest = frame;
        while let Some((before, code)) = rest.split_once('\x1b') {
            text += before;
            rest = &code[code.find(|c: char| c.is_ascii_alphabetic()).unwrap() + 1..];
        }
        (text + rest).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_frame_is_a_map_of_load_with_hosts_and_marks() {
        let before = view_of(1, vec![partition(1, 0, 70), partition(2, 0, 5)], Vec::new());
        let now = view_of(
            3,
            vec![
                partition(3, 1, 2_400),
                partition(4, 1, 0),
                partition(2, 0, 45),
                partition(5, 0, 0),
            ],
            vec![split(1, 2)],
        );
        let frame = frame(&before, &now, Screen { columns: 41, lines: 24 });
        let lines = plain(&frame);
        assert_eq!(lines[0], "10:00:03  4 partitions  2 hosts  1220 re");
        let cells = |a, b, c, d| [a, b, c, d].map(|c: &str| c.repeat(10)).concat();
        assert_eq!(lines[2], cells("#", " ", "-", " "), "1,200, none, 20, none");
        assert_eq!(lines[2], lines[5]);
        assert_eq!(lines[6], cells("1", "1", "0", "0"));
        assert_eq!(lines[7], cells("S", "S", " ", " "));
        assert!(frame.contains("\x1b[38;5;16;48;5;202m#"), "colours too");
        let busiest = lines.iter().position(|line| line.contains("busiest")).unwrap();
        assert!(lines[busiest + 1].starts_with("        3      1        1200"), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("  10:00:02 split    1 -> 3,4 host 1")));
        assert!(lines.iter().all(|line| line.chars().count() <= 160), "{lines:#?}");
        assert!(lines.len() <= 24, "{lines:#?}");
    }

    #[test]
    fn the_busiest_are_shown_with_their_load() {
        let view = |requests, cpu_us| PartitionView {
            reads: requests / 4,
            writes: requests / 2,
            lists: requests / 4,
            cpu_us,
            log_bytes: requests * 1_024,
            queue_age_us: 1_500,
            rows: 7,
            ..partition(1, 0, requests)
        };
        let before = view_of(1, vec![view(4_000, 100)], Vec::new());
        let now = view_of(3, vec![view(12_000, 500_100)], Vec::new());
        let line = busiest(&before, &now, &rates(&before, &now)).next().unwrap();
        let columns: Vec<&str> = line.split_whitespace().collect();
        let wanted = "1 0 4000 1000 2000 1000 25.0 1.5 4000 7 acc/con/1";
        assert_eq!(columns.join(" "), wanted);
    }

    #[test]
    fn many_partitions_share_cells_and_the_hottest_shows() {
        let quiet = |n| partition(n, 0, 0);
        let before = view_of(1, (0..1_000).map(quiet).collect(), Vec::new());
        let mut now = view_of(2, (0..1_000).map(quiet).collect(), Vec::new());
        now.partitions[505].requests = 20_000;
        let lines = plain(&frame(&before, &now, Screen { columns: 101, lines: 30 }));
        assert_eq!(lines[2].find('@'), Some(50));
        assert_eq!(lines[2].trim(), "@");
    }

    #[test]
    fn plain_lines_tell_each_change_once() {
        let before = view_of(1, vec![partition(1, 0, 10)], vec![split(1, 0)]);
        let now = view_of(2, vec![partition(1, 0, 40)], vec![split(1, 0), split(2, 1)]);
        let text = lines(&before, &now);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.starts_with("10:00:02  1 partitions  2 hosts  30 requests/s  busiest 1 "));
        assert!(
            text.ends_with("  10:00:01 split    1 -> 3,4 host 1  writes paused 2.500 ms\n"),
            "{text}"
        );
        let restarted = view_of(3, vec![partition(1, 0, 5)], vec![split(1, 3)]);
        let text = lines(&now, &restarted);
        assert!(text.contains(" 5 requests/s") && text.contains("10:00:03 split"), "{text}");
    }

    #[test]
    fn nothing_moves_a_terminal() {
        let mut named = partition(1, 0, 0);
        named.from = "acc/con/\u{1b}[2J".to_owned();
        let now = view_of(1, vec![named], Vec::new());
        assert!(!frame(&now, &now, Screen { columns: 200, lines: 30 }).contains("\x1b[2J"));
        assert!(!lines(&now, &now).contains('\x1b'));
        assert!(!frame(&now, &now, Screen { columns: 0, lines: 0 }).is_empty());
    }
}
