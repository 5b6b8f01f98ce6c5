//! What a link is to be, as a scenario.

use crate::args::Link;
use crate::expressions::shown;
use anyhow::{Result, bail};
use queuescope_run::trace;
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::Files;

/// A link, and the command that is run behind it.
pub struct Plan {
    /// The network: hosts of one flow, which stands for all that the command sends.
    pub scenario: Scenario,
    /// What it names.
    pub files: Files,
    /// The command, as a person reads it.
    pub command: String,
}

/// The network that every link is: nothing but the link takes any time.
const NETWORK: &str = "
name = \"link\"
access = { rate = \"100gbps\", delay = \"0s\" }
[[flows]]
name = \"command\"
[[meters]]
link = \"bottleneck\"
";

/// The queue of the way back is looked at, too.
const BACK: &str = "
[[meters]]
link = \"bottleneck\"
reverse = true
";

/// What a scenario says of a link and not of its traffic.
const OF_A_LINK: [&str; 3] = ["link", "access", "seed"];

impl Plan {
    /// As the arguments say.
    ///
    /// # Errors
    /// If there can be no such link, or its trace cannot be read.
    pub fn of(args: &Link) -> Result<Self> {
        if let Some(other) =
            args.set.iter().find(|set| !OF_A_LINK.contains(&set.split(['.', '=']).next().unwrap_or("")))
        {
            bail!("--set {other}: of a scenario, a command's link has what begins with {}", OF_A_LINK.join(", "));
        }
        let mut files = Files::default();
        let mut settings = Vec::new();
        match &args.trace {
            Some(path) => {
                let name = path.display().to_string();
                settings.push(format!("link.trace={}", quoted(&name)));
                files.traces.insert(name.clone(), trace(path, &name)?);
            }
            None => settings.push(format!("link.rate={}bps", args.rate.bits_per_second())),
        }
        settings.extend(args.back_rate.map(|rate| format!("link.reverse-rate={}bps", rate.bits_per_second())));
        settings.push(format!("link.delay={}ns", args.delay.0));
        settings.extend(args.loss.map(|share| format!("link.loss={:?}", share.0)));
        settings.push(format!("link.limit={}", args.limit));
        settings.push(format!("link.both-ways={}", !args.one_way));
        let given = args.set.iter().cloned();
        let network = if args.one_way { NETWORK.to_owned() } else { [NETWORK, BACK].concat() };
        let settings = settings.into_iter().map(Override::new).chain([Override::aqm("--aqm", &args.aqm)]);
        let overrides: Vec<_> = settings.chain(given.map(Override::new)).collect();
        let scenario = Scenario::parse("link", &network, &overrides);
        let scenario = scenario.map_err(|error| shown(&error))?;
        let words = args.command.iter().map(|word| word.to_string_lossy());
        Ok(Self { scenario, files, command: words.collect::<Vec<_>>().join(" ") })
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
