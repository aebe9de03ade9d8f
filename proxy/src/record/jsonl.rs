//! The lines of the audit log: one JSON object per line, keys in a fixed order.
//!
//! No URL path and no credential is in the values these are made of. A control character that found its way into
//! one is escaped by JSON, so a line is one line whatever it holds. Not here: where lines go (`audit`).

use std::{net::IpAddr, time::SystemTime};

use exeat_config::Host;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::flow::{AddressFate, CloseRecord, OpenRecord};

/// Appends the line of a verdict, with its newline.
pub(super) fn open_line(out: &mut Vec<u8>, time: SystemTime, record: &OpenRecord<'_>) {
    append(
        out,
        &OpenLine {
            time: Millis::at(time),
            event: "open",
            flow: record.flow.0,
            session: record.session.map(exeat_config::SessionId::as_str),
            label: record.label,
            protocol: record.protocol.slug(),
            host: record.target.map(|target| HostText(&target.host)),
            port: record.target.map(|target| target.port.get()),
            detail: record.detail.filter(|_| record.target.is_none()),
            verdict: record.outcome.slug(),
            reason: record.reason.map(crate::decide::Reason::slug),
            rule: record.rule,
            generation: record.generation,
            addresses: Addresses(record.addresses),
        },
    );
}

/// Appends the line of an end, with its newline.
pub(super) fn close_line(out: &mut Vec<u8>, time: SystemTime, record: &CloseRecord<'_>) {
    append(
        out,
        &CloseLine {
            time: Millis::at(time),
            event: "close",
            flow: record.flow.0,
            session: record.session.map(exeat_config::SessionId::as_str),
            protocol: record.protocol.slug(),
            bytes_in: record.tally.bytes_in,
            bytes_out: record.tally.bytes_out,
            duration_ms: u64::try_from(record.duration.as_millis()).unwrap_or(u64::MAX),
            closed_by: record.tally.closed_by.slug(),
        },
    );
}

fn append(out: &mut Vec<u8>, line: &impl Serialize) {
    let start = out.len();
    match serde_json::to_writer(&mut *out, line) {
        Ok(()) => out.push(b'\n'),
        // Neither a Vec nor these shapes can fail; half a line must not get into the log all the same.
        Err(_) => out.truncate(start),
    }
}

#[derive(Serialize)]
struct OpenLine<'a> {
    time: Millis,
    event: &'static str,
    flow: u64,
    session: Option<&'a str>,
    label: Option<&'a str>,
    protocol: &'static str,
    host: Option<HostText<'a>>,
    port: Option<u16>,
    /// What was asked for, where it is no target and so has neither host nor port.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    verdict: &'static str,
    reason: Option<&'static str>,
    rule: Option<&'a str>,
    generation: u64,
    addresses: Addresses<'a>,
}

#[derive(Serialize)]
struct CloseLine<'a> {
    time: Millis,
    event: &'static str,
    flow: u64,
    session: Option<&'a str>,
    protocol: &'static str,
    bytes_in: u64,
    bytes_out: u64,
    duration_ms: u64,
    closed_by: &'static str,
}

#[derive(Serialize)]
struct AddressEntry {
    address: IpAddr,
    fate: &'static str,
    class: Option<&'static str>,
}

/// A time in RFC 3339, UTC, with milliseconds.
struct Millis(Timestamp);

impl Millis {
    fn at(time: SystemTime) -> Self {
        // Fails beyond the year 9999 only; a record with a wrong time is better than none.
        Self(Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.3}", self.0))
    }
}

/// A host without the brackets of an authority: the port has a key of its own.
struct HostText<'a>(&'a Host);

impl Serialize for HostText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Host::Name(name) => serializer.serialize_str(name.as_str()),
            Host::Addr(addr) => serializer.collect_str(addr),
        }
    }
}

struct Addresses<'a>(&'a [(IpAddr, AddressFate)]);

