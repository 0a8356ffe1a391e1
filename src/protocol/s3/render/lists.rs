//! Documents of lists of objects and versions.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::protocol::model::facts::BlobFacts;
use crate::protocol::model::facts::Change;
use crate::protocol::model::list_reply::BlobItem;
use crate::protocol::model::list_reply::BlobListing;
use crate::protocol::model::operation::Passed;
use crate::protocol::s3::arguments;
use crate::protocol::s3::checksums;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::s3::lists;
use crate::protocol::s3::markers;
use crate::protocol::s3::render::document::Keys;
use crate::protocol::s3::render::document::begin;
use crate::protocol::s3::render::document::owner;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::s3::versions;
use crate::protocol::wire::escape;
use crate::protocol::wire::query::Query;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;
use crate::types::Timestamp;

/// The kind of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    V1,
    V2,
    Versions,
}

/// A list that is written.
struct Writer<'a> {
    page: &'a BlobListing,
    echo: &'a S3Echo,
    query: &'a Query,
    form: Form,
    keys: Keys,
    out: String,
}

/// `ListObjects`, `ListObjectsV2` and `ListObjectVersions`.
pub(super) fn objects(page: &BlobListing, echo: &S3Echo) -> String {
    let query = &echo.parameters();
    let form = match echo.operation {
        Some(S3Operation::ListObjectVersions) => Form::Versions,
        Some(_) | None if lists::is_v2(query) => Form::V2,
        Some(_) | None => Form::V1,
    };
    let keys = Keys { encoded: arguments::is_encoded(query).unwrap_or_default() };
    let root = if form == Form::Versions { "ListVersionsResult" } else { "ListBucketResult" };
    let mut writer = Writer { page, echo, query, form, keys, out: begin(root) };
    writer.head();
    writer.items();
    let mut out = writer.out;
    out.push_str("</");
    out.push_str(root);
    out.push('>');
    out
}

