//! The documents name files and folders that exist.

use std::path::Path;

use crate::tree;

/// Endings of names in backticks that mean a file.
const FILES: [&str; 6] = [".rs", ".py", ".md", ".json", ".yaml", ".yml"];

/// Everything that people read about the code.
fn documents() -> Vec<tree::File> {
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "benches/README.md",
        "tests/sdk/README.md",
        "tests/supply/README.md",
    ];
    let pages = pages.map(|name| tree::File { name: name.to_owned(), text: tree::read(name) });
    let folders = ["docs", "api-spec"].into_iter().flat_map(|folder| tree::files(folder, "md"));
    pages.into_iter().chain(folders).collect()
}

fn exists(path: &str) -> bool {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists()
}

/// The folder of a document, ending in `/`, or nothing for one at the root.
fn folder(document: &str) -> &str {
    document.rfind('/').map_or("", |at| &document[..=at])
}

/// Whether text in backticks is meant as a path into the repository. Coordinator keys such as
/// `node/disks` have no ending; `target/` has what a build makes; `HOST/` is a placeholder.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let Some((first, rest)) = text.split_once('/') else { return false };
    let is_placeholder = first.chars().all(|c| c.is_ascii_uppercase());
    if !text.chars().all(plain) || is_placeholder || first == "." || first == "target" {
        return false;
    }
    let is_folder = text.ends_with('/') && (!rest.is_empty() || exists(&format!("src/{first}")));
    is_folder || FILES.iter().any(|ending| text.ends_with(ending))
}

/// Whether a document may name this path: from the root, from `src/`, from its own folder, or by
/// the end of a file's path in `src/`.
fn is_there(path: &str, document: &str, sources: &[tree::File]) -> bool {
    let starts = ["", "src/", folder(document)];
    let suffix = format!("/{path}");
    starts.iter().any(|start| exists(&format!("{start}{path}")))
        || sources.iter().any(|file| file.name.ends_with(&suffix))
        || (path.ends_with('/') && sources.iter().any(|file| file.name.contains(&suffix)))
}

#[test]
fn paths_in_documents_exist() {
    let sources = tree::files("src", "rs");
    let mut missing = Vec::new();
    let mut seen = 0;
    for document in documents() {
        for (number, line) in document.text.lines().enumerate() {
            // Every second part is between backticks.
            for path in line.split('`').skip(1).step_by(2).filter(|text| is_path(text)) {
                seen += 1;
                if !is_there(path, &document.name, &sources) {
                    missing.push(format!("{}:{}: {path}", document.name, number + 1));
                }
            }
        }
    }
    assert!(seen > 150, "{seen} paths: this test reads the documents wrongly");
    assert!(missing.is_empty(), "named and not there:\n{}", missing.join("\n"));
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for document in documents() {
        for (number, line) in document.text.lines().enumerate() {
            for (at, _) in line.match_indices("](") {
                let rest = &line[at + 2..];
                let link = &rest[..rest.find([')', '#']).unwrap_or(rest.len())];
                if link.is_empty() || link.contains("://") {
                    continue;
                }
                seen += 1;
                if !exists(&format!("{}{link}", folder(&document.name))) {
                    broken.push(format!("{}:{}: {link}", document.name, number + 1));
                }
            }
        }
    }
    assert!(seen > 50, "{seen} links: this test reads the documents wrongly");
    assert!(broken.is_empty(), "links to nothing:\n{}", broken.join("\n"));
}

#[test]
fn paths_are_distinguished_from_other_text() {
    for path in ["src/lib.rs", "engine/context.rs", "frontend/answers/", "tests/sdk/kill9.py"] {
        assert!(is_path(path), "{path}");
    }
    let others = ["node/disks", "partition/", "/metrics", "./blockyard-data", "HOST/web/", "x.rs"];
    for other in others {
        assert!(!is_path(other), "{other}");
    }
    let sources = tree::files("src", "rs");
    assert!(!is_there("index/no_such_file.rs", "README.md", &sources));
    assert!(!is_there("index/no_such_folder/", "README.md", &sources));
}
