//! What a name leads to: addresses, or a miss. Raw, as DNS or the hosts file said it; the guard comes later.

use std::{net::IpAddr, sync::Arc, time::Duration};

use crate::limits;

/// The addresses of a name in the order to try, or why there are none.
pub(super) type Answer = Result<Arc<[IpAddr]>, Miss>;

/// Why a name has no addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Miss {
    /// It does not exist, or has no addresses.
    NotFound,
    /// No server could say; in words.
    Failed(Arc<str>),
    /// No server answered in time.
    TimedOut,
    /// Too many names are being looked up already.
    Busy,
}

/// What DNS says of one name and one address family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Addresses; never empty.
    Addresses {
        /// In the order of the answer.
        addrs: Vec<IpAddr>,
        /// The smallest TTL on the way to them.
        ttl: Duration,
    },
    /// The name does not exist, or has none of this family (RFC 2308).
    Nothing {
        /// How long that holds.
        ttl: Duration,
    },
}

/// The two halves of a lookup, as they come in.
#[derive(Debug, Default)]
pub(super) struct Halves {
    /// The answer to A.
    pub(super) v4: Option<Result<Found, Miss>>,
    /// The answer to AAAA.
    pub(super) v6: Option<Result<Found, Miss>>,
}

impl Halves {
    /// Both have been answered.
    pub(super) fn complete(&self) -> bool {
        self.v4.is_some() && self.v6.is_some()
    }

    /// One of them has addresses.
    pub(super) fn usable(&self) -> bool {
        [&self.v4, &self.v6].iter().any(|half| matches!(half, Some(Ok(Found::Addresses { .. }))))
    }

    /// The answer as it stands, and for how long it may be used. A half that has not come counts as timed out.
    pub(super) fn answer(&self) -> (Answer, Duration) {
        let mut families = [Vec::new(), Vec::new()];
        let mut positive = limits::MAX_TTL;
        let mut negative = limits::MAX_NEGATIVE_TTL;
        let mut miss = None;
        for (half, addresses) in [&self.v6, &self.v4].into_iter().zip(&mut families) {
            match half {
                Some(Ok(Found::Addresses { addrs, ttl })) => {
                    addresses.clone_from(addrs);
                    positive = positive.min(*ttl);
                }
                Some(Ok(Found::Nothing { ttl })) => negative = negative.min(*ttl),
                Some(Err(error)) => miss = Some(worse(miss, error.clone())),
                None => miss = Some(worse(miss, Miss::TimedOut)),
            }
        }
        let [v6, v4] = families;
        let mut addrs = interleave(v6, v4);
        addrs.truncate(limits::MAX_ADDRESSES);
        if addrs.is_empty() {
            return match miss {
                Some(miss) => (Err(miss), limits::FAILURE_TTL),
                None => (Err(Miss::NotFound), negative.max(limits::MIN_TTL)),
            };
        }
        if miss.is_some() {
            // One family is unknown: use the other, and ask again soon.
            positive = positive.min(limits::MAX_NEGATIVE_TTL);
        }
        (Ok(addrs.into()), positive.max(limits::MIN_TTL))
    }
}

/// Of two misses, the one that tells more: a server that spoke before one that did not.
fn worse(one: Option<Miss>, other: Miss) -> Miss {
    match one {
        Some(failed @ Miss::Failed(_)) => failed,
        Some(Miss::NotFound | Miss::TimedOut | Miss::Busy) | None => other,
    }
}

/// RFC 8305 section 4: one of each family in turn, IPv6 first.
pub(super) fn interleave<T>(v6: Vec<T>, v4: Vec<T>) -> Vec<T> {
    if v6.is_empty() {
        return v4;
    }
    if v4.is_empty() {
        return v6;
    }
    let mut both = Vec::with_capacity(v6.len() + v4.len());
    let (mut v6, mut v4) = (v6.into_iter(), v4.into_iter());
    loop {
        match (v6.next(), v4.next()) {
            (None, None) => return both,
            (six, four) => both.extend(six.into_iter().chain(four)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Half = Option<Result<Found, Miss>>;

    const SECOND: Duration = Duration::from_secs(1);

    fn addresses(list: &[&str], ttl: u32) -> Half {
        let addrs = list.iter().map(|addr| addr.parse().expect("an address")).collect();
        Half::from(Ok(Found::Addresses { addrs, ttl: SECOND * ttl }))
    }

    fn nothing(ttl: u32) -> Half {
        Half::from(Ok(Found::Nothing { ttl: SECOND * ttl }))
    }

    fn failed() -> Half {
        Half::from(Err(Miss::Failed("it broke".into())))
    }

    #[test]
    fn joins_the_families() {
        #[track_caller]
        fn check(v4: Half, v6: Half, expected: Result<&[&str], Miss>, ttl: u32) {
            let (answer, lasts) = Halves { v4, v6 }.answer();
            let answer = answer.map(|addrs| addrs.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(answer, expected.map(|list| list.iter().map(ToString::to_string).collect()));
            assert_eq!(lasts, SECOND * ttl);
        }
        check(
            addresses(&["192.0.2.1", "192.0.2.2", "192.0.2.3"], 300),
            addresses(&["2001:db8::1", "2001:db8::2"], 60),
            Ok(&["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"]),
            60,
        );
        check(addresses(&["192.0.2.1"], 300), nothing(5), Ok(&["192.0.2.1"]), 300);
        check(nothing(5), addresses(&["2001:db8::1"], 300), Ok(&["2001:db8::1"]), 300);
        // TTLs are clamped.
        check(addresses(&["192.0.2.1"], 0), nothing(5), Ok(&["192.0.2.1"]), 1);
        check(addresses(&["192.0.2.1"], 1_000_000), nothing(5), Ok(&["192.0.2.1"]), 3600);
        check(nothing(0), nothing(20), Err(Miss::NotFound), 1);
        check(nothing(1000), nothing(20), Err(Miss::NotFound), 20);
        check(nothing(1000), nothing(1000), Err(Miss::NotFound), 30);
        // A family that failed or is late does not take the other away, but is asked again soon.
        check(addresses(&["192.0.2.1"], 300), failed(), Ok(&["192.0.2.1"]), 30);
        check(addresses(&["192.0.2.1"], 300), None, Ok(&["192.0.2.1"]), 30);
        check(nothing(20), failed(), Err(Miss::Failed("it broke".into())), 1);
        check(failed(), None, Err(Miss::Failed("it broke".into())), 1);
        check(None, failed(), Err(Miss::Failed("it broke".into())), 1);
        check(nothing(20), None, Err(Miss::TimedOut), 1);
        check(None, None, Err(Miss::TimedOut), 1);
    }

    #[test]
    fn keeps_a_bounded_number() {
        let many: Vec<String> = (0..100).map(|n| format!("192.0.2.{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (answer, _) = Halves { v4: addresses(&many, 60), v6: addresses(&["2001:db8::1"], 60) }.answer();
        assert_eq!(answer.map(|addrs| addrs.len()), Ok(limits::MAX_ADDRESSES));
    }
}