impl Writer<'_> {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).ok().flatten()
    }

    /// Writes the elements that repeat the request, and the marker of the next page.
    fn head(&mut self) {
        escape::element(&mut self.out, "Name", &self.echo.bucket);
        self.repeat("prefix", "Prefix");
        match self.form {
            Form::V1 => self.repeat("marker", "Marker"),
            Form::V2 => self.positions_of_v2(),
            Form::Versions => {
                self.repeat("key-marker", "KeyMarker");
                self.repeat("version-id-marker", "VersionIdMarker");
            }
        }
        self.next();
        let max_keys = arguments::page_size(self.query, "max-keys").unwrap_or_default();
        escape::plain(&mut self.out, "MaxKeys", max_keys);
        if self.parameter("delimiter").is_some() {
            self.repeat("delimiter", "Delimiter");
        }
        if self.keys.encoded {
            escape::plain(&mut self.out, "EncodingType", "url");
        }
        escape::plain(&mut self.out, "IsTruncated", self.page.next.is_some());
    }

    /// An element with the value of a parameter, empty without one.
    fn repeat(&mut self, parameter: &str, tag: &str) {
        let value = self.query.get(parameter).ok().flatten().unwrap_or_default();
        self.keys.element(&mut self.out, tag, value);
    }

    fn positions_of_v2(&mut self) {
        if let Some(token) = self.query.get("continuation-token").ok().flatten() {
            escape::element(&mut self.out, "ContinuationToken", token);
        } else if self.query.has("start-after") {
            self.repeat("start-after", "StartAfter");
        }
        escape::plain(&mut self.out, "KeyCount", self.page.items.len());
    }

    fn next(&mut self) {
        let Some(next) = &self.page.next else { return };
        match self.form {
            Form::V2 => {
                let token = URL_SAFE_NO_PAD.encode(next);
                escape::plain(&mut self.out, "NextContinuationToken", token);
            }
            // Without a delimiter, clients take the last key.
            Form::V1 if self.parameter("delimiter").is_none() && self.page.passed.is_none() => {}
            Form::V1 => {
                let marker = self.next_key();
                self.keys.element(&mut self.out, "NextMarker", &marker);
            }
            Form::Versions => {
                let marker = self.next_key();
                self.keys.element(&mut self.out, "NextKeyMarker", &marker);
                if let Some(time) = self.next_version() {
                    escape::plain(&mut self.out, "NextVersionIdMarker", versions::id_of(time));
                }
            }
        }
    }

    /// The version after which the next page begins; `None` if it begins with another key.
    fn next_version(&self) -> Option<Timestamp> {
        if let Some(passed) = &self.page.passed {
            return passed.version;
        }
        let Some(BlobItem::Blob { facts, .. }) = self.page.items.last() else { return None };
        // The time, also of the null version: its place in the order is needed.
        let Change { last_modified, version, .. } = facts.change;
        Some(version.map_or(last_modified, |version| version.time))
    }

    /// The marker of the next page.
    fn next_key(&self) -> String {
        if let Some(Passed { name, .. }) = &self.page.passed {
            let folds = self.parameter("delimiter").is_some();
            return if folds { markers::passed(name) } else { name.clone() };
        }
        match self.page.items.last() {
            Some(
                BlobItem::Blob { name, .. }
                | BlobItem::Prefix { name }
                | BlobItem::VersionsOnly { name, .. }
                | BlobItem::Uncommitted { name },
            ) => name.clone(),
            None => String::new(),
        }
    }

    /// Objects, then common prefixes.
    fn items(&mut self) {
        let shows_owner = match self.form {
            Form::V1 | Form::Versions => true,
            Form::V2 => self.parameter("fetch-owner").is_some_and(lists::is_true),
        };
        let mut before = None;
        for item in &self.page.items {
            if let BlobItem::Blob { name, facts, .. } = item {
                let is_latest = self.form == Form::Versions && self.is_latest(item, before);
                before = Some(name.as_str());
                self.object(name, facts, &Shown { shows_owner, is_latest });
            }
        }
        for item in &self.page.items {
            if let BlobItem::Prefix { name } = item {
                self.out.push_str("<CommonPrefixes>");
                self.keys.element(&mut self.out, "Prefix", name);
                self.out.push_str("</CommonPrefixes>");
            }
        }
    }

    /// Whether a version is the newest of its key, after a version of the key `before`. It is the
    /// current object, or a delete marker that is the first of its key.
    fn is_latest(&self, item: &BlobItem, before: Option<&str>) -> bool {
        let BlobItem::Blob { name, revision, facts } = item else { return false };
        let is_first = || match before {
            Some(before) => before != name,
            None => !self.page.has_newer,
        };
        revision.is_current() || facts.is_marker && is_first()
    }

    fn object(&mut self, name: &str, facts: &BlobFacts, shown: &Shown) {
        let (begin, end) = match self.form {
            Form::V1 | Form::V2 => ("<Contents>", "</Contents>"),
            Form::Versions if facts.is_marker => ("<DeleteMarker>", "</DeleteMarker>"),
            Form::Versions => ("<Version>", "</Version>"),
        };
        let out = &mut self.out;
        out.push_str(begin);
        self.keys.element(out, "Key", name);
        if self.form == Form::Versions {
            let id = facts.change.version.map_or_else(|| versions::NULL.to_owned(), versions::id);
            escape::plain(out, "VersionId", id);
            escape::plain(out, "IsLatest", shown.is_latest);
        }
        escape::plain(out, "LastModified", facts.change.last_modified.to_iso_millis());
        if facts.is_marker {
            owner(out, &self.echo.owner, self.echo);
            out.push_str(end);
            return;
        }
        escape::plain(out, "ETag", format_args!("&quot;{}&quot;", facts.content_etag));
        checksum(out, facts);
        escape::plain(out, "Size", facts.len);
        if shown.shows_owner {
            let of = facts.object.as_ref().and_then(|object| object.owner.as_deref());
            owner(out, of.unwrap_or(&self.echo.owner), self.echo);
        }
        escape::plain(out, "StorageClass", facts.storage_class().as_str());
        out.push_str(end);
    }
}

