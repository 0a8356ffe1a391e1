//! docs/compatibility.md is generated from api-spec/compatibility.json, so that every deviation is
//! documented.
//!
//! `UPDATE=1 cargo test --test it compatibility` writes the document anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::contract;
use crate::tree;

const SOURCE: &str = "api-spec/compatibility.json";
/// Which operations each client made a server carry out: `tests/sdk/run --record` writes it.
const CLIENTS: &str = "api-spec/clients.json";
const DOCUMENT: &str = "docs/compatibility.md";
/// Which operations S3 has here, and how each is answered.
const S3: &str = "api-spec/s3.yaml";
/// The lists of differences from Azure and from S3.
const DEVIATIONS: &str = "deviations";
const S3_DEVIATIONS: &str = "s3_deviations";
/// The list of clients of S3.
const S3_CLIENTS: &str = "s3_clients";
/// Stands for every operation.
const ALL: &str = "*";

fn json(name: &str) -> Value {
    serde_json::from_str(&tree::read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn source() -> Value {
    json(SOURCE)
}

/// The rows of one list.
fn rows<'a>(source: &'a Value, list: &str) -> &'a [Value] {
    source[list].as_array().unwrap_or_else(|| panic!("{SOURCE}: {list}"))
}

/// A text that has to say something.
fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    let found = row[key].as_str().unwrap_or_default();
    assert!(!found.trim().is_empty(), "{SOURCE}: {key} is missing in {row}");
    found
}

/// The operations a deviation is about.
fn about(row: &Value) -> Vec<&str> {
    let list = row["operations"].as_array().unwrap_or_else(|| panic!("operations of {row}"));
    assert!(!list.is_empty(), "no operation in {row}");
    list.iter().map(|name| name.as_str().unwrap()).collect()
}

/// `GetBlockList` as `Get Block List`; `FromUrl` as the service writes it.
fn spaced(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push(' ');
        }
        out.push(c);
    }
    out.replace("From Url", "From URL")
        .replace("Acl", "ACL")
        .replace(" By ", " by ")
        .replace(" In ", " in ")
}

/// The numbers of the clients that exercise an operation.
fn exercised_by(clients: &Value, operation: &str) -> String {
    let clients = clients.as_array().unwrap().iter().enumerate();
    let those = clients.filter(|(_, row)| about(row).contains(&operation));
    let letters: Vec<String> = those.map(|(at, _)| letter(at).to_string()).collect();
    letters.join(" ")
}

/// What a client goes by in the table.
fn letter(at: usize) -> char {
    char::from(b'A' + u8::try_from(at).unwrap())
}

fn operations(out: &mut String, source: &Value, clients: &Value) {
    out.push_str(
        "## Operations\n\n| operation | since | clients | deviations |\n|---|---|---|---|\n",
    );
    let deviations = rows(source, DEVIATIONS);
    for row in rows(source, "operations") {
        let name = text(row, "name");
        let own = deviations.iter().enumerate().filter(|(_, row)| about(row).contains(&name));
        let own: Vec<String> = own.map(|(at, _)| (at + 1).to_string()).collect();
        let own = own.join(", ");
        let (name, clients) = (spaced(name), exercised_by(clients, name));
        writeln!(out, "| {name} | {} | {clients} | {own} |", text(row, "since")).unwrap();
    }
    out.push_str("\nClients:\n\n");
    for (at, row) in clients.as_array().unwrap().iter().enumerate() {
        let (name, version) = (text(row, "client"), text(row, "version"));
        writeln!(out, "- {} {name} {version}", letter(at)).unwrap();
    }
}

/// The tables of a list of deviations, a heading of this level for each area.
fn deviations(out: &mut String, source: &Value, list: &str) {
    let heading = if list == S3_DEVIATIONS { "###" } else { "##" };
    let mut area = "";
    for (at, row) in rows(source, list).iter().enumerate() {
        if text(row, "area") != area {
            area = text(row, "area");
            write!(out, "\n{heading} {area}\n\n| | what | here | why |\n|---|---|---|---|\n")
                .unwrap();
        }
        let (what, here, why) = (text(row, "what"), text(row, "here"), text(row, "why"));
        let every = if about(row).contains(&ALL) { " (every operation)" } else { "" };
        writeln!(out, "| {} | {what}{every} | {here} | {why} |", at + 1).unwrap();
    }
}

fn not_served(out: &mut String, source: &Value) {
    out.push_str("\n## Not served\n\n| what | answer | why |\n|---|---|---|\n");
    for row in rows(source, "not_served") {
        let (what, here, why) = (text(row, "what"), text(row, "here"), text(row, "why"));
        writeln!(out, "| {what} | {here} | {why} |").unwrap();
    }
}

/// Each operation of S3 and how it is answered, from its description.
fn s3_operations() -> Vec<(String, String)> {
    let of = |line: &str| {
        let (_, rest) = line.split_once("operationId: ")?;
        let (name, answer) = rest.split_once(", x-answer: ")?;
        Some((name.to_owned(), answer.strip_suffix(" }")?.to_owned()))
    };
    tree::read(S3).lines().filter_map(of).collect()
}

