//! Broken HTTP: refused by status alone, for there is no request yet; floods of headers.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::bad_input::raw;
use crate::wire::Length;
use crate::wire::Message;

const GET: &str = "GET /acct1/con1/blob HTTP/1.1\r\nhost: h\r\n";

pub(super) fn cases() -> Vec<Case> {
    let many: String = (0..200).map(|n| format!("x-ms-meta-a{n}: v\r\n")).collect();
    let large = format!("x-ms-meta-a: {}\r\n", "v".repeat(300 * 1024));
    let mut cases = vec![
        raw("200 header lines", format!("{GET}{many}\r\n"), 431),
        raw("a header of 300 KiB", format!("{GET}{large}\r\n"), 431),
        raw("a URL of 300 KiB", format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(300 * 1024)), 431),
        raw("no HTTP", "hello\r\n\r\n", 400),
        raw("no version", "GET /acct1/con1/blob\r\n\r\n", 400),
        raw("version 3", "GET /acct1/con1/blob HTTP/3.0\r\nhost: h\r\n\r\n", 400),
        raw("header without colon", format!("{GET}x-ms-meta-a v\r\n\r\n"), 400),
        raw("header name with a blank", format!("{GET}x-ms meta: v\r\n\r\n"), 400),
        raw("header name empty", format!("{GET}: v\r\n\r\n"), 400),
        raw("NUL in a header", format!("{GET}x-ms-meta-a: a\0b\r\n\r\n"), 400),
        raw("length not a number", format!("{GET}content-length: ten\r\n\r\n"), 400),
        raw("length negative", format!("{GET}content-length: -1\r\n\r\n"), 400),
        raw(
            "length beyond 64 bits",
            format!("{GET}content-length: 99999999999999999999\r\n\r\n"),
            400,
        ),
        raw("two lengths", format!("{GET}content-length: 1\r\ncontent-length: 2\r\n\r\n"), 400),
        raw("encoding not chunked", format!("{GET}transfer-encoding: gzip\r\n\r\n"), 400),
    ];
    for (name, chunks) in [
        ("chunk length not a number", "zz\r\nnew\r\n0\r\n\r\n"),
        ("chunk length endless", "fffffffffffffffff\r\nnew"),
        ("chunk without its end", "3\r\nnewX\r\n0\r\n\r\n"),
    ] {
        // Chunks are refused for want of a length, before anyone looks into them.
        let message = Message::new("PUT /acct1/con1/new")
            .header("x-ms-blob-type: BlockBlob")
            .header("transfer-encoding: chunked")
            .body(chunks);
        let message = Message { length: Length::Absent, ..message };
        cases.push(case(name, message, 411, "MissingContentLengthHeader"));
    }
    cases
}
