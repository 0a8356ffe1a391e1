//! SIGTERM while clients read long answers: running requests are finished, and no new one begins.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::Empty;
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::TcpSocket;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::server::ACCOUNT;
use crate::server::Server;
use crate::wire::Message;
use crate::wire::send;

/// Blobs whose metadata makes a page of a list MiBs long: more than sockets buffer.
const BLOBS: usize = 300;
/// How long anything may take that must come.
const PATIENCE: Duration = Duration::from_secs(30);
/// A client's own end takes little, so that most of an answer stays in the server.
const RECEIVE_BUFFER: u32 = 16 << 10;
const GOAWAY: u8 = 7;

/// What a server sent, as bytes of its frames.
type Seen = Arc<Mutex<Vec<u8>>>;

/// A connection whose incoming bytes are noted.
struct Tap {
    stream: TcpStream,
    seen: Seen,
}

impl AsyncRead for Tap {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.seen.lock().unwrap().extend_from_slice(&buf.filled()[before..]);
        read
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Whether a frame of this type is among the frames seen (RFC 9113, section 4.1).
fn has_frame(seen: &Seen, kind: u8) -> bool {
    let seen = seen.lock().unwrap();
    let mut rest = seen.as_slice();
    while let [a, b, c, found, _flags, _s0, _s1, _s2, _s3, after @ ..] = rest {
        if *found == kind {
            return true;
        }
        let len = u32::from_be_bytes([0, *a, *b, *c]);
        rest = after.get(usize::try_from(len).unwrap()..).unwrap_or_default();
    }
    false
}

/// A server with a public container whose list is long.
fn server() -> Server {
    let server = Server::start(&[]);
    let create = Message::new(&format!("PUT /{ACCOUNT}/long?restype=container"))
        .header("x-ms-blob-public-access: container");
    assert_eq!(send(server.address, &create).unwrap().status, 201);
    let metadata = format!("x-ms-meta-text: {}", "&".repeat(7_000));
    for number in 0..BLOBS {
        let put = Message::new(&format!("PUT /{ACCOUNT}/long/{number:04}"))
            .header("x-ms-blob-type: BlockBlob")
            .header(&metadata)
            .body("1");
        assert_eq!(send(server.address, &put).unwrap().status, 201);
    }
    server
}

/// Asks for the long list; `origin` stands before the path.
fn list(origin: &str) -> Request<Empty<Bytes>> {
    let path = format!("/{ACCOUNT}/long?restype=container&comp=list&include=metadata");
    Request::get(format!("{origin}{path}"))
        .header("x-ms-version", "2021-12-02")
        .body(Empty::new())
        .unwrap()
}

async fn connect(address: SocketAddr) -> (Tap, Seen) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(RECEIVE_BUFFER).unwrap();
    let seen = Seen::default();
    (Tap { stream: socket.connect(address).await.unwrap(), seen: Arc::clone(&seen) }, seen)
}

#[expect(clippy::disallowed_methods, reason = "a task of the client")]
fn drive<F>(connection: F) -> JoinHandle<hyper::Result<()>>
where
    F: Future<Output = hyper::Result<()>> + Send + 'static,
{
    tokio::spawn(connection)
}

/// The first piece of a body.
async fn begin(body: &mut Incoming) -> Vec<u8> {
    let first = tokio::time::timeout(PATIENCE, body.frame()).await.expect("the first piece");
    first.unwrap().unwrap().into_data().unwrap().to_vec()
}

/// A body from its first piece to its end.
async fn rest(first: Vec<u8>, body: Incoming) -> String {
    let rest = tokio::time::timeout(PATIENCE, body.collect()).await.expect("the rest").unwrap();
    String::from_utf8([first, rest.to_bytes().to_vec()].concat()).unwrap()
}

fn assert_whole(list: &str) {
    assert!(list.ends_with("</EnumerationResults>"), "{} bytes", list.len());
    assert!(list.len() > 2 << 20, "{} bytes fit into buffers", list.len());
}

#[tokio::test]
async fn list_half_read_over_http1_is_finished_after_sigterm_and_then_the_server_ends() {
    let mut server = server();
    let (stream, _) = connect(server.address).await;
    let (mut client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = drive(connection);
    let mut request = list("");
    request.headers_mut().insert("host", server.address.to_string().parse().unwrap());
    let mut body = client.send_request(request).await.unwrap().into_body();
    let first = begin(&mut body).await;
    server.terminate();
    assert!(server.refuses_connections(), "it drains");
    assert!(server.is_running(), "its answer is not out");
    assert_whole(&rest(first, body).await);
    tokio::time::timeout(PATIENCE, connection).await.expect("closed").unwrap().unwrap();
    assert_eq!(server.wait(), Some(0));
}

#[tokio::test]
async fn http2_client_sees_goaway_after_sigterm_and_its_open_stream_is_finished() {
    let mut server = server();
    let (stream, seen) = connect(server.address).await;
    let (mut client, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = drive(connection);
    let request = list(&format!("http://{}", server.address));
    let mut body = client.send_request(request).await.unwrap().into_body();
    let first = begin(&mut body).await;
    assert!(!has_frame(&seen, GOAWAY));
    server.terminate();
    let goaway = async {
        while !has_frame(&seen, GOAWAY) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, goaway).await.expect("GOAWAY");
    assert!(server.is_running(), "its answer is not out");
    assert_whole(&rest(first, body).await);
    // Without a reset, although window updates cross the close.
    tokio::time::timeout(PATIENCE, connection).await.expect("closed").unwrap().unwrap();
    assert_eq!(server.wait(), Some(0));
}