/// The clients of S3 that judge the server.
fn s3_clients(out: &mut String, source: &Value) {
    out.push_str(
        "\n### Clients\n\nWhat these clients write, the Blob SDK reads in the same run, and the reverse (`tests/sdk/run clients`).\n\n\
         | client | version | what it does here | when it runs |\n|---|---|---|---|\n",
    );
    for row in rows(source, S3_CLIENTS) {
        let version = row["version"].as_str().unwrap_or_default();
        let (client, does, runs) = (text(row, "client"), text(row, "does"), text(row, "runs"));
        writeln!(out, "| {client} | {version} | {does} | {runs} |").unwrap();
    }
}

fn s3(out: &mut String, source: &Value) {
    out.push_str(
        "\n## S3\n\nEvery operation of S3's general-purpose buckets. *Answer* is *served*; *fixed*: the same document for\n\
         every bucket; *absent*: as for a bucket that does not have the setting, which none has;\n\
         *not-implemented*: 501 `NotImplemented`. Headers and parameters that change encryption, retention, access or conditions\n\
         and are not served are 501, never ignored.\n\n| operation | answer | deviations |\n|---|---|---|\n",
    );
    let deviations_of_s3 = rows(source, S3_DEVIATIONS);
    for (name, answer) in s3_operations() {
        let own = deviations_of_s3.iter().enumerate();
        let own = own.filter(|(_, row)| about(row).contains(&name.as_str()));
        let own: Vec<String> = own.map(|(at, _)| (at + 1).to_string()).collect();
        writeln!(out, "| {name} | {answer} | {} |", own.join(", ")).unwrap();
    }
    s3_clients(out, source);
    deviations(out, source, S3_DEVIATIONS);
}

/// The whole document.
fn document() -> String {
    let source = source();
    let mut out = "# Where this server differs from Azure and S3\n\n\
        <!-- Made from api-spec/compatibility.json by `UPDATE=1 cargo test --test it compatibility`. Change that file. -->\n\n\
        The table has every operation that is served. *Since* is the first `x-ms-version` for which the service documents it\n\
        (`all`: every version from 2009-09-19 on); this server serves an operation at every version. *Clients* are those of\n\
        `tests/sdk/run` that make a server execute it, counted by the server; azblob for Go runs with the clients of S3 and is\n\
        not counted. *Deviations* are the numbers of the rows below that concern it. Rows marked \"every operation\" are not repeated in the table. [S3](#s3) is at the end.\n\n"
        .to_owned();
    operations(&mut out, &source, &json(CLIENTS));
    deviations(&mut out, &source, DEVIATIONS);
    not_served(&mut out, &source);
    s3(&mut out, &source);
    out
}

#[test]
fn every_operation_has_one_row() {
    let source = source();
    let names: Vec<String> =
        rows(&source, "operations").iter().map(|row| text(row, "name").to_owned()).collect();
    let distinct: BTreeSet<String> = names.iter().cloned().collect();
    assert_eq!(names.len(), distinct.len(), "{SOURCE}: an operation twice");
    assert_eq!(distinct, contract::served(), "{SOURCE}: operations that are served, and no other");
}

#[test]
fn deviations_are_about_operations_that_are_served_and_say_why() {
    let source = source();
    check_deviations(rows(&source, DEVIATIONS), &contract::served());
    let of_s3 = s3_operations().into_iter().map(|(name, _)| name).collect();
    check_deviations(rows(&source, S3_DEVIATIONS), &of_s3);
}

fn check_deviations(deviations: &[Value], served: &BTreeSet<String>) {
    let mut areas = Vec::new();
    for row in deviations {
        for key in ["area", "what", "here", "why"] {
            assert!(!text(row, key).contains(['|', '\n']), "{row}");
        }
        let known = |name: &&str| *name == ALL || served.contains(*name);
        let about = about(row);
        assert!(about.iter().all(known), "{SOURCE}: not an operation in {row}");
        assert!(about.len() == 1 || !about.contains(&ALL), "{SOURCE}: all and some in {row}");
        if areas.last() != Some(&text(row, "area")) {
            assert!(
                !areas.contains(&text(row, "area")),
                "{SOURCE}: rows of an area stand together"
            );
            areas.push(text(row, "area"));
        }
    }
}

#[test]
fn clients_are_recorded_with_operations_that_are_served() {
    let (clients, served) = (json(CLIENTS), contract::served());
    for row in clients.as_array().unwrap() {
        assert!(about(row).iter().all(|name| served.contains(*name)), "{CLIENTS}: {row}");
    }
}

#[test]
fn document_is_what_its_source_says() {
    let made = document();
    if std::env::var_os("UPDATE").is_some() {
        tree::write(DOCUMENT, &made);
    }
    let stale = format!(
        "stale: run `UPDATE=1 cargo test --test it compatibility` after a change of {SOURCE}"
    );
    assert!(tree::read(DOCUMENT) == made, "{DOCUMENT} is {stale}");
}
