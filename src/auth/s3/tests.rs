//! The signatures of the examples in the S3 documentation, and what breaks them.

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;

use super::*;
use crate::types::Timestamp;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const ID: &str = "AKIAIOSFODNN7EXAMPLE";
const HOST: &str = "examplebucket.s3.amazonaws.com";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

struct Example {
    method: Method,
    path: &'static str,
    query: Option<String>,
    headers: HeaderMap,
    host: &'static str,
}

impl Example {
    fn new(method: Method, path: &'static str, headers: &[(&'static str, &str)]) -> Self {
        let mut made = Self { method, path, query: None, headers: HeaderMap::new(), host: HOST };
        for (name, value) in headers {
            made.add(name, value);
        }
        made
    }

    fn query(mut self, query: &str) -> Self {
        self.query = Some(query.to_owned());
        self
    }

    fn add(&mut self, name: &'static str, value: &str) {
        let value = HeaderValue::from_str(value).unwrap();
        self.headers.append(HeaderName::from_static(name), value);
    }

    fn signed(mut self, names: &str, signature: &str) -> Self {
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={ID}/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders={names},Signature={signature}"
        );
        self.add("authorization", &authorization);
        self
    }

    fn request(&self) -> SignedS3Request<'_> {
        SignedS3Request {
            method: &self.method,
            path: self.path,
            query: self.query.as_deref(),
            headers: &self.headers,
            host: self.host,
            bucket: None,
        }
    }

    fn verify_at(&self, now: &str) -> Result<Verified, S3Error> {
        let request = self.request();
        let claim = claim(&request)?.expect("the example is signed");
        assert_eq!(claim.access_key_id(), ID);
        claim.verify(&request, &secrets(), Timestamp::from_iso(now).unwrap())
    }

    fn verify(&self) -> Result<Verified, S3Error> {
        self.verify_at("2013-05-24T00:00:00Z")
    }
}

/// The second of two: both are tried.
fn secrets() -> S3Secrets {
    S3Secrets::new(&["another", SECRET])
}

fn get_object() -> Example {
    Example::new(
        Method::GET,
        "/test.txt",
        &[
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", EMPTY),
            ("x-amz-date", "20130524T000000Z"),
        ],
    )
}

const GET_NAMES: &str = "host;range;x-amz-content-sha256;x-amz-date";
const GET_SIGNATURE: &str = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";

fn is_wrong(found: &Result<Verified, S3Error>) -> bool {
    matches!(found, Err(S3Error::WrongSignature { .. }))
}

#[test]
fn get_object_of_the_documentation() {
    let found = get_object().signed(GET_NAMES, GET_SIGNATURE).verify().unwrap();
    assert!(matches!(found.payload, Payload::Sha256(hash) if hex(&hash) == EMPTY));
}

#[test]
fn put_object_of_the_documentation() {
    let hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    let example = Example::new(
        Method::PUT,
        "/test%24file.text",
        &[
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ("x-amz-content-sha256", hash),
        ],
    );
    let names = "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class";
    let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
    example.signed(names, signature).verify().unwrap();
}

