//! Stand-in until it is written.
use crate::{buffered::Buffered, handshake::http::Plain};
pub(crate) struct ExchangeOptions {}
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}
pub(crate) enum Exchange {
    Done { client: bool, upstream: bool },
    Upgraded,
}
pub(crate) enum ExchangeError {
    Stale,
    Client,
    Upstream,
}
pub(crate) async fn exchange(
    _c: &mut Buffered,
    _u: &mut Buffered,
    _p: Plain<'_>,
    _o: &ExchangeOptions,
    _t: &mut Counters,
) -> Result<Exchange, ExchangeError> {
    Err(ExchangeError::Stale)
}
