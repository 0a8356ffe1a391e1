//! Bodies in all cuts, and what breaks them.

use proptest::prelude::*;

use super::*;

fn decode(body: &[u8], len: u64, step: usize) -> Result<(Vec<u8>, Vec<Piece>), Refusal> {
    let mut decoder = ChunkedDecoder::new(len, true);
    let (mut content, mut others) = (Vec::new(), Vec::new());
    for cut in body.chunks(step.max(1)) {
        let mut bytes = Bytes::copy_from_slice(cut);
        while let Some(piece) = decoder.next(&mut bytes)? {
            match piece {
                Piece::Content(bytes) => content.extend_from_slice(&bytes),
                Piece::ChunkEnd(_) | Piece::Trailers(_) => others.push(piece),
            }
        }
    }
    decoder.finish()?;
    Ok((content, others))
}

fn why(body: &[u8], len: u64) -> String {
    let refused = decode(body, len, body.len()).expect_err("the body is broken");
    assert_eq!(refused.reason, Reason::IncompleteBody);
    refused.message.expect("it says why")
}

#[test]
fn signed_chunks_and_trailers_in_every_cut() {
    let body = b"5;chunk-signature=aa\r\nhello\r\n1;chunk-signature=bb\r\n!\r\n\
        0;chunk-signature=cc\r\nX-Amz-Checksum-Crc32: abc=\r\nx-amz-trailer-signature:dd\r\n\r\n";
    let trailers = Trailers {
        fields: vec![("x-amz-checksum-crc32".to_owned(), "abc=".to_owned())],
        signature: Some("dd".to_owned()),
    };
    assert_eq!(trailers.signed_lines(), b"x-amz-checksum-crc32:abc=\n");
    let end = |signature: &str| Piece::ChunkEnd(Some(signature.to_owned()));
    let others = vec![end("aa"), end("bb"), end("cc"), Piece::Trailers(trailers)];
    for step in 1..=body.len() {
        let found = decode(body, 6, step).unwrap();
        assert_eq!(found, (b"hello!".to_vec(), others.clone()), "in steps of {step}");
    }
}

#[test]
fn unsigned_chunks_and_bare_line_feeds() {
    let others = vec![Piece::ChunkEnd(None), Piece::ChunkEnd(None)];
    let (content, mut found) = decode(b"A\r\n0123456789\r\n0\r\n\r\n", 10, 7).unwrap();
    assert_eq!(content, b"0123456789");
    assert_eq!(found.pop(), Some(Piece::Trailers(Trailers::default())));
    assert_eq!(found, others);
    let (content, _) = decode(b"0\r\nx-amz-checksum-sha1:a\n\r\n", 0, 3).unwrap();
    assert!(content.is_empty());
}

#[test]
fn broken_bodies_say_what_is_wrong() {
    for (body, len, what) in [
        (&b"5\r\nhello\r\n0\r\n"[..], 5, "ends early"),
        (b"5\r\nhel", 5, "ends early"),
        (b"5\r\nhello", 5, "ends early"),
        (b"", 0, "ends early"),
        (b"5\r\nhelloo\r\n0\r\n\r\n", 5, "longer than its size"),
        (b"6\r\nhello!\r\n0\r\n\r\n", 5, "more than x-amz-decoded-content-length"),
        (b"4\r\nhell\r\n0\r\n\r\n", 5, "less than x-amz-decoded-content-length"),
        (b"\r\n", 0, "not hexadecimal"),
        (b"+5\r\nhello\r\n0\r\n\r\n", 5, "not hexadecimal"),
        (b"0x5\r\nhello\r\n0\r\n\r\n", 5, "not hexadecimal"),
        (b"11111111111111111\r\n", 5, "not hexadecimal"),
        (b"5;size=1\r\nhello\r\n0\r\n\r\n", 5, "extension"),
        (b"5;chunk-signature\r\nhello\r\n0\r\n\r\n", 5, "extension"),
        (b"\xff\r\n", 5, "is not one"),
        (b"0\r\n\r\nmore", 0, "bytes follow"),
        (b"0\r\n\r\n0\r\n\r\n", 0, "bytes follow"),
        (b"0\r\nnonsense\r\n\r\n", 0, "NAME:VALUE"),
        (b"0\r\na:1\r\nA:2\r\n\r\n", 0, "given twice"),
        (b"0\r\nx-amz-trailer-signature:1\r\na:2\r\n\r\n", 0, "follow their signature"),
        (b"0\r\na:1\r\nb:1\r\nc:1\r\nd:1\r\ne:1\r\nf:1\r\ng:1\r\nh:1\r\ni:1\r\n", 0, "announced"),
    ] {
        let found = why(body, len);
        assert!(found.contains(what), "{:?}: {found}", String::from_utf8_lossy(body));
    }
    let long = [b"0\r\na:".to_vec(), vec![b'b'; 2 * TRAILERS_MAX]].concat();
    assert!(why(&long, 0).contains("too long"));
    let long = [b"5;chunk-signature=".to_vec(), vec![b'a'; LINE_MAX], b"\r\n".to_vec()].concat();
    assert!(why(&long, 5).contains("is not one"));
}

#[test]
fn trailers_are_refused_where_none_were_announced() {
    let mut decoder = ChunkedDecoder::new(0, false);
    let mut bytes = Bytes::from_static(b"0\r\na:b\r\n\r\n");
    assert_eq!(decoder.next(&mut bytes), Ok(Some(Piece::ChunkEnd(None))));
    assert!(decoder.next(&mut bytes).is_err());
}

proptest! {
    #[test]
    fn anything_is_decoded_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200), len in 0..64_u64, step in 1..50_usize) {
        drop(decode(&body, len, step));
    }

    #[test]
    fn content_comes_out_as_it_went_in(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..300), 0..6),
        step in 1..500_usize,
    ) {
        let mut body = Vec::new();
        for chunk in &chunks {
            body.extend(format!("{:x}\r\n", chunk.len()).bytes());
            body.extend(chunk);
            body.extend(b"\r\n");
        }
        body.extend(b"0\r\n\r\n");
        let content = chunks.concat();
        let (found, others) = decode(&body, content.len() as u64, step).unwrap();
        prop_assert_eq!(found, content);
        prop_assert_eq!(others.len(), chunks.len() + 2);
    }
}
