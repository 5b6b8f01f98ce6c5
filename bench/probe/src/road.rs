//! Three network namespaces in a row: a source, a router with the queue, a sink.

use anyhow::{Context, Result, ensure};
use queuescope_live::Namespace;
use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// `s0` of the source to `r0` of the router, `near0` of it, which has the queue, to `far0` of the sink.
pub struct Road {
    pub source: Arc<Namespace>,
    pub router: Arc<Namespace>,
    pub sink: Arc<Namespace>,
}

/// The sink's address.
const SINK: &str = "10.9.0.2:7000";

impl Road {
    /// Makes the namespaces, with the queue of the `tc` commands, and with super-packets if `offload` is set.
    pub fn new(queue: &'static [&'static str], offload: bool) -> Result<Self> {
        let made = || Namespace::new().map(Arc::new);
        let (source, router, sink) = (made()?, made()?, made()?);
        let (before, behind) = (source.number(), sink.number());
        within(&router, move || {
            run(&format!("ip link add r0 type veth peer name s0 netns {before}"))?;
            run(&format!("ip link add near0 type veth peer name far0 netns {behind}"))?;
            run("ip addr add 10.8.0.2/24 dev r0")?;
            run("ip addr add 10.9.0.1/24 dev near0")?;
            fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("cannot forward")?;
            for device in ["r0", "near0"] {
                up(device, offload)?;
            }
            queue.iter().try_for_each(|command| run(&format!("tc {command}")).map(drop))
        })?;
        let end = |device: &'static str, address: &'static str, way: &'static str| {
            move || {
                run(&format!("ip addr add {address} dev {device}"))?;
                up(device, offload)?;
                run(&format!("ip route add default via {way}")).map(drop)
            }
        };
        within(&source, end("s0", "10.8.0.1/24", "10.8.0.2"))?;
        within(&sink, end("far0", "10.9.0.2/24", "10.9.0.1"))?;
        Ok(Self { source, router, sink })
    }

    /// Runs one TCP flow for each element of `rates`, from the source to the sink, for `time`, and returns the bytes per second that
    /// arrived. A flow sends as fast as it can, or at most its rate in bytes per second.
    pub fn flows(&self, rates: Vec<Option<f64>>, time: Duration) -> Result<f64> {
        let count = rates.len();
        let arrived = Arc::new(AtomicU64::new(0));
        let listener = within(&self.sink, || Ok(TcpListener::bind(SINK)?))?;
        let (sum, readers) = (Arc::clone(&arrived), count);
        self.sink.run(move || {
            thread::spawn(move || {
                for stream in listener.incoming().take(readers).flatten() {
                    let sum = Arc::clone(&sum);
                    thread::spawn(move || read(stream, &sum));
                }
            });
        });
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let writers = within(&self.source, move || {
            let streams = (0..count).map(|_| connect()).collect::<Result<Vec<_>>>()?;
            let write = |(stream, rate): (TcpStream, Option<f64>)| {
                let stop = Arc::clone(&asked);
                thread::spawn(move || write(stream, rate, &stop))
            };
            Ok(streams.into_iter().zip(rates).map(write).collect::<Vec<_>>())
        })?;
        let (before, begun) = (arrived.load(Ordering::Relaxed), Instant::now());
        thread::sleep(time);
        let rate = (arrived.load(Ordering::Relaxed) - before) as f64 / begun.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| drop(writer.join()));
        Ok(rate)
    }
}

/// Runs a function in a namespace.
pub fn within<T: Send + 'static>(
    namespace: &Namespace,
    task: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    namespace.run(task)
}

/// Runs a command, and returns its output.
pub fn run(command: &str) -> Result<String> {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap_or_default()).args(words).output();
    let output = output.with_context(|| format!("cannot run {command}"))?;
    ensure!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?)
}

fn up(device: &str, offload: bool) -> Result<()> {
    if !offload {
        run(&format!("ethtool -K {device} tso off gso off gro off"))?;
    }
    run(&format!("ip link set {device} up")).map(drop)
}

/// A connection with CUBIC, whatever the system's default is.
fn connect() -> Result<TcpStream> {
    let stream = TcpStream::connect(SINK)?;
    set_tcp_congestion(&stream, "cubic").context("there is no CUBIC")?;
    Ok(stream)
}

fn read(mut stream: TcpStream, sum: &AtomicU64) {
    let mut bytes = vec![0; 1 << 18];
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        sum.fetch_add(read as u64, Ordering::Relaxed);
    }
}

fn write(mut stream: TcpStream, rate: Option<f64>, stop: &AtomicBool) {
    let bytes = vec![0; 1 << 16];
    // Do not wait long for a writer to a full queue.
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    let (begun, mut written) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        let due = rate.map_or(u64::MAX, |rate| (begun.elapsed().as_secs_f64() * rate) as u64);
        let most = due.saturating_sub(written).min(bytes.len() as u64);
        if most == 0 {
            thread::sleep(Duration::from_millis(5));
        } else if let Ok(count) = stream.write(&bytes[..most as usize]) {
            written += count as u64;
        }
    }
    // Unsent data must not arrive after the end.
    let _ = set_socket_linger(&stream, Some(Duration::ZERO));
}
