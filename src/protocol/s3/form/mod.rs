//! Forms of browsers: `PostObject`. The fields before the file are read first, the file streams.
//!
//! 1. `boundary.rs` recognises forms, and finds the boundary between their parts.
//! 2. `reader.rs` reads the fields up to the file; `disposition.rs` the head of a part.
//! 3. `fields.rs` turns them into the headers that a PUT would have. From here on the head of the
//!    request has these headers, and the form as an extension.
//! 4. `policy.rs` checks the policy, once its signature is verified.
//! 5. `file.rs` extracts the file from the rest of the body.
//! 6. `answer.rs`: the options of a form for its answer.
//!
//! Source: S3, "POST Object" and "Browser-Based Uploads Using POST"; RFC 7578, RFC 2046.

mod answer;
mod boundary;
mod disposition;
mod fields;
mod file;
mod policy;
mod reader;
mod untrusted;

pub(super) use answer::{FormAnswer, posted};
pub(super) use boundary::no_form;
pub use boundary::{Boundary, announces};
pub use fields::{Field, PostForm, of};
pub use file::{FileDecoder, LengthRange};
pub use policy::check;
pub use reader::FormReader;
pub use untrusted::decode_form;
