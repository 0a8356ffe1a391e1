//! Secrets at rest, with the real program: what is on the disk, and starts without the key.

#![expect(clippy::disallowed_methods, reason = "looks at and changes the files of a store")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::folder::Data;
use crate::program::Node;
use crate::program::blockyard;
use crate::program::run;
use crate::program::words;

const KEY: &str = "c2VjcmV0cyBhcmUgc2VhbGVkLCBub3QgcGxhaW4gb24gdGhlIGRpc2s=";

/// Every file below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Files that hold the key, as bytes or as text.
fn that_hold_it(folder: &Path) -> Vec<std::path::PathBuf> {
    let bytes = STANDARD.decode(KEY).unwrap();
    let has = |file: &[u8], what: &[u8]| file.windows(what.len()).any(|part| part == what);
    let mut found = files(folder);
    found.retain(|path| {
        let file = std::fs::read(path).unwrap();
        has(&file, &bytes) || has(&file, KEY.as_bytes())
    });
    found
}

fn make_account(node: &Node, data: &Path) {
    let (admin, data) = (node.admin().to_string(), data.to_str().unwrap());
    let place = ["--admin-listen", &admin, "--data", data];
    let made = run(&[&["account", "create", "fresh", "--key1", KEY], &place[..]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", words(&made));
    let shown = run(&[&["account", "show", "fresh", "--keys"], &place[..]].concat());
    assert!(words(&shown).contains(KEY), "{}", words(&shown));
}

fn refused_start(data: &Data) -> String {
    let output = blockyard(&["serve", "--data", data.path().to_str().unwrap()])
        .args(["--blob-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    words(&output)
}

#[test]
fn no_file_holds_a_key_of_an_account_and_all_are_for_their_user() {
    let data = Data::new();
    for signal in ["-KILL", "-TERM"] {
        let node = Node::start(data.path());
        if signal == "-KILL" {
            make_account(&node, data.path());
        }
        node.end(signal);
        assert_eq!(that_hold_it(data.path()), Vec::<std::path::PathBuf>::new(), "{signal}");
    }
    for path in files(data.path()).into_iter().chain([data.key(), data.path().to_owned()]) {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

#[test]
fn store_starts_with_its_own_master_key_alone() {
    let data = Data::new();
    let node = Node::start(data.path());
    make_account(&node, data.path());
    assert_eq!(node.end("-TERM"), Some(0));
    let kept = std::fs::read(data.key()).unwrap();
    std::fs::remove_file(data.key()).unwrap();
    let text = refused_start(&data);
    assert!(text.contains("data.key is missing") && text.contains("restore"), "{text}");

    let other = Data::new();
    assert_eq!(Node::start(other.path()).end("-TERM"), Some(0));
    std::fs::copy(other.key(), data.key()).unwrap();
    let text = refused_start(&data);
    assert!(text.contains("data.key holds key ring"), "{text}");

    std::fs::write(data.key(), kept).unwrap();
    let node = Node::start(data.path());
    let admin = node.admin().to_string();
    let folder = data.path().to_str().unwrap();
    let place = ["--admin-listen", &admin, "--data", folder];
    let shown = run(&[&["account", "show", "fresh", "--keys"], &place[..]].concat());
    assert!(words(&shown).contains(KEY), "{}", words(&shown));
}

#[test]
fn master_key_inside_a_data_directory_is_refused() {
    let data = Data::new();
    let inside = data.path().join("inner/master.key");
    let output = blockyard(&["serve", "--data", data.path().to_str().unwrap()])
        .args(["--master-key-file", inside.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("is inside the data directory"), "{}", words(&output));
    assert!(!data.path().exists());
}
