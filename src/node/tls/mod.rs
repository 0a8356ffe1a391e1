//! The certificate of the listeners: `certificate.rs` makes it, or reads it from files; `files.rs`
//! reads these again when they are replaced; `pfx.rs` reads the PFX file of `blockyard azurite`.

mod certificate;
mod error;
mod files;
mod pfx;

pub use certificate::Certificate;
pub use certificate::authority_file;
pub use certificate::certificate;
pub use error::CertificateError;
pub use error::PfxError;
