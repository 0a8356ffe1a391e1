//! What only one of two dialects allows: names that Azure does not permit, bodies without a length.

use super::Both;
use super::OPEN_BYTES_MAX;
use super::PASSWORD;
use super::of_azure;
use crate::server::ACCOUNT;
use crate::wire::Answer;
use crate::wire::Ending;
use crate::wire::exchange;

const BUCKET: &str = "my.dotted--box";

/// A path of 300 slashes and more that a file system would normalise.
fn key() -> String {
    format!("a/../{}b", "/".repeat(300))
}

#[test]
fn names_of_another_dialect_are_read_listed_and_deleted() {
    let both = Both::start();
    let object = format!("{BUCKET}/{}", key());
    assert_eq!(both.owner(&format!("PUT /{BUCKET}"), &[], "").status, 200);
    let notes = ["note-1st.of-all: caf\u{e9}", "note-100%: sure", "note-plain: yes"];
    assert_eq!(both.owner(&format!("PUT /{object}"), &notes, "bytes").status, 200);

    let read = both.azure(&of_azure("GET", &object));
    assert_eq!((read.status, read.text().as_str()), (200, "bytes"));
    assert_eq!(read.header("x-ms-meta-1st.of-all"), "caf\u{e9}");
    assert_eq!(read.header("x-ms-meta-100%"), "sure");
    let list = format!("{BUCKET}?restype=container&comp=list&include=metadata");
    let listed = both.azure(&of_azure("GET", &list)).text();
    let (bucket, name) = (format!("ContainerName=\"{BUCKET}\""), format!("<Name>{}</Name>", key()));
    for part in [
        bucket.as_str(),
        name.as_str(),
        "<plain>yes</plain>",
        "<x-ms-invalid-name>1st.of-all</x-ms-invalid-name>",
        "<x-ms-invalid-name>100%</x-ms-invalid-name>",
    ] {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    let containers = both.azure(&of_azure("GET", "?comp=list")).text();
    assert!(containers.contains(&format!("<Name>{BUCKET}</Name>")), "{containers}");

    // What is there is changed; what is missing there is simply missing.
    let set = of_azure("PUT", &format!("{object}?comp=metadata")).header("x-ms-meta-own: 1");
    assert_eq!(both.azure(&set).status, 200);
    assert_eq!(both.owner(&format!("HEAD /{object}"), &[], "").header("note-own"), "1");
    let put = of_azure("PUT", &format!("{BUCKET}/b")).header("x-ms-blob-type: BlockBlob");
    assert_eq!(both.azure(&put.body("of azure")).status, 201);
    assert_eq!(both.owner(&format!("GET /{BUCKET}/b"), &[], "").text(), "of azure");
    let missing = both.azure(&of_azure("GET", &format!("{BUCKET}/c")));
    assert_eq!((missing.status, missing.header("x-ms-error-code")), (404, "BlobNotFound"));

    assert_eq!(both.azure(&of_azure("DELETE", &object)).status, 202);
    let container = format!("{BUCKET}?restype=container");
    assert_eq!(both.azure(&of_azure("DELETE", &container)).status, 202);
}

#[test]
fn names_that_azure_refuses_are_refused_where_azure_makes_them() {
    let both = Both::start();
    let code = |answer: &Answer| (answer.status, answer.header("x-ms-error-code").to_owned());
    let invalid = (400, "InvalidResourceName".to_owned());
    let too_deep = (400, "OutOfRangeInput".to_owned());
    assert_eq!(both.owner("PUT /box", &[], "").status, 200);
    let made = both.azure(&of_azure("PUT", &format!("{BUCKET}?restype=container")));
    assert_eq!(code(&made), invalid);
    let put = |path: &str| {
        let put = of_azure("PUT", path).header("x-ms-blob-type: BlockBlob").body("x");
        code(&both.azure(&put))
    };
    assert_eq!(put(&format!("box/{}", key())), too_deep);
    // No container has that name, so no blob can be made in it.
    assert_eq!(put(&format!("{BUCKET}/b")), invalid);
    assert_eq!(code(&both.azure(&of_azure("GET", &format!("{BUCKET}/b")))), invalid);
    assert_eq!(code(&both.azure(&of_azure("GET", &format!("box/{}", key())))), too_deep);
    let note = of_azure("PUT", "box?restype=container&comp=metadata").header("x-ms-meta-a-b: c");
    assert_eq!(code(&both.azure(&note)), (400, "InvalidMetadata".to_owned()));
}

/// A Put of the plain dialect in chunks, without a length.
fn put_in_chunks(both: &Both, path: &str, body: &[u8]) -> Answer {
    let mut bytes = format!(
        "PUT /plain/{ACCOUNT}/{path} HTTP/1.1\r\nhost: here\r\npassword: {PASSWORD}\r\n\
         transfer-encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for chunk in body.chunks(70_000) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    exchange(both.address(), &bytes, Ending::Wait, false).unwrap()
}

#[test]
fn bodies_without_a_length_are_stored_whatever_their_size() {
    let both = Both::start();
    assert_eq!(both.owner("PUT /box", &[], "").status, 200);
    let most = usize::try_from(OPEN_BYTES_MAX).unwrap();
    for len in [0, 5, 4096, 100_000, 1 << 20, (1 << 20) + 1, most] {
        let body: Vec<u8> = (0..len).map(|at| b'a' + u8::try_from(at % 23).unwrap()).collect();
        assert_eq!(put_in_chunks(&both, "box/open", &body).status, 200, "{len}");
        let read = both.azure(&of_azure("GET", "box/open"));
        assert!(read.body == body, "{len}: {} bytes came back", read.body.len());
    }
    let refused = put_in_chunks(&both, "box/open", &vec![b'z'; most + 1]);
    assert_eq!((refused.status, refused.text().as_str()), (413, "whale\n"));
    assert_eq!(both.azure(&of_azure("GET", "box/open")).body.len(), most, "nothing was stored");
    // Azure needs a length ahead.
    let open = of_azure("PUT", "box/b").header("x-ms-blob-type: BlockBlob");
    let open = crate::wire::Message { length: crate::wire::Length::Absent, ..open };
    let open = open.header("transfer-encoding: chunked").body("1\r\na\r\n0\r\n\r\n");
    assert_eq!(both.azure(&open).header("x-ms-error-code"), "MissingContentLengthHeader");
}
