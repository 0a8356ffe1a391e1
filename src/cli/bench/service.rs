//! The measured service, and the credentials.

use std::sync::Arc;

use crate::cli::files::connect::Login;
use crate::cli::files::connect::LoginArgs;
use crate::cli::files::endpoint::Credential;
use crate::cli::files::error::FilesError;
use crate::cli::files::place::Place;
use crate::cli::files::url::Url;
use crate::cli::trust;
use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;
use crate::node::config::AccountConfig;
use crate::types::ContainerName;

use super::args::BenchArgs;
use super::args::S3Args;
use super::driver::client::Way;
use super::driver::signing::shared_key::SharedKey;
use super::driver::signing::sigv4::SigV4;
use super::driver::target::Dialect;

/// The scheme of buckets.
const S3: &str = "s3://";

/// A service, before the container is known.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) way: Way,
    /// Host and port as the URL has them.
    pub(super) authority: String,
    /// The path in front of containers.
    pub(super) root: String,
    pub(super) dialect: Dialect,
    /// The container that was named.
    pub(super) container: Option<String>,
}

impl Service {
    /// Reads the arguments.
    ///
    /// # Errors
    /// [`FilesError`].
    pub(super) fn new(args: &BenchArgs) -> Result<Self, FilesError> {
        match args.place.to_str().and_then(|place| place.strip_prefix(S3)) {
            Some(bucket) => Self::s3(args, bucket),
            None => Self::blob(args),
        }
    }

    /// Whether it is asked as S3.
    pub(super) const fn is_s3(&self) -> bool {
        matches!(self.dialect, Dialect::S3(_))
    }

    fn blob(args: &BenchArgs) -> Result<Self, FilesError> {
        let login = Login::new(&args.login)?;
        let place = Place::parse(&args.place, &login)?.remote()?;
        if !place.name.is_empty() {
            return Err(FilesError::Usage("name a container, and no blob in it".to_owned()));
        }
        let endpoint = Arc::unwrap_or_clone(place.endpoint);
        let dialect = match endpoint.credential {
            Credential::Key(keys) => Dialect::Azure(SharedKey::new(endpoint.account, keys)),
            Credential::Signature(query) => Dialect::Signed(Some(query)),
            Credential::Nothing => Dialect::Signed(None),
        };
        Ok(Self {
            way: way(&args.login, endpoint.tls, endpoint.host, endpoint.port)?,
            authority: endpoint.authority,
            root: endpoint.base,
            dialect,
            container: place.container,
        })
    }

    fn s3(args: &BenchArgs, bucket: &str) -> Result<Self, FilesError> {
        let bucket = bucket.strip_suffix('/').unwrap_or(bucket);
        // Names that only S3 permits are not worth a rule of their own here.
        if !bucket.is_empty() && ContainerName::new(bucket).is_err() {
            return Err(FilesError::Container(bucket.to_owned()));
        }
        let url = Url::parse(&args.s3.s3_endpoint)?;
        Ok(Self {
            way: way(&args.login, url.tls, url.host, url.port)?,
            authority: url.authority,
            root: url.path,
            dialect: Dialect::S3(signer(&args.s3, &args.login)?),
            container: Some(bucket.to_owned()).filter(|bucket| !bucket.is_empty()),
        })
    }
}

fn way(login: &LoginArgs, tls: bool, host: String, port: u16) -> Result<Way, FilesError> {
    let clock = Arc::new(OsClock::new());
    let env = Env { clock, rand: Arc::new(OsRand), tasks: Tasks::new() };
    let connector = || trust::connector(login.ca.as_deref()).map_err(FilesError::Authority);
    Ok(Way { env, host, port, tls: if tls { Some(connector()?) } else { None } })
}

/// The access key, or the account if there is none.
fn signer(args: &S3Args, login: &LoginArgs) -> Result<SigV4, FilesError> {
    // A session token belongs to an access key: it is not sent with another one.
    let own = args.access_key.is_some() && args.secret_key.is_some();
    let (access_key, secret) = match (&args.access_key, &args.secret_key) {
        (Some(id), Some(secret)) => (id.clone(), secret.clone()),
        (None, _) | (_, None) => {
            let account = match &login.account {
                Some(account) => account.parse_public()?,
                None => AccountConfig::development(),
            };
            (account.name().as_str().to_owned(), account.first_key().to_owned())
        }
    };
    let token = args.session_token.clone().filter(|token| own && !token.is_empty());
    Ok(SigV4 { access_key, secret, token, region: args.region.clone() })
}
