//! The places that arguments of commands name: standard input or output, a local path, or a URL of
//! a blob service.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::percent_decode_str;

use crate::types::ContainerName;

use super::connect::Login;
use super::endpoint::Endpoint;
use super::error::FilesError;
use super::url::Url;
use super::url::plain;

/// The short form.
const SHORT: &str = "by://";

/// The place that an argument names.
#[derive(Clone, Debug)]
pub(in crate::cli) enum Place {
    /// `-`.
    Standard,
    /// A local path.
    Local(PathBuf),
    /// An account, container, blob or the beginning of names.
    Remote(Remote),
}

/// An account, a container, or names in it.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Remote {
    pub(in crate::cli) endpoint: Arc<Endpoint>,
    /// None for the whole account.
    pub(in crate::cli) container: Option<String>,
    /// The name of a blob or of a folder of them; empty for the whole container.
    pub(in crate::cli) name: String,
}

/// A named place.
#[derive(Clone, Debug)]
pub(in crate::cli) enum Named {
    /// An account, container, blob or the beginning of names.
    Remote(Remote),
    /// A local path.
    Local(PathBuf),
}

impl Place {
    /// Reads an argument. A local path is one that has no scheme.
    ///
    /// # Errors
    /// [`FilesError`].
    pub(in crate::cli) fn parse(text: &OsStr, login: &Login) -> Result<Self, FilesError> {
        // URLs are text. An argument that is not text is a path.
        let Some(words) = text.to_str() else { return Ok(Self::Local(text.into())) };
        if words == "-" {
            return Ok(Self::Standard);
        }
        if let Some(rest) = words.strip_prefix(SHORT) {
            return short(rest, login).map(Self::Remote);
        }
        match scheme(words) {
            None if is_meant_as_url(words) => Err(FilesError::Url {
                text: plain(words).to_owned(),
                why: "two slashes must follow the colon; write ./ before a local path",
            }),
            None if is_meant_as_short(words) => Err(FilesError::Usage(
                "a blob is by://CONTAINER/BLOB; write ./ before a local path".to_owned(),
            )),
            None if has_signature(words) => Err(FilesError::Url {
                text: plain(words).to_owned(),
                why: "it has a signature and no scheme; begin it with https:// or http://",
            }),
            None => Ok(Self::Local(text.into())),
            Some("http" | "https") => of_url(words, login).map(Self::Remote),
            Some(scheme) => Err(FilesError::Scheme(scheme.to_owned())),
        }
    }

    /// Something of a blob service.
    ///
    /// # Errors
    /// [`FilesError::Local`], [`FilesError::Usage`].
    pub(in crate::cli) fn remote(self) -> Result<Remote, FilesError> {
        match self {
            Self::Remote(remote) => Ok(remote),
            Self::Local(path) => Err(FilesError::Local(path)),
            Self::Standard => Err(no_standard()),
        }
    }

    /// Something of a blob service, or a local path.
    ///
    /// # Errors
    /// [`FilesError::Usage`].
    pub(in crate::cli) fn named(self) -> Result<Named, FilesError> {
        match self {
            Self::Remote(remote) => Ok(Named::Remote(remote)),
            Self::Local(path) => Ok(Named::Local(path)),
            Self::Standard => Err(no_standard()),
        }
    }
}

fn no_standard() -> FilesError {
    FilesError::Usage("- is only for cp".to_owned())
}

/// The word before `://`.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let first = scheme.chars().next()?.is_ascii_alphabetic();
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (first && scheme.chars().all(plain)).then_some(scheme)
}

/// Whether a text begins like a URL, although it is not one. The rest may contain a signature,
/// which no message about a path must show.
fn is_meant_as_url(text: &str) -> bool {
    let scheme = text.split(':').next().unwrap_or_default();
    let known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    known && scheme.len() < text.len()
}

