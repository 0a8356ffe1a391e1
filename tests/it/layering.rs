//! The layers: a module uses lower layers and itself. ARCHITECTURE.md shows the same table.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::tree;

/// Layer of each module.
const LAYERS: [(&str, u32); 17] = [
    ("types", 0),
    ("env", 1),
    ("query", 1),
    ("telemetry", 1),
    ("audit_log", 2),
    ("protocol", 2),
    ("auth", 2),
    ("coordinator", 2),
    ("rpc", 2),
    ("capacity", 3),
    ("index", 4),
    ("frontend", 5),
    ("manager", 5),
    ("reclaim", 5),
    ("node", 6),
    ("admin", 6),
    ("cli", 7),
];
/// Who may use a neighbour: the assembly starts the admin listener.
const NEIGHBOURS: [(&str, &str); 1] = [("node", "admin")];
/// Modules without I/O.
const PURE: [&str; 4] = ["types", "query", "protocol", "auth"];

/// What a line of code names behind `crate::`, or `None` for a group, which would hide names from
/// this test.
fn named(line: &str) -> Option<Vec<&str>> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return Some(Vec::new());
    }
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            return None;
        }
        found.push(&rest[..end]);
    }
    Some(found)
}

/// Why `module` may not have this line.
fn objection(module: &str, line: &str) -> Option<String> {
    let layers = BTreeMap::from(LAYERS);
    let Some(names) = named(line) else { return Some("groups crate names".to_owned()) };
    for name in names {
        let Some(layer) = layers.get(name) else { continue };
        let allowed =
            name == module || *layer < layers[module] || NEIGHBOURS.contains(&(module, name));
        if !allowed {
            return Some(format!("{module} may not use {name}"));
        }
    }
    let world = ["tokio::", "async fn", "std::fs", "std::net::"];
    let io = PURE.contains(&module) && !line.trim_start().starts_with("//");
    // An address is a value.
    let values = ["SocketAddr", "IpAddr", "Ipv4Addr", "Ipv6Addr"];
    let line = values
        .iter()
        .fold(line.to_owned(), |line, name| line.replace(&format!("std::net::{name}"), ""));
    let used = world.into_iter().find(|word| io && line.contains(word));
    used.map(|word| format!("{module} may not use {word}"))
}

#[test]
fn modules_use_only_lower_layers() {
    let mut objections = Vec::new();
    let mut seen = BTreeSet::new();
    for file in tree::files("src", "rs") {
        let Some((module, _)) = file.name.strip_prefix("src/").and_then(|p| p.split_once('/'))
        else {
            continue;
        };
        let known = LAYERS.iter().find(|(name, _)| *name == module);
        let (module, _) = known.unwrap_or_else(|| panic!("{module} has no layer"));
        seen.insert(*module);
        for (number, line) in file.text.lines().enumerate() {
            if let Some(why) = objection(module, line) {
                objections.push(format!("{}:{}: {why}", file.name, number + 1));
            }
        }
    }
    assert!(objections.is_empty(), "{}", objections.join("\n"));
    assert_eq!(seen.len(), LAYERS.len(), "each module has files: {seen:?}");
}

#[test]
fn layering_refuses_upward_sideways_and_grouped_use() {
    let refused = [
        ("capacity", "use crate::frontend::Accounts;"),
        ("capacity", "    let x = crate::index::Error::Full;"),
        ("frontend", "use crate::reclaim::Reclaim;"),
        ("auth", "use crate::protocol::model::Refusal;"),
        ("admin", "use crate::node::config::Config;"),
        ("node", "use crate::cli::CliError;"),
        ("index", "use crate::manager::Policy;"),
        ("reclaim", "use crate::manager::Manager;"),
        ("index", "use crate::{capacity, frontend};"),
        ("types", "use tokio::sync::Mutex;"),
        ("types", "use std::net::TcpStream;"),
        ("protocol", "pub async fn parse() {}"),
    ];
    for (module, line) in refused {
        assert!(objection(module, line).is_some(), "{module}: {line}");
    }
    let allowed = [
        ("frontend", "use crate::capacity::Capacity;"),
        ("index", "use crate::index::Error;"),
        ("manager", "use crate::index::IndexServer;"),
        ("node", "use crate::admin::Phase;"),
        ("cli", "use crate::node::config::Config;"),
        ("types", "//! never crate::frontend, nor tokio::"),
        ("protocol", "    $crate::frontend"),
    ];
    for (module, line) in allowed {
        assert_eq!(objection(module, line), None, "{module}: {line}");
    }
}

#[test]
fn architecture_shows_the_same_layers() {
    let text = tree::read("ARCHITECTURE.md");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let layer: u32 = cells.next()?.parse().ok()?;
        Some((cells.next()?.trim_matches('`').to_owned(), layer))
    });
    let shown: BTreeMap<String, u32> = rows.collect();
    let here: BTreeMap<String, u32> = LAYERS.map(|(name, layer)| (name.to_owned(), layer)).into();
    assert_eq!(shown, here);
}

