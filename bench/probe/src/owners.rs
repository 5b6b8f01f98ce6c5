//! The time to find the owners of flows, on a machine with many sockets and processes.

use anyhow::{Context, Result, ensure};
use queuescope_live::{Owners, now};
use queuescope_wire::{FlowKey, Granularity};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SOCKETS: usize = 1000;
const PROCESSES: usize = 300;
/// Files that each process has open.
const FILES: usize = 20;
/// Flows in one search: the largest number that `live` uses.
const FLOWS: usize = 256;

/// Measures a search for all flows together and for one flow.
pub fn measure(rounds: u64) -> Result<()> {
    let sockets = (0..SOCKETS).map(|_| {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect("127.0.0.1:9")?;
        Ok(socket)
    });
    let sockets = sockets.collect::<Result<Vec<_>>>().context("no room for a thousand sockets: ulimit -n 4096")?;
    let flows = sockets.iter().take(FLOWS).map(|socket| {
        let name = format!("127.0.0.1:{} > 127.0.0.1:9 udp", socket.local_addr()?.port());
        Ok(FlowKey::named(&name).context("it is a name")?.1)
    });
    let flows = flows.collect::<Result<Vec<_>>>()?;
    let _crowd = Crowd::new()?;
    println!("{SOCKETS} sockets, {PROCESSES} processes more with {FILES} files each");
    for asked in [&flows[..], &flows[..1]] {
        let mut took = (0..rounds).map(|_| look(asked)).collect::<Result<Vec<_>>>()?;
        took.sort();
        let [least, median, most] = [0, took.len() / 2, took.len() - 1].map(|at| took[at].as_secs_f64() * 1e3);
        println!("{:>4} flows in a look: {median:.1} ms ({least:.1} to {most:.1})", asked.len());
    }
    Ok(())
}

/// Measures a first search: later ones first sleep for nineteen times their duration.
fn look(flows: &[FlowKey]) -> Result<Duration> {
    let mut owners = Owners::new("lo")?;
    flows.iter().for_each(|flow| owners.seen(flow, now()));
    let since = Instant::now();
    owners.settle(Duration::from_secs(60));
    let took = since.elapsed();
    let found = owners.by(Granularity::FiveTuple);
    let ours = found.values().filter(|owner| owner.pid == Some(std::process::id())).count();
    ensure!(ours == flows.len(), "{ours} of {} flows were found", flows.len());
    Ok(took)
}

/// Idle processes with open files.
struct Crowd(Vec<Child>);

impl Crowd {
    fn new() -> Result<Self> {
        let files: String = (3..FILES).map(|file| format!(" {file}<&0")).collect();
        let mut crowd = Self(Vec::new());
        for _ in 0..PROCESSES {
            let mut command = Command::new("bash");
            command.args(["-c", &format!("exec{files}; exec sleep 600")]).stdin(Stdio::null());
            crowd.0.push(command.spawn().context("cannot start bash")?);
        }
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}
