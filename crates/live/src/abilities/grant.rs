//! The capabilities that several abilities need together, and what else the users of the program gain by them.
//!
//! `setcap` replaces all capabilities of a file, so one command line grants all of them.

use super::{Ability, OPEN_TUN_DEVICE};
use crate::capabilities::{CapabilitySet, NAMESPACES, OWNERS, PACKETS, Seer, USED, names, permitted};
use rustix::process::geteuid;

/// Capabilities to be set on the program file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant(pub CapabilitySet);

/// What a user of the program file gains by some capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gain {
    /// The capabilities.
    pub of: CapabilitySet,
    /// What queuescope uses them for.
    pub uses: &'static str,
    /// What an attacker could do with them through a fault in queuescope.
    pub by_a_fault: &'static str,
}

/// The group whose members may run the program file.
pub const GROUP: &str = "queuescope";

const GAINS: [Gain; 4] = [
    Gain {
        of: CapabilitySet::BPF.union(CapabilitySet::PERFMON).union(CapabilitySet::NET_ADMIN),
        uses: "sees the headers of all packets, and marks, drops and limits them (live); uses any congestion control (traffic)",
        by_a_fault: "reads kernel memory, and changes every network setting",
    },
    Gain {
        of: PACKETS,
        uses: "copies all packets with their payload (capture)",
        by_a_fault: "sends packets with forged addresses",
    },
    Gain {
        of: NAMESPACES,
        uses: "runs programs, even set-user-ID programs such as sudo, in a network of its own (link)",
        by_a_fault: "mounts any file system, and so can do everything that root can",
    },
    Gain {
        of: OWNERS,
        uses: "finds the process and the user that send a flow (live)",
        by_a_fault: "reads every file, and the memory of every process",
    },
];

impl Grant {
    /// The capabilities that the missing abilities need, and those that this process was granted before.
    pub fn new(abilities: &[Ability], seer: Option<&Seer>) -> Self {
        // A capability does not help if the kernel lacks the feature.
        let can_be =
            |ability: &&Ability| ability.missing.is_some() && ability.mend.is_none_or(|mend| mend == OPEN_TUN_DEVICE);
        let needed = abilities.iter().filter(can_be).map(|ability| ability.needs);
        let needed = needed.fold(CapabilitySet::empty(), CapabilitySet::union);
        // Root has every capability.
        let held = if geteuid().is_root() { CapabilitySet::empty() } else { permitted() & USED };
        let seeing = if seer.is_some() { OWNERS } else { CapabilitySet::empty() };
        Self(if needed.is_empty() { needed } else { needed | held | seeing })
    }

    /// Whether there is nothing to grant.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The text for `setcap`. The capabilities are permitted, not effective; the program raises them itself.
    pub fn text(self) -> String {
        format!("{}+p", names(self.0).join(","))
    }

    /// The shell command that grants the capabilities to the members of a group and to nobody else; `file` is the program in shell syntax.
    pub fn line(self, file: &str) -> String {
        // A change of owner or mode removes capabilities, so `setcap` comes last.
        format!(
            "sudo sh -c 'groupadd -f {GROUP} && usermod -aG {GROUP} \"${{SUDO_USER:-root}}\" && chgrp {GROUP} \"$0\" && \
             chmod 0750 \"$0\" && setcap {} \"$0\"' {file}",
            self.text()
        )
    }

    /// What a user of the file gains.
    pub fn gains(self) -> impl Iterator<Item = Gain> {
        let of = move |gain: Gain| Gain { of: gain.of & self.0, ..gain };
        GAINS.into_iter().map(of).filter(|gain| !gain.of.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abilities::ABOUT;

    #[test]
    fn every_capability_that_is_granted_is_explained() {
        let explained = GAINS.into_iter().fold(CapabilitySet::empty(), |all, gain| all | gain.of);
        let granted = ABOUT.iter().map(|about| about.needs);
        assert_eq!(granted.fold(CapabilitySet::empty(), CapabilitySet::union), explained);
        assert_eq!(explained, USED | OWNERS);
    }

    #[test]
    fn one_line_has_all_that_is_missing() {
        let mut abilities: Vec<_> = ABOUT
            .into_iter()
            .map(|about| Ability {
                name: about.name,
                about: about.about,
                commands: about.commands,
                missing: Some("it is not there".to_owned()),
                note: None,
                costs: about.costs,
                needs: about.needs,
                mend: None,
            })
            .collect();
        let line = Grant::new(&abilities, None).line("/usr/bin/queuescope");
        assert_eq!(line.matches("setcap").count(), 1);
        for ability in &abilities {
            assert!(names(ability.needs).iter().all(|name| line.contains(name)), "{line}");
        }
        abilities.retain(|ability| ability.name == "packets");
        assert!(Grant::new(&abilities, None).text().contains("cap_net_raw"));
        abilities[0].mend = Some("another kernel");
        assert!(Grant::new(&abilities, None).is_empty());
        (abilities[0].missing, abilities[0].mend) = (None, None);
        assert!(Grant::new(&abilities, None).is_empty());
    }
}
