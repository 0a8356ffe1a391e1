//! Timestamps in a form that the statement describes: the second argument of `TO_STRING`.

use std::fmt::Write;

use crate::query::value::timestamp::Timestamp;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Writes a timestamp as the documented letters say. Other characters stand for themselves, and so
/// do those in single quotes. `None` if a letter means nothing.
pub(crate) fn formatted(time: Timestamp, pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('\'') {
            let end = quoted.find('\'')?;
            out.push_str(if end == 0 { "'" } else { &quoted[..end] });
            rest = &quoted[end + 1..];
            continue;
        }
        let end = rest.find(|c| c != first).unwrap_or(rest.len());
        if first.is_ascii_alphabetic() {
            letter(&mut out, time, first, end)?;
        } else {
            out.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    Some(out)
}

/// Writes what `count` times this letter mean.
fn letter(out: &mut String, time: Timestamp, letter: char, count: usize) -> Option<()> {
    let fields = time.fields();
    let month = MONTHS[usize::try_from(fields.month - 1).ok()?];
    let half = if fields.hour % 12 == 0 { 12 } else { fields.hour % 12 };
    let (number, width) = match (letter, count) {
        ('y', 2) => (fields.year % 100, 2),
        ('y', 1 | 4) => (fields.year, 4),
        ('M', 3) => return out.write_str(&month[..3]).ok(),
        ('M', 4) => return out.write_str(month).ok(),
        ('a', 1) => return out.write_str(if fields.hour < 12 { "AM" } else { "PM" }).ok(),
        ('S', 1..=6) => return out.write_str(&format!("{:06}", fields.micro)[..count]).ok(),
        ('X' | 'x', 1..=5) => return offset(out, time.offset_minutes(), letter == 'X', count),
        ('M', 1 | 2) => (fields.month, count),
        ('d', 1 | 2) => (fields.day, count),
        ('h', 1 | 2) => (half, count),
        ('H', 1 | 2) => (fields.hour, count),
        ('m', 1 | 2) => (fields.minute, count),
        ('s', 1 | 2) => (fields.second, count),
        _ => return None,
    };
    write!(out, "{number:0width$}").ok()
}

/// Writes an offset from UTC: in hours, with minutes, or with a colon between them. Capital letters
/// write `Z` for none.
fn offset(out: &mut String, minutes: i64, is_capital: bool, count: usize) -> Option<()> {
    if minutes == 0 && is_capital {
        return out.write_str("Z").ok();
    }
    let sign = if minutes < 0 { '-' } else { '+' };
    let (hour, minute) = (minutes.abs() / 60, minutes.abs() % 60);
    match count {
        1 => write!(out, "{sign}{hour:02}").ok(),
        2 | 4 => write!(out, "{sign}{hour:02}{minute:02}").ok(),
        _ => write!(out, "{sign}{hour:02}:{minute:02}").ok(),
    }
}
