//! What grants several abilities at once, and what else its users gain by it.
//!
//! `setcap` replaces what a file has, so that of two lines only the last one counts: there is one line for all.

use super::{Ability, DOOR};
use crate::capabilities::{CapabilitySet, NAMESPACES, OWNERS, PACKETS, Seer, USED, names, permitted};
use rustix::process::geteuid;

/// Capabilities that a program file is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant(pub CapabilitySet);

/// What whoever may run a file with some capabilities can do then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gain {
    /// These.
    pub of: CapabilitySet,
    /// What they do in queuescope.
    pub uses: &'static str,
    /// What they would let somebody do who makes queuescope do what it should not.
    pub by_a_fault: &'static str,
}

/// The group whose members may run the file.
pub const GROUP: &str = "queuescope";

const GAINS: [Gain; 4] = [
    Gain {
        of: CapabilitySet::BPF.union(CapabilitySet::PERFMON).union(CapabilitySet::NET_ADMIN),
        uses: "sees the headers of packets of everybody, and marks, drops and slows them (live); uses any congestion control (traffic)",
        by_a_fault: "reads the memory of the kernel, and changes all of the network",
    },
    Gain {
        of: PACKETS,
        uses: "copies packets of everybody, with what is in them (capture)",
        by_a_fault: "sends packets in the name of others",
    },
    Gain {
        of: NAMESPACES,
        uses: "runs programs in a network of its own making, also those that are set-user-ID, such as sudo (link)",
        by_a_fault: "mounts what it likes: all that root can",
    },
    Gain {
        of: OWNERS,
        uses: "learns which process of which user sends a flow (live)",
        by_a_fault: "reads every file, and the memory of every process",
    },
];

impl Grant {
    /// What the missing ones of these abilities take, with all that this process was granted before.
    pub fn of(abilities: &[Ability], seer: Option<&Seer>) -> Self {
        // What the kernel lacks, no user can be granted.
        let can_be = |ability: &&Ability| ability.missing.is_some() && ability.mend.is_none_or(|mend| mend == DOOR);
        let needed = abilities.iter().filter(can_be).map(|ability| ability.needs);
        let needed = needed.fold(CapabilitySet::empty(), CapabilitySet::union);
        // Root has all, and lacks none of them.
        let held = if geteuid().is_root() { CapabilitySet::empty() } else { permitted() & USED };
        let seeing = if seer.is_some() { OWNERS } else { CapabilitySet::empty() };
        Self(if needed.is_empty() { needed } else { needed | held | seeing })
    }

    /// Whether there is nothing to grant.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// As `setcap` takes it. Nothing is effective before the program makes it so.
    pub fn text(self) -> String {
        format!("{}+p", names(self.0).join(","))
    }

    /// The command line that grants it to the members of a group, and to nobody else; `file` is the program, as a shell has it.
    pub fn line(self, file: &str) -> String {
        // A change of the owner or the mode takes capabilities away, so they come last.
        format!(
            "sudo sh -c 'groupadd -f {GROUP} && usermod -aG {GROUP} \"${{SUDO_USER:-root}}\" && chgrp {GROUP} \"$0\" && \
             chmod 0750 \"$0\" && setcap {} \"$0\"' {file}",
            self.text()
        )
    }

    /// What whoever may run the file gains.
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
        let line = Grant::of(&abilities, None).line("/usr/bin/queuescope");
        assert_eq!(line.matches("setcap").count(), 1);
        for ability in &abilities {
            assert!(names(ability.needs).iter().all(|name| line.contains(name)), "{line}");
        }
        abilities.retain(|ability| ability.name == "packets");
        assert!(Grant::of(&abilities, None).text().contains("cap_net_raw"));
        abilities[0].mend = Some("another kernel");
        assert!(Grant::of(&abilities, None).is_empty());
        (abilities[0].missing, abilities[0].mend) = (None, None);
        assert!(Grant::of(&abilities, None).is_empty());
    }
}
