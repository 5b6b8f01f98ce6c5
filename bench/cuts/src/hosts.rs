//! Cuts beside rounds of empty messages, for more and more agents.

use crate::cpu;
use hdrhistogram::Histogram;
use queuescope_fleet::coordinator::{Coordinator, CoordinatorOptions, CoordinatorServer, create};
use queuescope_fleet::identity::{Credentials, Identity, Lives, PendingKey, Registrar};
use queuescope_fleet::protocol::State;
use queuescope_wire::Nanos;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// Cuts, and pairs of rounds, that alternate.
const BLOCK: usize = 50;
const WITHIN: Duration = Duration::from_secs(2);

/// Measures fleets of 1, 2, 4 and so on agents, up to `most`.
pub fn measure(most: usize, cuts: usize) {
    println!(
        "agents   cut p50   cut p99   two rounds p50   p99   cut CPU per agent   two rounds   beyond   cut CPU in all"
    );
    let mut agents = 1;
    while agents <= most {
        let fleet = Fleet::start(agents);
        fleet.measure(cuts);
        drop(fleet);
        agents *= 2;
    }
}

/// A coordinator in this process, and its agents.
pub struct Fleet {
    agents: Vec<Child>,
    pub coordinator: Coordinator,
    pub runtime: Runtime,
    pub address: String,
    pub dir: tempfile::TempDir,
    _stop: oneshot::Sender<()>,
}

impl Fleet {
    /// Starts a coordinator and its agents.
    pub fn start(agents: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads start");
        let dir = tempfile::tempdir().expect("there is room");
        let home = dir.path().join("coordinator");
        create(&home, &[]).expect("it is new");
        let names: Vec<_> = (0..agents.max(1)).map(|agent| format!("agent-{agent}")).collect();
        names.iter().for_each(|name| join(&home, name, &dir.path().join(name)));
        // Frozen tails of a slow machine must not thaw: the time is what is measured.
        let options = CoordinatorOptions { lease: Nanos(1_000_000_000), ..CoordinatorOptions::default() };
        let listen = "127.0.0.1:0".parse().expect("an address");
        let server = runtime.block_on(CoordinatorServer::open(&home, listen, options)).expect("it was made");
        let (coordinator, address) = (server.coordinator().clone(), server.address().expect("it listens").to_string());
        let (stop, stopped) = oneshot::channel::<()>();
        runtime.spawn(server.serve(async {
            let _ = stopped.await;
        }));
        let start = |name: &String| {
            let mut command = Command::new(std::env::current_exe().expect("it has a name"));
            command.arg("agent").arg(dir.path().join(name)).arg(&address).stdin(Stdio::piped());
            command.spawn().expect("it starts")
        };
        let processes = names.iter().take(agents).map(start).collect();
        let fleet = Self { agents: processes, coordinator, runtime, address, dir, _stop: stop };
        fleet.wait_for(agents);
        fleet
    }

    /// Waits for this number of agents.
    pub fn wait_for(&self, agents: usize) {
        let since = Instant::now();
        let here = || self.coordinator.members().iter().filter(|member| member.state() == State::Answered).count();
        while here() < agents {
            assert!(since.elapsed() < Duration::from_secs(120), "{:?}", self.coordinator.members());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn measure(&self, cuts: usize) {
        let new = || Histogram::<u64>::new(3).expect("three digits");
        let (mut of_cuts, mut of_rounds, mut cpu_cuts, mut cpu_rounds) = (new(), new(), 0.0, 0.0);
        let agents = self.agents.len();
        self.block(BLOCK, &mut new());
        self.rounds(BLOCK, &mut new());
        for _ in 0..cuts.div_ceil(BLOCK) {
            cpu_cuts += self.block(BLOCK, &mut of_cuts);
            cpu_rounds += self.rounds(BLOCK, &mut of_rounds);
        }
        let us = |histogram: &Histogram<u64>, at: f64| histogram.value_at_quantile(at) as f64 / 1e3;
        let each = |cpu: f64| cpu * 1e6 / of_cuts.len() as f64;
        println!(
            "{agents:6} {:9.0} {:9.0} {:16.0} {:6.0} {:16.2} us {:12.2} us {:6.2} us {:12.0} us",
            us(&of_cuts, 0.5),
            us(&of_cuts, 0.99),
            us(&of_rounds, 0.5),
            us(&of_rounds, 0.99),
            each(cpu_cuts) / agents as f64,
            each(cpu_rounds) / agents as f64,
            each(cpu_cuts - cpu_rounds) / agents as f64,
            each(cpu_cuts),
        );
    }

    /// Makes cuts; returns the CPU time of this process.
    fn block(&self, cuts: usize, times: &mut Histogram<u64>) -> f64 {
        let before = cpu();
        self.runtime.block_on(async {
            for _ in 0..cuts {
                let begun = Instant::now();
                let made = self.coordinator.cut(&[], Nanos(500_000_000)).await.expect("nobody else makes one");
                times.record(begun.elapsed().as_nanos() as u64).expect("any value fits");
                assert!(made.positions.len() == self.agents.len() && made.lapsed.is_empty(), "{made:?}");
            }
        });
        cpu() - before
    }

    /// Makes pairs of rounds of empty messages; returns the CPU time of this process.
    fn rounds(&self, pairs: usize, times: &mut Histogram<u64>) -> f64 {
        let before = cpu();
        self.runtime.block_on(async {
            let mut failed = 0;
            for _ in 0..pairs {
                let begun = Instant::now();
                let both = self.coordinator.round_trip(WITHIN).await && self.coordinator.round_trip(WITHIN).await;
                if both {
                    times.record(begun.elapsed().as_nanos() as u64).expect("any value fits");
                } else {
                    // The server measures its own round trips now and then, which ends this one.
                    failed += 1;
                }
            }
            assert!(failed < 5, "{failed} of {pairs} rounds had no replies");
        });
        cpu() - before
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            drop(agent.stdin.take());
            let _ = agent.wait();
        }
    }
}

/// Makes credentials, as a token would.
fn join(home: &Path, name: &str, to: &Path) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let registrar = Registrar::open(&home.join("authority"), Lives::default()).expect("it was made");
    let identity = Identity::parse(name, "agent").expect("a name");
    let token = registrar.invite(&identity, Duration::from_secs(60), now).expect("there is room").text();
    let pending = PendingKey::generate().expect("there is chance");
    let issued = registrar.join(&token, pending.request(), now).expect("the token is new");
    let authority = registrar.authority().certificate_pem();
    Credentials::accept(pending, &issued.pem, authority, now).and_then(|own| own.save(to)).expect("there is room");
}
