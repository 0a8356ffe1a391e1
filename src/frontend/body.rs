//! Request bodies in, response bodies out.

mod request;
mod response;

pub use request::RequestBody;
pub(crate) use request::SourceTime;
pub use response::{BodyError, Next, Pull, ResponseBody, Source};
