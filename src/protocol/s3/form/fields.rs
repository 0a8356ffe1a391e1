//! The fields of a form, and the headers that they become.

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::header;
use http::request::Parts;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3::form::boundary::Boundary;

/// The placeholder for the name of the file, in every field.
const FILENAME: &str = "${filename}";
/// The prefix of S3's own headers.
const OWN: &str = "x-amz-";
const KEY: &str = "key";
/// Fields that are headers of HTTP.
const HEADERS: [HeaderName; 9] = [
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::EXPIRES,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    HeaderName::from_static("content-md5"),
];
/// Fields of the signature, and fields about bodies that are not forms.
const NO_HEADERS: [&str; 7] = [
    "x-amz-algorithm",
    "x-amz-content-sha256",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-decoded-content-length",
    "x-amz-signature",
    "x-amz-trailer",
];
/// Headers of S3 that clients add to every request, and that have no meaning for a form.
const HARMLESS: [&str; 3] = ["x-amz-content-sha256", "x-amz-date", "x-amz-user-agent"];

/// A field before the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name as it was sent; the case of letters does not count.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Field {
    /// A field.
    #[must_use]
    pub const fn new(name: String, value: String) -> Self {
        Self { name, value }
    }

    /// Whether it has this name, which is in lower case.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// The fields of a form before its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostForm {
    fields: Vec<Field>,
    boundary: Boundary,
    /// `http` or `https`, as the form came.
    scheme: &'static str,
}

/// The form of a request, once it was read.
#[must_use]
pub fn of(head: &Parts) -> Option<&PostForm> {
    head.extensions.get::<PostForm>()
}

impl PostForm {
    /// A form of these fields. `filename` is the name of the file, if the form has it. Without the
    /// folders before it, it replaces `${filename}`.
    ///
    /// # Errors
    /// `InvalidHeaderValue` (InvalidArgument) when `key` is missing or empty, or a field repeated.
    pub fn new(
        mut fields: Vec<Field>,
        filename: Option<&str>,
        boundary: Boundary,
    ) -> Result<Self, Refusal> {
        if let Some(path) = filename {
            let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
            for field in &mut fields {
                if field.value.contains(FILENAME) {
                    field.value = field.value.replace(FILENAME, name);
                }
            }
        }
        let mut names: Vec<String> =
            fields.iter().map(|field| field.name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| matches!(pair, [one, other] if one == other));
        if let Some(name) = twice.and_then(|pair| pair.first()) {
            let text = format!("The form has several fields of the name '{name}'.");
            return Err(argument(&text, name, ""));
        }
        let form = Self { fields, boundary, scheme: "http" };
        match form.get(KEY) {
            None => Err(missing(KEY)),
            Some("") => Err(argument("User key must have a length greater than 0.", KEY, "")),
            Some(_) => Ok(form),
        }
    }

    /// The value of a field; the name is in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.is(name)).map(|field| field.value.as_str())
    }

    /// The key of the object.
    #[must_use]
    pub fn key(&self) -> &str {
        self.get(KEY).unwrap_or_default()
    }

    /// The delimiter between the parts of the body.
    #[must_use]
    pub const fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// How the form came.
    pub(super) const fn scheme(&self) -> &'static str {
        self.scheme
    }

    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Makes the fields headers of the request, as a PUT would have them, and adds itself to the
    /// head as an extension. Headers of the request that are about its body are dropped. `scheme`
    /// is `http` or `https`.
    ///
    /// # Errors
    /// `UnsupportedHeader` for a header that only a field may be, `InvalidHeaderValue`
    /// (InvalidArgument) for a field that cannot be a header.
    pub fn apply(self, head: &mut Parts, scheme: &'static str) -> Result<(), Refusal> {
        let mut headers = kept(&head.headers)?;
        for field in &self.fields {
            let Some(name) = header_of(field) else { continue };
            let refused = || argument("The field cannot be a header.", &field.name, &field.value);
            let value = field.value.trim_matches([' ', '\t']);
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| refused())?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
            headers.insert(name, value);
        }
        head.headers = headers;
        head.extensions.insert(Self { scheme, ..self });
        Ok(())
    }
}

/// The header that a field is, if it is one.
fn header_of(field: &Field) -> Option<String> {
    let name = field.name.to_ascii_lowercase();
    if name == "acl" {
        return Some("x-amz-acl".to_owned());
    }
    let is_own = name.starts_with(OWN) && !NO_HEADERS.contains(&name.as_str());
    let is_header = is_own || HEADERS.iter().any(|header| header == name.as_str());
    is_header.then_some(name)
}

