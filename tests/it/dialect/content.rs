//! A dialect compares tags of content, and names checksums.

use blockyard::protocol::model::operation::ChecksumClaim;
use blockyard::types::ChecksumAlgorithm;
use blockyard::types::ChecksumValue;
use blockyard::types::Conditions;
use blockyard::types::ContentEtag;
use blockyard::types::EtagMatch;

use super::*;

/// `sum: BASE64`, of an SHA-1.
pub(super) fn sum(head: &Parts) -> Result<ClaimedChecksums, Refusal> {
    let Some(given) = text(&head.headers, "sum") else { return Ok(ClaimedChecksums::default()) };
    let algorithm = ChecksumAlgorithm::Sha1;
    let value = ChecksumValue::from_base64(algorithm, given).ok_or_else(|| malformed("the sum"))?;
    Ok(ClaimedChecksums { wanted: Some(algorithm), claim: ChecksumClaim::Value(value) })
}

/// `only-if: TAG`.
pub(super) fn conditions(head: &Parts) -> Conditions {
    let tag = text(&head.headers, "only-if");
    let if_match = tag.map(|tag| EtagMatch::Content(ContentEtag::parse(tag).into_iter().collect()));
    Conditions { if_match, ..Conditions::default() }
}

/// `mark: TAG`, and `sums: ALGORITHM BASE64` of each checksum.
pub(super) fn of_content(facts: &BlobFacts) -> [(&'static str, String); 2] {
    let sums = facts.content_checksums().into_iter().map(|checksum| {
        let value = ChecksumValue::new(checksum.algorithm, &checksum.digest).unwrap();
        format!("{value:?}")
    });
    [("mark", facts.content_etag.to_string()), ("sums", sums.collect::<Vec<_>>().join(", "))]
}

const MD5_OF_ONE: &str = "f97c5d29941bfb1b2fdab0874906ab82";
const SHA1_OF_ONE: &str = "/gW83NxJKAEngaXxoqd8u1OY4QY=";

#[test]
fn tag_of_content_is_of_the_content_whoever_writes_it() {
    let both = Both::start();
    assert_eq!(both.owner("PUT /box", &[], "").status, 200);
    let mark = |name: &str| {
        let head = both.owner(&format!("HEAD /box/{name}"), &[], "");
        (head.header("mark").to_owned(), head.header("sums").to_owned())
    };
    let crc64 =
        |bytes: &[u8]| format!("{:?}", ChecksumValue::compute(ChecksumAlgorithm::Crc64Nvme, bytes));
    let put = of_azure("PUT", "box/a").header("x-ms-blob-type: BlockBlob").body("one");
    assert_eq!(both.azure(&put).status, 201);
    assert_eq!(mark("a"), (MD5_OF_ONE.to_owned(), crc64(b"one")));
    // Another Content-MD5 changes Azure's tag only.
    let before = both.azure(&of_azure("HEAD", "box/a")).header("etag").to_owned();
    let set = of_azure("PUT", "box/a?comp=properties");
    let set = set.header("x-ms-blob-content-md5: 1B2M2Y8AsgTpgAmY7PhCfg==");
    assert_eq!(both.azure(&set).status, 200);
    assert_ne!(both.azure(&of_azure("HEAD", "box/a")).header("etag"), before);
    assert_eq!(mark("a").0, MD5_OF_ONE);

    for (piece, body) in [("p1", "first "), ("p2", "second")] {
        assert_eq!(both.owner(&format!("PUT /box/c?piece={piece}"), &[], body).status, 200);
    }
    assert_eq!(both.owner("POST /box/c?join", &[], "p1\np2\n").status, 200);
    let (joined, sums) = mark("c");
    assert!(joined.len() == 34 && joined.ends_with("-1"), "{joined} looks like an MD5");
    assert_eq!(sums, crc64(b"first second"));
    assert_eq!(both.owner("POST /box/c?notes", &["note-mood: new"], "").status, 200);
    assert_eq!(mark("c").0, joined);
}

#[test]
fn writes_are_decided_by_the_tag_of_the_content() {
    let both = Both::start();
    assert_eq!(both.owner("PUT /box", &[], "").status, 200);
    let code = |answer: &Answer| (answer.status, answer.text().trim().to_owned());
    let only_if = format!("only-if: \"{MD5_OF_ONE}\"");
    let only_if = [only_if.as_str()];
    let nothing = both.owner("PUT /box/a", &only_if, "two");
    assert_eq!(code(&nothing), (404, "nothing-there".to_owned()));
    assert_eq!(both.owner("PUT /box/a", &[], "one").status, 200);
    assert_eq!(both.owner("PUT /box/a", &only_if, "two").status, 200);
    let changed = both.owner("PUT /box/a", &only_if, "three");
    assert_eq!(code(&changed), (412, "too-late".to_owned()));
    assert_eq!(code(&both.owner("GET /box/a", &only_if, "")), (412, "too-late".to_owned()));
    assert_eq!(both.owner("GET /box/a", &[], "").text(), "two");
    // Blob answers If-Match on nothing as before.
    let put = of_azure("PUT", "box/b").header("x-ms-blob-type: BlockBlob").header("if-match: *");
    let refused = both.azure(&put.body("one"));
    assert_eq!((refused.status, refused.header("x-ms-error-code")), (412, "ConditionNotMet"));
}

#[test]
fn named_checksum_is_verified_and_kept() {
    let both = Both::start();
    assert_eq!(both.owner("PUT /box", &[], "").status, 200);
    let right = format!("sum: {SHA1_OF_ONE}");
    let wrong = both.owner("PUT /box/a", &[&right], "two");
    assert_eq!((wrong.status, wrong.text().trim()), (400, "other-bytes"));
    assert_eq!(both.owner("GET /box/a", &[], "").status, 404, "nothing is stored");
    assert_eq!(both.owner("PUT /box/a", &["sum: short"], "one").status, 422);
    assert_eq!(both.owner("PUT /box/a", &[&right], "one").status, 200);
    let head = both.owner("HEAD /box/a", &[], "");
    assert_eq!(head.header("sums"), format!("Sha1 {SHA1_OF_ONE}"));
}
