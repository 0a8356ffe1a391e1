//! What `check` reports about a store with a lost disk, or with one that takes no writes.

#![expect(clippy::disallowed_methods, reason = "arranges the files of a store")]

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use crate::folder::Data;
use crate::program::Node;
use crate::program::run;
use crate::program::words;
use crate::server::ACCOUNT;
use crate::server::KEY;
use crate::wire::Message;
use crate::wire::send;

/// Bodies of which half lie in rows and half in data extents.
const BLOBS: [usize; 6] = [100, 50_000, 100, 60_000, 100, 70_000];
/// The byte of an extent's first page that holds its kind, and the kind of data.
const KIND_AT: usize = 6;
const DATA: u8 = 1;

/// A stopped store of two disks: all data extents lie on the second one, all others on the first.
struct Store {
    first: Data,
    second: Data,
}

impl Store {
    fn new() -> Self {
        let store = Self { first: Data::new(), second: Data::new() };
        let account = format!("{ACCOUNT}:{KEY}");
        let both = [store.first.path(), store.second.path()];
        let node = Node::start_with(&both, &["--account", &account]);
        let put = |line: &str, body: Vec<u8>| {
            let kind = "x-ms-blob-type: BlockBlob";
            let answer = send(node.blob(), &Message::new(line).header(kind).body(body)).unwrap();
            assert_eq!(answer.status, 201, "{}", answer.text());
        };
        put(&format!("PUT /{ACCOUNT}/box?restype=container"), Vec::new());
        for (number, len) in BLOBS.into_iter().enumerate() {
            put(&format!("PUT /{ACCOUNT}/box/blob{number}"), vec![7; len]);
        }
        assert_eq!(node.end("-TERM"), Some(0));
        store.arrange();
        store
    }

    /// Rows name extents and no disks, so a file may lie on any of them.
    fn arrange(&self) {
        let mut of_data = 0;
        for folder in [self.first.path(), self.second.path()] {
            for file in extents(folder) {
                let is_data = fs::read(&file).unwrap()[KIND_AT] == DATA;
                let to = if is_data { self.second.path() } else { self.first.path() };
                let place = to.join(file.strip_prefix(folder).unwrap());
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                fs::rename(&file, &place).unwrap();
                of_data += usize::from(is_data);
            }
        }
        assert!(of_data > 0);
    }

    fn check(&self, more: &[&str]) -> (Option<i32>, Value) {
        let output = run(&[&["check", "--json", text(self.first.path())], more].concat());
        let report = serde_json::from_slice(&output.stdout);
        (output.status.code(), report.unwrap_or_else(|_| panic!("{}", words(&output))))
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn extents(data: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(data.join("extents")).into_iter().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

fn problems(report: &Value) -> Vec<&str> {
    report["problems"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

#[test]
fn check_without_a_lost_disk_says_what_was_lost() {
    let store = Store::new();
    let second = text(store.second.path());
    let (code, sound) = store.check(&[second]);
    assert_eq!(code, Some(0), "{sound:#}");
    fs::remove_dir_all(second).unwrap();
    let unnamed = run(&["check", text(store.first.path())]);
    assert_eq!(unnamed.status.code(), Some(2), "{}", words(&unnamed));
    let message = words(&unnamed);
    assert!(message.contains(second) && message.contains("--without-disk"), "{message}");

    let (code, report) = store.check(&["--without-disk", second]);
    assert_eq!(code, Some(1), "{report:#}");
    let lost = BLOBS.iter().filter(|len| **len > 4096).count();
    assert_eq!(report["affected"]["blobs"], lost, "{report:#}");
    assert_eq!(report["affected"]["unread"], serde_json::json!([]), "{report:#}");
    assert_eq!(report["index"]["blobs"], BLOBS.len(), "{report:#}");
    let containers = report["affected"]["extents"].as_array().unwrap().iter();
    let mut containers = containers.flat_map(|of| of["containers"].as_array().unwrap());
    let name = format!("{ACCOUNT}/box");
    assert!(containers.all(|of| of["container"] == name.as_str()), "{report:#}");
    let problems = problems(&report);
    assert!(problems.iter().any(|one| one.contains(second)), "{report:#}");
    for (number, len) in BLOBS.into_iter().enumerate() {
        let name = format!("\"blob{number}\"");
        let is_lost = problems.iter().any(|problem| problem.contains(&name));
        assert_eq!(is_lost, len > 4096, "{name}: {report:#}");
    }
    let unknown = run(&["check", text(store.first.path()), "--without-disk", "nowhere"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", words(&unknown));
    assert!(words(&unknown).contains("nowhere"), "{}", words(&unknown));
}

/// The journal of the second disk can be read and not written, as on a file system that became
/// read-only. Not even the superuser may write to a sealed file.
#[cfg(target_os = "linux")]
#[test]
fn check_reads_a_disk_that_takes_no_writes() {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use rustix::fs::{MemfdFlags, SealFlags};

    let store = Store::new();
    let second = text(store.second.path());
    let (code, sound) = store.check(&[second]);
    assert_eq!(code, Some(0), "{sound:#}");
    let journal = store.second.path().join("journal");
    let file = rustix::fs::memfd_create("journal", MemfdFlags::ALLOW_SEALING).unwrap();
    let mut file = fs::File::from(file);
    file.write_all(&fs::read(&journal).unwrap()).unwrap();
    rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE).unwrap();
    let sealed = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    fs::remove_file(&journal).unwrap();
    std::os::unix::fs::symlink(&sealed, &journal).unwrap();

    let (code, report) = store.check(&[second]);
    let expected = format!("{second}: not writable; bytes verified");
    assert_eq!((code, problems(&report)), (Some(1), vec![expected.as_str()]), "{report:#}");
    assert_eq!(report["affected"], sound["affected"], "{report:#}");
    assert_eq!(report["index"], sound["index"], "{report:#}");
}
