//! Ways to manage a queue, with their settings.

use queuescope_p4::algorithms::{self, Snapshots};
use queuescope_p4::{Fit, Grade, Program, Target};

/// A way to manage a queue, with one setting.
#[derive(Debug, Clone)]
pub struct Contender {
    /// Its name in tables.
    pub name: &'static str,
    /// The setting, if it has any.
    pub setting: String,
    /// The lines of `[link]` that configure it.
    pub text: String,
    /// Whether flows are ECN-capable.
    pub ecn: bool,
}

/// What a switch needs to run a way to manage a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnASwitch {
    /// It is not described as a program, or cannot be one.
    NotDescribed,
    /// It does not fit a Tofino.
    DoesNotFit,
    /// It fits: the stages and blocks of memory of a Tofino, and whether the plain switch can run it unchanged.
    Fits { stages: usize, memory: u64, least: bool },
}

/// Egress PI, with marks and with drops.
pub const OURS: &str = "Egress PI";
pub const OURS_DROPS: &str = "Egress PI, drops";

/// A way to manage a queue: its name, the key of its settings (empty for a single setting), the settings, and its
/// lines, in which `{}` stands for a setting.
struct Kind {
    name: &'static str,
    ecn: bool,
    settings: &'static [&'static str],
    what: &'static str,
    lines: &'static str,
    program: Option<fn() -> Program>,
}

/// Eight windows of 31 us: the wait of a packet at the target contains three whole ones. They are rounded inwards, as
/// in programs.
const SNAPSHOTS: Snapshots = Snapshots { snapshots: 8, rows: 2, columns: 2048 };

const KINDS: [Kind; 19] = [
    Kind {
        name: OURS,
        ecn: true,
        settings: &[""],
        what: "",
        lines: "[link.pipeline.egress-pi]\n",
        program: Some(algorithms::egress_pi),
    },
    Kind {
        name: OURS_DROPS,
        ecn: false,
        settings: &[""],
        what: "",
        lines: "[link.pipeline.egress-pi]\n",
        program: Some(algorithms::egress_pi),
    },
    Kind { name: "tail drop", ecn: false, settings: &[""], what: "", lines: "", program: None },
    Kind {
        name: "step",
        ecn: true,
        settings: &["125us", "250us", "375us"],
        what: "marks above",
        lines: "[link.discipline.codel]\ntarget = \"10s\"\nce-threshold = \"{}\"\n",
        program: Some(algorithms::step),
    },
    Kind {
        name: "RED",
        ecn: true,
        settings: &["62us", "125us", "250us"],
        what: "target",
        lines: "[link.discipline.red]\ntarget-delay = \"{}\"\nthresholds = \"none\"\nweight = \"none\"\necn = true\nhard-drop = false\n\
                adaptation = \"adaptive\"\n",
        program: Some(algorithms::red),
    },
    Kind {
        name: "CoDel",
        ecn: true,
        settings: &["62us", "125us", "250us"],
        what: "target, interval 1 ms",
        lines: "[link.discipline.codel]\ntarget = \"{}\"\ninterval = \"1ms\"\n",
        program: Some(algorithms::codel),
    },
    Kind {
        name: "CoDel",
        ecn: true,
        settings: &["125us"],
        what: "target, interval 10 ms",
        lines: "[link.discipline.codel]\ntarget = \"{}\"\ninterval = \"10ms\"\n",
        program: Some(algorithms::codel),
    },
    Kind {
        name: "FQ-CoDel",
        ecn: true,
        settings: &["125us"],
        what: "target, interval 1 ms",
        lines: "[link.discipline.fq-codel]\ntarget = \"{}\"\ninterval = \"1ms\"\n",
        program: None,
    },
    Kind {
        name: "PIE",
        ecn: true,
        settings: &["125us"],
        what: "gains of table II, target",
        lines: "[link.discipline.pie]\ntarget = \"{}\"\nupdate = \"117us\"\nalpha = 0.1172\nbeta = 157.44\nderandomise = false\n\
                burst = \"off\"\nmark-below = 1.0\n",
        program: Some(algorithms::pie),
    },
    Kind {
        name: "PIE",
        ecn: true,
        settings: &["125us"],
        what: "a fifth of its beta, target",
        lines: "[link.discipline.pie]\ntarget = \"{}\"\nupdate = \"117us\"\nalpha = 0.1172\nbeta = 30.0\nderandomise = false\n\
                burst = \"off\"\nmark-below = 1.0\n",
        program: Some(algorithms::pie),
    },
    Kind {
        name: "PI2",
        ecn: true,
        settings: &["125us"],
        what: "gains for 10 ms, target",
        lines: "[link.discipline.pi2]\ntarget = \"{}\"\nupdate = \"125us\"\nalpha = 0.125\nbeta = 30.0\nmax-classic = 1.0\n",
        program: Some(algorithms::pi2),
    },
    Kind {
        name: "PI2",
        ecn: true,
        settings: &["125us"],
        what: "gains for 2 ms, target",
        lines: "[link.discipline.pi2]\ntarget = \"{}\"\nupdate = \"125us\"\nalpha = 3.1\nbeta = 150.0\nmax-classic = 1.0\n",
        program: Some(algorithms::pi2),
    },
    Kind {
        name: "DualPI2",
        ecn: true,
        settings: &["125us"],
        what: "gains for 10 ms, target",
        lines: "[link.discipline.dual-pi2]\ntarget = \"{}\"\nupdate = \"125us\"\nalpha = 0.125\nbeta = 30.0\n",
        program: None,
    },
    Kind {
        name: "PIE_CP",
        ecn: false,
        settings: &[""],
        what: "",
        lines: "[link.pipeline.pie-cp]\n",
        program: Some(algorithms::pie_cp),
    },
    Kind {
        name: "PIE_DP",
        ecn: false,
        settings: &[""],
        what: "",
        lines: "[link.pipeline.pie-dp]\n",
        program: Some(algorithms::pie_dp),
    },
    Kind {
        name: "PIE_TABLE",
        ecn: false,
        settings: &[""],
        what: "",
        lines: "[link.pipeline.pie-table]\n",
        program: Some(algorithms::pie_table),
    },
    Kind {
        name: "ConQuest",
        ecn: true,
        settings: &["10.0", "100.0"],
        what: "marks flows from packets",
        lines: "[link.pipeline.conquest-aqm]\nestimator = \"inner\"\nthreshold = {}\ntau = \"125us\"\nwindow = \"31us\"\nsnapshots = 8\n",
        program: Some(|| algorithms::conquest(SNAPSHOTS)),
    },
    Kind {
        name: "ConQuest, standing",
        ecn: true,
        settings: &["125us"],
        what: "target",
        lines: "[link.pipeline.conquest-aqm]\nresponse = \"mark-only\"\nestimator = \"inner\"\nunit = \"share-of-queue\"\n\
                threshold = 0.5\ntau = \"{}\"\nbehind = \"{}\"\nwindow = \"31us\"\nsnapshots = 8\n",
        program: Some(|| algorithms::conquest_standing(SNAPSHOTS)),
    },
    Kind {
        name: "ABC",
        ecn: false,
        settings: &["24 packets"],
        what: "the paper's",
        lines: "[link.pipeline.abc]\n",
        program: Some(algorithms::abc_core),
    },
];

