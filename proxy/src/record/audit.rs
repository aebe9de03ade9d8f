//! The audit log: a bounded queue of finished lines, and the thread that writes them.
//!
//! A line is made by the task that has the record and appended to one buffer under a short lock; the writer takes
//! the whole buffer at once. So a slow disk never slows a flow: when the buffer is full, records are dropped and
//! counted, and with `required` no new flow is let in long before that. Not here: what stands in a line (`jsonl`).

use std::{
    io::{self, Write as _},
    mem,
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use exeat_config::settings::AuditSettings;
use prometheus::IntCounter;
use tokio::sync::oneshot;

use super::{
    jsonl,
    log_file::{LogFile, Reopened},
    metrics::Metrics,
    rate_limit::RateLimit,
};
use crate::{
    clock::{self, Instant},
    flow::{CloseRecord, OpenRecord},
};

/// The usual line has about 300 bytes.
const LINE: usize = 512;

/// Writing less than this at once is worth a short wait for more.
const BATCH: usize = 64 * 1024;

/// How long the writer waits for more lines: what a crash can lose, against a system call for every line.
const LINGER: Duration = Duration::from_millis(2);

/// After a failed write, before the next attempt.
const RETRY: Duration = Duration::from_millis(250);

/// A full pipe is no fault: its reader is only slow.
const RETRY_PIPE: Duration = Duration::from_millis(10);

/// How the queue is bounded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Lines that wait to be written.
    pub(super) records: usize,
    /// Their bytes. The batch being written comes on top, so twice this is held at most.
    pub(super) bytes: usize,
    /// How often to look whether the file was rotated away.
    pub(super) rotation_check: Duration,
}

impl Default for Bounds {
    /// A disk that stalls for a second at 60,000 records a second is ridden out.
    fn default() -> Self {
        Self { records: 64 * 1024, bytes: 16 * 1024 * 1024, rotation_check: Duration::from_secs(1) }
    }
}

/// The audit log, open and being written.
#[derive(Debug)]
pub struct Audit {
    shared: Arc<Shared>,
    required: bool,
    /// Resolves when the writer has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

#[derive(Debug)]
struct Shared {
    bounds: Bounds,
    queue: Mutex<Queue>,
    /// Wakes the writer.
    wake: Condvar,
    /// The last write succeeded.
    healthy: AtomicBool,
    /// The queue is less than half full. The other half is for the flows that were already let in.
    roomy: AtomicBool,
    dropped: IntCounter,
    write_errors: IntCounter,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    records: usize,
    /// The writer sleeps and has to be woken. Cleared by whoever does, so a batch costs one wake-up.
    asleep: bool,
    reopen: bool,
    /// Nothing is taken any more, and after this moment nothing is tried again.
    closing: Option<Instant>,
}

impl Audit {
    /// Opens the log and starts its writer. `None` when the settings name no log.
    pub fn open(settings: &AuditSettings, metrics: &Metrics) -> io::Result<Option<Self>> {
        let Some(path) = &settings.path else { return Ok(None) };
        Self::open_bounded(path, settings.required, metrics, Bounds::default()).map(Some)
    }

