//! Some accounts are in a partition that is out of service. The others are served and listed, and
//! answers say which accounts may be missing.

#![expect(clippy::disallowed_methods, reason = "damages the files of a store")]

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
use crate::wire::Sign;
use crate::wire::send;

/// Served, beside the development account.
const SERVED: &str = "aaaa";
/// In the partition that is damaged.
const LOST: &str = "zzzz";
/// The lowest name of that partition.
const BORDER: &str = "nnnn";

struct Store {
    data: Data,
    node: Node,
    /// A key of the account that is served.
    key: String,
}

impl Store {
    fn damaged() -> Self {
        let data = Data::new();
        let node = Node::start(data.path());
        let made = command(&node, data.path(), &["account", "create", SERVED, "--json"]);
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        // What the accounts have lies in a third partition.
        let border = format!("$accounts/{BORDER}");
        let split = ["partitions", "split", &border, "#1"];
        for words in [&["account", "create", LOST][..], &split] {
            let done = command(&node, data.path(), words);
            assert_eq!(done.status.code(), Some(0), "{}", self::words(&done));
        }
        assert_eq!(node.end("-TERM"), Some(0));
        damage(data.path());
        let node = Node::start(data.path());
        let key = made["keys"][0].as_str().unwrap().to_owned();
        Self { data, node, key }
    }

    fn list(&self, more: &[&str]) -> std::process::Output {
        command(&self.node, self.data.path(), &[&["account", "list"], more].concat())
    }
}

fn command(node: &Node, data: &Path, words: &[&str]) -> std::process::Output {
    let admin = node.admin().to_string();
    run(&[words, &["--admin-listen", &admin, "--data", data.to_str().unwrap()]].concat())
}