/// The ways in the small version, each with its first setting.
const SMALL: [&str; 4] = [OURS, OURS_DROPS, "step", "PI2"];

impl Contender {
    /// All ways with all settings; a few if `small`.
    pub fn all(small: bool) -> Vec<Self> {
        let wanted = |kind: &&Kind| !small || SMALL.contains(&kind.name);
        let settings = if small { 1 } else { usize::MAX };
        KINDS.iter().filter(wanted).flat_map(|kind| kind.contenders().take(settings)).collect()
    }

    /// Egress PI in three ways that leave packets with a short wait alone.
    pub fn leaving_alone() -> [Self; 3] {
        let ways = [("31us", "31us"), ("94us", "94us"), ("94us", "31us")];
        ways.map(|(calm, short)| Self {
            name: OURS,
            setting: format!("{calm}, {short} from p' = 1/8 on"),
            text: format!("[link.pipeline.egress-pi]\ncalm = \"{calm}\"\nshort = \"{short}\"\n"),
            ecn: true,
        })
    }
}

impl Kind {
    fn contenders(&self) -> impl Iterator<Item = Contender> {
        let Self { name, ecn, settings, what, lines, .. } = *self;
        settings.iter().map(move |setting| Contender {
            name,
            setting: [what, setting].join(" ").trim().to_owned(),
            text: lines.replace("{}", setting),
            ecn,
        })
    }
}

/// What a switch needs to run the way with this name.
pub fn on_a_switch(name: &str) -> OnASwitch {
    let Some(program) = KINDS.iter().find(|kind| kind.name == name).and_then(|kind| kind.program) else {
        return OnASwitch::NotDescribed;
    };
    let program = program();
    let fit = Fit::new(&program, &Target::tofino());
    let least = Fit::new(&program, &Target::plain()).grade() == Grade::Feasible;
    let fits = fit.grade() != Grade::Infeasible;
    match fit.placement.filter(|_| fits) {
        Some(placement) => OnASwitch::Fits { stages: placement.stages.len(), memory: placement.used().sram, least },
        None => OnASwitch::DoesNotFit,
    }
}