/// The headers of the request that are not about its body.
fn kept(all: &HeaderMap) -> Result<HeaderMap, Refusal> {
    let mut headers = HeaderMap::with_capacity(all.len());
    for (name, value) in all {
        let is_own = name.as_str().starts_with(OWN);
        if is_own && HARMLESS.contains(&name.as_str()) {
            continue;
        }
        if is_own || [header::IF_MATCH, header::IF_NONE_MATCH].contains(name) {
            return Err(Refusal::new(Reason::UnsupportedHeader)
                .message("A form has fields in the place of this header.")
                .detail(Detail::HeaderName, name.as_str()));
        }
        let is_of_body = name.as_str().starts_with("content-")
            || [header::TRANSFER_ENCODING, header::CACHE_CONTROL, header::EXPIRES].contains(name);
        if !is_of_body {
            headers.append(name.clone(), value.clone());
        }
    }
    Ok(headers)
}

/// The refusal of a form without a field.
pub(super) fn missing(name: &str) -> Refusal {
    let text = format!(
        "Bucket POST must contain a field named '{name}'.  If it is specified, please check the \
         order of the fields."
    );
    argument(&text, name, "")
}

/// The refusal of a field.
fn argument(text: &str, name: &str, value: &str) -> Refusal {
    Refusal::new(Reason::InvalidHeaderValue)
        .message(text)
        .detail(Detail::HeaderName, name)
        .detail(Detail::HeaderValue, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(pairs: &[(&str, &str)], filename: Option<&str>) -> Result<PostForm, Refusal> {
        let field = |(name, value): &(&str, &str)| Field::new((*name).into(), (*value).into());
        let boundary = Boundary::new("B").unwrap();
        PostForm::new(pairs.iter().map(field).collect(), filename, boundary)
    }

    #[test]
    fn the_name_of_the_file_takes_its_place() {
        for (filename, key) in [
            (Some("a.txt"), "in/a.txt"),
            (Some("C:\\d\\a.txt"), "in/a.txt"),
            (Some("/x/y/a.txt"), "in/a.txt"),
            (Some(""), "in/"),
            (None, "in/${filename}"),
        ] {
            let made =
                form(&[("Key", "in/${filename}"), ("x-amz-meta-n", "${filename}")], filename);
            let made = made.unwrap();
            assert_eq!(made.key(), key);
            assert_eq!(made.get("x-amz-meta-n"), key.strip_prefix("in/"));
        }
    }

    #[test]
    fn fields_become_headers() {
        let request = http::Request::post("/b")
            .header("host", "h")
            .header("content-type", "multipart/form-data; boundary=B")
            .header("content-length", "99")
            .header("x-amz-date", "d")
            .header("origin", "o");
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        let fields = [
            ("key", "k"),
            ("ACL", "private"),
            ("Content-Type", " a/b"),
            ("X-Amz-Meta-A", "1"),
            ("x-amz-date", "d"),
            ("transfer-encoding", "chunked"),
            ("host", "evil"),
            ("other", "x\ny"),
        ];
        form(&fields, None).unwrap().apply(&mut head, "http").unwrap();
        let mut names: Vec<&str> = head.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-type", "host", "origin", "x-amz-acl", "x-amz-meta-a"]);
        assert_eq!(head.headers["content-type"], "a/b");
        assert_eq!(head.headers["host"], "h");
        assert_eq!(of(&head).unwrap().key(), "k");
    }

    #[test]
    fn fields_that_cannot_be_headers_are_refused() {
        let apply = |fields: &[(&str, &str)], header: &str| {
            let request = http::Request::post("/b").header(header, "1").body(()).unwrap();
            form(fields, None)?.apply(&mut request.into_parts().0, "http")
        };
        let reason = |result: Result<(), Refusal>| result.unwrap_err().reason;
        let bad = apply(&[("key", "k"), ("x-amz-meta-a", "x\ny")], "via");
        assert_eq!(reason(bad), Reason::InvalidHeaderValue);
        let bad = apply(&[("key", "k"), ("x-amz-meta-a b", "x")], "via");
        assert_eq!(reason(bad), Reason::InvalidHeaderValue);
        for header in ["x-amz-acl", "x-amz-server-side-encryption", "if-none-match"] {
            assert_eq!(reason(apply(&[("key", "k")], header)), Reason::UnsupportedHeader);
        }
        for fields in [&[("acl", "private")][..], &[("key", "")], &[("key", "a"), ("Key", "a")]] {
            assert_eq!(form(fields, None).unwrap_err().reason, Reason::InvalidHeaderValue);
        }
    }
}