    pub(super) fn open_bounded(
        path: &Path,
        required: bool,
        metrics: &Metrics,
        bounds: Bounds,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            bounds,
            queue: Mutex::default(),
            wake: Condvar::new(),
            healthy: AtomicBool::new(true),
            roomy: AtomicBool::new(true),
            dropped: metrics.audit_dropped().clone(),
            write_errors: metrics.audit_write_errors().clone(),
        });
        let writer = Writer {
            shared: Arc::clone(&shared),
            file: LogFile::open(path)?,
            batch: Vec::new(),
            written: 0,
            checked: clock::now(),
        };
        let (end, ended) = oneshot::channel();
        thread::Builder::new().name("exeat-audit".into()).spawn(move || {
            writer.run();
            // Nobody may be waiting for it.
            let _ = end.send(());
        })?;
        Ok(Self { shared, required, ended: Mutex::new(Some(ended)) })
    }

    /// Records a verdict.
    pub fn opened(&self, record: &OpenRecord<'_>) {
        let mut line = Vec::with_capacity(LINE);
        jsonl::open_line(&mut line, clock::wall(), record);
        self.shared.push(&line);
    }

    /// Records an end.
    pub fn closed(&self, record: &CloseRecord<'_>) {
        let mut line = Vec::with_capacity(LINE);
        jsonl::close_line(&mut line, clock::wall(), record);
        self.shared.push(&line);
    }

    /// Whether a new flow may be let in: always, unless the log is required and cannot be written.
    pub fn ready(&self) -> bool {
        !self.required
            || (self.shared.healthy.load(Ordering::Relaxed) && self.shared.roomy.load(Ordering::Relaxed))
    }

    /// Opens the file at the path again, before anything else is written (after a rotation, on SIGHUP).
    pub fn reopen(&self) {
        self.shared.lock().reopen = true;
        self.shared.wake.notify_one();
    }

    /// Writes what is queued and ends the writer. Records that come later, or that cannot be written within
    /// this time, are dropped and counted.
    pub async fn close(&self, within: Duration) {
        self.shared.begin_closing(within);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended
            // The writer gives up by itself then, and says what is lost.
            && tokio::time::timeout(within + RETRY, ended).await.is_err()
        {
            tracing::warn!("the audit log was not written to its end in time");
        }
    }
}

/// Without [`Audit::close`]: what can be written at once is written.
impl Drop for Audit {
    fn drop(&mut self) {
        self.shared.begin_closing(Duration::ZERO);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Every update under the lock is complete before anything in it can panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut queue = self.lock();
        let full = queue.records >= self.bounds.records || queue.bytes.len() + line.len() > self.bounds.bytes;
        if full || queue.closing.is_some() {
            drop(queue);
            self.drop_records(1);
            return;
        }
        queue.bytes.extend_from_slice(line);
        queue.records += 1;
        let roomy = queue.records < self.bounds.records / 2 && queue.bytes.len() < self.bounds.bytes / 2;
        if !roomy {
            self.roomy.store(false, Ordering::Relaxed);
        }
        let wake = mem::take(&mut queue.asleep);
        drop(queue);
        if wake {
            self.wake.notify_one();
        }
    }

    fn begin_closing(&self, within: Duration) {
        let mut queue = self.lock();
        if queue.closing.is_none() {
            queue.closing = Some(clock::now() + within);
        }
        drop(queue);
        self.wake.notify_one();
    }

    fn drop_records(&self, count: u64) {
        static LIMIT: RateLimit = RateLimit::per_second(1);
        self.dropped.inc_by(count);
        if let Some(suppressed) = LIMIT.admit(clock::now()) {
            tracing::warn!(suppressed, "audit records are being dropped");
        }
    }
}

/// What the writer is to do next.
enum Work {
    Write,
    Reopen,
    End,
}

/// Whether a failure leaves time for another attempt.
#[derive(PartialEq, Eq)]
enum Attempt {
    Again,
    GiveUp,
}

struct Writer {
    shared: Arc<Shared>,
    file: LogFile,
    /// Whole lines, taken from the queue.
    batch: Vec<u8>,
    /// How much of `batch` is in the file.
    written: usize,
    /// When it was last looked whether the file was rotated away.
    checked: Instant,
}

impl Writer {
    fn run(mut self) {
        loop {
            let attempt = match self.next() {
                Work::End => return,
                Work::Reopen => self.reopen(),
                Work::Write => self.write_batch(),
            };
            if attempt == Attempt::GiveUp {
                return self.give_up();
            }
        }
    }

