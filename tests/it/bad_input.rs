//! Malformed requests over TCP: each is refused with its documented code and changes nothing, and
//! the server continues.
//!
//! The table is in the files below, by what is wrong. After each request the server must answer a
//! good one, and the account must look exactly as before: no container, blob, staged block or
//! changed tag.

mod addresses;
mod authorization;
mod bodies;
mod copies;
mod framing;
mod headers;
mod hosts;
mod kinds;
mod leases;
mod parameters;
mod query;
mod signatures;
mod tags;
mod versions;
mod xml;

use std::collections::HashSet;
use std::net::SocketAddr;

use crate::server::ACCOUNT;
use crate::server::Server;
use crate::wire::Answer;
use crate::wire::Ending;
use crate::wire::Message;
use crate::wire::exchange;
use crate::wire::send;

/// What is sent.
#[derive(Clone, Debug)]
enum Input {
    Message(Box<Message>),
    /// Bytes as they are: broken HTTP.
    Raw(Vec<u8>),
}

/// A malformed request and its answer.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    input: Input,
    status: u16,
    /// `x-ms-error-code`; empty when the HTTP layer refuses before there is a request.
    code: &'static str,
}

fn case(name: &str, message: Message, status: u16, code: &'static str) -> Case {
    Case { name: name.to_owned(), input: Input::Message(Box::new(message)), status, code }
}

fn raw(name: &str, bytes: impl Into<Vec<u8>>, status: u16) -> Case {
    Case { name: name.to_owned(), input: Input::Raw(bytes.into()), status, code: "" }
}

/// Names the case in which the test panics. All names would hide the panic in a long output.
struct Current<'a>(&'a str);

impl Drop for Current<'_> {
    #[expect(clippy::print_stdout, reason = "the test harness shows it with the panic")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("in the case {:?}", self.0);
        }
    }
}

/// The committed blob's content.
const CONTENT: &[u8] = b"ten bytes.";

#[test]
fn malformed_requests_are_refused_with_their_codes_and_change_nothing() {
    // Longer than a busy machine keeps a client from sending the rest of its body.
    let server = Server::start(&["--body-idle-seconds", "3"]);
    let state = State::make(server.address);
    let tables = [
        authorization::cases(),
        signatures::cases(),
        addresses::cases(),
        parameters::cases(),
        query::cases(),
        headers::cases(),
        hosts::cases(),
        copies::cases(),
        kinds::cases(),
        leases::cases(),
        versions::cases(),
        xml::cases(),
        tags::cases(),
        bodies::cases(),
        framing::cases(),
    ];
    let cases: Vec<Case> = tables.into_iter().flatten().collect();
    let names: HashSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    assert!(cases.len() >= 700, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let _case = Current(&case.name);
        if let Err(what) = check(server.address, case) {
            wrong.push(format!("{}: {what}", case.name));
        }
        state.check(server.address, &case.name);
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Status and code of the only part of an answer to a batch that is wrong as a whole.
fn refused_in_a_part(answer: &Answer) -> Option<(u16, String)> {
    if !answer.header("content-type").starts_with("multipart/mixed") {
        return None;
    }
    let text = answer.text();
    let (_, part) = text.split_once("HTTP/1.1 ")?;
    let (_, code) = part.split_once("x-ms-error-code: ")?;
    Some((part.get(..3)?.parse().ok()?, code.lines().next()?.to_owned()))
}

fn check(address: SocketAddr, case: &Case) -> Result<(), String> {
    let (answer, head) = match &case.input {
        Input::Message(message) => (send(address, message), message.method == "HEAD"),
        Input::Raw(bytes) => (exchange(address, bytes, Ending::Wait, false), false),
    };
    let Some(answer) = answer else {
        return Err("closed without an answer".to_owned());
    };
    let part = refused_in_a_part(&answer);
    let found = match &part {
        Some((status, code)) => (*status, code.as_str()),
        None => (answer.status, answer.header("x-ms-error-code")),
    };
    if found != (case.status, case.code) {
        return Err(format!("{found:?}, not {:?}: {}", (case.status, case.code), answer.text()));
    }
    if case.code.is_empty() {
        return Ok(());
    }
    if answer.header("x-ms-request-id").is_empty() || answer.header("x-ms-version").is_empty() {
        return Err(format!("echoes are missing: {:?}", answer.headers));
    }
    let body = answer.text();
    let expected = format!("<Error><Code>{}</Code><Message>", case.code);
    let bodiless = head || case.status == 304;
    if !body.chars().all(fits_xml) {
        return Err(format!("the body is not XML: {body:?}"));
    }
    if bodiless == body.is_empty() && (bodiless || body.contains(&expected)) {
        return Ok(());
    }
    Err(format!("the body is {body:?}"))
}

/// Whether XML 1.0 can hold a character.
fn fits_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..)
}

#[test]
fn parameters_that_xml_cannot_hold_come_back_encoded() {
    let server = Server::start(&[]);
    State::make(server.address);
    let odd = "%01%EF%BF%BE%EF%BF%BF";
    for (line, element) in [
        ("GET /acct1/?comp=list&prefix=", "Prefix"),
        ("GET /acct1/con1?restype=container&comp=list&prefix=", "Prefix"),
        ("GET /acct1/con1?restype=container&comp=list&delimiter=", "Delimiter"),
    ] {
        let text = body(server.address, &format!("{line}{odd}"));
        assert!(text.chars().all(fits_xml), "{line}: {text:?}");
        let expected = format!("<{element} Encoded=\"true\">{odd}</{element}>");
        assert!(text.contains(&expected), "{line}: {text:?}");
    }
}

/// What the account looks like, as its owner sees it.
struct State {
    containers: String,
    blobs: String,
    blocks: String,
}

impl State {
    /// One container with a committed blob, and a second name with one staged block.
    fn make(address: SocketAddr) -> Self {
        let good = |message: Message| {
            let answer = send(address, &message).expect("an answer");
            assert!(answer.status < 300, "{answer:?}");
        };
        good(Message::new("PUT /acct1/con1?restype=container"));
        good(
            Message::new("PUT /acct1/con1/blob").header("x-ms-blob-type: BlockBlob").body(CONTENT),
        );
        let block = "PUT /acct1/con1/staged?comp=block&blockid=c3RhZ2Vk";
        good(Message::new(block).body("staged"));
        kinds::make().into_iter().for_each(good);
        Self::read(address)
    }

    fn read(address: SocketAddr) -> Self {
        let list = format!("GET /{ACCOUNT}/con1?restype=container&comp=list");
        Self {
            containers: body(address, &format!("GET /{ACCOUNT}/?comp=list&include=metadata")),
            blobs: body(address, &format!("{list}&include=metadata,uncommittedblobs")),
            blocks: body(
                address,
                &format!("GET /{ACCOUNT}/con1/staged?comp=blocklist&blocklisttype=all"),
            ),
        }
    }

    fn check(&self, address: SocketAddr, after: &str) {
        let now = Self::read(address);
        assert_eq!(now.containers, self.containers, "containers after {after}");
        assert_eq!(now.blobs, self.blobs, "blobs after {after}");
        assert_eq!(now.blocks, self.blocks, "staged blocks after {after}");
        assert_eq!(body(address, "GET /acct1/con1/blob").as_bytes(), CONTENT, "after {after}");
    }
}

fn body(address: SocketAddr, line: &str) -> String {
    let answer: Answer = send(address, &Message::new(line)).expect("an answer to a good request");
    assert_eq!(answer.status, 200, "{line}: {}", answer.text());
    answer.text()
}
