//! Runs the engine in a thread of its own, so that Python handles signals meanwhile: Ctrl-C stops the work, and other threads of Python run.

use crate::failure::{Failure, Outcome};
use pyo3::prelude::*;
use queuescope::ingest::Stop;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// How often signals and progress are handled.
const TICK: Duration = Duration::from_millis(50);
/// How many ticks a stopped task may take to end. After that it is left to itself: it only uses memory of its own.
const LAST_TICKS: u32 = 100;
/// The stack of the thread, as large as that of a usual main thread.
const STACK: usize = 8 << 20;
const NAME: &str = "queuescope-engine";

/// What the engine's thread shares with the one that waits for it.
#[derive(Debug)]
pub struct Task {
    stop: Stop,
    done: AtomicU64,
    items: AtomicU64,
}

impl Task {
    fn new() -> Outcome<Self> {
        let stop = Stop::manual().map_err(Failure::input)?;
        Ok(Self { stop, done: AtomicU64::new(0), items: AtomicU64::new(0) })
    }

    /// The request to end the work early.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Reports progress: bytes or steps that are done, and packets.
    pub fn progress(&self, done: u64, items: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.items.store(items, Ordering::Relaxed);
    }

    fn report(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        py.check_signals()?;
        if let Some(progress) = progress {
            progress.call1((self.done.load(Ordering::Relaxed), self.items.load(Ordering::Relaxed)))?;
        }
        Ok(())
    }
}

/// Runs `work` without the GIL. Meanwhile, calls `progress` with two numbers: what is done, and the packets so far. An exception of it, or
/// of a signal handler, stops the work.
///
/// # Errors
/// Returns the error of the work, or that exception. A panic becomes an `EngineError`.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Task) -> Outcome<T> + Send + 'static,
) -> PyResult<T> {
    let task = Arc::new(Task::new()?);
    let (sender, mut result) = sync_channel(1);
    let shared = Arc::clone(&task);
    let in_thread = move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&shared)));
        // If the receiver is gone, nobody waits for the result any more.
        let _ = sender.send(outcome.unwrap_or_else(|panic| Err(failure_of(panic))));
    };
    thread::Builder::new().name(NAME.to_owned()).stack_size(STACK).spawn(in_thread).map_err(Failure::input)?;
    loop {
        match wait(py, &mut result, TICK) {
            Ok(outcome) => {
                let value = outcome?;
                task.report(py, progress)?;
                return Ok(value);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Panic("the thread of the engine ended without a result".to_owned()).into());
            }
        }
        if let Err(error) = task.report(py, progress) {
            task.stop.request();
            // The result does not matter: only the end of the thread does.
            let _ = wait(py, &mut result, TICK * LAST_TICKS);
            return Err(error);
        }
    }
}

/// Waits for the result without the GIL. The receiver is borrowed exclusively, so that it is used by one thread at a time.
fn wait<T: Send>(
    py: Python<'_>,
    result: &mut Receiver<Outcome<T>>,
    time: Duration,
) -> Result<Outcome<T>, RecvTimeoutError> {
    py.detach(move || result.recv_timeout(time))
}

thread_local! {
    /// The message and the place of the last panic in this thread.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on, panics of the engine's threads are kept for the exception, and not printed.
pub fn remember_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().name() != Some(NAME) {
            return print(info);
        }
        let place = info.location().map(|place| format!(" ({place})")).unwrap_or_default();
        let message = message(info.payload()).unwrap_or("without a message");
        LAST_PANIC.with_borrow_mut(|last| *last = Some(format!("{message}{place}")));
    }));
}

/// The failure that a panic stands for. An exception of code in Python unwinds the engine's thread, too.
fn failure_of(panic: Box<dyn Any + Send>) -> Failure {
    match panic.downcast::<Failure>() {
        Ok(failure) => *failure,
        Err(panic) => Failure::Panic(panic_message(panic.as_ref())),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let known = LAST_PANIC.take().or_else(|| message(panic).map(str::to_owned));
    format!(
        "the engine failed, which is a defect of queuescope or of code that it calls: {}",
        known.as_deref().unwrap_or("it panicked without a message")
    )
}

fn message(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// Panics in the engine's thread: for the tests.
#[pyfunction]
#[pyo3(name = "_panic")]
pub fn panic_for_tests(py: Python<'_>) -> PyResult<()> {
    run(py, None, |_| panic!("a test"))
}
