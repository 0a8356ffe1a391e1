//! A server and a caller of tonic.

use std::convert::Infallible;
use std::future::Ready;
use std::future::ready;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use bytes::Buf;
use bytes::BufMut;
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Request;
use tonic::Response;
use tonic::Status;
use tonic::body::Body;
use tonic::client::Grpc as ClientGrpc;
use tonic::codec::Codec;
use tonic::codec::DecodeBuf;
use tonic::codec::Decoder;
use tonic::codec::EncodeBuf;
use tonic::codec::Encoder;
use tonic::server::Grpc as ServerGrpc;
use tonic::server::NamedService;
use tonic::server::UnaryService;
use tonic::transport::Channel;
use tonic::transport::Server;

use crate::Caller;

const PATH: &str = "/bench.Bench/Fill";
const BYTES_MAX: usize = 16 << 20;

/// What is sent: how many bytes the answer has, if this is a call, and the payload.
type Sent = (Option<u64>, Bytes);

/// Hands bytes through.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Sent;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Sent;
    type Error = Status;

    fn encode(&mut self, (back, payload): Sent, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        if let Some(back) = back {
            to.put_u64(back);
        }
        to.put(payload);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Answers with a payload of as many bytes as the first eight bytes of the call say.
#[derive(Clone)]
struct Filler(Bytes);

impl UnaryService<Bytes> for Filler {
    type Response = Sent;
    type Future = Ready<Result<Response<Sent>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let back = usize::try_from(request.into_inner().get_u64()).expect("64 bits");
        ready(Ok(Response::new((None, self.0.slice(..back)))))
    }
}

impl NamedService for Filler {
    const NAME: &'static str = "bench.Bench";
}

impl tower::Service<http::Request<Body>> for Filler {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let mut grpc = ServerGrpc::new(Raw).max_decoding_message_size(BYTES_MAX);
            Ok(grpc.unary(service, request).await)
        })
    }
}

#[derive(Clone)]
pub struct Grpc(ClientGrpc<Channel>);

impl Caller for Grpc {
    async fn call(&self, payload: Bytes, back: usize) -> usize {
        let mut client = self.0.clone();
        client.ready().await.expect("a connection");
        let path = http::uri::PathAndQuery::from_static(PATH);
        let answer = client.unary(Request::new((Some(back as u64), payload)), path, Raw).await;
        answer.expect("an answer").into_inner().len()
    }
}

pub async fn start() -> Grpc {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let incoming = TcpListenerStream::new(listener);
    let filler = Filler(Bytes::from(vec![9; 1 << 20]));
    // Windows that a MiB does not fill.
    let window = Some(8 << 20);
    let server = Server::builder()
        .tcp_nodelay(true)
        .initial_stream_window_size(window)
        .initial_connection_window_size(window);
    let mut server = server;
    tokio::spawn(server.add_service(filler).serve_with_incoming(incoming));
    let endpoint = Channel::from_shared(format!("http://127.0.0.1:{port}")).expect("an address");
    let endpoint = endpoint
        .tcp_nodelay(true)
        .initial_stream_window_size(window)
        .initial_connection_window_size(window);
    let channel = endpoint.connect().await.expect("a connection");
    Grpc(ClientGrpc::new(channel).max_decoding_message_size(BYTES_MAX))
}
