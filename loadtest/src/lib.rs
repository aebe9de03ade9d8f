//! The test kit: real sockets, real processes and private networks for exeat's tests and, later,
//! its load generator.
//!
//! It owns everything that stands *around* the proxy in a test: a DNS server that may lie
//! ([`dns`]), origins that record every byte and may misbehave ([`origin`]), clients that send
//! exactly what they are told ([`client`]), a certificate authority ([`ca`]), programs that are
//! started, watched and ended ([`process`]), bulk bytes that are checked on the way ([`pattern`])
//! and a network of the test's own with public-looking addresses ([`netns`]).
//!
//! It shares no code with the proxy, on purpose: a shared codec would share our bugs. It knows no
//! policy, no configuration and no reason slug. Everything in it is bounded in time.
//!
//! A whole test reads like this:
//!
//! ```no_run
//! use exeat_loadtest::client::connect;
//! use exeat_loadtest::dns::{Answer, DnsServer, Zone};
//! use exeat_loadtest::netns::{PrivateNetwork, in_private_network};
//! use exeat_loadtest::origin::{Origin, Script, http_ok};
//! use exeat_loadtest::process::Program;
//! use std::time::Duration;
//!
//! // with `#[test]` above it
//! fn an_allowed_name_is_reached() {
//!     let net = PrivateNetwork::new().address("93.184.216.34").nameserver("9.9.9.9");
//!     in_private_network(exeat_loadtest::test_name!(), &net, || {
//!         let zone = Zone::new().with("good.test", Answer::a(["93.184.216.34"]));
//!         let dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
//!         let origin = Origin::start("93.184.216.34:80", Script::answer(http_ok("hello"))).unwrap();
//!         let mut exeat = Program::new("target/debug/exeat")
//!             .args(["serve", "--no-auth", "--listen", "127.0.0.1:3128", "--allow", "good.test"])
//!             .start()
//!             .unwrap();
//!         let proxy = "127.0.0.1:3128".parse().unwrap();
//!         exeat.wait_for_port(proxy, Duration::from_secs(5)).unwrap();
//!         connect(proxy, "good.test:80", None).unwrap();
//!         assert_eq!(origin.recordings().len(), 1);
//!         assert!(dns.was_asked("good.test"));
//!     });
//! }
//! ```

pub mod ca;
pub mod client;
pub mod dns;
pub mod netns;
pub mod origin;
pub mod pattern;
pub mod process;
pub mod requirement;

mod background;
mod env;
mod pace;

/// The name under which libtest knows the function this is written in, for
/// [`netns::in_private_network`].
///
/// It must stand in the test function itself (a closure inside it is fine).
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::netns::libtest_name(::std::any::type_name_of_val(&here))
    }};
}