/// Whether a text begins like the short form, or like a URL of another service.
fn is_meant_as_short(text: &str) -> bool {
    let meant = |scheme: &str| {
        let (start, rest) = text.split_at_checked(scheme.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(scheme) && (rest.starts_with(':') || rest.starts_with("//"))
    };
    ["by", "s3", "az", "abfs", "abfss", "gs"].iter().any(|scheme| meant(scheme))
}

/// Whether a text has a shared access signature behind a `?`.
fn has_signature(text: &str) -> bool {
    let query = text.split_once('?').map_or("", |(_, query)| query);
    query.split('&').any(|pair| pair.starts_with("sig="))
}

/// `CONTAINER/NAME`, taken literally: nothing in it is decoded.
fn short(rest: &str, login: &Login) -> Result<Remote, FilesError> {
    let (container, name) = rest.split_once('/').unwrap_or((rest, ""));
    remote(login.endpoint(), container, name.to_owned())
}

fn of_url(text: &str, login: &Login) -> Result<Remote, FilesError> {
    let url = Url::parse(text)?;
    let (endpoint, rest) = login.endpoint_of(&url)?;
    // Only one slash: behind more, the name of the container is empty, as of an unset variable.
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    if rest.starts_with('/') {
        return Err(url.refused("the name of its container is empty"));
    }
    let (container, name) = rest.split_once('/').unwrap_or((rest, ""));
    let decoded = |part| percent_decode_str(part).decode_utf8();
    let (container, name) = (decoded(container), decoded(name));
    let (Ok(container), Ok(name)) = (container, name) else {
        return Err(url.refused("it is not UTF-8"));
    };
    remote(endpoint, &container, name.into_owned())
}

fn remote(endpoint: Endpoint, container: &str, name: String) -> Result<Remote, FilesError> {
    if container.is_empty() && name.is_empty() {
        return Ok(Remote { endpoint: Arc::new(endpoint), container: None, name });
    }
    let known = ContainerName::new(container);
    known.map_err(|_| FilesError::Container(container.to_owned()))?;
    Ok(Remote { endpoint: Arc::new(endpoint), container: Some(container.to_owned()), name })
}

impl Remote {
    /// Its container.
    ///
    /// # Errors
    /// [`FilesError::Usage`] for a whole account.
    pub(in crate::cli) fn container(&self) -> Result<&str, FilesError> {
        let missing = || FilesError::Usage(format!("{} names no container", self.url()));
        self.container.as_deref().ok_or_else(missing)
    }

    /// Its URL, without a signature.
    pub(in crate::cli) fn url(&self) -> String {
        let name = Some(self.name.as_str()).filter(|name| !name.is_empty());
        self.endpoint.url(self.container.as_deref(), name)
    }

    /// A blob beside this name, in the same container.
    pub(in crate::cli) fn with(&self, name: String) -> Self {
        Self { name, ..self.clone() }
    }

    /// The prefix of the names of blobs in this folder: empty, or ending in a slash.
    pub(in crate::cli) fn prefix(&self) -> String {
        match self.name.as_str() {
            "" => String::new(),
            name if name.ends_with('/') => name.to_owned(),
            name => format!("{name}/"),
        }
    }
}

/// Reads several arguments that have names.
///
/// # Errors
/// [`FilesError`].
pub(in crate::cli) fn named(texts: &[OsString], login: &Login) -> Result<Vec<Named>, FilesError> {
    texts.iter().map(|text| Place::parse(text, login)?.named()).collect()
}

/// Reads several arguments.
///
/// # Errors
/// [`FilesError`].
pub(in crate::cli) fn places(texts: &[OsString], login: &Login) -> Result<Vec<Place>, FilesError> {
    texts.iter().map(|text| Place::parse(text, login)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::files::connect::LoginArgs;

    fn login() -> Login {
        let args = LoginArgs { endpoint: None, account: None, connection_string: None, ca: None };
        Login::new(&args).unwrap()
    }

    fn remote(text: &str) -> (Option<String>, String) {
        match Place::parse(OsStr::new(text), &login()).unwrap() {
            Place::Remote(remote) => (remote.container, remote.name),
            other @ (Place::Standard | Place::Local(_)) => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn short_form_is_literal_and_urls_are_decoded() {
        let of = |container: &str, name: &str| (Some(container.to_owned()), name.to_owned());
        assert_eq!(remote("by://"), (None, String::new()));
        assert_eq!(remote("by://box"), of("box", ""));
        assert_eq!(remote("by://box/"), of("box", ""));
        assert_eq!(remote("by://box/a b%41/#?"), of("box", "a b%41/#?"));
        let account = "http://127.0.0.1:10000/devstoreaccount1";
        assert_eq!(remote(account), (None, String::new()));
        assert_eq!(remote(&format!("{account}/box/a%20b%2541/")), of("box", "a b%41/"));
        assert_eq!(remote("https://acct.blob.example.org/$root/b?sig=1"), of("$root", "b"));
    }

    #[test]
    fn local_paths_have_no_scheme_and_unknown_schemes_are_refused() {
        let local =
            |text: &str| matches!(Place::parse(OsStr::new(text), &login()), Ok(Place::Local(_)));
        for text in [
            "a",
            "a/b",
            "./by://x",
            "/by:/x",
            "C:\\x",
            "1://x",
            "a b://c",
            "..",
            "http",
            "./http:/x",
        ] {
            assert!(local(text), "{text}");
        }
        assert!(matches!(Place::parse(OsStr::new("-"), &login()), Ok(Place::Standard)));
        for text in [
            "s3://box/a",
            "az://x",
            "by://BOX/a",
            "by:///a",
            "http://127.0.0.1:10000/devstoreaccount1/X_/b",
            "http://127.0.0.1:10000/devstoreaccount1/box/%FF",
            "http://127.0.0.1:10000/devstoreaccount1//uploads/x",
            "http://127.0.0.1:10000/devstoreaccount1//",
            "http://127.0.0.1:10000//uploads/x",
            "https://acct.blob.example.org//uploads/x?sig=s3cret",
            "by:/box",
            "by:box/a",
            "BY:/box",
            "by//box/a",
            "s3:/box/a",
            "localhost:10000/devstoreaccount1/box/b?sv=1&sig=s3cret",
            "https:/h/c?sig=s3cret",
            "https:h/c?sig=s3cret",
            "HTTP:/h/c?sig=s3cret",
            "HTTPS://h/c?sig=s3cret",
        ] {
            let refused = Place::parse(OsStr::new(text), &login()).unwrap_err();
            assert!(refused.is_of_usage(), "{text}: {refused}");
            assert!(!refused.to_string().contains("s3cret"), "{text}: {refused}");
        }
    }

    #[test]
    fn folders_end_in_a_slash() {
        let Place::Remote(place) = Place::parse(OsStr::new("by://box/a"), &login()).unwrap() else {
            panic!("it is remote")
        };
        let prefixes = ["", "a", "a/"].map(|name| place.with(name.to_owned()).prefix());
        assert_eq!(prefixes, ["", "a/", "a/"]);
    }
}
