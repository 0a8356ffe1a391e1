//! Connections beyond the limit: their requests are refused, and each has its line of the audit
//! log.

use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::server::ACCOUNT;
use crate::server::Server;

/// The only line of a log, once it is there.
fn line(path: &std::path::Path) -> serde_json::Value {
    for _ in 0..1_000 {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut requests =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        if let Some(line) = requests.find(|line| line["kind"] == "request") {
            return line;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the request has no line");
}

#[test]
fn request_refused_for_its_connection_has_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let to = path.to_str().unwrap();
    let server =
        Server::start(&["--peer-connections-max=1", "--audit-log", to, "--audit-requests"]);
    let mut held = TcpStream::connect(server.address).unwrap();
    held.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let mut refused = TcpStream::connect(server.address).unwrap();
    let ask = format!("GET /{ACCOUNT}/photos/one HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    refused.write_all(ask.as_bytes()).unwrap();
    let mut answer = String::new();
    refused.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let id = answer.lines().find_map(|line| line.strip_prefix("x-ms-request-id: ")).unwrap();
    let line = line(&path);
    assert_eq!(line["request_id"], id);
    assert_eq!((line["status"].as_u64(), line["code"].as_str()), (Some(503), Some("ServerBusy")));
    assert_eq!(
        (line["account"].as_str(), line["resource"].as_str()),
        (Some(ACCOUNT), Some("photos/one"))
    );
    assert_eq!(
        (line["operation"].as_str(), line["principal"]["kind"].as_str()),
        (Some("Refused"), Some("unknown"))
    );
    assert_eq!(line["address"], refused.local_addr().unwrap().to_string());
    assert!(line["bytes_out"].as_u64().unwrap() > 0 && line["cut"].is_null(), "{line}");
}
