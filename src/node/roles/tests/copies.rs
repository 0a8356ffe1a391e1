//! Copies from another server that panic: they are carried out after all, or fail.

use super::*;
use crate::env::clock::TrapClock;
use crate::env::net::Listener;
use crate::env::net::TcpListen;
use crate::frontend::source::Pattern;

/// How long the head of the source's answer is waited for, once by the request and once by each try
/// of the copy.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// What the source answers.
const BYTES: &str = "hello";

/// A server of one file; its URL.
async fn source(env: &Env) -> String {
    let listener = TcpListen::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = format!("http://{}/file", listener.local_addr().unwrap());
    let stop = env.tasks.stopping();
    let serving = async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                // Who panicked asks no further.
                let Ok(byte) = stream.read_u8().await else { break };
                asked.push(byte);
            }
            let len = BYTES.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{BYTES}"
            );
            // Nor does it wait for the answer.
            drop(stream.write_all(answer.as_bytes()).await);
        }
    };
    drop(env.tasks.spawn("source", stop.run_until_cancelled_owned(serving)));
    url
}

impl Node {
    /// The head of an answer about a blob, lower case.
    async fn head(&self, method: &str, path: &str, headers: &str) -> String {
        let mut stream = self.blob.connect().await.unwrap();
        let request = format!(
            "{method} /{DEVELOPMENT_NAME}/{path}?{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n",
            self.signature
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.to_ascii_lowercase()
    }

    /// The head of a blob once its copy has ended.
    async fn copied(&self, path: &str) -> String {
        let ended = async {
            loop {
                let head = self.head("HEAD", path, "").await;
                if !head.contains("x-ms-copy-status: pending") {
                    break head;
                }
                OsClock::new().sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), ended).await.expect("it ends")
    }
}

/// Copies with `panics` tries that panic. Returns the node, and the final head of the blob.
async fn copy(data: &Path, panics: usize) -> (Node, String) {
    let clock = Arc::new(TrapClock::new(Arc::new(OsClock::new())));
    let env = Env { clock: Arc::clone(&clock) as _, ..testing::env() };
    let mut config = testing::config(data);
    config.copy_source.allow = vec![Pattern::All];
    let url = source(&env).await;
    let node = Node::start_as(config, env).await;
    assert_eq!(node.ask("PUT", "photos?restype=container", "").await.0, 201);
    clock.snap(HEAD_TIME_MAX, (1, panics));
    let begun = node.head("PUT", "photos/copy", &format!("x-ms-copy-source: {url}\r\n")).await;
    assert!(begun.starts_with("http/1.1 202"), "{begun}");
    let head = node.copied("photos/copy").await;
    (node, head)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_that_panicked_once_is_carried_out() {
    let folder = tempfile::tempdir().unwrap();
    let (node, head) = copy(&folder.path().join("data"), 1).await;
    assert_eq!(node.env.tasks.health().panics("copy"), 1);
    assert!(head.contains("x-ms-copy-status: success"), "{head}");
    assert_eq!(node.ask("GET", "photos/copy", "").await, (200, BYTES.to_owned()));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_that_panics_each_time_fails_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (node, head) = copy(&folder.path().join("data"), usize::MAX).await;
    assert_eq!(node.env.tasks.health().panics("copy"), 3);
    assert!(head.contains("x-ms-copy-status: failed"), "{head}");
    let reason = "x-ms-copy-status-description: 500 internalerror \"the copy was begun 3 times and a fault of the server ended it";
    assert!(head.contains(reason), "{head}");
    node.stop().await;
}
