//! Requests as bytes: signed here independently of the server, sent raw, answers read raw.

use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::net::Shutdown;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::time::Duration;
use std::time::SystemTime;

use blockyard::auth::AccountKeys;
use percent_encoding::percent_decode_str;

use crate::server::ACCOUNT;
use crate::server::KEY;

/// How a request is signed.
#[derive(Clone, Debug)]
pub(crate) enum Sign {
    /// Shared Key with this account name and key.
    As(String, String),
    /// `Authorization` as given.
    Text(String),
    /// No `Authorization`.
    Not,
}

/// What `Content-Length` says.
#[derive(Clone, Debug)]
pub(crate) enum Length {
    /// The body's length, for methods with a body.
    Right,
    /// This.
    Text(String),
    /// Nothing.
    Absent,
}

/// What the client does once everything is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Waits for the answer.
    Wait,
    /// Closes its side, then reads.
    Close,
}

/// A request under construction.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    /// Added after signing.
    pub(crate) unsigned: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) sign: Sign,
    pub(crate) length: Length,
    pub(crate) ending: Ending,
    /// Seconds added to the date.
    pub(crate) skew: i64,
}

impl Message {
    /// `METHOD TARGET`.
    pub(crate) fn new(line: &str) -> Self {
        let (method, target) = line.split_once(' ').unwrap();
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            unsigned: Vec::new(),
            body: Vec::new(),
            sign: Sign::As(ACCOUNT.to_owned(), KEY.to_owned()),
            length: Length::Right,
            ending: Ending::Wait,
            skew: 0,
        }
    }

    /// With a header `Name: value`.
    pub(crate) fn header(mut self, line: &str) -> Self {
        let (name, value) = line.split_once(':').unwrap();
        self.headers.push((name.to_owned(), value.trim().to_owned()));
        self
    }

    /// With a body.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// The bytes to send.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut headers = self.headers.clone();
        let has = |headers: &[(String, String)], name: &str| {
            headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name))
        };
        if !has(&headers, "x-ms-date") && !has(&headers, "date") {
            headers.push(("x-ms-date".to_owned(), date(self.skew)));
        }
        if !has(&headers, "x-ms-version") {
            headers.push(("x-ms-version".to_owned(), "2026-10-06".to_owned()));
        }
        match &self.length {
            Length::Right if self.method == "PUT" || !self.body.is_empty() => {
                headers.push(("content-length".to_owned(), self.body.len().to_string()));
            }
            Length::Text(text) => headers.push(("content-length".to_owned(), text.clone())),
            Length::Right | Length::Absent => {}
        }
        match &self.sign {
            Sign::As(account, key) => {
                let text = string_to_sign(&self.method, &self.target, &headers, account);
                let signature = AccountKeys::new(&[key]).unwrap().sign(&text);
                let value = format!("SharedKey {account}:{signature}");
                headers.push(("authorization".to_owned(), value));
            }
            Sign::Text(text) => headers.push(("authorization".to_owned(), text.clone())),
            Sign::Not => {}
        }
        headers.extend(self.unsigned.iter().cloned());
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        if !has(&headers, "host") {
            bytes.extend_from_slice(b"host: 127.0.0.1\r\n");
        }
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

#[expect(clippy::disallowed_methods, reason = "a client's clock is not the server's")]
fn date(skew: i64) -> String {
    let now = SystemTime::now();
    let shift = Duration::from_secs(skew.unsigned_abs());
    let time = if skew < 0 { now - shift } else { now + shift };
    httpdate::fmt_http_date(time)
}

fn string_to_sign(
    method: &str,
    target: &str,
    headers: &[(String, String)],
    account: &str,
) -> Vec<u8> {
    let get = |name: &str| {
        let found = headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.as_str())
    };
    let length = Some(get("content-length")).filter(|l| *l != "0").unwrap_or("");
    let date = if get("x-ms-date").is_empty() { get("date") } else { "" };
    let mut lines = vec![method, get("content-encoding"), get("content-language"), length];
    lines.extend(["content-md5", "content-type"].map(get));
    lines.push(date);
    lines.extend(
        ["if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"].map(get),
    );
    let mut text = lines.join("\n").into_bytes();
    text.push(b'\n');
    let mut own: Vec<(String, &str)> = Vec::new();
    for (name, value) in headers.iter().filter(|(n, _)| n.to_lowercase().starts_with("x-ms-")) {
        own.push((name.to_lowercase(), value));
    }
    own.sort_by(|a, b| a.0.cmp(&b.0));
    let mut previous = String::new();
    for (name, value) in own {
        if name == previous {
            text.pop();
            text.extend_from_slice(format!(",{value}\n").as_bytes());
        } else {
            text.extend_from_slice(format!("{name}:{value}\n").as_bytes());
        }
        previous = name;
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    text.extend_from_slice(format!("/{account}{path}").as_bytes());
    text.extend_from_slice(&canonical_query(query));
    text
}

fn canonical_query(query: &str) -> Vec<u8> {
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).collect::<Vec<u8>>();
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = query
        .split('&')
        .filter(|piece| !piece.is_empty())
        .map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            (decode(name).to_ascii_lowercase(), decode(value))
        })
        .collect();
    pairs.sort();
    let mut text = Vec::new();
    let mut previous = None;
    for (name, value) in &pairs {
        let mark: &[u8] = if previous == Some(name) { b"," } else { b"\n" };
        text.extend_from_slice(mark);
        if previous != Some(name) {
            text.extend_from_slice(name);
            text.push(b':');
        }
        text.extend_from_slice(value);
        previous = Some(name);
    }
    text
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header's value, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends bytes on a connection of their own; `None` when the server closed it without an answer.
pub(crate) fn exchange(
    address: SocketAddr,
    bytes: &[u8],
    ending: Ending,
    head: bool,
) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The server may answer and close before it has read everything.
    let sent = stream.write_all(bytes);
    if ending == Ending::Close {
        drop(stream.shutdown(Shutdown::Write));
    }
    let answer = read_answer(&mut stream, head);
    assert!(sent.is_ok() || answer.is_some() || ending == Ending::Close, "{sent:?}");
    answer
}

/// Signs, sends and reads.
pub(crate) fn send(address: SocketAddr, message: &Message) -> Option<Answer> {
    exchange(address, &message.to_bytes(), message.ending, message.method == "HEAD")
}

fn read_answer(stream: &mut TcpStream, head: bool) -> Option<Answer> {
    let mut buffer = Vec::new();
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if !read_more(stream, &mut buffer) {
            return None;
        }
    };
    let text = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(n, _)| n == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    let length = if head || status == 304 { 0 } else { length };
    while buffer.len() < end + length {
        assert!(read_more(stream, &mut buffer), "the body was cut short");
    }
    Some(Answer { status, headers, body: buffer[end..end + length].to_vec() })
}

/// Reads once; false at the end of the connection.
fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> bool {
    let mut piece = [0; 16 * 1024];
    match stream.read(&mut piece) {
        Ok(0) => false,
        Ok(len) => {
            buffer.extend_from_slice(&piece[..len]);
            true
        }
        // A pause of this process interrupts a read that has a timeout.
        Err(error) if error.kind() == ErrorKind::Interrupted => true,
        Err(error) => {
            let kind = error.kind();
            let timed_out = kind == ErrorKind::WouldBlock || kind == ErrorKind::TimedOut;
            assert!(!timed_out, "no answer in 60 s; so far {:?}", String::from_utf8_lossy(buffer));
            false
        }
    }
}
