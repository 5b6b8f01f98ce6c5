//! Ways to manage a queue, with settings.

use queuescope_p4::algorithms::{self, Snapshots};
use queuescope_p4::{Fit, Grade, Target};

/// A way to manage a queue, set in one way.
#[derive(Debug, Clone)]
pub struct Contender {
    /// As in tables.
    pub name: &'static str,
    /// What is set, if anything.
    pub setting: String,
    /// The lines of `[link]` that say so.
    pub text: String,
    /// Whether flows are ECN-capable.
    pub ecn: bool,
}

/// Egress PI, with marks and with drops.
pub const OURS: &str = "Egress PI";
pub const OURS_DROPS: &str = "Egress PI, drops";

/// A way to manage a queue: its name, the key of its settings (empty: there is one), those, and its lines, in which `{}` is one of them.
struct Kind {
    name: &'static str,
    ecn: bool,
    settings: &'static [&'static str],
    what: &'static str,
    lines: &'static str,
}

const KINDS: [Kind; 19] = [
    Kind { name: OURS, ecn: true, settings: &[""], what: "", lines: "[link.pipeline.egress-pi]\n" },
    Kind { name: OURS_DROPS, ecn: false, settings: &[""], what: "", lines: "[link.pipeline.egress-pi]\n" },
    Kind { name: "tail drop", ecn: false, settings: &[""], what: "", lines: "" },
    Kind {
        name: "step",
        ecn: true,
        settings: &["125us", "250us", "375us"],
        what: "marks above",
        lines: "[link.discipline.codel]\ntarget = \"10s\"\nce-threshold = \"{}\"\n",
    },
    Kind {
        name: "RED",
        ecn: true,
        settings: &["62us", "125us", "250us"],
        what: "target",
        lines: "[link.discipline.red]\ntarget-delay = \"{}\"\nthresholds = \"none\"\nweight = \"none\"\necn = true\nhard-drop = false\n\
                adaptation = \"adaptive\"\n",
    },
    Kind {
        name: "CoDel",
        ecn: true,
        settings: &["62us", "125us", "250us"],
        what: "target, interval 1 ms",
        lines: "[link.discipline.codel]\ntarget = \"{}\"\ninterval = \"1ms\"\n",
    },
    Kind {
        name: "CoDel",
        ecn: true,
        settings: &["125us"],
        what: "target, interval 10 ms",
        lines: "[link.discipline.codel]\ntarget = \"{}\"\ninterval = \"10ms\"\n",
    },
    Kind {
        name: "FQ-CoDel",
        ecn: true,
        settings: &["125us"],
        what: "target, interval 1 ms",
        lines: "[link.discipline.fq-codel]\ntarget = \"{}\"\ninterval = \"1ms\"\n",
    },
    Kind {
        name: "PIE",
        ecn: true,
        settings: &["125us"],
        what: "gains of table II, target",
        lines: "[link.discipline.pie]\ntarget = \"{}\"\nupdate = \"117us\"\nalpha = 0.1172\nbeta = 157.44\nderandomise = false\n\
                burst = \"off\"\nmark-below = 1.0\n",
    },
    Kind {
        name: "PIE",
        ecn: true,
        settings: &["125us"],
        what: "a fifth of its beta, target",
        lines: "[link.discipline.pie]\ntarget = \"{}\"\nupdate = \"117us\"\nalpha = 0.1172\nbeta = 30.0\nderandomise = false\n\
                burst = \"off\"\nmark-below = 1.0\n",
    },
    Kind {
        name: "PI2",
        ecn: true,
        settings: &["125us"],
        what: "gains for 10 ms, target",
        lines: "[link.discipline.pi2]\ntarget = \"{}\"\nupdate = \"125us\"\nalpha = 0.125\nbeta = 30.0\nmax-classic = 1.0\n",
    },
    Kind {
        name: "PI2",
        ecn: true,
        settings: &["125us"],
        what: "gains for 2 ms, target",
        lines: "[link.discipline.pi2]\ntarget = \"{}\"\nupdate = \"125us\"\nalpha = 3.1\nbeta = 150.0\nmax-classic = 1.0\n",
    },
    Kind {
        name: "DualPI2",
        ecn: true,
        settings: &["125us"],
        what: "gains for 10 ms, target",
        lines: "[link.discipline.dual-pi2]\ntarget = \"{}\"\nupdate = \"125us\"\nalpha = 0.125\nbeta = 30.0\n",
    },
    Kind { name: "PIE_CP", ecn: false, settings: &[""], what: "", lines: "[link.pipeline.pie-cp]\n" },
    Kind { name: "PIE_DP", ecn: false, settings: &[""], what: "", lines: "[link.pipeline.pie-dp]\n" },
    Kind { name: "PIE_TABLE", ecn: false, settings: &[""], what: "", lines: "[link.pipeline.pie-table]\n" },
    Kind {
        name: "ConQuest",
        ecn: true,
        settings: &["0.1", "0.3"],
        what: "marks shares from",
        lines: "[link.pipeline.conquest-aqm]\nunit = \"share-of-departed\"\nthreshold = {}\ntau = \"125us\"\nwindow = \"62us\"\n\
                snapshots = 4\n",
    },
    Kind {
        name: "ConQuest, standing",
        ecn: true,
        settings: &["125us"],
        what: "target",
        lines: "[link.pipeline.conquest-aqm]\nresponse = \"mark-only\"\nestimator = \"overlap\"\nunit = \"share-of-queue\"\n\
                threshold = 0.5\ntau = \"{}\"\nbehind = \"{}\"\n",
    },
    Kind { name: "ABC", ecn: false, settings: &["24 packets"], what: "the paper's", lines: "[link.pipeline.abc]\n" },
];

