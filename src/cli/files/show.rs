//! Lines about containers, blobs and files: in columns on a terminal, with tabs elsewhere.

use std::io::IsTerminal;

use serde_json::Value;
use serde_json::json;

use crate::cli::escaped::shown;
use crate::cli::output::json_line;
use crate::env::user_files::UserFileFacts;
use crate::env::user_files::UserFileKind;
use crate::node::config::Size;
use crate::protocol::azure::answers::ListedBlob;
use crate::protocol::azure::answers::ListedContainer;
use crate::types::Timestamp;

use super::local::Local;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Style {
    /// A JSON object.
    Json,
    /// Columns, rounded sizes, folders in colour.
    Terminal,
    /// Exact values with tabs between them.
    Plain,
}

impl Style {
    /// The style of standard output.
    pub(in crate::cli) fn of(as_json: bool) -> Self {
        match as_json {
            true => Self::Json,
            false if std::io::stdout().is_terminal() => Self::Terminal,
            false => Self::Plain,
        }
    }
}

/// The line of a container.
pub(super) fn container(style: Style, container: &ListedContainer) -> String {
    let ListedContainer { name, modified } = container;
    match style {
        Style::Json => json_line(&json!({ "container": name, "modified": iso(*modified) })),
        Style::Terminal => {
            format!("{:>9}  {}  \x1b[34m{}\x1b[0m\n", "", short(*modified), shown(name))
        }
        Style::Plain => {
            format!("\t{}\t{}\n", iso(*modified).unwrap_or_default(), shown(name))
        }
    }
}

/// The line of a folder.
pub(super) fn folder(style: Style, name: &str, below: &str) -> String {
    let name_shown = shown(name.strip_prefix(below).unwrap_or(name));
    match style {
        Style::Json => json_line(&json!({ "folder": name })),
        Style::Terminal => format!("{:>9}  {:19}  \x1b[34m{name_shown}\x1b[0m\n", "", ""),
        Style::Plain => format!("\t\t{name_shown}\n"),
    }
}

/// The line of a blob. People see the part of its name behind `below`.
pub(super) fn blob(style: Style, blob: &ListedBlob, below: &str) -> String {
    match style {
        Style::Json => json_line(&object(blob)),
        Style::Terminal | Style::Plain => sized(style, &blob.name, blob.size, blob.modified, below),
    }
}

/// The line of a local file or folder.
pub(super) fn local(style: Style, found: &Local, below: &str) -> String {
    let (name, facts) = (found.name(), found.facts);
    match style {
        Style::Json => json_line(&local_object(found)),
        Style::Terminal | Style::Plain if found.is_folder() => folder(style, &name, below),
        Style::Terminal | Style::Plain => sized(style, &name, facts.len, facts.modified, below),
    }
}

/// The line for people about an entry with a size.
fn sized(style: Style, name: &str, size: u64, modified: Option<Timestamp>, below: &str) -> String {
    let name = shown(name.strip_prefix(below).unwrap_or(name));
    if style == Style::Terminal {
        format!("{:>9}  {}  {name}\n", Size::new(size).rounded(), short(modified))
    } else {
        format!("{size}\t{}\t{name}\n", iso(modified).unwrap_or_default())
    }
}

/// A blob as JSON.
pub(super) fn object(blob: &ListedBlob) -> Value {
    json!({
        "name": blob.name,
        "size": blob.size,
        "modified": iso(blob.modified),
        "etag": blob.etag.trim_matches('"'),
        "md5": blob.md5.map(crate::types::Md5::to_base64),
        "content_type": blob.content_type,
        "type": blob.kind,
        "tier": Some(&blob.tier).filter(|tier| !tier.is_empty()),
    })
}

/// A local file as JSON.
pub(super) fn local_object(found: &Local) -> Value {
    let UserFileFacts { kind, len, modified } = found.facts;
    let kind = match kind {
        UserFileKind::File => "file",
        UserFileKind::Folder => "folder",
        UserFileKind::Link => "link",
        UserFileKind::Other => "other",
    };
    json!({ "name": found.name(), "size": len, "modified": iso(modified), "type": kind })
}

/// A time in ISO 8601, without a fraction.
pub(super) fn iso(time: Option<Timestamp>) -> Option<String> {
    time.map(Timestamp::to_iso_seconds)
}

/// A time of 19 characters.
fn short(time: Option<Timestamp>) -> String {
    let text = iso(time).unwrap_or_default().replace('T', " ");
    format!("{:19}", text.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed() -> ListedBlob {
        ListedBlob {
            name: "in/a\u{1b}[2J".to_owned(),
            size: 20_480,
            modified: Timestamp::from_iso("2026-11-21T05:00:00Z"),
            etag: "\"0x8D\"".to_owned(),
            ..ListedBlob::default()
        }
    }

    #[test]
    fn blobs_are_shown_in_three_styles_without_control_characters() {
        let plain = blob(Style::Plain, &listed(), "in/");
        assert_eq!(plain, "20480\t2026-11-21T05:00:00Z\ta\\u{1b}[2J\n");
        let shown = blob(Style::Terminal, &listed(), "in/");
        assert_eq!(shown, "    20KiB  2026-11-21 05:00:00  a\\u{1b}[2J\n");
        let read: Value = serde_json::from_str(&blob(Style::Json, &listed(), "in/")).unwrap();
        assert_eq!((&read["name"], &read["etag"]), (&json!("in/a\u{1b}[2J"), &json!("0x8D")));
        assert_eq!((&read["size"], &read["md5"]), (&json!(20_480), &Value::Null));
    }

    #[test]
    fn folders_and_containers_have_no_size() {
        assert_eq!(folder(Style::Plain, "in/x/", "in/"), "\t\tx/\n");
        assert!(folder(Style::Terminal, "in/x/", "in/").contains("\x1b[34mx/"));
        let listed = ListedContainer { name: "box".to_owned(), modified: None };
        assert_eq!(container(Style::Plain, &listed), "\t\tbox\n");
        assert!(container(Style::Json, &listed).contains("\"container\":\"box\""));
    }
}
