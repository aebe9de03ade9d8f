//! The life of the daemon: bind → ready → serve → drain.
//!
//! Owns the order of start-up and of the end. Not here: what a reload does (`reload`), which signals mean what
//! (`signals`), or anything about a connection (`exeat-proxy`).

mod metrics_endpoint;
mod readiness;
mod reload;
mod signals;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use exeat_config::{
    Flags, Loaded, NetworkFilter, Profile, SessionId, Token,
    settings::{Mode, Settings},
};
use exeat_proxy::{
    authenticate::Identity,
    listen::{self, Listener},
    proxy::{Phase, Proxy},
    record::{Audit, Metrics, Recorder},
    serve::{self, Capacity},
    sessions::Session,
};
use tokio::net::TcpListener;

use crate::{commands::CommandError, terminal};
use signals::{Signal, Signals};

/// After the drain's time is up, tunnels that are closed have this long to write their last record.
const LAST_RECORDS: Duration = Duration::from_secs(2);

/// The flags that say where to listen.
const LISTEN: &str = "--listen";
const METRICS: &str = "--metrics";

/// Where the settings come from; read again at every reload.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    pub(crate) config: Option<PathBuf>,
    pub(crate) flags: Flags,
}

/// Who may use the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The sessions of the configuration.
    Sessions,
    /// One session, made at the start.
    OneSession,
    /// Whoever connects.
    Everyone,
}

impl Access {
    /// What is wrong with these settings when everyone may use the proxy, and what would help.
    pub(crate) fn everyone_conflicts(settings: &Settings) -> Option<(String, &'static str)> {
        if let Some(addr) = settings.proxy.listen.iter().find(|addr| !addr.ip().to_canonical().is_loopback())
        {
            return Some((
                format!("`--no-auth` would open the proxy on {addr} to everyone who can reach it"),
                "listen on a loopback address, or give sessions with `--sessions FILE`",
            ));
        }
        (!settings.sessions.is_empty()).then(|| {
            (
                "`--no-auth` does not go together with the sessions of the configuration".into(),
                "leave out `--no-auth`, or remove `proxy.sessions` and `[sessions]`",
            )
        })
    }
}

/// Runs until a signal ends it.
pub(crate) async fn run(loaded: Loaded, sources: Sources, access: Access) -> Result<(), CommandError> {
    let settings = &loaded.settings;
    readiness::raise_descriptor_limit();
    let mut signals =
        Signals::listen().map_err(|source| CommandError::System { what: "listen for signals", source })?;

    let sockets =
        settings.proxy.listen.iter().map(|&addr| bind(LISTEN, addr)).collect::<Result<Vec<_>, _>>()?;
    let metrics_socket = settings.metrics.listen.map(|addr| bind(METRICS, addr)).transpose()?;
    let metrics = Arc::new(Metrics::new(settings.metrics.blocked_hosts));
    let audit = Audit::open(&settings.audit, &metrics).map_err(|source| CommandError::Audit {
        path: settings.audit.path.clone().unwrap_or_default(),
        source,
    })?;
    // The endpoint of the metrics is ours too: no flow may reach it.
    let own = sockets.iter().chain(&metrics_socket).map(|(_, addr)| *addr).collect();
    let proxy =
        Proxy::new(settings, own, Recorder::new(Arc::clone(&metrics), audit)).map_err(CommandError::Proxy)?;

    let addrs: Vec<SocketAddr> = sockets.iter().map(|(_, addr)| *addr).collect();
    warn_of_what_is_open(settings, access);
    let identity = admit(&proxy, settings, access, &addrs)?;
    let capacity = Capacity::new(settings.limits.max_connections);
    for (socket, addr) in sockets {
        let listener = Listener::from_std(socket, identity.clone()).map_err(|source| CommandError::Bind {
            flag: LISTEN,
            addr,
            source,
        })?;
        tokio::spawn(serve::serve(Arc::clone(&proxy), listener, capacity.clone()));
        tracing::info!(%addr, "listening");
    }
    let ready = Arc::new(AtomicBool::new(true));
    if let Some((socket, addr)) = metrics_socket {
        let socket = TcpListener::from_std(socket).map_err(|source| CommandError::Bind {
            flag: METRICS,
            addr,
            source,
        })?;
        let is_ready = Arc::clone(&ready);
        let mut phase = proxy.phase();
        tokio::spawn(metrics_endpoint::serve(
            socket,
            metrics,
            move || is_ready.load(Ordering::Acquire),
            async move {
                // It goes on while tunnels drain, so that the last of them can still be seen.
                let _ = phase.wait_for(|phase| *phase == Phase::Ended).await;
            },
        ));
        tracing::info!(%addr, "metrics");
    }
    readiness::tell_ready();

    let mut watch = reload::Watch::new(sources, access, loaded);
    loop {
        let signal = tokio::select! {
            // A signal first: when a change was seen at the same time, it is read with it and not once more.
            biased;
            signal = signals.next() => signal,
            () = watch.changed() => Signal::Reload,
        };
        match signal {
            Signal::Reload => {
                readiness::tell_reloading();
                proxy.recorder().reopen();
                watch.reload(&proxy).await;
                readiness::tell_ready();
            }
            Signal::End => break,
        }
    }
    ready.store(false, Ordering::Release);
    drain(&proxy, &capacity, &mut signals, watch.settings().proxy.drain_timeout).await;
    Ok(())
}