#[test]
fn storage_libraries_stand_behind_one_file_each() {
    let homes = [
        ("sled::", "src/capacity/disk/catalog.rs"),
        ("redb::", "src/coordinator/embedded/file.rs"),
    ];
    for (library, home) in homes {
        let users: Vec<String> = tree::files("src", "rs")
            .into_iter()
            .filter(|file| !["/tests/", "/tests.rs"].iter().any(|part| file.name.contains(part)))
            .filter(|file| {
                file.text
                    .lines()
                    .any(|line| !line.trim_start().starts_with("//") && line.contains(library))
            })
            .map(|file| file.name)
            .collect();
        assert_eq!(users, [home], "{library}");
    }
}

/// The code of a file without its tests: lines with their numbers, comments left out.
fn code(file: &tree::File) -> Vec<(usize, &str)> {
    let tests = file.text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(file.text.len());
    let lines = file.text[..tests].lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(at, line)| (at + 1, line))
        .collect()
}

/// Lines of code below a folder that have one of the words, those of tests left out.
fn lines_with(folder: &str, words: &[&str], exempt: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree::files(folder, "rs") {
        let is_test = ["/tests/", "/tests.rs"].iter().any(|part| file.name.contains(part));
        if is_test || exempt.iter().any(|part| file.name.starts_with(part)) {
            continue;
        }
        for (number, line) in code(&file) {
            let lower = line.to_ascii_lowercase();
            if let Some(word) = words.iter().find(|word| lower.contains(**word)) {
                found.push(format!("{}:{number}: {word}", file.name));
            }
        }
    }
    found
}

/// Words by which code names a dialect.
const DIALECTS: [&str; 3] = ["protocol::azure", "protocol::s3", "protocol::dfs"];

#[test]
fn in_the_front_end_only_dialect_names_a_dialect() {
    let found = lines_with("src/frontend", &DIALECTS, &["src/frontend/dialect/"]);
    assert!(found.is_empty(), "{}", found.join("\n"));
    let inside = lines_with("src/frontend/dialect", &DIALECTS, &[]);
    assert!(!inside.is_empty(), "the test would see it");
}

/// What only a dialect writes: its headers and its documents.
const WORDS_OF_DIALECTS: [&str; 2] = ["x-ms-", "xml"];

#[test]
fn in_the_front_end_only_dialect_writes_as_one() {
    let found = lines_with("src/frontend", &WORDS_OF_DIALECTS, &["src/frontend/dialect/"]);
    assert!(found.is_empty(), "{}", found.join("\n"));
    for folder in ["src/types", "src/index", "src/reclaim", "src/capacity"] {
        let found = lines_with(folder, &[&WORDS_OF_DIALECTS[..], &DIALECTS].concat(), &[]);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
    let inside = lines_with("src/frontend/dialect", &WORDS_OF_DIALECTS, &[]);
    assert!(!inside.is_empty(), "the test would see it");
}

/// The fields through which a test brings a dialect along, and whether a release has them.
fn doors(text: &str) -> Vec<bool> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let of_door = |at: usize| {
        let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
        let mut attributes = attributes.copied();
        !attributes.any(|attribute| attribute == "#[cfg(debug_assertions)]")
    };
    let is_door = |line: &str| line.ends_with(": Option<Arc<dyn Foreign>>,");
    (0..lines.len()).filter(|at| is_door(lines[*at])).map(of_door).collect()
}

#[test]
fn a_release_takes_no_dialect_of_a_test() {
    let files = tree::files("src", "rs");
    let found: Vec<(&str, bool)> = files
        .iter()
        .flat_map(|file| doors(&file.text).into_iter().map(|open| (file.name.as_str(), open)))
        .collect();
    let gated = ["src/frontend/dialect/mod.rs", "src/node/listeners.rs"].map(|name| (name, false));
    let sorted = |mut found: Vec<(&str, bool)>| {
        found.sort_unstable();
        found.into_iter().map(|(name, open)| (name.to_owned(), open)).collect::<Vec<_>>()
    };
    assert_eq!(sorted(found), sorted(gated.to_vec()), "ADR 0031");
    assert_eq!(doors("#[doc(hidden)]\npub dialect: Option<Arc<dyn Foreign>>,"), [true]);
}

#[test]
fn what_dialects_share_names_none_of_them() {
    let words = ["azure", "x-ms-", "xml", "amz", "s3", "headermap"];
    let found = lines_with("src/protocol/model", &words, &[]);
    assert!(found.is_empty(), "{}", found.join("\n"));
    let words = ["azure", "x-ms-", "amz", "s3::"];
    let found = lines_with("src/protocol/wire", &words, &[]);
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(!lines_with("src/protocol/azure", &["x-ms-"], &[]).is_empty(), "the test would see it");
}

/// A partition's log, memtables and runs are behind the server of partitions. What others need of
/// them, `index` itself shows.
#[test]
fn only_the_index_server_names_the_engine() {
    let words = ["index::engine"];
    let homes = ["src/index/engine/", "src/index/server/", "src/index/mod.rs"];
    let found = lines_with("src", &words, &homes);
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(!lines_with("src/index/server", &words, &[]).is_empty(), "the test would see it");
}

/// A process notes its own requests. What must wait for them asks, as it would ask another process.
#[test]
fn reclaim_and_backups_ask_about_running_requests() {
    let words = ["inflight"];
    for folder in ["src/reclaim", "src/node/backup", "src/index/engine", "src/index/server"] {
        let found = lines_with(folder, &words, &[]);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
    assert!(!lines_with("src/frontend", &words, &[]).is_empty(), "the test would see it");
}
