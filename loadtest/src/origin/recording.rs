//! What an origin remembers of its connections.

use super::request::Request;
use crate::pattern::PatternCheck;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes of one connection are kept; beyond it they are only counted.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// How many requests of one connection are kept, with their bodies.
const KEPT_REQUESTS: usize = 10_000;

/// One connection as the origin saw it.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Who connected.
    pub peer: SocketAddr,
    /// What TLS said, on a TLS origin once the handshake is done.
    pub tls: Option<TlsSeen>,
    /// The exact bytes received (inside TLS, if any), up to 4 MiB.
    pub received: Vec<u8>,
    /// How many bytes were received, including those not kept.
    pub received_length: u64,
    /// How many bytes were sent.
    pub sent_length: u64,
    /// The requests read by [`Script::requests`](super::Script::requests), in order.
    pub requests: Vec<Request>,
    /// The request bodies read, without their framing, in order.
    pub bodies: Vec<Vec<u8>>,
    /// What the pattern-reading steps found, in order.
    pub patterns: Vec<PatternCheck>,
    /// How it ended.
    pub end: End,
}

impl Recording {
    /// The bytes received as text, for assertions and messages.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }
}

/// What was agreed in a TLS handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSeen {
    /// The name the client asked for (SNI).
    pub server_name: Option<String>,
    /// The protocol agreed on (ALPN).
    pub alpn: Option<String>,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It has not.
    Open,
    /// The peer finished sending (FIN) and the script had nothing more to say.
    PeerClosed,
    /// The peer reset the connection.
    PeerReset,
    /// The script closed or reset the connection.
    Scripted,
    /// Nothing moved for too long.
    TimedOut,
    /// Anything else, in words.
    Failed(String),
}

/// The recordings of an origin, shared by its connections.
#[derive(Debug, Clone, Default)]
pub(super) struct Recordings(Arc<Mutex<Vec<Recording>>>);

impl Recordings {
    pub(super) fn all(&self) -> Vec<Recording> {
        self.with(|all| all.clone())
    }

    pub(super) fn count(&self) -> usize {
        self.with(|all| all.len())
    }

    /// Whether there are at least `count` connections and none is open.
    pub(super) fn have_ended(&self, count: usize) -> bool {
        self.with(|all| all.len() >= count && all.iter().all(|one| one.end != End::Open))
    }

    /// Opens the recording of a new connection.
    pub(super) fn open(&self, peer: SocketAddr) -> Recorder {
        let recording = Recording {
            peer,
            tls: None,
            received: Vec::new(),
            received_length: 0,
            sent_length: 0,
            requests: Vec::new(),
            bodies: Vec::new(),
            patterns: Vec::new(),
            end: End::Open,
        };
        let index = self.with(|all| {
            all.push(recording);
            all.len() - 1
        });
        Recorder { recordings: self.clone(), index }
    }

    fn with<T>(&self, look: impl FnOnce(&mut Vec<Recording>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The pen of one connection.
#[derive(Debug)]
pub(super) struct Recorder {
    recordings: Recordings,
    /// The place of this connection among all, counted from 0.
    pub(super) index: usize,
}

impl Recorder {
    pub(super) fn tls(&self, seen: TlsSeen) {
        self.write(|recording| recording.tls = Some(seen));
    }

    pub(super) fn received(&self, bytes: &[u8]) {
        self.write(|recording| {
            let room = KEPT_BYTES - recording.received.len();
            recording.received.extend_from_slice(&bytes[..bytes.len().min(room)]);
            recording.received_length += bytes.len() as u64;
        });
    }

    pub(super) fn sent(&self, length: usize) {
        self.write(|recording| recording.sent_length += length as u64);
    }

    pub(super) fn request(&self, request: &Request) {
        self.write(|recording| {
            if recording.requests.len() < KEPT_REQUESTS {
                recording.requests.push(request.clone());
            }
        });
    }

    pub(super) fn body(&self, body: Vec<u8>) {
        self.write(|recording| {
            if recording.bodies.len() < KEPT_REQUESTS {
                recording.bodies.push(body);
            }
        });
    }

    pub(super) fn pattern(&self, found: PatternCheck) {
        self.write(|recording| recording.patterns.push(found));
    }

    pub(super) fn end(&self, end: End) {
        self.write(|recording| recording.end = end);
    }

    fn write(&self, note: impl FnOnce(&mut Recording)) {
        self.recordings.with(|all| {
            if let Some(recording) = all.get_mut(self.index) {
                note(recording);
            }
        });
    }
}
