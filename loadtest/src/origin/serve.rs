//! The accept loop of an origin, and how a connection carries out its script.

use super::connection::{Connection, IDLE, Socket};
use super::recording::{End, Recorder, Recordings, TlsSeen};
use super::request::Request;
use super::script::{Act, Handler, Script, Step};
use crate::pattern::Pattern;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Accepts until the task is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    script: Script,
    tls: Option<TlsAcceptor>,
    recordings: Recordings,
) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // Out of descriptors, most likely: do not spin.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let recorder = recordings.open(peer);
        let (script, tls) = (script.clone(), tls.clone());
        tokio::spawn(async move {
            // A small answer shall not wait for an acknowledgement; it changes nothing else.
            let _ = stream.set_nodelay(true);
            match secure(stream, tls, &recorder).await {
                Ok(socket) => {
                    let mut connection = Connection::new(socket, recorder);
                    let end = connection.carry_out(&script).await;
                    connection.close(end);
                }
                Err(end) => recorder.end(end),
            }
        });
    }
}

/// Does the TLS handshake, if there is one to do.
async fn secure(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    recorder: &Recorder,
) -> Result<Box<dyn Socket>, End> {
    let Some(tls) = tls else { return Ok(Box::new(stream)) };
    let stream = match timeout(IDLE, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(End::Failed(format!("TLS handshake: {error}"))),
        Err(_) => return Err(End::TimedOut),
    };
    let session = stream.get_ref().1;
    recorder.tls(TlsSeen {
        server_name: session.server_name().map(str::to_owned),
        alpn: session.alpn_protocol().map(|protocol| String::from_utf8_lossy(protocol).into_owned()),
    });
    Ok(Box::new(stream))
}

impl Connection {
    async fn carry_out(&mut self, script: &Script) -> End {
        let done = match script.of_connection(self.recorder.index).map(|script| &script.0) {
            Some(Act::Steps(steps)) => self.steps(steps, None).await,
            Some(Act::Requests(handler)) => self.requests(handler.as_ref()).await,
            Some(Act::PerConnection(_)) | None => Ok(()),
        };
        match done {
            Ok(()) => self.read_to_end().await.err().unwrap_or(End::PeerClosed),
            Err(end) => end,
        }
    }

    /// Gives the socket back to the kernel, then says that it is over: whoever sees the end may
    /// count on the peer having been told.
    fn close(self, end: End) {
        let recorder = self.into_recorder();
        recorder.end(end);
    }

    async fn requests(&mut self, handler: &Handler) -> Result<(), End> {
        loop {
            let head = self.read_head().await?;
            let request = Request::parse(&head, self.recorder.index);
            self.recorder.request(&request);
            let steps = handler(&request);
            if !steps.iter().any(Step::reads) {
                self.record_body(&request).await?;
            }
            self.steps(&steps, Some(&request)).await?;
            if request.wants_close() {
                self.finish_sending().await?;
                return Ok(());
            }
        }
    }

    async fn steps(&mut self, steps: &[Step], request: Option<&Request>) -> Result<(), End> {
        for step in steps {
            self.step(step, request).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step, request: Option<&Request>) -> Result<(), End> {
        match step {
            Step::Send(bytes) => self.send(bytes).await,
            Step::Drip { bytes, piece, every } => {
                for piece in bytes.chunks((*piece).max(1)) {
                    self.send(piece).await?;
                    sleep(*every).await;
                }
                Ok(())
            }
            Step::SendPattern { seed, length } => self.send_pattern(*seed, *length).await,
            Step::Pause(duration) => {
                sleep(*duration).await;
                Ok(())
            }
            Step::ReadHead => self.read_head().await.map(drop),
            Step::ReadExactly(length) => self.read_exactly(*length).await,
            Step::ReadBody => match request {
                Some(request) => self.record_body(request).await,
                None => Err(no_request()),
            },
            Step::ReadBodyPattern { seed } => {
                let Some(request) = request else { return Err(no_request()) };
                let mut pattern = Pattern::new(*seed);
                let read = self.read_body(request, &mut |bytes| pattern.check(bytes)).await;
                self.recorder.pattern(pattern.checked());
                read
            }
            Step::ReadPattern { seed, length } => self.read_pattern(*seed, *length).await,
            Step::ReadToEnd => self.read_to_end().await,
            Step::Echo => self.echo().await,
            Step::FinishSending => self.finish_sending().await,
            Step::Close => Err(End::Scripted),
            Step::Reset => {
                self.reset_on_drop()?;
                Err(End::Scripted)
            }
        }
    }
}

fn no_request() -> End {
    End::Failed("the script reads a body without a request".into())
}