/// Overwrites the end of each log and run that has the row of the lost account and of no other.
fn damage(data: &Path) {
    let has = |bytes: &[u8], text: &str| {
        bytes.windows(text.len()).position(|part| part == text.as_bytes())
    };
    let mut damaged = 0;
    for path in extents(data) {
        let mut bytes = std::fs::read(&path).unwrap();
        if let (Some(at), None) = (has(&bytes, LOST), has(&bytes, SERVED)) {
            bytes[at..].fill(0xff);
            std::fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 0, "no file has the row of {LOST} alone");
}

fn extents(data: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(data.join("extents")).unwrap();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn list_of_accounts_says_which_part_could_not_be_read() {
    let store = Store::damaged();
    let listed = store.list(&[]);
    assert_eq!(listed.status.code(), Some(1), "{}", words(&listed));
    let [out, err] = [&listed.stdout, &listed.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(out.contains(SERVED) && out.contains("devstoreaccount1"), "{out}");
    assert!(!out.contains(LOST) && !out.contains("no accounts"), "{out}");
    let named = ["accounts from `nnnn` on", "partition", "`blockyard partitions list`"];
    assert!(named.iter().all(|text| err.contains(text)), "{err}");

    let listed = store.list(&["--json"]);
    assert_eq!(listed.status.code(), Some(1), "{}", words(&listed));
    let answer: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let accounts = answer["accounts"].as_array().unwrap();
    let names: Vec<_> = accounts.iter().map(|account| account["name"].as_str().unwrap()).collect();
    assert_eq!(names, [SERVED, "devstoreaccount1"]);
    let [unread] = answer["unread"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    assert_eq!(unread["range"], "accounts from `nnnn` on");
    assert!(unread["partition"].is_u64(), "{answer}");
    assert_eq!(store.node.end("-TERM"), Some(0));
}

#[test]
fn request_for_an_account_that_may_be_out_of_service_is_busy_and_names_no_other() {
    let store = Store::damaged();
    let ask = |account: &str| {
        let mut message = Message::new(&format!("GET /{account}?comp=list"));
        message.sign = Sign::As(account.to_owned(), store.key.clone());
        send(store.node.blob(), &message).unwrap()
    };
    let served = ask(SERVED);
    assert_eq!(served.status, 200, "{}", served.text());
    // The list says that there is no such account.
    let unknown = ask("bbbb");
    assert_eq!((unknown.status, unknown.header("x-ms-error-code")), (403, "AuthenticationFailed"));
    for account in [LOST, "yyyy"] {
        let answer = ask(account);
        assert_eq!((answer.status, answer.header("x-ms-error-code")), (503, "ServerBusy"));
        let (text, said) = (answer.text(), format!("{answer:?}"));
        assert!(text.contains("<Code>ServerBusy</Code>") && text.contains(account), "{text}");
        for other in [SERVED, "devstoreaccount1", BORDER, LOST, "yyyy"] {
            let is_asked = other == account;
            assert!(is_asked || !(said.contains(other) || text.contains(other)), "{other}: {text}");
        }
    }
    assert_eq!(store.node.end("-TERM"), Some(0));
}

/// The number of blobs whose rows fill several blocks of a run.
const BLOBS: u64 = 24;
/// The one whose row is damaged, in a block in the middle.
const HIT: u64 = 12;

/// A small body lies in the row. Its bytes look random, so a run has them as they are.
fn small_body(of: u64) -> Vec<u8> {
    let mut state = of + 1;
    let numbers = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    numbers.take(500).flatten().collect()
}

fn ask(node: &Node, line: &str, body: Vec<u8>) -> crate::wire::Answer {
    let message = Message::new(line).header("x-ms-blob-type: BlockBlob").body(body);
    send(node.blob(), &message).unwrap()
}

/// Changes a byte of the damaged blob's body in the one run that has it.
fn damage_run(data: &Path) {
    const RUN: u8 = 3;
    let body = small_body(HIT);
    let mut damaged = 0;
    for path in extents(data) {
        let mut bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(64).position(|part| part == &body[2_000..2_064]);
        if let (RUN, Some(at)) = (bytes[6], found) {
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1, "runs with the row of blob {HIT}");
}

/// The ends of the run are whole, so the start does not find it: the first read does.
#[test]
fn damaged_block_in_the_middle_of_a_run_is_busy_for_what_needs_it_alone() {
    let data = Data::new();
    let account = format!("{ACCOUNT}:{KEY}");
    let start = || Node::start_with(&[data.path()], &["--account", &account]);
    let node = start();
    let made = ask(&node, &format!("PUT /{ACCOUNT}/box?restype=container"), Vec::new());
    assert_eq!(made.status, 201, "{}", made.text());
    for number in 0..BLOBS {
        let line = format!("PUT /{ACCOUNT}/box/blob{number:02}");
        let put = ask(&node, &line, small_body(number));
        assert_eq!(put.status, 201, "{}", put.text());
    }
    // A merge flushes first.
    let border = format!("{ACCOUNT}/box/z");
    let split = command(&node, data.path(), &["partitions", "split", &border, "--json"]);
    let new: Value = serde_json::from_slice(&split.stdout).unwrap();
    let new: Vec<String> =
        new["partitions"].as_array().unwrap().iter().map(Value::to_string).collect();
    let merge = [&["partitions", "merge"], &*new.iter().map(String::as_str).collect::<Vec<_>>()];
    let merged = command(&node, data.path(), &merge.concat());
    assert_eq!(merged.status.code(), Some(0), "{}", words(&merged));
    assert_eq!(node.end("-TERM"), Some(0));

    damage_run(data.path());
    let node = start();
    let of = |number: u64| ask(&node, &format!("GET /{ACCOUNT}/box/blob{number:02}"), Vec::new());
    let list = format!("GET /{ACCOUNT}/box?restype=container&comp=list");
    for answer in [ask(&node, &list, Vec::new()), of(HIT)] {
        assert_eq!((answer.status, answer.header("x-ms-error-code")), (503, "ServerBusy"));
        assert!(answer.text().contains("<Code>ServerBusy</Code>"), "{}", answer.text());
        assert!(!answer.text().contains("extent"), "{}", answer.text());
    }
    for whole in [0, BLOBS - 1] {
        assert_eq!((of(whole).status, of(whole).body), (200, small_body(whole)));
    }
    assert_eq!(node.end("-TERM"), Some(0));
}
