//! What an operator types: sizes, addresses, switches and filters. A refusal of the program names
//! the path, the process and the amount, and says what to do next.

#![expect(clippy::disallowed_methods, reason = "looks at and changes the files of a store")]

use std::path::Path;
use std::process::Output;

use crate::folder::Data;
use crate::program::Node;
use crate::program::blockyard;
use crate::program::run;
use crate::program::words;

const DEVELOPMENT: [&str; 2] = ["--account", "devstoreaccount1"];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn refused(output: &Output, code: i32, expected: &[&str]) {
    let said = words(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for expected in expected {
        assert!(said.contains(expected), "`{expected}` is not in: {said}");
    }
}

/// Starts with settings of which the last is always refused: what is said of it shows that those
/// before it were taken.
fn taken(arguments: &[&str]) {
    let output = run(&[&["serve"], arguments, &["--drain-seconds", "9999"]].concat());
    refused(&output, 2, &["drain_seconds must be 0 to 3600, not 9999"]);
}

#[test]
fn sizes_have_units() {
    for size in ["64MiB", "64M", "67108864", "64MB", "0.5GiB", "64 mib"] {
        taken(&["--journal-bytes", size, "--memtable-bytes", size, "--reserve-bytes", size]);
        taken(&["--request-min-rate", "2K", "--response-min-rate", "1K"]);
        taken(&["--scrub-bytes-per-second", size]);
    }
    for nonsense in ["", "MiB", "64 furlongs", "-1", "64MiBs", "99999999TiB", "0x40"] {
        let argument = format!("--audit-log-bytes={nonsense}");
        refused(&run(&["serve", &argument]), 2, &["--audit-log-bytes", "64MiB"]);
    }
    let few = run(&["serve", "--journal-bytes", "1K"]);
    refused(&few, 2, &["journal_bytes must be 256KiB to 16GiB, not 1KiB"]);
    let help = words(&run(&["serve", "--help"]));
    assert!(help.contains("64MiB") && !help.contains("67108864"), "{help}");
}

#[test]
fn addresses_may_leave_the_host_out_or_say_localhost() {
    for address in [":10000", "localhost:10000", "[::1]:10000", "127.0.0.1:10000"] {
        taken(&["--blob-listen", address]);
    }
    taken(&["--admin-listen", "localhost:0"]);
    for wrong in ["10000", "::1:10000", "localhost", "example.org:1", ":", ":65536"] {
        let output = run(&["serve", "--blob-listen", wrong]);
        refused(&output, 2, &[wrong, "localhost:10000", ":10000", "[::1]:10000"]);
    }
    // All addresses of the machine, so that the rules for these hold.
    let output = run(&["serve", "--admin-listen", ":10080"]);
    refused(&output, 2, &["0.0.0.0:10080", "--admin-plain"]);
    let data = Data::new();
    let node = Node::start(data.path());
    let (port, folder) = (node.admin().port(), text(data.path()));
    for host in ["localhost", ""] {
        let health = run(&["health", "--admin-listen", &format!("{host}:{port}")]);
        assert_eq!((health.status.code(), words(&health).as_str()), (Some(0), "ready\n"));
    }
    let admin = format!("localhost:{port}");
    let list = run(&["account", "list", "--admin-listen", &admin, "--data", folder]);
    assert_eq!(list.status.code(), Some(0), "{}", words(&list));
}

#[test]
fn switches_are_spelled_one_way() {
    let switches = [
        "--admin-tls",
        "--admin-plain",
        "--https-only",
        "--audit-requests",
        "--public-access",
        "--last-access-time",
    ];
    let help = words(&run(&["serve", "--help"]));
    for switch in switches {
        assert!(help.contains(&format!("{switch} [<on|off>]")), "{switch}: {help}");
        taken(&[&format!("{switch}=off")]);
        let output = run(&["serve", &format!("{switch}=maybe")]);
        refused(&output, 2, &[switch, "on, off"]);
        let name = format!("BLOCKYARD_{}", switch[2..].replace('-', "_").to_uppercase());
        let output = blockyard(&["serve", "--drain-seconds=9999"]).env(&name, "off").output();
        refused(&output.unwrap(), 2, &["drain_seconds must be"]);
    }
    for on in ["--https-only", "--https-only=on", "--https-only=true"] {
        refused(&run(&["serve", on]), 2, &["--https-only needs a certificate"]);
    }
    // As releases of before wrote them.
    taken(&["--last-access-time", "on", "--public-access", "true"]);
    taken(&["--last-access-time", "--public-access"]);
}

#[test]
fn signature_needs_its_account_and_only_reads() {
    refused(&run(&["sas", "box"]), 2, &["--account", "BLOCKYARD_SAS_ACCOUNT", "devstoreaccount1"]);
    refused(&run(&["sas", "box", "--account", "other"]), 2, &["NAME:BASE64KEY"]);
    for path in ["", "box", "box/blob"] {
        let output = run(&[&["sas", path][..], &DEVELOPMENT].concat());
        assert_eq!(output.status.code(), Some(0), "{}", words(&output));
        let url = String::from_utf8(output.stdout).unwrap();
        assert!(url.contains("&sp=r&"), "{url}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let key = format!("mine:{}", "A".repeat(86) + "==");
    let output = blockyard(&["sas", "box"]).env("BLOCKYARD_SAS_ACCOUNT", key).output().unwrap();
    assert!(words(&output).contains("/mine/box?"), "{}", words(&output));
}

/// As of `serve`; a container or blob may follow it, since it never was a value.
#[test]
fn signature_for_https_only_is_asked_for_as_of_the_server() {
    let help = words(&run(&["sas", "--help"]));
    assert!(help.contains("--https-only[=<on|off>]"), "{help}");
    for (switch, only) in [
        ("--https-only", true),
        ("--https-only=on", true),
        ("--https-only=true", true),
        ("--https-only=off", false),
    ] {
        let output = run(&[&["sas", switch, "box"], &DEVELOPMENT[..]].concat());
        let said = words(&output);
        assert_eq!(output.status.code(), Some(0), "{switch}: {said}");
        assert!(said.contains("/box?") && said.contains("spr=https&") == only, "{switch}: {said}");
    }
    let output = run(&[&["sas", "box", "--https-only=maybe"], &DEVELOPMENT[..]].concat());
    refused(&output, 2, &["--https-only", "on, off"]);
}

#[test]
fn signature_that_has_expired_is_warned_of() {
    let past = ["sas", "box", "--expiry", "2020-01-31T12:00:00Z"];
    for json in [&[][..], &["--json"]] {
        let output = run(&[&past[..], &DEVELOPMENT, json].concat());
        assert_eq!(output.status.code(), Some(0));
        let warning = String::from_utf8_lossy(&output.stderr);
        assert!(
            warning.contains("2020-01-31T12:00:00Z") && warning.contains("--expiry"),
            "{warning}"
        );
        assert!(String::from_utf8_lossy(&output.stdout).contains("se=2020-01-31"));
    }
    let never = ["--start", "2030-01-31T12:00:00Z", "--expiry", "1h"];
    let output = run(&[&["sas", "box"], &never[..], &DEVELOPMENT].concat());
    assert!(words(&output).contains("before it begins"), "{}", words(&output));
}

#[test]
fn check_of_a_wrong_list_of_disks_could_not_run() {
    let (first, second, other) = (Data::new(), Data::new(), Data::new());
    let [one, two, foreign] = [&first, &second, &other].map(|data| text(data.path()));
    assert_eq!(Node::start_on(&[first.path(), second.path()]).end("-TERM"), Some(0));
    assert_eq!(Node::start(other.path()).end("-TERM"), Some(0));
    let empty = tempfile::tempdir().unwrap();
    let nothing = text(empty.path());
    for (list, expected) in [
        (&[one][..], &[two][..]),
        (&[two, one], &[two, one]),
        (&[two], &[two]),
        (&[one, two, foreign], &[foreign]),
        (&[foreign, two], &[two]),
        (&[one, two, nothing], &[nothing]),
        (&[one, nothing], &[nothing]),
        (&[nothing], &[nothing]),
        (&[one, one], &[one, "twice"]),
    ] {
        let output = run(&[&["check"], list].concat());
        refused(&output, 2, expected);
        assert!(words(&output).contains("cannot check"), "{}", words(&output));
    }
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0, "nothing is made there");
    let sound = run(&["check", one, two]);
    assert_eq!(sound.status.code(), Some(0), "{}", words(&sound));
    // Without the coordinator's file the list is right and the store is damaged.
    std::fs::remove_file(first.path().join("coordinator.redb")).unwrap();
    assert_eq!(run(&["check", one, two]).status.code(), Some(1));
}

#[test]
fn mistyped_filters_are_refused_before_anything_is_sent() {
    let nowhere = ["--admin-listen", "127.0.0.1:1", "--data", "nowhere"];
    for (words, expected) in [
        (&["fault", "set", "busy", "--operation", "PutBlub"][..], &["PutBlub", "PutBlob"][..]),
        (&["fault", "set", "busy", "--account", "Not_One"], &["Not_One"]),
        (&["fault", "set", "busy", "--container", "A"], &["`A`"]),
        (&["fault", "set", "busy", "--rate", "1.5"], &["1.5", "rate"]),
        (&["fault", "set", "slow", "--bytes-per-second", "much"], &["much", "64MiB"]),
        (&["trace", "--operation", "GetBlobs"], &["GetBlobs", "GetBlob"]),
        (&["trace", "--account", "Not_One"], &["Not_One"]),
        (&["trace", "--container", "A"], &["`A`"]),
        (&["trace", "--status", "5x"], &["5x", "404", "5xx"]),
        (&["trace", "--status", "9xx"], &["9xx"]),
    ] {
        refused(&run(&[words, &nowhere].concat()), 2, expected);
    }
}

#[test]
fn commands_for_files_are_refused_before_anything_is_sent() {
    for (arguments, expected) in [
        (&["cp", "a", "b"][..], &["by://CONTAINER/BLOB"][..]),
        (&["cp", "by://box", "here"], &["--recursive"]),
        (&["cp", "by://box/a", "by://box/b", "-", "--json"], &["--json"]),
        (&["cp", "a", "by://box", "--block-size", "5GiB"], &["--block-size", "4000MiB"]),
        (&["cp", "a", "by://BOX/a"], &["`BOX`"]),
        (&["ls", "-"], &["only for cp"]),
        (&["rm", "by:box"], &["by://CONTAINER/BLOB", "./"]),
        (&["ls", "s3://box"], &["s3://", "by://"]),
        (&["cat", "http://127.0.0.1:1/acct/box/a?secret=x"], &["shared access signature"]),
        (&["cat", "by://box/a", "--range", "9-1"], &["9-1", "FIRST-LAST"]),
        (&["rm", "by://box"], &["--recursive --container"]),
        (&["rm", "by://box", "--container"], &["--recursive"]),
        (&["stat", "by://"], &["names no container"]),
        (&["ls", "--account", "other"], &["NAME:BASE64KEY"]),
        (&["ls", "--connection-string", "AccountName=x"], &["connection string"]),
    ] {
        let output = run(&[arguments, &["--retries", "0"]].concat());
        refused(&output, 2, expected);
        assert!(!words(&output).contains("secret"), "{}", words(&output));
    }
}

#[test]
fn process_that_has_the_store_is_named() {
    let data = Data::new();
    let folder = text(data.path());
    let node = Node::start(data.path());
    let process = format!("process {}", node.process());
    refused(&run(&["check", folder]), 2, &[folder, &process]);
    let serve = ["serve", "--data", folder, "--blob-listen", ":0", "--admin-listen", "localhost:0"];
    refused(&run(&serve), 1, &[folder, &process, "stop it first"]);
    let before = std::fs::read(data.key()).unwrap();
    let rotate = ["key", "rotate", "--stopped", "--data", folder];
    refused(&run(&rotate), 1, &[folder, &process, "without --stopped"]);
    assert_eq!(std::fs::read(data.key()).unwrap(), before, "nothing is changed");
    let log = tempfile::tempdir().unwrap();
    let path = log.path().join("audit.jsonl");
    let other = Data::new();
    let logging = Node::start_with(&[other.path()], &["--audit-log", text(&path)]);
    let third = Data::new();
    let serve = ["serve", "--data", text(third.path()), "--audit-log", text(&path)];
    let ports = ["--blob-listen", "localhost:0", "--admin-listen", "localhost:0"];
    let process = format!("process {}", logging.process());
    refused(&run(&[&serve[..], &ports].concat()), 1, &[text(&path), &process]);
    assert_eq!(node.end("-TERM"), Some(0));
    let rotated = run(&rotate);
    assert_eq!(rotated.status.code(), Some(0), "{}", words(&rotated));
    assert_ne!(std::fs::read(data.key()).unwrap(), before);
}

#[test]
fn process_that_has_the_port_is_named() {
    let (data, other) = (Data::new(), Data::new());
    let node = Node::start(data.path());
    let process = format!("process {} (blockyard)", node.process());
    let cases = [
        ("--blob-listen", node.blob(), "--admin-listen"),
        ("--admin-listen", node.admin(), "--blob-listen"),
    ];
    for (busy, address, free) in cases {
        let address = address.to_string();
        let serve = ["serve", busy, &address, free, "localhost:0", "--data", text(other.path())];
        refused(&run(&serve), 1, &[&address, &process, busy]);
    }
    assert!(!other.path().exists(), "data is touched only once the ports are had");
    assert_eq!(node.end("-TERM"), Some(0));
}

#[test]
fn directory_that_cannot_be_opened_is_named() {
    let (first, second) = (Data::new(), Data::new());
    assert_eq!(Node::start_on(&[first.path(), second.path()]).end("-TERM"), Some(0));
    // A node serves without a second disk whose `format` is damaged, unless index rows lie there.
    let ports = ["--blob-listen", "localhost:0", "--admin-listen", "localhost:0"];
    let both = ["--data", text(first.path()), "--data", text(second.path())];
    let serve = [&["serve"], &both[..], &ports].concat();
    let check = vec!["check", text(first.path()), text(second.path())];
    for (damaged, command) in [(&first, serve), (&second, check)] {
        let format = damaged.path().join("format");
        let before = std::fs::read(&format).unwrap();
        std::fs::write(&format, "{").unwrap();
        refused(&run(&command), 1, &[text(damaged.path()), "`format` is damaged"]);
        std::fs::write(&format, before).unwrap();
    }
    let file = first.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (below, token) = (file.join("data"), first.path().join("token"));
    let serve = ["serve", "--data", text(&below), "--admin-token-file", text(&token)];
    let output = run(&[&serve[..], &ports].concat());
    refused(&output, 1, &[text(&below), "--data"]);
}
