//! The server's own count of disk syncs, read from its Prometheus page.

use bytes::Bytes;
use http::Request;
use http::Uri;
use http::header::HOST;
use http_body_util::BodyExt;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Sum of all counters with `sync` in their name (`…sync…_total`).
///
/// # Errors
/// The page cannot be read, or has no such counter.
pub(crate) async fn count(url: &str) -> Result<f64, String> {
    let page = fetch(url).await?;
    let mut total = None;
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let Some((series, value)) = line.rsplit_once(' ') else { continue };
        let name = series.split('{').next().unwrap_or(series);
        if name.contains("sync") && name.ends_with("_total") {
            let value: f64 = value.parse().map_err(|e| format!("{line}: {e}"))?;
            *total.get_or_insert(0.0) += value;
        }
    }
    total.ok_or_else(|| format!("{url} has no counter of syncs"))
}

async fn fetch(url: &str) -> Result<String, String> {
    let uri: Uri = url.parse().map_err(|e| format!("{url}: {e}"))?;
    let authority = uri.authority().ok_or_else(|| format!("{url}: no host"))?.as_str();
    let stream = TcpStream::connect(authority).await.map_err(|e| format!("{url}: {e}"))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|e| format!("{url}: {e}"))?;
    tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |p| p.as_str());
    let request = Request::get(path)
        .header(HOST, authority)
        .body(Empty::<Bytes>::new())
        .map_err(|e| e.to_string())?;
    let reply = sender.send_request(request).await.map_err(|e| format!("{url}: {e}"))?;
    let body = reply.into_body().collect().await.map_err(|e| format!("{url}: {e}"))?;
    Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
}