/// Those of a small version.
const SMALL: [&str; 6] = [OURS, OURS_DROPS, "step", "CoDel", "PI2", "PIE_DP"];

impl Contender {
    /// All, with all settings; a few if it is to be small.
    pub fn all(small: bool) -> Vec<Self> {
        let wanted = |kind: &&Kind| !small || SMALL.contains(&kind.name);
        KINDS.iter().filter(wanted).flat_map(Kind::contenders).collect()
    }
}

impl Kind {
    fn contenders(&self) -> impl Iterator<Item = Contender> {
        let Self { name, ecn, settings, what, lines } = *self;
        settings.iter().map(move |setting| Contender {
            name,
            setting: [what, setting].join(" ").trim().to_owned(),
            text: lines.replace("{}", setting),
            ecn,
        })
    }
}

/// What a switch needs to run it: stages of a Tofino and blocks of memory, and whether the least of switches can. Nothing if it is not
/// described as a program.
pub fn on_a_switch(name: &str) -> Option<(usize, u64, bool)> {
    let program = match name {
        OURS | OURS_DROPS => algorithms::egress_pi(),
        "RED" => algorithms::red(),
        "CoDel" => algorithms::codel(),
        "PIE" => algorithms::pie(),
        "PI2" => algorithms::pi2(),
        "PIE_CP" => algorithms::pie_cp(),
        "PIE_DP" => algorithms::pie_dp(),
        "PIE_TABLE" => algorithms::pie_table(),
        "ConQuest" => algorithms::conquest(Snapshots::default()),
        "ConQuest, standing" => algorithms::conquest_standing(Snapshots::default()),
        "ABC" => algorithms::abc_core(),
        _ => return None,
    };
    let fit = Fit::new(&program, &Target::tofino());
    let least = Fit::new(&program, &Target::plain()).grade() == Grade::Feasible;
    let fits = fit.grade() != Grade::Infeasible;
    let placement = fit.placement.filter(|_| fits)?;
    Some((placement.stages.len(), placement.used().sram, least))
}
