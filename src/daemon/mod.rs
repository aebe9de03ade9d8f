//! What `exeat serve` runs beside the proxy itself.

pub(crate) mod metrics_endpoint;
