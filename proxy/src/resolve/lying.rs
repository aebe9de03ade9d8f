//! A name server for tests that says what it is told, over UDP and TCP, and remembers what it was asked.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use hickory_resolver::proto::{
    op::{Message, OpCode, ResponseCode},
    rr::{
        Name, RData, Record, RecordType,
        rdata::{CNAME, SOA},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UdpSocket},
    sync::watch,
};

/// One question, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    /// With its final dot.
    pub(super) name: String,
    pub(super) kind: RecordType,
    pub(super) tcp: bool,
}

/// What is answered.
pub(super) enum Reply {
    /// These records: owner, TTL, and an address or an alias.
    Records(Vec<(&'static str, u32, &'static str)>),
    /// No records, with an SOA of this negative TTL.
    Nothing(ResponseCode, Option<u32>),
    /// Records, but only after the gate has opened.
    Later(Vec<(&'static str, u32, &'static str)>),
    /// The TC bit and nothing else.
    Truncated,
    /// Bytes that are no message, but with the right id.
    Garbage,
    /// Not a word.
    Silence,
}

pub(super) struct LyingServer {
    pub(super) addr: SocketAddr,
    asked: Arc<Mutex<Vec<Question>>>,
    gate: watch::Sender<bool>,
}

type Script = dyn Fn(&Question) -> Reply + Send + Sync;

impl LyingServer {
    /// A server on a port of its own that answers by `script`.
    pub(super) async fn start(script: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Self {
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
                break (Arc::new(udp), tcp);
            }
        };
        let addr = udp.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (gate, opened) = watch::channel(false);
        let desk = Desk { script: Arc::new(script), asked: Arc::clone(&asked), opened };
        tokio::spawn(serve_udp(udp, desk.clone()));
        tokio::spawn(serve_tcp(tcp, desk));
        Self { addr, asked, gate }
    }

    /// What it was asked until now.
    pub(super) fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap().clone()
    }

    /// Lets the late answers out.
    pub(super) fn open_gate(&self) {
        self.gate.send_replace(true);
    }
}

#[derive(Clone)]
struct Desk {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<Question>>>,
    opened: watch::Receiver<bool>,
}

impl Desk {
    async fn answer(mut self, bytes: &[u8], tcp: bool) -> Option<Vec<u8>> {
        let request = Message::from_vec(bytes).unwrap();
        let query = request.queries.first().unwrap();
        let question = Question { name: query.name().to_string(), kind: query.query_type(), tcp };
        self.asked.lock().unwrap().push(question.clone());
        let mut response = Message::response(request.metadata.id, OpCode::Query);
        response.add_query(query.clone());
        match (self.script)(&question) {
            Reply::Records(records) => add(&mut response, &records),
            Reply::Later(records) => {
                self.opened.wait_for(|opened| *opened).await.ok()?;
                add(&mut response, &records);
            }
            Reply::Nothing(code, negative) => {
                response.metadata.response_code = code;
                if let Some(ttl) = negative {
                    let zone = Name::from_ascii("test.").unwrap();
                    let soa = SOA::new(zone.clone(), zone.clone(), 1, 1, 1, 1, ttl);
                    response.add_authority(Record::from_rdata(zone, 3600, RData::SOA(soa)));
                }
            }
            Reply::Truncated => response.metadata.truncation = true,
            Reply::Garbage => {
                let mut garbage = vec![0xff; 40];
                garbage[..2].copy_from_slice(&bytes[..2]);
                return Some(garbage);
            }
            Reply::Silence => return None,
        }
        // Long enough for those who ask together to meet, short enough that no datagram is sent again.
        tokio::time::sleep(Duration::from_millis(2)).await;
        Some(response.to_vec().unwrap())
    }
}

fn add(response: &mut Message, records: &[(&str, u32, &str)]) {
    for (owner, ttl, data) in records {
        let data = match data.parse::<IpAddr>() {
            Ok(IpAddr::V4(addr)) => RData::A(addr.into()),
            Ok(IpAddr::V6(addr)) => RData::AAAA(addr.into()),
            Err(_) => RData::CNAME(CNAME(Name::from_ascii(data).unwrap())),
        };
        response.add_answer(Record::from_rdata(Name::from_ascii(owner).unwrap(), *ttl, data));
    }
}

async fn serve_udp(socket: Arc<UdpSocket>, desk: Desk) {
    let mut bytes = [0; 4096];
    loop {
        let (count, peer) = socket.recv_from(&mut bytes).await.unwrap();
        let (socket, desk, bytes) = (Arc::clone(&socket), desk.clone(), bytes[..count].to_vec());
        tokio::spawn(async move {
            if let Some(answer) = desk.answer(&bytes, false).await {
                let _ = socket.send_to(&answer, peer).await;
            }
        });
    }
}

async fn serve_tcp(listener: TcpListener, desk: Desk) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let desk = desk.clone();
        tokio::spawn(async move {
            while let Ok(count) = stream.read_u16().await {
                let mut bytes = vec![0; count.into()];
                stream.read_exact(&mut bytes).await.unwrap();
                let Some(answer) = desk.clone().answer(&bytes, true).await else { return };
                stream.write_u16(u16::try_from(answer.len()).unwrap()).await.unwrap();
                stream.write_all(&answer).await.unwrap();
            }
        });
    }
}
