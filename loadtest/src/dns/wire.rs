//! DNS messages: bytes to a question, an answer to bytes (RFC 1035 section 4, RFC 6891 for sizes).

use super::zone::{Answer, Outcome, Resolved, key};
use super::{Kind, Transport};
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{CNAME, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use std::net::IpAddr;
use std::time::Duration;

/// A well-formed query with exactly one question.
pub(super) struct Question {
    message: Message,
    query: Query,
}

impl Question {
    pub(super) fn name(&self) -> String {
        key(&self.query.name.to_ascii())
    }

    pub(super) fn kind(&self) -> Kind {
        match self.query.query_type {
            RecordType::A => Kind::A,
            RecordType::AAAA => Kind::Aaaa,
            other => Kind::Other(other.into()),
        }
    }
}

/// What is to be sent and when.
pub(super) struct Reply {
    delay: Duration,
    bytes: Option<Vec<u8>>,
}

impl Reply {
    /// Waits until the reply is due; `None` if there is none.
    pub(super) async fn when_due(self) -> Option<Vec<u8>> {
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        self.bytes
    }
}

/// Reads a query; `None` for anything else.
pub(super) fn read(bytes: &[u8]) -> Option<Question> {
    let message = Message::from_vec(bytes).ok()?;
    let is_query = message.metadata.message_type == MessageType::Query;
    let [query] = message.queries.as_slice() else { return None };
    let query = query.clone();
    is_query.then_some(Question { message, query })
}

/// Makes the reply to a question.
pub(super) fn reply(question: &Question, resolved: &Resolved, transport: Transport) -> Reply {
    let delay = resolved.answer.delay;
    let bytes = match &resolved.answer.outcome {
        Outcome::Silence => None,
        Outcome::Garbage(bytes) => Some([&question.message.metadata.id.to_be_bytes()[..], bytes].concat()),
        Outcome::Addresses(_)
        | Outcome::Alias(_)
        | Outcome::NxDomain
        | Outcome::ServFail
        | Outcome::Refused => encode(question, resolved, transport),
    };
    Reply { delay, bytes }
}

/// `None` only for a name in the table that is no DNS name, which then looks like silence.
fn encode(question: &Question, resolved: &Resolved, transport: Transport) -> Option<Vec<u8>> {
    let answer = &resolved.answer;
    let request = &question.message;
    let id = if answer.wrong_id { request.metadata.id.wrapping_add(1) } else { request.metadata.id };
    let mut message = Message::response(id, OpCode::Query);
    message.metadata.recursion_desired = request.metadata.recursion_desired;
    message.metadata.recursion_available = true;
    message.metadata.response_code = response_code(&answer.outcome);
    message.add_query(question.query.clone());
    if request.edns.is_some() {
        let mut edns = Edns::new();
        edns.set_max_payload(request.max_payload());
        message.set_edns(edns);
    }
    add_records(&mut message, question, resolved)?;
    let bytes = message.to_vec().ok()?;
    let too_long = bytes.len() > usize::from(request.max_payload());
    if transport == Transport::Udp && (answer.truncated || too_long) {
        let mut short = message.truncate();
        short.metadata.message_type = MessageType::Response;
        return short.to_vec().ok();
    }
    Some(bytes)
}

fn response_code(outcome: &Outcome) -> ResponseCode {
    match outcome {
        Outcome::Addresses(_) | Outcome::Alias(_) | Outcome::Silence | Outcome::Garbage(_) => {
            ResponseCode::NoError
        }
        Outcome::NxDomain => ResponseCode::NXDomain,
        Outcome::ServFail => ResponseCode::ServFail,
        Outcome::Refused => ResponseCode::Refused,
    }
}

fn add_records(message: &mut Message, question: &Question, resolved: &Resolved) -> Option<()> {
    let answer = &resolved.answer;
    // The question's own spelling, so that a client which randomises case recognises it.
    let mut owner = question.query.name.clone();
    for (target, ttl) in &resolved.aliases {
        let target = name(target)?;
        message.add_answer(Record::from_rdata(owner, *ttl, RData::CNAME(CNAME(target.clone()))));
        owner = target;
    }
    if let Some(lie) = &answer.owner {
        owner = name(lie)?;
    }
    let records = records(answer, question.kind(), &owner);
    if records.is_empty() && matches!(answer.outcome, Outcome::NxDomain | Outcome::Addresses(_)) {
        // RFC 2308 section 3: how long a negative answer may be kept.
        let soa = SOA::new(Name::root(), Name::root(), 1, 3600, 600, 86400, answer.ttl);
        message.add_authority(Record::from_rdata(Name::root(), answer.ttl, RData::SOA(soa)));
    }
    message.add_answers(records);
    Some(())
}

fn records(answer: &Answer, kind: Kind, owner: &Name) -> Vec<Record> {
    let Outcome::Addresses(addresses) = &answer.outcome else { return Vec::new() };
    let data = addresses.iter().filter_map(|address| match (address, kind) {
        (IpAddr::V4(v4), Kind::A) => Some(RData::A((*v4).into())),
        (IpAddr::V6(v6), Kind::Aaaa) => Some(RData::AAAA((*v6).into())),
        (IpAddr::V4(_), Kind::Aaaa | Kind::Other(_)) | (IpAddr::V6(_), Kind::A | Kind::Other(_)) => None,
    });
    data.map(|data| Record::from_rdata(owner.clone(), answer.ttl, data)).collect()
}

fn name(text: &str) -> Option<Name> {
    let mut name = Name::from_ascii(text).ok()?;
    name.set_fqdn(true);
    Some(name)
}
