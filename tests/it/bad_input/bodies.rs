//! Bodies: lengths and checksums that are missing, wrong, or beyond the limit; clients that stall
//! or leave.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Ending;
use crate::wire::Length;
use crate::wire::Message;

fn put() -> Message {
    Message::new("PUT /acct1/con1/new").header("x-ms-blob-type: BlockBlob")
}

fn block() -> Message {
    Message::new("PUT /acct1/con1/staged?comp=block&blockid=c3RhZ2Vk")
}

fn length(message: Message, text: &str) -> Message {
    Message { length: Length::Text(text.to_owned()), ..message }
}

fn absent(message: Message) -> Message {
    Message { length: Length::Absent, ..message }
}

const TOO_LARGE: &str = "RequestBodyTooLarge";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = missing_lengths();
    cases.extend(lengths_above_the_limit());
    cases.extend(checksums());
    cases.extend(incomplete_bodies());
    cases
}

fn missing_lengths() -> Vec<Case> {
    let (no_length, chunked) = ("MissingContentLengthHeader", "transfer-encoding: chunked");
    let chunks = "3\r\nnew\r\n0\r\n\r\n";
    vec![
        case("blob without length", absent(put()), 411, no_length),
        case("block without length", absent(block()), 411, no_length),
        case(
            "list without length",
            absent(Message::new("PUT /acct1/con1/staged?comp=blocklist")),
            411,
            no_length,
        ),
        case("blob in chunks", absent(put().header(chunked)).body(chunks), 411, no_length),
        case("block in chunks", absent(block().header(chunked)).body(chunks), 411, no_length),
        case("empty block", block(), 400, "InvalidHeaderValue"),
    ]
}

fn lengths_above_the_limit() -> Vec<Case> {
    let old = |message: Message, version: &str| message.header(&format!("x-ms-version: {version}"));
    let mib = |n: u64| (n * 1024 * 1024 + 1).to_string();
    // The server answers before the client sends the body.
    let asks = |message: Message| message.header("expect: 100-continue");
    vec![
        case("blob above 5000 MiB", length(asks(put()), &mib(5000)), 413, TOO_LARGE),
        case("block above 4000 MiB", length(asks(block()), &mib(4000)), 413, TOO_LARGE),
        case(
            "blob above 256 MiB of 2016",
            length(asks(old(put(), "2016-05-31")), &mib(256)),
            413,
            TOO_LARGE,
        ),
        case(
            "block above 100 MiB of 2016",
            length(asks(old(block(), "2016-05-31")), &mib(100)),
            413,
            TOO_LARGE,
        ),
        case(
            "blob above 64 MiB of 2015",
            length(asks(old(put(), "2015-12-11")), &mib(64)),
            413,
            TOO_LARGE,
        ),
        case(
            "block above 4 MiB of 2015",
            length(asks(old(block(), "2015-12-11")), &mib(4)),
            413,
            TOO_LARGE,
        ),
        case(
            "list above 8 MiB",
            length(asks(Message::new("PUT /acct1/con1/staged?comp=blocklist")), &mib(8)),
            413,
            TOO_LARGE,
        ),
        case(
            "blob of the largest length",
            length(asks(put()), "9000000000000000000"),
            413,
            TOO_LARGE,
        ),
    ]
}

/// Checksums that are wrong or excess, and conditions where none are allowed.
fn checksums() -> Vec<Case> {
    vec![
        case(
            "blob with a wrong MD5",
            put().header("content-md5: AAAAAAAAAAAAAAAAAAAAAA==").body("new"),
            400,
            "Md5Mismatch",
        ),
        case(
            "blob with a wrong own MD5",
            put().header("x-ms-blob-content-md5: AAAAAAAAAAAAAAAAAAAAAA==").body("new"),
            400,
            "Md5Mismatch",
        ),
        case(
            "blob with a wrong CRC-64",
            put().header("x-ms-content-crc64: AAAAAAAAAAE=").body("new"),
            400,
            "Crc64Mismatch",
        ),
        case(
            "large blob with a wrong MD5",
            put().header("content-md5: AAAAAAAAAAAAAAAAAAAAAA==").body(vec![7; 3 << 20]),
            400,
            "Md5Mismatch",
        ),
        case(
            "block with a wrong MD5",
            block().header("content-md5: AAAAAAAAAAAAAAAAAAAAAA==").body("new"),
            400,
            "Md5Mismatch",
        ),
        case(
            "block with a wrong CRC-64",
            block().header("x-ms-content-crc64: AAAAAAAAAAE=").body("new"),
            400,
            "Crc64Mismatch",
        ),
        case(
            "block with both checksums",
            block()
                .header("content-md5: AAAAAAAAAAAAAAAAAAAAAA==")
                .header("x-ms-content-crc64: AAAAAAAAAAE=")
                .body("new"),
            400,
            "BothCrc64AndMd5HeaderPresent",
        ),
        case(
            "block with a condition",
            block().header("if-match: *").body("new"),
            400,
            "ConditionHeadersNotSupported",
        ),
    ]
}

/// Clients that stall or leave before the end of the body.
fn incomplete_bodies() -> Vec<Case> {
    vec![
        case("stalled blob", length(put(), "10").body("new"), 408, "RequestTimeout"),
        case("stalled block", length(block(), "10").body("new"), 408, "RequestTimeout"),
        case(
            "stalled large blob",
            length(put(), "9000000").body(vec![7; 3 << 20]),
            408,
            "RequestTimeout",
        ),
        case(
            "left early",
            Message { ending: Ending::Close, ..length(put(), "10").body("new") },
            400,
            "InvalidInput",
        ),
        case(
            "left a large blob early",
            Message { ending: Ending::Close, ..length(put(), "9000000").body(vec![7; 3 << 20]) },
            400,
            "InvalidInput",
        ),
    ]
}
