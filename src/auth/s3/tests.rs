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
            form: None,
            service: SignedService::S3,
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
        ("/s3/", "/sts/", "for the service 'sts'"),
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
fn trailers_of_the_documentation() {
    let (date, region, service) = ("20130524", "us-east-1", "s3");
    let scope = secrets::Scope {
        date: date.to_owned(),
        region: region.to_owned(),
        service: service.to_owned(),
    };
    let mut key = hmac(format!("AWS4{SECRET}").as_bytes(), date.as_bytes());
    for step in [region, service, "aws4_request"] {
        key = hmac(key.as_ref(), step.as_bytes());
    }
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.as_ref());
    let seed = unhex("106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e").unwrap();
    let scope = scope.to_string();
    let mut verifier = ChunkVerifier::new(key, "20130524T000000Z", &scope, &seed);
    let sha256 = |len| ring::digest::digest(&ring::digest::SHA256, &vec![b'a'; len]);
    for (len, signature) in [
        (65_536, "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2"),
        (1_024, "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7"),
        (0, "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"),
    ] {
        assert!(verifier.chunk(sha256(len).as_ref(), signature), "{len}");
    }
    let signature = "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435";
    assert!(!verifier.trailers(b"x-amz-checksum-crc32c:sOO8/A==\n", signature));
    assert!(verifier.trailers(b"x-amz-checksum-crc32c:sOO8/Q==\n", signature));
}

fn hmac(key: &[u8], text: &[u8]) -> ring::hmac::Tag {
    ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key), text)
}

#[test]
fn values_that_are_not_utf_8_are_signed_as_they_are() {
    let mut example = get_object();
    let value = HeaderValue::from_bytes(b"caf\xe9  au lait").unwrap();
    example.headers.insert("x-amz-meta-a", value);
    let canonical = canonical::canonical_request(&example.request(), "x-amz-meta-a", "", None);
    assert_eq!(canonical, b"GET\n/test.txt\n\nx-amz-meta-a:caf\xe9 au lait\n\nx-amz-meta-a\n");
    let signed = resource::string_to_sign(&example.request(), None);
    assert!(signed.windows(6).any(|part| part == b":caf\xe9 "));
}

#[test]
fn only_keys_that_verified_a_signature_are_kept() {
    let held = secrets();
    let scope = |region: &str| secrets::Scope {
        date: "20130524".to_owned(),
        region: region.to_owned(),
        service: "s3".to_owned(),
    };
    for number in 0..10 {
        assert!(held.verify_v4(&scope(&number.to_string()), b"text", b"guessed").is_none());
    }
    assert_eq!(held.kept(), 0);
    get_object().signed(GET_NAMES, GET_SIGNATURE).verify().unwrap();
    let long = get_object().signed(GET_NAMES, GET_SIGNATURE);
    let mut long = long;
    let value = long.headers.get("authorization").unwrap().to_str().unwrap();
    let value = value.replace("us-east-1", &"r".repeat(65));
    long.headers.insert("authorization", HeaderValue::from_str(&value).unwrap());
    assert!(matches!(long.verify(), Err(S3Error::MalformedHeader { .. })));
}

/// The string to sign of the documentation, whose date is not an HTTP date: the test signs it anew.
#[test]
fn version_2_signs_what_the_documentation_says() {
    let signed = "GET\n\n\nTue, 27 Mar 2007 19:36:42 GMT\n/awsexamplebucket1/photos/puppy.jpg";
    let mut example = Example::new(
        Method::GET,
        "/photos/puppy.jpg",
        &[("date", "Tue, 27 Mar 2007 19:36:42 GMT"), ("authorization", &of_version_2(signed))],
    );
    let verify = |example: &Example| {
        let request = SignedS3Request { bucket: Some("awsexamplebucket1"), ..example.request() };
        let now = Timestamp::from_iso("2007-03-27T19:36:42Z").unwrap();
        claim(&request).unwrap().unwrap().verify(&request, &secrets(), now)
    };
    assert!(matches!(verify(&example).unwrap().payload, Payload::Unsigned));
    for query in ["acl", "%61cl", "ac%6C=", "response-expires=0"] {
        example.query = Some(query.to_owned());
        assert!(is_wrong(&verify(&example)), "{query} is signed");
    }
    example.query = Some("prefix=a".to_owned());
    verify(&example).unwrap();
    example.add("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
    assert!(matches!(verify(&example), Err(S3Error::Unsupported { .. })));
}

fn of_version_2(text: &str) -> String {
    use base64::Engine;
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, SECRET.as_bytes());
    let signature = ring::hmac::sign(&key, text.as_bytes());
    format!("AWS {ID}:{}", base64::engine::general_purpose::STANDARD.encode(signature))
}

#[test]
fn presigned_url_of_version_2_ends_when_it_says() {
    let signed = of_version_2("GET\n\n\n1369353600\n/b/k?versionId=a b");
    let signature = signed.rsplit_once(':').unwrap().1.replace('+', "%2B");
    let query = format!(
        "AWSAccessKeyId={ID}&Expires=1369353600&Signature={signature}&versionId=a%20b&prefix=c"
    );
    let example = Example::new(Method::GET, "/b/k", &[]).query(&query);
    example.verify_at("2013-05-24T00:00:00Z").unwrap();
    assert_eq!(example.verify_at("2013-05-24T00:00:01Z").unwrap_err(), S3Error::Expired);
}
