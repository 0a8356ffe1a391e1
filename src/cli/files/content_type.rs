//! The Content-Type of a file, derived from its file name extension.

/// The type of files with an unknown extension.
const OTHER: &str = "application/octet-stream";

/// Ends of names and their types. Source: the registry of media types.
const TYPES: [(&str, &str); 32] = [
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ico", "image/vnd.microsoft.icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

/// The type of a file with this name.
pub(super) fn of_name(name: &str) -> &'static str {
    let Some((_, end)) = name.rsplit_once('.') else { return OTHER };
    let found = TYPES.iter().find(|(known, _)| end.eq_ignore_ascii_case(known));
    found.map_or(OTHER, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_derived_from_the_end_of_names() {
        for (name, kind) in [
            ("a.html", "text/html"),
            ("a.tar.GZ", "application/gzip"),
            ("README", OTHER),
            ("html", OTHER),
            ("a.", OTHER),
        ] {
            assert_eq!(of_name(name), kind, "{name}");
        }
    }
}