/// The optional fields of an object in a list.
struct Shown {
    shows_owner: bool,
    /// Whether it is the newest version of its key.
    is_latest: bool,
}

/// Writes the algorithm and type of an object's checksum. Its value is only in the head of the
/// object.
fn checksum(out: &mut String, facts: &BlobFacts) {
    let derived = facts.crc64.map(|_| (ChecksumAlgorithm::Crc64Nvme, ChecksumKind::FullObject));
    let kept = facts.checksums.first().map(|checksum| (checksum.algorithm, checksum.kind));
    let Some((algorithm, kind)) = kept.or(derived) else { return };
    let Some(name) = checksums::name(algorithm) else { return };
    escape::element(out, "ChecksumAlgorithm", name);
    escape::element(out, "ChecksumType", checksums::kind_name(kind));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::model::Address;
    use crate::protocol::model::Operation;
    use crate::protocol::model::operation::ContainerOperation;
    use crate::protocol::model::operation::ListAfter;
    use crate::protocol::model::operation::Parsed;
    use crate::protocol::model::operation::VersionAfter;
    use crate::protocol::s3::parse::parse;
    use crate::types::AccountName;
    use crate::types::ContainerName;

    const TIME: Timestamp = Timestamp::from_ticks(638_000_000_000_000_001);

    /// The request of this query, its echo, and where the list goes on.
    fn asked(query: &str) -> (S3Echo, Option<ListAfter>) {
        let address = Address {
            account: AccountName::new("acct").unwrap(),
            secondary: false,
            container: Some(ContainerName::new("bucket").unwrap()),
            blob: None,
            blob_as_sent: None,
            endpoint: "127.0.0.1:1/".to_owned(),
        };
        let request = http::Request::get(format!("/bucket?{query}")).body(()).unwrap();
        let (head, ()) = request.into_parts();
        let mut echo = S3Echo::new(&head, String::new(), TIME);
        echo.admitted(&head, &address, "");
        let Ok(Parsed::Ready(operation)) = parse(&head, &address) else { panic!("{query}") };
        let Operation::Container(ContainerOperation::ListBlobs(list)) = *operation else {
            panic!("{query}")
        };
        (echo, list.after)
    }

    fn text<'a>(document: &'a str, tag: &str) -> &'a str {
        let rest = document.split_once(&format!("<{tag}>")).expect(tag).1;
        rest.split_once("</").unwrap().0
    }

    /// Markers of a page that ended behind what it does not show are read as they are meant.
    #[test]
    fn page_that_passed_a_version_goes_on_there() {
        let next = Some("position".into());
        for (delimiter, version, wanted) in [
            ("", Some(TIME), ListAfter::Version("a/ü".to_owned(), VersionAfter::Time(TIME))),
            ("", None, ListAfter::NameOrPrefix("a/ü".to_owned())),
            ("/", Some(TIME), ListAfter::PassedVersion("a/ü".to_owned(), VersionAfter::Time(TIME))),
            ("/", None, ListAfter::Name("a/ü".to_owned())),
        ] {
            let delimiter = Some(delimiter).filter(|text| !text.is_empty());
            let delimiter = delimiter.map_or(String::new(), |text| format!("&delimiter={text}"));
            let query = format!("versions&encoding-type=url{delimiter}");
            let (echo, _) = asked(&query);
            let passed = Some(Passed { name: "a/ü".to_owned(), version });
            let page = BlobListing { passed, next: next.clone(), ..BlobListing::default() };
            let document = objects(&page, &echo);
            let mut marked = format!("{query}&key-marker={}", text(&document, "NextKeyMarker"));
            if version.is_some() {
                let id = text(&document, "NextVersionIdMarker");
                marked = format!("{marked}&version-id-marker={id}");
            }
            assert_eq!(asked(&marked).1, Some(wanted), "{marked}");
        }
    }

    #[test]
    fn null_version_is_a_place_in_a_list() {
        let after = asked("versions&key-marker=a&version-id-marker=null").1;
        assert_eq!(after, Some(ListAfter::Version("a".to_owned(), VersionAfter::Null)));
    }
}
