//! Network namespaces of this process, with their own interfaces.

use crate::ProbeError;
use crate::capabilities::raised;
use rustix::thread::{UnshareFlags, gettid, unshare_unsafe};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// A network namespace, and a thread in it that runs tasks. The namespace and its interfaces disappear when this value is
/// dropped.
#[derive(Debug)]
pub struct Namespace {
    tasks: Option<Sender<Task>>,
    thread: Option<JoinHandle<()>>,
    number: i32,
}

type Task = Box<dyn FnOnce() + Send>;

impl Namespace {
    /// Creates a namespace that contains only a loopback interface, which is down.
    ///
    /// # Errors
    /// Fails if the user may not create namespaces.
    pub fn new() -> Result<Self, ProbeError> {
        let (tasks, work) = channel::<Task>();
        let (started, start_result) = channel();
        let thread = thread::Builder::new().name("namespace".to_owned()).spawn(move || {
            // SAFETY: only the network namespace of this thread changes; it shares files and memory with others as before.
            #[allow(unsafe_code, reason = "there is no other way to a namespace")]
            let made = raised(|| unsafe { unshare_unsafe(UnshareFlags::NEWNET) });
            let ready = made.is_ok();
            // `new` is waiting for this.
            let _ = started.send(made.map(|()| gettid().as_raw_nonzero().get()));
            if ready {
                work.into_iter().for_each(|task| task());
            }
        });
        let refused =
            |why: std::io::Error| ProbeError::since("make a network namespace", "a kernel with CONFIG_NET_NS", &why);
        let thread = thread.map_err(refused)?;
        let gone = |_| refused(std::io::Error::other("its thread has stopped"));
        let number = start_result.recv().map_err(gone)?.map_err(|why| refused(why.into()))?;
        Ok(Self { tasks: Some(tasks), thread: Some(thread), number })
    }

    /// The id of the namespace's thread, as `ip link set NAME netns NUMBER` expects it.
    pub fn number(&self) -> i32 {
        self.number
    }

    /// Runs `task` in the namespace and returns its result. Threads and programs that it starts are in the namespace, too.
    ///
    /// # Panics
    /// If the task panics.
    pub fn run<T: Send + 'static>(&self, task: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let sent = self.tasks.as_ref().is_some_and(|tasks| {
            tasks
                .send(Box::new(move || {
                    let _ = done.send(task());
                }))
                .is_ok()
        });
        assert!(sent, "the thread of a namespace ends early only if a task panics");
        result.recv().expect("a task in a namespace has panicked")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.tasks.take());
        if let Some(thread) = self.thread.take() {
            // It panicked only if a task did, which `run` has reported.
            let _ = thread.join();
        }
    }
}
