//! `blockyard stat`: properties, metadata and tags.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::Args;
use http::HeaderMap;
use serde_json::Value;
use serde_json::json;

use crate::cli::escaped::shown;
use crate::cli::output::json_line;
use crate::cli::output::print;

use super::blobs::facts;
use super::blobs::metadata;
use super::connect::ConnectArgs;
use super::connect::Login;
use super::error::FilesError;
use super::http::Answer;
use super::local::Local;
use super::place::Named;
use super::place::Remote;
use super::place::named;
use super::service::Service;
use super::show;

/// Headers that are of the answer, not of the blob, and those that have a name of their own here.
const NO_PROPERTIES: [&str; 19] = [
    "accept-ranges",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "connection",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "etag",
    "keep-alive",
    "last-modified",
    "server",
    "vary",
    "x-content-type-options",
    "x-ms-access-tier",
    "x-ms-blob-type",
    "x-ms-client-request-id",
    "x-ms-request-id",
    "x-ms-version",
];

/// The header of the source of a copy.
const COPY_SOURCE: &str = "x-ms-copy-source";

/// Arguments of `stat`.
#[derive(Args, Debug)]
pub struct StatArgs {
    /// Blobs or containers, as URLs or by://CONTAINER/BLOB, and local files
    #[arg(value_name = "PLACE", required = true)]
    pub places: Vec<OsString>,
    /// Print a JSON object for each
    #[arg(long)]
    pub json: bool,
    /// The endpoint and the account.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Runs `blockyard stat`.
///
/// # Errors
/// [`FilesError`].
pub(in crate::cli) async fn stat(args: &StatArgs) -> Result<(), FilesError> {
    let login = Login::new(&args.connect.login)?;
    let service = Service::new(&args.connect)?;
    for place in named(&args.places, &login)? {
        let value = match place {
            Named::Remote(place) => remote(&service, &place).await?,
            Named::Local(path) => {
                let found = path.clone();
                let found = service.on_disk(&path, move || Local::itself(&found)).await?;
                show::local_object(&found)
            }
        };
        let text = if args.json { json_line(&value) } else { lines(&value) };
        print(&text).map_err(|error| FilesError::Wrong(error.to_string()))?;
    }
    Ok(())
}

/// All that the service knows of a blob or container.
async fn remote(service: &Service, place: &Remote) -> Result<Value, FilesError> {
    place.container()?;
    let answer = service.properties(place).await?;
    let mut value = object(place, &answer);
    if !place.name.is_empty() && !answer.header("x-ms-tag-count").is_empty() {
        let tags: BTreeMap<String, String> = service.tags(place).await?.into_iter().collect();
        value["tags"] = json!(tags);
    }
    Ok(value)
}

/// All that the headers say.
fn object(place: &Remote, answer: &Answer) -> Value {
    let mut value = if place.name.is_empty() {
        let found = facts("", answer);
        let etag = found.etag.trim_matches('"');
        json!({ "container": place.container, "modified": show::iso(found.modified), "etag": etag })
    } else {
        show::object(&facts(&place.name, answer))
    };
    value["url"] = json!(place.url());
    value["metadata"] = json!(metadata(&answer.headers).into_iter().collect::<BTreeMap<_, _>>());
    value["properties"] = json!(properties(&answer.headers));
    value
}

/// The headers that say something of the blob.
fn properties(headers: &HeaderMap) -> BTreeMap<&str, String> {
    let others = headers.iter().filter(|(name, _)| {
        !NO_PROPERTIES.contains(&name.as_str()) && !name.as_str().starts_with("x-ms-meta-")
    });
    let text = |name: &str, value: &http::HeaderValue| {
        let text = String::from_utf8_lossy(value.as_bytes());
        // A source may have been given with a signature.
        let end = text.find('?').filter(|_| name == COPY_SOURCE);
        text.get(..end.unwrap_or(text.len())).unwrap_or_default().to_owned()
    };
    others.map(|(name, value)| (short(name.as_str()), text(name.as_str(), value))).collect()
}

/// A header's name without what all of them begin with.
fn short(name: &str) -> &str {
    name.strip_prefix("x-ms-").unwrap_or(name)
}

/// A line for each value.
fn lines(value: &Value) -> String {
    let mut text = String::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::Null => {}
            Value::Object(inner) => {
                let prefix = if name == "properties" { "" } else { name.as_str() };
                for (key, value) in inner {
                    let name = format!("{prefix} {key}");
                    text += &line(name.trim_start(), value);
                }
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                text += &line(name, value);
            }
        }
    }
    text + "\n"
}

fn line(name: &str, value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("{:24} {}\n", shown(name) + ":", shown(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_become_properties_and_metadata() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-ms-lease-state", "available"),
            ("cache-control", "no-store"),
            ("x-ms-meta-owner", "me"),
            ("x-ms-request-id", "r"),
            ("content-length", "7"),
            ("x-ms-copy-source", "http://h/a/c/b?sig=s3cret"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let found = properties(&headers);
        let names: Vec<&str> = found.keys().copied().collect();
        assert_eq!(names, ["cache-control", "copy-source", "lease-state"]);
        assert_eq!(found["copy-source"], "http://h/a/c/b");
        assert_eq!(metadata(&headers), [("owner".to_owned(), "me".to_owned())]);
    }

    #[test]
    fn lines_name_each_value_once_and_hold_no_control_characters() {
        let value = json!({
            "name": "a\u{1b}", "size": 7, "tier": null,
            "metadata": { "owner": "me" }, "tags": { "k\u{9b}": "v\u{202e}" }, "properties": { "lease-state": "available" },
        });
        let text = lines(&value);
        assert!(text.contains("name:                    a\\u{1b}\n"), "{text}");
        assert!(text.contains("metadata owner:          me\n"), "{text}");
        assert!(text.contains("lease-state:             available\n"), "{text}");
        assert!(text.contains("tags k\\u{9b}:            v\\u{202e}\n"), "{text}");
        assert!(!text.contains("tier"), "{text}");
    }
}
