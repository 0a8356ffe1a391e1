//! Arguments of `bench`.

use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::ValueEnum;

use crate::cli::files::connect::LoginArgs;
use crate::node::config::Size;

/// Arguments of `bench`.
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Where: by://CONTAINER, a container's URL, s3://BUCKET, or by:// and s3:// for a container
    /// that is made and removed
    #[arg(value_name = "PLACE", default_value = "by://")]
    pub place: OsString,
    /// What to do; several are done one after the other
    #[arg(long, short, value_delimiter = ',', default_value = "put,get")]
    pub workload: Vec<Load>,
    /// The size of a blob, for blocks that of a block [default: 4KiB, for blocks 8MiB]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Connections, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: u32,
    /// How long each workload goes on, such as 10s, 500ms or 2m
    #[arg(long, value_name = "TIME", default_value = "10s", conflicts_with = "ops")]
    pub duration: Length,
    /// Operations of each workload, in place of a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub ops: Option<u64>,
    /// Operations that begin per second over all connections, also if earlier ones have not ended
    #[arg(long, value_name = "N")]
    pub rate: Option<f64>,
    /// Blobs that are written first, to be read or listed
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub blobs: u64,
    /// Blocks, or parts, of each blob of the workload blocks
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub blocks: u32,
    /// Write to a container that exists. Only what was written is removed
    #[arg(long)]
    pub existing: bool,
    /// Print the figures of each workload as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The endpoint and the account.
    #[command(flatten)]
    pub login: LoginArgs,
    /// S3.
    #[command(flatten)]
    pub s3: S3Args,
}

/// The S3 endpoint and its credentials.
#[derive(Args, Clone, Debug)]
pub struct S3Args {
    /// Where s3:// leads; buckets are named in the path
    #[arg(
        long,
        value_name = "URL",
        env = "AWS_ENDPOINT_URL",
        default_value = "http://127.0.0.1:10000"
    )]
    pub s3_endpoint: String,
    /// The access key id [default: the account of --account]
    #[arg(long, value_name = "ID", env = "AWS_ACCESS_KEY_ID", requires = "secret_key")]
    pub access_key: Option<String>,
    /// Its secret [default: the key of --account]
    #[arg(
        long,
        value_name = "SECRET",
        env = "AWS_SECRET_ACCESS_KEY",
        hide_env_values = true,
        requires = "access_key"
    )]
    pub secret_key: Option<String>,
    /// The session token of temporary keys
    #[arg(long, value_name = "TOKEN", env = "AWS_SESSION_TOKEN", hide_env_values = true)]
    pub session_token: Option<String>,
    /// The region in signatures
    #[arg(long, value_name = "NAME", env = "AWS_REGION", default_value = "us-east-1")]
    pub region: String,
}

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Load {
    /// Writes new blobs
    Put,
    /// Reads blobs
    Get,
    /// Reads a sixteenth of a blob
    Range,
    /// Reads the properties of blobs
    Head,
    /// Lists blobs, 1,000 names a page
    List,
    /// 45 % reads, 30 % properties, 15 % writes, 10 % deletes
    Mixed,
    /// Writes blobs in blocks (S3: multipart uploads)
    Blocks,
    /// Deletes blobs: as many as --ops, or as --blobs
    Delete,
}

impl Load {
    /// Its name on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Range => "range",
            Self::Head => "head",
            Self::List => "list",
            Self::Mixed => "mixed",
            Self::Blocks => "blocks",
            Self::Delete => "delete",
        }
    }
}

/// A length of time, such as `10s`, `500ms`, `2m` or `1h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub Duration);

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let milliseconds = match unit {
            "ms" => Some(1),
            "" | "s" => Some(1_000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            _ => None,
        };
        let number: Option<u64> = number.parse().ok();
        let length = number.zip(milliseconds).and_then(|(n, unit)| n.checked_mul(unit));
        let length = length.filter(|length| *length > 0);
        let length = length.map(|length| Self(Duration::from_millis(length)));
        length.ok_or_else(|| format!("`{text}` is not a time: write 10s, 500ms, 2m or 1h"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        for (text, milliseconds) in
            [("10s", 10_000), ("3", 3_000), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000)]
        {
            assert_eq!(text.parse(), Ok(Length(Duration::from_millis(milliseconds))), "{text}");
        }
        for text in ["", "s", "0", "0s", "-1s", "1.5s", "10 s", "1d", "99999999999999999999h"] {
            assert!(text.parse::<Length>().is_err(), "{text}");
        }
    }
}
