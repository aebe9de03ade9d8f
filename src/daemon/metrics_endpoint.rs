//! `/metrics` and the probes `/healthz` and `/readyz`, over plain HTTP on a listener of their own.
//!
//! It needs nothing of the proxy but its numbers, so it answers while the proxy is overloaded or draining. A
//! connection serves one request and has one deadline for everything, so a client that sends or reads slowly holds
//! a place for no longer than that. Not here: what is counted (`exeat_proxy::record`).

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderValue, StatusCode, header},
    middleware,
    response::Response,
    routing::get,
    serve::Listener,
};
use exeat_proxy::record::{CONTENT_TYPE, Metrics};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Sleep,
};

/// How the endpoint is bounded.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Connections at once; others wait in the backlog.
    connections: usize,
    /// From accept to the last byte of the answer. Prometheus gives up on a scrape after 10 s by default.
    deadline: Duration,
}

/// A scraper, two probes and somebody's curl, many times over.
const BOUNDS: Bounds = Bounds { connections: 64, deadline: Duration::from_secs(10) };

/// Answers on `listener` until `shutdown` is done. `ready` says whether `/readyz` is 200 or 503.
pub(crate) async fn serve(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    ready: impl Fn() -> bool + Clone + Send + Sync + 'static,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    serve_bounded(listener, metrics, ready, shutdown, BOUNDS).await
}

async fn serve_bounded(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    ready: impl Fn() -> bool + Clone + Send + Sync + 'static,
    shutdown: impl Future<Output = ()> + Send + 'static,
    bounds: Bounds,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(bounds.connections));
    let listener = Bounded { listener, places, deadline: bounds.deadline };
    axum::serve(listener, router(metrics, ready)).with_graceful_shutdown(shutdown).await
}

/// Anything but these paths is 404, any method but GET and HEAD 405.
fn router(metrics: Arc<Metrics>, ready: impl Fn() -> bool + Clone + Send + Sync + 'static) -> Router {
    Router::new()
        .route(
            "/metrics",
            get(async move || {
                ([(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE))], metrics.render())
            }),
        )
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(async move || readiness(ready())))
        .fallback(async || (StatusCode::NOT_FOUND, "not found: try /metrics, /healthz or /readyz\n"))
        .layer(middleware::map_response(close))
}

fn readiness(ready: bool) -> (StatusCode, &'static str) {
    if ready { (StatusCode::OK, "ready\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready\n") }
}

/// One request per connection: a scrape every few seconds does not miss the kept connection, and one deadline is
/// all it takes to bound the connection.
async fn close(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A listener with so many places.
struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
    deadline: Duration,
}

impl Listener for Bounded {
    type Io = Limited;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Limited, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await.expect("the semaphore is never closed");
        // axum's own: waits out EMFILE and the like.
        let (stream, addr) = Listener::accept(&mut self.listener).await;
        let deadline = Box::pin(tokio::time::sleep(self.deadline));
        (Limited { stream, deadline, _place: place }, addr)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails once its deadline has passed, and gives its place back when it is dropped.
struct Limited {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl Limited {
    /// Fails after the deadline; before, the task is woken by it.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Limited {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Limited {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests connect, wait and read clocks by themselves")]

    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        sync::oneshot,
        task::JoinHandle,
    };

    use super::*;

    struct Server {
        addr: SocketAddr,
        ready: Arc<AtomicBool>,
        stop: oneshot::Sender<()>,
        task: JoinHandle<io::Result<()>>,
    }

    async fn server(bounds: Bounds) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let ready = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = oneshot::channel::<()>();
        let probe = {
            let ready = Arc::clone(&ready);
            move || ready.load(Ordering::Relaxed)
        };
        let shutdown = async {
            let _ = stopped.await;
        };
        let task = tokio::spawn(serve_bounded(listener, Arc::new(Metrics::new(10)), probe, shutdown, bounds));
        Server { addr, ready, stop, task }
    }

    /// Sends a head, and reads to the end: the server has to close by itself.
    async fn ask(addr: SocketAddr, request_line: &str) -> String {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(format!("{request_line} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn answers_each_path_and_refuses_the_rest() {
        let server = server(BOUNDS).await;
        let table = [
            ("GET /healthz", "200 OK", "ok\n"),
            ("HEAD /healthz", "200 OK", ""),
            ("GET /readyz", "503 Service Unavailable", "not ready\n"),
            ("GET /", "404 Not Found", "not found: try /metrics, /healthz or /readyz\n"),
            ("GET /metrics/", "404 Not Found", "not found: try /metrics, /healthz or /readyz\n"),
            ("POST /metrics", "405 Method Not Allowed", ""),
            ("DELETE /healthz", "405 Method Not Allowed", ""),
        ];
        for (request, status, body) in table {
            let answer = ask(server.addr, request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {answer}");
            assert!(answer.contains("\r\nconnection: close\r\n"), "{request}: {answer}");
            assert_eq!(answer.split_once("\r\n\r\n").unwrap().1, body, "{request}");
        }
        server.ready.store(true, Ordering::Relaxed);
        assert!(ask(server.addr, "GET /readyz").await.starts_with("HTTP/1.1 200 OK\r\n"));
    }

    #[tokio::test]
    async fn shows_the_metrics() {
        let server = server(BOUNDS).await;
        let answer = ask(server.addr, "GET /metrics").await;
        assert!(answer.contains("\r\ncontent-type: text/plain; version=0.0.4\r\n"), "{answer}");
        assert!(answer.contains("\nexeat_audit_dropped_total 0\n"), "{answer}");
    }

    #[tokio::test]
    async fn a_slow_client_holds_its_place_no_longer_than_the_deadline() {
        let server = server(Bounds { connections: 2, deadline: Duration::from_millis(200) }).await;
        let mut slow = Vec::new();
        for head in [&b"GET /metr"[..], b""] {
            let mut stream = TcpStream::connect(server.addr).await.unwrap();
            stream.write_all(head).await.unwrap();
            slow.push(stream);
        }
        // Both places are taken; this one waits for a deadline, not for a slow client's good will.
        let answer = tokio::time::timeout(Duration::from_secs(5), ask(server.addr, "GET /healthz")).await;
        assert!(answer.unwrap().starts_with("HTTP/1.1 200"));
        for stream in &mut slow {
            let mut rest = Vec::new();
            let end = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
            assert!(end.is_ok(), "was not closed");
        }
    }

    #[tokio::test]
    async fn stops_when_it_is_told() {
        let server = server(BOUNDS).await;
        server.stop.send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(5), server.task).await.unwrap().unwrap().unwrap();
    }
}