    /// Waits for work and takes it.
    fn next(&mut self) -> Work {
        let shared = Arc::clone(&self.shared);
        let mut queue = shared.lock();
        loop {
            if mem::take(&mut queue.reopen) {
                return Work::Reopen;
            }
            if queue.records > 0 {
                break;
            }
            if queue.closing.is_some() {
                return Work::End;
            }
            queue.asleep = true;
            queue = shared.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.asleep = false;
        if queue.bytes.len() < BATCH && queue.closing.is_none() {
            queue = shared.wake.wait_timeout(queue, LINGER).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.batch.clear();
        self.batch.shrink_to(BATCH);
        self.written = 0;
        mem::swap(&mut self.batch, &mut queue.bytes);
        queue.records = 0;
        shared.roomy.store(true, Ordering::Relaxed);
        Work::Write
    }

    fn write_batch(&mut self) -> Attempt {
        self.follow_rotation();
        while self.written < self.batch.len() {
            match self.file.write(&self.batch[self.written..]) {
                Ok(count) if count > 0 => self.written += count,
                Ok(_) => {
                    if self.failed(&io::ErrorKind::WriteZero.into()) == Attempt::GiveUp {
                        return Attempt::GiveUp;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.pause(RETRY_PIPE) == Attempt::GiveUp {
                        return Attempt::GiveUp;
                    }
                    if mem::take(&mut self.shared.lock().reopen) {
                        self.reopen();
                    }
                }
                Err(error) => {
                    if self.failed(&error) == Attempt::GiveUp {
                        return Attempt::GiveUp;
                    }
                }
            }
        }
        self.shared.healthy.store(true, Ordering::Relaxed);
        Attempt::Again
    }

    fn follow_rotation(&mut self) {
        let now = clock::now();
        if now.saturating_duration_since(self.checked) < self.shared.bounds.rotation_check {
            return;
        }
        self.checked = now;
        if self.file.was_moved() {
            self.reopen();
        }
    }

    /// Opens the path again; where that fails, the old file stays in use.
    fn reopen(&mut self) -> Attempt {
        match self.file.reopen() {
            Ok(Reopened::Same) => {}
            Ok(Reopened::Other) => self.rewind_to_line(),
            Err(error) => self.complain(&error),
        }
        Attempt::Again
    }

    /// A line that is half in the old file is written to the new one as a whole.
    fn rewind_to_line(&mut self) {
        let before = &self.batch[..self.written];
        self.written = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    }

    fn failed(&mut self, error: &io::Error) -> Attempt {
        self.shared.healthy.store(false, Ordering::Relaxed);
        self.complain(error);
        let attempt = self.pause(RETRY);
        if attempt == Attempt::Again {
            self.shared.lock().reopen = false;
            self.reopen();
        }
        attempt
    }

    fn complain(&self, error: &io::Error) {
        static LIMIT: RateLimit = RateLimit::per_second(1);
        self.shared.write_errors.inc();
        if let Some(suppressed) = LIMIT.admit(clock::now()) {
            tracing::error!(%error, suppressed, "cannot write the audit log");
        }
    }

    /// Waits before another attempt, shorter when the log is to be reopened or closed.
    fn pause(&self, pause: Duration) -> Attempt {
        let queue = self.shared.lock();
        let now = clock::now();
        let pause = match queue.closing {
            Some(deadline) if deadline <= now => return Attempt::GiveUp,
            Some(deadline) => pause.min(deadline - now),
            None => pause,
        };
        if !queue.reopen {
            drop(self.shared.wake.wait_timeout(queue, pause));
        }
        Attempt::Again
    }

    /// Counts what is lost: the rest of the batch, and what came after it.
    fn give_up(mut self) {
        self.rewind_to_line();
        // Each line has its newline, so there is one piece more than there are lines.
        let lines = self.batch[self.written..].split(|&byte| byte == b'\n').count() - 1;
        let queued = mem::take(&mut self.shared.lock().records);
        self.shared.drop_records((lines + queued) as u64);
    }
}
