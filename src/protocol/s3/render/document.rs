//! Documents of S3.

/// The beginning of a document with this root.
pub(super) fn begin(root: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <{root} xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    )
}
