//! The configuration of a node.
//!
//! 1. `settings.rs`: the settings as given, by flags, variables and the file;
//! 2. `checked.rs`: the [`Config`], merged, with defaults filled in, checked once. `defaults.rs`
//!    has the defaults that commands need, too;
//! 3. `accounts.rs` and `account_file.rs`: names and keys of accounts; `identities.rs`: those of
//!    the configuration; `development.rs`: where those for development are served; `unserved.rs`:
//!    ports of services that are not served; `oidc.rs`: issuers of bearer tokens; `s3.rs`: S3;
//!    `listen_address.rs`, `admin_address.rs`, `size.rs`, `switch.rs`, `pfx_file.rs` and
//!    `tls_source.rs`: how values are written.
//!
//! Invariants: nothing behind [`Config`] reads a flag or a variable; an error names the setting
//! and never shows a key.

mod account_file;
mod accounts;
mod admin_address;
mod checked;
mod defaults;
mod development;
mod error;
mod identities;
mod listen_address;
mod oidc;
mod otlp;
mod pfx_file;
mod s3;
mod settings;
mod size;
mod switch;
mod tls_source;
mod unserved;
mod users;

pub use accounts::AccountConfig;
pub use accounts::AccountError;
pub use accounts::AccountText;
pub use accounts::DEVELOPMENT_KEY;
pub use accounts::DEVELOPMENT_NAME;
pub use admin_address::AdminAddress;
pub use checked::Config;
pub use defaults::ADMIN_LISTEN;
pub use defaults::ADMIN_TOKEN;
pub use defaults::DATA;
pub use defaults::master_key_beside;
pub use development::DevelopmentAccount;
pub use error::ConfigError;
pub use listen_address::ListenAddress;
pub use listen_address::reachable;
pub use oidc::OidcConfig;
pub use oidc::OidcError;
pub use otlp::OtlpConfig;
pub use pfx_file::PfxFile;
pub use s3::S3Config;
pub use settings::Settings;
pub use settings::TlsMode;
pub use size::Size;
pub use switch::Switch;
pub use tls_source::TlsSource;
pub use unserved::UnservedPort;
pub use unserved::UnservedService;
pub use users::UserConfig;
pub use users::UserError;
pub use users::UserText;
