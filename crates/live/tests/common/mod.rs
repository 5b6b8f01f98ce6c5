//! Two network namespaces with a cable between them, if machine and user allow it.

#![allow(dead_code, reason = "each test file uses its part")]

use queuescope_live::{Ability, Counters, Namespace, Probe, abilities};
use std::io::ErrorKind;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longer than a busy machine takes for anything that tests wait for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Two hosts. Packets that leave the near one pass through a qdisc.
pub struct Ends {
    pub near: Namespace,
    pub far: Namespace,
}

/// The environment variable that lists the abilities of this machine, by the names of `doctor`: a missing one of these is a failure.
const REQUIRED: &str = "QUEUESCOPE_REQUIRE";

/// The abilities that two hosts and the probe need.
const NEEDED: [&str; 5] = ["namespaces", "btf", "ringbuf", "tp_btf", "tcx"];

/// A new namespace, if the machine has the abilities `needed`; otherwise the reason.
pub fn alone(needed: &[&str]) -> Result<Namespace, String> {
    let lacking = lacking(needed);
    let name = lacking.as_ref().map_or("namespaces", |ability| ability.name);
    let made = match lacking {
        Some(lacking) => Err(format!("{}: {}", lacking.about, lacking.missing.unwrap_or_default())),
        None => Namespace::new().map_err(|error| error.to_string()),
    };
    made.inspect_err(|why| assert!(!is_required(name), "{REQUIRED} has {name}: {why}"))
}

/// The first of the abilities that this machine or user lacks.
fn lacking(needed: &[&str]) -> Option<Ability> {
    abilities().into_iter().find(|ability| ability.missing.is_some() && needed.contains(&ability.name))
}

impl Ends {
    /// Two hosts, if the machine has the abilities that the probe needs; otherwise the reason.
    pub fn new(qdisc: &str) -> Result<Self, String> {
        Self::needing(&NEEDED, qdisc)
    }

    /// Two hosts, if the machine has the abilities `needed`; otherwise the reason.
    pub fn needing(needed: &[&str], qdisc: &str) -> Result<Self, String> {
        let lacking = lacking(needed);
        let name = lacking.as_ref().map_or("namespaces", |ability| ability.name);
        let made = match lacking {
            Some(lacking) => Err(format!("{}: {}", lacking.about, lacking.missing.unwrap_or_default())),
            None => Self::made(qdisc),
        };
        made.inspect_err(|why| assert!(!is_required(name), "{REQUIRED} has {name}: {why}"))
    }

    fn made(qdisc: &str) -> Result<Self, String> {
        let made = || Namespace::new().map_err(|error| error.to_string());
        let (near, far) = (made()?, made()?);
        let cable = "ip link add near0 address 02:00:00:00:00:01 type veth peer name far0 address 02:00:00:00:00:02";
        let (cable, qdisc) = (format!("{cable} netns {}", far.number()), qdisc.to_owned());
        near.run(move || ip(&cable))?;
        // The far end comes up first, so that the near one has a carrier from the start and its queue holds packets at once. The kernel would
        // notice a later carrier with a delay, and drop packets until then.
        far.run(|| {
            ip("ip addr add 10.9.0.2/24 dev far0")?;
            ip("ip -6 addr add fd09::2/64 dev far0 nodad")?;
            ip("ip link set far0 up")
        })?;
        near.run(move || {
            ip("ip addr add 10.9.0.1/24 dev near0")?;
            ip("ip -6 addr add fd09::1/64 dev near0 nodad")?;
            ip("ip link set near0 up")?;
            for address in ["10.9.0.2", "fd09::2"] {
                ip(&format!("ip neigh add {address} lladdr 02:00:00:00:00:02 dev near0 nud permanent"))?;
            }
            ip(&format!("tc qdisc replace dev near0 root {qdisc}"))
        })?;
        Ok(Self { near, far })
    }
}

/// A cable between two namespaces: for each end, the name of its interface and its address in a network of 24 bits.
pub fn cable(one: (&Namespace, &str, &str), other: (&Namespace, &str, &str)) -> Result<(), String> {
    let made = format!("ip link add {} type veth peer name {} netns {}", one.1, other.1, other.0.number());
    one.0.run(move || ip(&made))?;
    for (namespace, name, address) in [one, other] {
        let (addressed, up) = (format!("ip addr add {address}/24 dev {name}"), format!("ip link set {name} up"));
        namespace.run(move || ip(&addressed).and_then(|()| ip(&up)))?;
    }
    Ok(())
}

/// Repeats `look` until it returns something.
#[allow(clippy::disallowed_methods, reason = "a test gives up after some time")]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// The probe's counts once the near queue is empty; `take` reads its reports meanwhile. Runs in the near namespace.
pub fn settled(probe: &mut Probe, mut take: impl FnMut(&mut Probe)) -> Counters {
    let (mut before, mut same) = (Counters::default(), 0);
    until("the queue empties", || {
        take(probe);
        let counted = probe.counters().expect("it is there");
        if counted.unseen() == 0 {
            return Some(counted);
        }
        // The kernel sometimes skips a run of a tracepoint, and the probe never sees that packet. Then the queue's own backlog decides, and
        // unchanged counts show that the runs that had started have ended.
        same = if counted == before && backlog() == 0 { same + 1 } else { 0 };
        before = counted;
        (same > 20).then_some(counted)
    })
}

/// The backlog of the near queue, in bytes. Runs in the near namespace.
#[allow(clippy::disallowed_methods, reason = "tests start programs")]
pub fn backlog() -> u64 {
    let shown = Command::new("tc").args(["-s", "-j", "qdisc", "show", "dev", "near0", "root"]).output();
    let shown: serde_json::Value = serde_json::from_slice(&shown.expect("tc is there").stdout).expect("it is JSON");
    shown[0]["backlog"].as_u64().expect("it is a number")
}

#[allow(clippy::disallowed_methods, reason = "the environment lists what tests must not skip")]
fn is_required(ability: &str) -> bool {
    std::env::var(REQUIRED).is_ok_and(|required| required.split(',').any(|required| required == ability))
}

/// Runs a command of iproute2.
pub fn ip(command: &str) -> Result<(), String> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{program} is not installed"),
        _ => format!("{command}: {error}"),
    })?;
    let message = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command}: {}", message.trim())) }
}
