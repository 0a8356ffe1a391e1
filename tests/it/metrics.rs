//! `docs/metrics.md` lists exactly the metrics that a node shows. `UPDATE_DOCS=1 cargo test --test
//! it metrics` rewrites the table.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;

use crate::folder::Data;
use crate::program::Node;
use crate::tree;

const DOCS: &str = "docs/metrics.md";
const HEAD: &str = "| metric | type | labels | what | when |\n|---|---|---|---|---|\n";

/// A metric as the table shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    kind: String,
    labels: BTreeSet<String>,
    help: String,
    /// What it needs to be there; empty when it always is.
    when: String,
}

type Rows = BTreeMap<String, Row>;

fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The families of the older text form: described first, then their samples.
fn shown(text: &str) -> Rows {
    let mut rows = Rows::new();
    let mut family = String::new();
    for line in text.lines() {
        if let Some((name, help)) =
            line.strip_prefix("# HELP ").and_then(|described| described.split_once(' '))
        {
            help.clone_into(&mut rows.entry(name.to_owned()).or_default().help);
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|described| described.split_once(' '))
        {
            name.clone_into(&mut family);
            kind.clone_into(&mut rows.entry(name.to_owned()).or_default().kind);
        } else if line.starts_with(family.as_str())
            && let Some((_, labels)) = line.split_once('{')
        {
            let names = labels.split("=\"").map(|part| part.rsplit([',', '"']).next().unwrap());
            let names = names.filter(|name| !name.is_empty() && !name.contains(['}', ' ']));
            let labels = names.filter(|name| *name != "le").map(str::to_owned);
            rows.get_mut(&family).unwrap().labels.extend(labels);
        }
    }
    rows
}

/// The rows of the table.
fn listed(text: &str) -> Rows {
    let mut rows = Rows::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, help, when] = cells[..] else { panic!("five cells: {line}") };
        let labels = labels.split(", ").filter(|label| !label.is_empty());
        let row = Row {
            kind: kind.to_owned(),
            labels: labels.map(str::to_owned).collect(),
            help: help.to_owned(),
            when: when.to_owned(),
        };
        let twice = rows.insert(name.trim_matches('`').to_owned(), row);
        assert_eq!(twice, None, "{name} is there twice");
    }
    rows
}

fn table(rows: &Rows) -> String {
    let mut text = HEAD.to_owned();
    for (name, row) in rows {
        let labels: Vec<&str> = row.labels.iter().map(String::as_str).collect();
        let (kind, labels, help, when) = (&row.kind, labels.join(", "), &row.help, &row.when);
        text.push_str(&format!("| `{name}` | {kind} | {labels} | {help} | {when} |\n"));
    }
    text
}

#[test]
fn every_metric_is_listed_and_every_listed_one_is_there() {
    let data = Data::new();
    let node = Node::start_with(&[data.path()], &["--tls", "auto"]);
    assert!(ask(node.blob(), "/devstoreaccount1?comp=list").starts_with("HTTP/1.1 4"));
    let answer = ask(node.admin(), "/metrics");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let (mut shown, listed) = (shown(text), listed(&tree::read(DOCS)));
    assert!(shown.len() > 60, "{shown:?}");
    for (name, row) in &listed {
        match shown.get_mut(name) {
            // Labels of what has not happened yet are not shown.
            Some(found) => {
                found.labels.extend(row.labels.iter().cloned());
                row.when.clone_into(&mut found.when);
            }
            None if row.when.is_empty() => {}
            None => drop(shown.insert(name.clone(), row.clone())),
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let docs = tree::read(DOCS);
        let (before, rest) = docs.split_once(HEAD).unwrap();
        let after = rest.lines().skip_while(|line| line.starts_with('|')).collect::<Vec<_>>();
        let after = if after.is_empty() { String::new() } else { after.join("\n") + "\n" };
        tree::write(DOCS, &format!("{before}{}{after}", table(&shown)));
        return;
    }
    let names = |rows: &Rows| rows.keys().cloned().collect::<BTreeSet<_>>();
    let (there, documented) = (names(&shown), names(&listed));
    assert_eq!(there.difference(&documented).collect::<Vec<_>>(), [""; 0], "not in {DOCS}");
    assert_eq!(documented.difference(&there).collect::<Vec<_>>(), [""; 0], "only in {DOCS}");
    for (name, row) in &shown {
        assert_eq!(Some(row), listed.get(name), "{name}: UPDATE_DOCS=1 rewrites {DOCS}");
    }
    assert_eq!(node.end("-TERM"), Some(0));
}

#[test]
fn families_are_read_with_their_labels() {
    let text = "# HELP a_total What.\n# TYPE a_total counter\na_total{x=\"1,\",y=\"z\"} 2\n# HELP h H.\n\
                # TYPE h histogram\nh_sum{disk=\"0\"} 1\nh_bucket{le=\"+Inf\",disk=\"0\"} 1\n";
    let rows = shown(text);
    let labels = |name: &str| rows[name].labels.iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((labels("a_total"), labels("h")), (vec!["x", "y"], vec!["disk"]));
    assert_eq!((rows["h"].kind.as_str(), rows["a_total"].help.as_str()), ("histogram", "What."));
    assert_eq!(listed(&table(&rows)), rows);
}
