//! Requests whose bodies the server does not read. Their answers must not pile up in its memory for
//! a client that reads none of them.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;

use crate::folder::Data;
use crate::program::Node;

/// The answers to a request that is sent twice at once, to the end of the connection.
fn asked_twice(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.repeat(2).as_bytes()).unwrap();
    let mut answer = String::new();
    // The connection may be reset, since what was sent is not read.
    drop(stream.read_to_string(&mut answer));
    answer
}

#[test]
fn connection_ends_with_the_answer_to_a_request_whose_body_is_not_read() {
    let data = Data::new();
    let node = Node::start(data.path());
    let expect = "Expect: 100-continue\r\n";
    for (address, line, more) in [
        // Without that header the body of a refused request is read.
        (node.blob(), "HEAD /devstoreaccount1/c/b", expect),
        (node.admin(), "GET /nothing", expect),
        (node.admin(), "GET /nothing", ""),
        (node.admin(), "GET /healthz", expect),
        (node.admin(), "GET /healthz", ""),
    ] {
        let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{more}");
        let answer = asked_twice(address, &format!("{head}Content-Length: 1\r\n\r\nx"));
        let answer = answer.to_lowercase();
        assert_eq!(answer.matches("http/1.1 4").count() + answer.matches("http/1.1 2").count(), 1);
        assert!(answer.contains("\r\nconnection: close\r\n"), "{line} {more}: {answer}");
    }
    assert_eq!(node.end("-TERM"), Some(0));
}
