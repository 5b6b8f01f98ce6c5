//! Two network namespaces with a cable between them, where this machine and user can.

#![allow(dead_code, reason = "each test file uses its part")]

use queuescope_live::{Namespace, abilities};
use std::process::Command;

/// What leaves the near end goes through a qdisc.
pub struct Ends {
    pub near: Namespace,
    pub far: Namespace,
}

impl Ends {
    /// Two ends, or why there are none.
    pub fn new(qdisc: &str) -> Result<Self, String> {
        if let Some(lacking) = abilities().into_iter().find(|ability| ability.missing.is_some()) {
            return Err(format!("{}: {}", lacking.about, lacking.missing.unwrap_or_default()));
        }
        let made = || Namespace::new().map_err(|error| error.to_string());
        let (near, far) = (made()?, made()?);
        let cable = "ip link add near0 address 02:00:00:00:00:01 type veth peer name far0 address 02:00:00:00:00:02";
        let (cable, qdisc) = (format!("{cable} netns {}", far.number()), qdisc.to_owned());
        near.run(move || {
            ip(&cable)?;
            ip("ip addr add 10.9.0.1/24 dev near0")?;
            ip("ip -6 addr add fd09::1/64 dev near0 nodad")?;
            ip("ip link set near0 up")?;
            for address in ["10.9.0.2", "fd09::2"] {
                ip(&format!("ip neigh add {address} lladdr 02:00:00:00:00:02 dev near0 nud permanent"))?;
            }
            ip(&format!("tc qdisc replace dev near0 root {qdisc}"))
        })?;
        far.run(|| {
            ip("ip addr add 10.9.0.2/24 dev far0")?;
            ip("ip -6 addr add fd09::2/64 dev far0 nodad")?;
            ip("ip link set far0 up")
        })?;
        Ok(Self { near, far })
    }
}

/// Does a command of iproute2.
pub fn ip(command: &str) -> Result<(), String> {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap_or_default()).args(words).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command}: {}", said.trim())) }
}