impl Serialize for Addresses<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|&(address, fate)| {
            let (fate, class) = match fate {
                AddressFate::Connected => ("connected", None),
                AddressFate::Tried => ("tried", None),
                AddressFate::Untried => ("untried", None),
                AddressFate::Denied(class) => ("denied", Some(class.slug())),
            };
            AddressEntry { address, fate, class }
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use exeat_config::{SessionId, Target};
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        decide::{AddressClass, Reason},
        flow::{ClosedBy, FlowId, Outcome, Protocol, Tally},
    };

    fn time() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(1_796_040_000_123_999)
    }

    fn open(record: &OpenRecord<'_>) -> String {
        let mut out = Vec::new();
        open_line(&mut out, time(), record);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_open_line_is_the_documented_one() {
        let session = SessionId::new("sess1").unwrap();
        let target = Target::parse_authority(b"evil.example:443").unwrap();
        let record = OpenRecord {
            flow: FlowId(17),
            session: Some(&session),
            label: Some("build"),
            protocol: Protocol::Connect,
            target: Some(&target),
            outcome: Outcome::Refuse,
            reason: Some(Reason::NotListed),
            detail: Some("not shown beside a target"),
            rule: None,
            generation: 3,
            addresses: &[],
        };
        assert_eq!(
            open(&record),
            "{\"time\":\"2026-11-30T12:00:00.123Z\",\"event\":\"open\",\"flow\":17,\"session\":\"sess1\",\
             \"label\":\"build\",\"protocol\":\"connect\",\"host\":\"evil.example\",\"port\":443,\
             \"verdict\":\"refuse\",\"reason\":\"not-listed\",\"rule\":null,\"generation\":3,\"addresses\":[]}\n"
        );
    }

    #[test]
    fn a_close_line_is_the_documented_one() {
        let record = CloseRecord {
            flow: FlowId(17),
            session: None,
            protocol: Protocol::Socks5,
            tally: Tally { bytes_in: u64::MAX, bytes_out: 2, closed_by: ClosedBy::SniMismatch },
            duration: Duration::from_micros(1_999),
        };
        let mut out = Vec::new();
        close_line(&mut out, time(), &record);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"time\":\"2026-11-30T12:00:00.123Z\",\"event\":\"close\",\"flow\":17,\"session\":null,\
             \"protocol\":\"socks5\",\"bytes_in\":18446744073709551615,\"bytes_out\":2,\"duration_ms\":1,\
             \"closed_by\":\"sni-mismatch\"}\n"
        );
    }

    #[test]
    fn addresses_say_what_became_of_them() {
        let target = Target::parse_authority(b"[2001:db8::1]:80").unwrap();
        let record = OpenRecord {
            flow: FlowId(1),
            session: None,
            label: None,
            protocol: Protocol::Http,
            target: Some(&target),
            outcome: Outcome::Permit,
            reason: None,
            detail: None,
            rule: Some("*.example:80"),
            generation: 1,
            addresses: &[
                ([192, 0, 2, 1].into(), AddressFate::Connected),
                ([192, 0, 2, 2].into(), AddressFate::Tried),
                ("2001:db8::2".parse().unwrap(), AddressFate::Untried),
                ([127, 0, 0, 1].into(), AddressFate::Denied(AddressClass::Loopback)),
            ],
        };
        let line: Value = serde_json::from_str(&open(&record)).unwrap();
        assert_eq!(line["host"], "2001:db8::1", "without brackets");
        assert_eq!(
            line["addresses"],
            json!([
                {"address": "192.0.2.1", "fate": "connected", "class": null},
                {"address": "192.0.2.2", "fate": "tried", "class": null},
                {"address": "2001:db8::2", "fate": "untried", "class": null},
                {"address": "127.0.0.1", "fate": "denied", "class": "loopback"},
            ])
        );
    }

    #[test]
    fn what_was_no_target_is_told_in_words() {
        let record = OpenRecord {
            flow: FlowId(1),
            session: None,
            label: None,
            protocol: Protocol::Socks5,
            target: None,
            outcome: Outcome::Refuse,
            reason: Some(Reason::InvalidTarget),
            detail: Some("the host `a\\x00b` has `\\x00` in it"),
            rule: None,
            generation: 1,
            addresses: &[],
        };
        let line: Value = serde_json::from_str(&open(&record)).unwrap();
        assert_eq!(line["detail"], record.detail.unwrap());
        assert_eq!(line["host"], Value::Null);
    }

    #[test]
    fn a_line_is_one_line_whatever_it_holds() {
        let record = OpenRecord {
            flow: FlowId(u64::MAX),
            session: None,
            label: Some("a\r\n{\"event\":\"open\"}\0\u{1b}[31m\"\\"),
            protocol: Protocol::Unknown,
            target: None,
            outcome: Outcome::Refuse,
            reason: Some(Reason::Malformed),
            detail: None,
            rule: None,
            generation: 0,
            addresses: &[],
        };
        let text = open(&record);
        assert_eq!(text.matches('\n').count(), 1);
        assert!(text.trim_end_matches('\n').chars().all(|c| !c.is_control()), "{text:?}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["label"], record.label.unwrap());
        assert_eq!((&line["host"], &line["port"]), (&Value::Null, &Value::Null));
    }
}
