//! Network namespaces of our own, with interfaces that nobody else sees.

use crate::ProbeError;
use crate::capabilities::raised;
use rustix::thread::{UnshareFlags, gettid, unshare_unsafe};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// A network namespace: a thread that is in it, and does there what it is told. It goes with all its interfaces when this
/// does.
#[derive(Debug)]
pub struct Namespace {
    tasks: Option<Sender<Task>>,
    thread: Option<JoinHandle<()>>,
    number: i32,
}

type Task = Box<dyn FnOnce() + Send>;

impl Namespace {
    /// A new one, in which there is only a loopback interface that is down.
    ///
    /// # Errors
    /// If this user may not make one.
    pub fn new() -> Result<Self, ProbeError> {
        let (tasks, work) = channel::<Task>();
        let (tell, told) = channel();
        let thread = thread::Builder::new().name("namespace".to_owned()).spawn(move || {
            // SAFETY: only the network namespace of this thread changes; it shares files and memory with others as before.
            #[allow(unsafe_code, reason = "there is no other way to a namespace")]
            let made = raised(|| unsafe { unshare_unsafe(UnshareFlags::NEWNET) });
            let ready = made.is_ok();
            // Whoever waits for it is there.
            let _ = tell.send(made.map(|()| gettid().as_raw_nonzero().get()));
            if ready {
                work.into_iter().for_each(|task| task());
            }
        });
        let refused =
            |why: std::io::Error| ProbeError::of("make a network namespace", "a kernel with CONFIG_NET_NS", &why);
        let thread = thread.map_err(refused)?;
        let gone = |_| refused(std::io::Error::other("its thread has stopped"));
        let number = told.recv().map_err(gone)?.map_err(|why| refused(why.into()))?;
        Ok(Self { tasks: Some(tasks), thread: Some(thread), number })
    }

    /// The number of its thread, by which `ip link set NAME netns NUMBER` knows it.
    pub fn number(&self) -> i32 {
        self.number
    }

    /// Does something in it; what that says. A thread or program that is begun there is in it, too.
    ///
    /// # Panics
    /// If that does.
    pub fn run<T: Send + 'static>(&self, task: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        let sent = self.tasks.as_ref().is_some_and(|tasks| {
            tasks
                .send(Box::new(move || {
                    let _ = tell.send(task());
                }))
                .is_ok()
        });
        assert!(sent, "the thread of a namespace lasts as long as it does, unless what it did panicked");
        told.recv().expect("what was done in a namespace has panicked")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.tasks.take());
        if let Some(thread) = self.thread.take() {
            // It panicked only if a task did, and whoever sent that was told.
            let _ = thread.join();
        }
    }
}
