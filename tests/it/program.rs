//! The program's commands from a shell: exit codes and error messages.

use std::io::BufRead;
use std::io::BufReader;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use blockyard::node::config::DEVELOPMENT_KEY;

use crate::folder::Data;

pub(crate) fn blockyard(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    // The caller's settings are not this test's.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("BLOCKYARD_")) {
            command.env_remove(name);
        }
    }
    command.args(arguments);
    command
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    blockyard(arguments).output().unwrap()
}

pub(crate) fn words(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(both).unwrap()
}

/// A node on ports of its own, started and with its banner read.
pub(crate) struct Node {
    child: Child,
    banner: Vec<String>,
}

impl Node {
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_on(&[data])
    }

    pub(crate) fn start_on(data: &[&Path]) -> Self {
        Self::start_with(data, &[])
    }

    pub(crate) fn start_with(data: &[&Path], more: &[&str]) -> Self {
        let mut child = blockyard(&["serve"])
            .args(data.iter().flat_map(|folder| ["--data", folder.to_str().unwrap()]))
            .args(["--blob-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--journal-bytes", "1048576"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut banner = Vec::new();
        // Without a configured account the banner has no examples.
        let bare = |banner: &[String]| banner.iter().any(|line| line.contains("account create"));
        let ends = |banner: &[String]| {
            banner.last().is_some_and(|line| {
                (line.contains("/metrics") && line.contains("curl"))
                    || (line.contains("fault dial") && bare(banner))
            })
        };
        while !ends(&banner) {
            banner.push(lines.next().expect("the banner ends with curl").unwrap());
        }
        Self { child, banner }
    }

    /// Where it serves Blob.
    pub(crate) fn blob(&self) -> SocketAddr {
        let words = self.banner.iter().flat_map(|line| line.split(|c: char| "/; ".contains(c)));
        let admin = self.admin();
        let addresses = words.filter_map(|word| word.parse::<SocketAddr>().ok());
        let mut others = addresses.filter(|address| *address != admin);
        others.next().expect("the banner tells the address")
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        let line = self.banner.iter().find(|line| line.contains("/readyz")).unwrap();
        let (_, rest) = line.split_once("http://").unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name and returns the exit code.
    pub(crate) fn end(mut self, signal: &str) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Ended already, most likely.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn node_serves_drains_and_checks_sound() {
    let data = Data::new();
    let folder = data.path().to_str().unwrap();
    for signal in ["-TERM", "-INT"] {
        let node = Node::start(data.path());
        let admin = node.admin().to_string();
        let health = run(&["health", "--admin-listen", &admin]);
        assert_eq!((health.status.code(), words(&health).as_str()), (Some(0), "ready\n"));
        let busy = run(&["check", folder]);
        assert_eq!(busy.status.code(), Some(2), "{}", words(&busy));
        let process = format!("in use by process {} (blockyard)", node.process());
        assert!(words(&busy).contains(&process), "{}", words(&busy));
        assert_eq!(node.end(signal), Some(0), "{signal}");
        let health = run(&["health", "--admin-listen", &admin]);
        assert_eq!(health.status.code(), Some(1));
        let check = run(&["check", folder]);
        assert_eq!(check.status.code(), Some(0), "{}", words(&check));
        assert!(words(&check).ends_with("sound\n"), "{}", words(&check));
    }
}

#[test]
fn killed_node_checks_sound_and_as_json() {
    let data = Data::new();
    let node = Node::start(data.path());
    assert_eq!(node.end("-KILL"), None);
    let check = run(&["check", "--json", data.path().to_str().unwrap()]);
    assert_eq!(check.status.code(), Some(0), "{}", words(&check));
    let report: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(report["problems_count"], 0);
    assert_eq!(report["index"]["partitions"], 1);
}

#[test]
fn accounts_made_while_serving_survive_a_kill() {
    let data = Data::new();
    let folder = data.path().to_str().unwrap();
    let node = Node::start(data.path());
    let admin = node.admin().to_string();
    let command = |admin: &str, words: &[&str]| {
        let mut all = words.to_vec();
        all.extend(["--json", "--admin-listen", admin, "--data", folder]);
        let output = run(&all);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", self::words(&output));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let made = command(&admin, &["account", "create", "fresh"]);
    command(&admin, &["account", "create", "gone"]);
    command(&admin, &["account", "delete", "gone"]);
    let rotated = command(&admin, &["account", "rotate", "fresh", "key1"]);
    assert_ne!(rotated["keys"][0], made["keys"][0]);
    assert_eq!(node.end("-KILL"), None);

    let node = Node::start(data.path());
    let admin = node.admin().to_string();
    assert_eq!(command(&admin, &["account", "show", "fresh", "--keys"])["keys"], rotated["keys"]);
    let names: Vec<_> = command(&admin, &["account", "list"])["accounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|account| account["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["devstoreaccount1", "fresh"]);
    assert_eq!(node.end("-TERM"), Some(0));
}

#[test]
fn misspelled_variable_is_refused() {
    let data = Data::new();
    let output = blockyard(&["serve", "--data", data.path().to_str().unwrap()])
        .env("BLOCKYARD_BLOB_LISTN", "127.0.0.1:0")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("do you mean BLOCKYARD_BLOB_LISTEN?"), "{}", words(&output));
}

#[test]
fn forgotten_disk_is_missed_by_name() {
    let first = Data::new();
    let second = Data::new();
    let node = Node::start_on(&[first.path(), second.path()]);
    assert_eq!(node.end("-TERM"), Some(0));
    let output = blockyard(&["serve", "--data", first.path().to_str().unwrap()])
        .args(["--blob-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(words(&output).contains(second.path().to_str().unwrap()), "{}", words(&output));
    let node = Node::start_on(&[first.path(), second.path()]);
    assert_eq!(node.end("-TERM"), Some(0), "nothing was changed");
}

#[test]
fn faults_are_dialled_from_the_command_line() {
    let data = Data::new();
    let node = Node::start(data.path());
    let admin = node.admin().to_string();
    let folder = data.path().to_str().unwrap();
    let command = |words: &[&str]| {
        let mut all = words.to_vec();
        all.extend(["--admin-listen", &admin, "--data", folder]);
        run(&all)
    };
    let set = command(&["fault", "set", "busy", "--operation", "PutBlob", "--rate", "0.5"]);
    assert_eq!(set.status.code(), Some(0), "{}", words(&set));
    let list = command(&["fault", "list", "--json"]);
    let rules: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(rules[0]["rule"]["operations"][0], "PutBlob");
    let line = "\tbusy\t0.5\t";
    let list = words(&command(&["fault", "list"]));
    assert!(list.contains(line) && list.ends_with("\t0\t0\tPutBlob\t*\t*\n"), "{list}");
    assert!(words(&command(&["fault", "clear"])).starts_with("1 fault rules cleared"));
    assert!(words(&command(&["fault", "list"])).contains("the dial is off"));
    let refused = command(&["fault", "set", "busy", "--rate", "7"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(words(&refused).contains("rate must be"), "{}", words(&refused));

    let wrong = blockyard(&["fault", "list", "--admin-listen", &admin])
        .env("BLOCKYARD_ADMIN_TOKEN", "wrong")
        .output()
        .unwrap();
    assert!(words(&wrong).contains("not the admin token"), "{}", words(&wrong));
    let lost = run(&["fault", "list", "--admin-listen", &admin, "--data", "nowhere"]);
    assert!(words(&lost).contains("nowhere/admin-token"), "{}", words(&lost));
}

#[test]
fn lists_have_tabs_where_nobody_looks() {
    let data = Data::new();
    let node = Node::start(data.path());
    let (admin, folder) = (node.admin().to_string(), data.path().to_str().unwrap());
    let command = |words: &[&str]| {
        let output = run(&[words, &["--admin-listen", &admin, "--data", folder]].concat());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", self::words(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    for made in [
        &["account", "create", "photos"][..],
        &["user", "create", "photos/alice"],
        &["scope", "create", "photos/customer"],
        &["account", "grant", "photos", "reader", "alice", "--user"],
        &["fault", "set", "busy", "--operation", "PutBlob"],
    ] {
        command(made);
    }
    for (list, cells) in [
        (&["account", "list"][..], 6),
        (&["account", "grants", "photos"], 5),
        (&["user", "list", "photos"], 4),
        (&["scope", "list", "photos"], 3),
        (&["fault", "list"], 9),
        (&["disk", "list"], 7),
        (&["partitions", "list"], 14),
    ] {
        let table = command(list);
        assert!(table.lines().count() > 1, "{list:?}: {table}");
        for line in table.lines() {
            assert_eq!(line.split('\t').count(), cells, "{list:?}: {line}");
            assert!(!line.contains("  ") && !line.contains('\x1b'), "{list:?}: {line}");
        }
    }
    let ring = command(&["key", "list"]);
    assert!(ring.contains("\nkey\tstate\tcreated\n"), "{ring}");
    assert_eq!(node.end("-TERM"), Some(0));
}

#[test]
fn busy_port_is_named_with_the_flag_to_change() {
    let data = Data::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = data.path().to_owned();
    let cases = [("--blob-listen", "--admin-listen"), ("--admin-listen", "--blob-listen")];
    for (busy, free) in cases {
        let output = blockyard(&["serve", busy, &address, free, "127.0.0.1:0", "--data"])
            .arg(&folder)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let text = words(&output);
        assert!(text.contains(&address) && text.contains(busy), "{text}");
        assert!(!folder.exists(), "data is touched only once the ports are had");
    }
}

#[test]
fn wrong_settings_end_with_two_and_say_which() {
    let public = format!("devstoreaccount1:{DEVELOPMENT_KEY}");
    let cases: [(&[&str], &str); 4] = [
        (&["serve", "--initial-partitions", "0"], "initial_partitions must be 1 to 128"),
        (&["serve", "--blob-listen", "0.0.0.0:0", "--account", &public], "blockyard keygen"),
        (&["serve", "--config", "missing.toml"], "missing.toml"),
        (&["serve", "--partitions", "3"], "--partitions"),
    ];
    for (arguments, expected) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(words(&output).contains(expected), "{arguments:?}: {}", words(&output));
    }
    let variable = ("BLOCKYARD_INITIAL_PARTITIONS", "5000");
    let output = blockyard(&["serve"]).env(variable.0, variable.1).output().unwrap();
    assert!(words(&output).contains("not 5000"), "a variable is read: {}", words(&output));
    let flag = ["serve", "--initial-partitions", "3000"];
    let output = blockyard(&flag).env(variable.0, variable.1).output().unwrap();
    assert!(words(&output).contains("not 3000"), "a flag wins: {}", words(&output));
}

#[test]
fn keygen_prints_a_key_that_serve_takes() {
    let output = run(&["keygen"]);
    assert_eq!(output.status.code(), Some(0));
    let key = String::from_utf8(output.stdout).unwrap();
    assert_eq!(key.trim_end().len(), 88, "64 bytes in base64");
    let account = format!("mine:{}", key.trim_end());
    // Accepted as an account; refused for what comes after it.
    let output = run(&[
        "serve",
        "--blob-listen",
        "0.0.0.0:0",
        "--account",
        &account,
        "--journal-bytes",
        "1",
    ]);
    assert!(words(&output).contains("journal_bytes"), "{}", words(&output));
    assert!(!words(&output).contains(key.trim_end()));
}

#[test]
fn check_of_nothing_cannot_run() {
    let output = run(&["check", "no-such-folder"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("no-such-folder"), "{}", words(&output));
}