fn bind(flag: &'static str, addr: SocketAddr) -> Result<(std::net::TcpListener, SocketAddr), CommandError> {
    listen::bind(addr)
        .and_then(|socket| socket.local_addr().map(|bound| (socket, bound)))
        .map_err(|source| CommandError::Bind { flag, addr, source })
}

/// Says what is weaker than it may seem, also to somebody who asked for quiet: a proxy that lets everything through
/// looks just like one that works.
fn warn_of_what_is_open(settings: &Settings, access: Access) {
    let warn = |words: &str| {
        if tracing::enabled!(tracing::Level::WARN) {
            tracing::warn!("{words}");
        } else {
            terminal::say(&format!("warning: {words}"));
        }
    };
    for (name, filter) in settings.open_profiles() {
        let why = match filter {
            NetworkFilter::On => "it has no `allowed_domains`",
            NetworkFilter::Off => "`network.filter` is \"off\"",
        };
        warn(&format!("the network is open: profile `{name}` lets every public host through, since {why}"));
    }
    if settings.proxy.mode == Mode::Report {
        warn(
            "nothing is refused but metadata services and special-use addresses: rules are only reported \
             (`--report-only`, or `mode = \"report\"`)",
        );
    }
    let allows_nothing = |profile: &Profile| profile.network.allowed.as_ref().is_some_and(Vec::is_empty);
    if settings.proxy.mode == Mode::Enforce && settings.profiles.values().all(allows_nothing) {
        warn("nothing is allowed: there is no rule that allows a host, such as `--allow example.com`");
    }
    match access {
        Access::Everyone => warn("no authentication: every program on this machine may use this proxy"),
        Access::Sessions | Access::OneSession => {}
    }
}

/// Says who may use the proxy, and makes the session that nobody configured.
fn admit(
    proxy: &Proxy,
    settings: &Settings,
    access: Access,
    listening: &[SocketAddr],
) -> Result<Identity, CommandError> {
    let slot = proxy.profile(&settings.proxy.profile).expect("settings always hold the profile they name");
    let id = SessionId::new("exeat").expect("a valid id");
    match access {
        Access::Sessions => Ok(Identity::Shared),
        Access::OneSession => {
            let token = Token::generate()
                .map_err(|error| CommandError::Random(std::io::Error::other(error.to_string())))?;
            proxy.add_session(Session::with_token(id.clone(), None, token.hash(), slot));
            let addr = listen::reachable(listening[0]);
            let url = format!("http://{id}:{}@{addr}", token.reveal());
            // Standard error is the log of a daemon, and the URL has the token: it must not be there.
            terminal::say(&format!(
                "session `{id}` was made for this run; its proxy URL is shown once, on standard output.\n\
                 try: curl -x URL https://example.com/"
            ));
            terminal::print(&format!("{url}\n"))
                .map_err(|source| CommandError::System { what: "write to standard output", source })?;
            Ok(Identity::Shared)
        }
        Access::Everyone => {
            let session = Session::without_token(id, None, slot);
            Ok(Identity::Session(proxy.add_session(session)))
        }
    }
}

/// Accepts no more, lets what is open finish, and closes the rest when the time is up or at a second signal.
async fn drain(proxy: &Proxy, capacity: &Capacity, signals: &mut Signals, limit: Duration) {
    readiness::tell_stopping();
    proxy.enter(Phase::Draining);
    tracing::info!(
        limit = ?limit,
        "draining: no new connections; a second signal ends at once"
    );
    let finished = tokio::select! {
        () = capacity.emptied() => true,
        () = tokio::time::sleep(limit) => false,
        () = signals.end() => false,
    };
    proxy.enter(Phase::Ended);
    if !finished {
        tracing::warn!("closing the connections that are still open");
        let _ = tokio::time::timeout(LAST_RECORDS, capacity.emptied()).await;
    }
    proxy.recorder().shut_down(LAST_RECORDS).await;
    tracing::info!("ended");
}
