use super::*;

fn named(raw: &str) -> Option<(String, String)> {
    let BlobPath { container, blob, .. } = path(raw.as_bytes()).ok()?;
    Some((container.as_str().to_owned(), blob.as_str().to_owned()))
}

#[test]
fn sources_name_bucket_and_key() {
    for (raw, bucket, key) in [
        ("photos/a", "photos", "a"),
        ("/photos/a", "photos", "a"),
        ("photos//a", "photos", "/a"),
        ("/photos//a//b/", "photos", "/a//b/"),
        ("photos%2Fa%2Fb", "photos", "a/b"),
        ("%2Fphotos/a", "photos", "a"),
        ("photos/a%20b+c%2Bd", "photos", "a b c+d"),
        ("photos/%2520", "photos", "%20"),
        ("photos/%E2%82%AC\u{20ac}", "photos", "\u{20ac}\u{20ac}"),
        ("photos/a?b", "photos", "a?b"),
        ("photos/a%3FversionId=7", "photos", "a?versionId=7"),
        ("photos/a?versionId=null", "photos", "a"),
        ("a.dotted.bucket/../b", "a.dotted.bucket", "../b"),
    ] {
        assert_eq!(named(raw), Some((bucket.to_owned(), key.to_owned())), "{raw}");
    }
}

#[test]
fn other_texts_name_no_source() {
    for raw in [
        "",
        "/",
        "photos",
        "/photos",
        "photos/",
        "//photos/a",
        "photos/%",
        "photos/%2",
        "photos/%zz",
        "photos/%ff",
        "photos/a%00",
        "$root/a",
        "UPPER_case/a",
        "arn:aws:s3:::photos/a",
        "http://host/photos/a",
        "photos/a?versionId=",
        "photos/a?versionId=7",
    ] {
        assert_eq!(named(raw), None, "{raw}");
    }
    let long = format!("photos/{}", "k".repeat(1_025));
    assert_eq!(path(long.as_bytes()).unwrap_err().reason, Reason::OutOfRangeInput);
    assert_eq!(path(b"photos/\xff").unwrap_err().reason, Reason::InvalidHeaderValue);
}

#[test]
fn ranges_have_two_ends() {
    let read = |text: &'static str| {
        let mut all = HeaderMap::new();
        all.insert(RANGE, http::HeaderValue::from_static(text));
        range(&all)
    };
    assert_eq!(read("bytes=0-0"), Ok(ByteRange::new(0, Some(0))));
    assert_eq!(read("bytes=5-18446744073709551615"), Ok(ByteRange::new(5, Some(u64::MAX))));
    assert_eq!(range(&HeaderMap::new()), Ok(None));
    for text in [
        "0-2",
        "bytes=0",
        "bytes=-2",
        "bytes=2-",
        "bytes=hello-world",
        "bytes=0-bar",
        "bytes=+0-2",
        "bytes=2-1",
        "bytes=0-2,3-5",
        "bytes=0-18446744073709551616",
        "Bytes=0-2",
        "bytes 0-2",
    ] {
        assert_eq!(read(text).unwrap_err().reason, Reason::InvalidHeaderValue, "{text}");
    }
}