#[test]
fn queries_of_the_documentation() {
    let headers = [("x-amz-content-sha256", EMPTY), ("x-amz-date", "20130524T000000Z")];
    for (query, signature) in [
        ("lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        (
            "prefix=%4a&max-keys=2",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ] {
        let example = Example::new(Method::GET, "/", &headers).query(query);
        example.signed("host;x-amz-content-sha256;x-amz-date", signature).verify().unwrap();
    }
}

fn presigned(change: impl Fn(String) -> String) -> Example {
    let query = "X-Amz-Algorithm=AWS4-HMAC-SHA256\
        &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
        &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
        &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    Example::new(Method::GET, "/test.txt", &[]).query(&change(query.to_owned()))
}

#[test]
fn presigned_url_of_the_documentation_holds_for_its_time() {
    let whole = presigned(|query| query);
    assert!(matches!(whole.verify().unwrap().payload, Payload::Unsigned));
    whole.verify_at("2013-05-24T23:59:59Z").unwrap();
    whole.verify_at("2013-05-23T23:45:00Z").unwrap();
    assert_eq!(whole.verify_at("2013-05-25T00:00:00Z").unwrap_err(), S3Error::Expired);
    assert_eq!(whole.verify_at("2013-05-23T23:44:59Z").unwrap_err(), S3Error::NotYetValid);
}

#[test]
fn each_broken_parameter_of_a_presigned_url_is_named() {
    for (from, to, what) in [
        ("AWS4-HMAC-SHA256&", "AWS4&", "X-Amz-Algorithm only supports AWS4-HMAC-SHA256"),
        ("%2Fs3", "%2Fec2", "for the service 'ec2'"),
        ("%2F20130524", "%2F20130525", "not that of X-Amz-Date"),
        ("%2Faws4_request", "%2Faws3_request", "does not end in aws4_request"),
        ("AKIAIOSFODNN7EXAMPLE%2F", "", "not of the form KEY"),
        ("20130524T000000Z", "20130524", "X-Amz-Date is not of the form"),
        ("X-Amz-Date=20130524T000000Z&", "", "has no X-Amz-Date"),
        ("Expires=86400", "Expires=604801", "less than a week"),
        ("Expires=86400", "Expires=-1", "must be non-negative"),
        ("Expires=86400", "Expires=day", "should be a number"),
        ("SignedHeaders=host", "SignedHeaders=Host", "names in lower case"),
        ("SignedHeaders=host", "SignedHeaders=host%3Bhost", "names in lower case"),
        ("aeeed9bb", "AEEED9BB", "hexadecimal"),
    ] {
        let broken = presigned(|query| {
            assert!(query.contains(from), "{from}");
            query.replace(from, to)
        });
        let Err(S3Error::MalformedQuery { detail }) = broken.verify() else {
            panic!("{from} -> {to}: {:?}", broken.verify())
        };
        assert!(detail.contains(what), "{from} -> {to}: {detail}");
    }
    let other = presigned(|query| query.replace("86400", "86401"));
    assert!(is_wrong(&other.verify()));
    let more = presigned(|query| format!("{query}&versionId=1"));
    assert!(is_wrong(&more.verify()));
}

#[test]
fn each_changed_part_of_a_request_breaks_its_signature() {
    let signed = || get_object().signed(GET_NAMES, GET_SIGNATURE);
    signed().verify().unwrap();
    let mut other = signed();
    other.method = Method::HEAD;
    assert!(is_wrong(&other.verify()));
    let mut other = signed();
    other.path = "/test.txt/";
    assert!(is_wrong(&other.verify()));
    assert!(is_wrong(&signed().query("acl").verify()));
    let mut other = signed();
    other.host = "other.s3.amazonaws.com";
    assert!(is_wrong(&other.verify()));
    let mut other = signed();
    other.headers.remove("range");
    assert!(is_wrong(&other.verify()), "a signed header is missing");
    let mut other = signed();
    other.add("range", "bytes=0-9");
    assert!(is_wrong(&other.verify()), "a signed header came twice");
    let mut spaced = signed();
    spaced.headers.insert("range", HeaderValue::from_static("  bytes=0-9  "));
    spaced.verify().unwrap();
}

#[test]
fn headers_of_s3_and_the_host_have_to_be_signed() {
    let mut other = get_object().signed(GET_NAMES, GET_SIGNATURE);
    other.add("x-amz-acl", "public-read");
    let names = "x-amz-acl".to_owned();
    assert_eq!(other.verify().unwrap_err(), S3Error::UnsignedHeaders { names });
    let other = get_object().signed("range;x-amz-content-sha256;x-amz-date", GET_SIGNATURE);
    let names = "host".to_owned();
    assert_eq!(other.verify().unwrap_err(), S3Error::UnsignedHeaders { names });
}

#[test]
fn clock_may_be_off_by_fifteen_minutes() {
    let signed = get_object().signed(GET_NAMES, GET_SIGNATURE);
    for fits in ["2013-05-24T00:15:00Z", "2013-05-23T23:45:00Z"] {
        signed.verify_at(fits).unwrap();
    }
    for off in ["2013-05-24T00:15:01Z", "2013-05-23T23:44:59Z"] {
        assert_eq!(signed.verify_at(off).unwrap_err(), S3Error::Skewed);
    }
}

#[test]
fn each_broken_piece_of_authorization_is_named() {
    let whole = format!(
        "AWS4-HMAC-SHA256 Credential={ID}/20130524/us-east-1/s3/aws4_request, \
         SignedHeaders={GET_NAMES}, Signature={GET_SIGNATURE}"
    );
    let with = |authorization: &str| {
        let mut example = get_object();
        example.add("authorization", authorization);
        let request = example.request();
        claim(&request).and_then(|claim| {
            let now = Timestamp::from_iso("2013-05-24T00:00:00Z").unwrap();
            claim.expect("there is an Authorization").verify(&request, &secrets(), now)
        })
    };
    with(&whole).unwrap();
    for (from, to, what) in [
        ("Credential", "Kredential", "no Credential"),
        ("SignedHeaders", "Headers", "no SignedHeaders"),
        (", Signature", ", Sig", "no Signature"),
        ("/20130524", "/20130523", "not that of the request"),
        ("/20130524", "/2013", "not of the form KEY"),
        ("/us-east-1", "", "not of the form KEY"),
        ("/s3/", "/s4/", "for the service 's4'"),
        ("aws4_request", "aws5_request", "does not end in aws4_request"),
        ("host;", "host;;", "names in lower case"),
        ("f0e8", "f0e", "hexadecimal"),
        ("f0e8", "g0e8", "hexadecimal"),
    ] {
        assert!(whole.contains(from), "{from}");
        let found = with(&whole.replace(from, to));
        let Err(S3Error::MalformedHeader { detail }) = found else { panic!("{from}: {found:?}") };
        assert!(detail.contains(what), "{from} -> {to}: {detail}");
    }
    for unknown in ["Basic dXNlcjpwYXNz", "Bearer a", "", "AWS5-HMAC-SHA256 a"] {
        assert!(matches!(with(unknown), Err(S3Error::Unsupported { .. })), "{unknown}");
    }
    assert!(matches!(with("AWS4-HMAC-SHA256"), Err(S3Error::MalformedHeader { .. })));
}

#[test]
fn a_request_is_signed_once_with_a_date_and_a_hash() {
    let mut twice = presigned(|query| query);
    twice.add("authorization", "AWS a:b");
    assert_eq!(claim(&twice.request()).unwrap_err(), S3Error::SignedTwice);
    let mut example = get_object().signed(GET_NAMES, GET_SIGNATURE);
    example.headers.remove("x-amz-date");
    assert_eq!(claim(&example.request()).unwrap_err(), S3Error::NoDate);
    let mut example = get_object().signed(GET_NAMES, GET_SIGNATURE);
    example.headers.remove("x-amz-content-sha256");
    assert_eq!(example.verify().unwrap_err(), S3Error::NoPayloadHash);
    let mut example = get_object().signed(GET_NAMES, GET_SIGNATURE);
    example.headers.insert("x-amz-content-sha256", HeaderValue::from_static("abc"));
    assert_eq!(example.verify().unwrap_err(), S3Error::BadPayloadHash);
    assert!(claim(&get_object().request()).unwrap().is_none());
}

#[test]
fn chunks_of_the_documentation() {
    let example = Example::new(
        Method::PUT,
        "/examplebucket/chunkObject.txt",
        &[
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
            ("content-encoding", "aws-chunked"),
            ("x-amz-decoded-content-length", "66560"),
            ("content-length", "66824"),
        ],
    );
    let names = "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;\
                 x-amz-decoded-content-length;x-amz-storage-class";
    let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    let mut example = example.signed(names, seed);
    example.host = "s3.amazonaws.com";
    let Payload::Chunks { verifier: Some(mut verifier), trailers: false } =
        example.verify().unwrap().payload
    else {
        panic!("signed chunks without trailers")
    };
    let sha256 = |len| ring::digest::digest(&ring::digest::SHA256, &vec![b'a'; len]);
    let chunks = [
        (65_536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
        (1_024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
        (0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
    ];
    let mut out_of_order = verifier.clone();
    assert!(!out_of_order.chunk(sha256(1_024).as_ref(), chunks[1].1));
    for (len, signature) in chunks {
        assert!(!verifier.chunk(sha256(len + 1).as_ref(), signature));
        assert!(verifier.chunk(sha256(len).as_ref(), signature));
    }
}

#[test]
fn version_2_of_the_documentation() {
    let mut example = Example::new(
        Method::GET,
        "/photos/puppy.jpg",
        &[
            ("date", "Tue, 27 Mar 2007 19:36:42 +0000"),
            ("authorization", "AWS AKIAIOSFODNN7EXAMPLE:qgk2+6Sv9/oM7G3qLEjTH1a1l1g="),
        ],
    );
    example.headers.insert("date", HeaderValue::from_static("Tue, 27 Mar 2007 19:36:42 GMT"));
    let now = Timestamp::from_iso("2007-03-27T19:36:42Z").unwrap();
    let request = SignedS3Request { bucket: Some("awsexamplebucket1"), ..example.request() };
    let claim = claim(&request).unwrap().unwrap();
    let Err(S3Error::WrongSignature { string_to_sign, .. }) =
        claim.verify(&request, &secrets(), now)
    else {
        panic!("the date is written differently here")
    };
    assert_eq!(
        string_to_sign,
        "GET\n\n\nTue, 27 Mar 2007 19:36:42 GMT\n/awsexamplebucket1/photos/puppy.jpg"
    );
}
