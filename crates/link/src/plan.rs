//! What the link of a command is to be, as a scenario.

use crate::error::Error;
use queuescope_run::trace;
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::Files;
use queuescope_wire::{Nanos, Rate};
use std::path::PathBuf;

/// What the link of a command is to be.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LinkOptions {
    /// How fast it is, either way.
    pub rate: Rate,
    /// In place of a rate, a file in mahimahi's format.
    pub trace: Option<PathBuf>,
    /// How fast it is the way back, to the command; as fast unless given.
    pub back_rate: Option<Rate>,
    /// How long a packet is under way, each way.
    pub delay: Nanos,
    /// Which part of packets is lost on the way, each way.
    pub loss: Option<f64>,
    /// What manages the queue, with parameters as scenarios have them.
    pub aqm: String,
    /// How much the queue holds.
    pub limit: String,
    /// Whether only what the command sends waits in such a queue; the way back has one without a limit then.
    pub one_way: bool,
    /// Anything else of the link, each as a path and a value.
    pub set: Vec<String>,
}

impl Default for LinkOptions {
    /// A gigabit each second, no delay, and a tail-drop queue of 1000 packets either way.
    fn default() -> Self {
        Self {
            rate: Rate::from_bits_per_second(1_000_000_000).expect("it is not zero"),
            trace: None,
            back_rate: None,
            delay: Nanos::ZERO,
            loss: None,
            aqm: "tail-drop".to_owned(),
            limit: "1000packets".to_owned(),
            one_way: false,
            set: Vec::new(),
        }
    }
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
const OF_A_LINK: &[&str] = &["link", "access", "seed"];

impl LinkOptions {
    /// The network, with hosts of one flow, which stands for all that the command sends; and the files that it names.
    pub(crate) fn scenario(&self) -> Result<(Scenario, Files), Error> {
        let of_a_link = |set: &str| OF_A_LINK.contains(&set.split(['.', '=']).next().unwrap_or(""));
        if let Some(other) = self.set.iter().find(|set| !of_a_link(set)) {
            return Err(Error::Setting { setting: other.clone(), known: OF_A_LINK });
        }
        let mut files = Files::default();
        let mut settings = Vec::new();
        match &self.trace {
            Some(path) => {
                let name = path.display().to_string();
                settings.push(format!("link.trace={}", quoted(&name)));
                files.traces.insert(name.clone(), trace(path, &name)?);
            }
            None => settings.push(format!("link.rate={}bps", self.rate.bits_per_second())),
        }
        settings.extend(self.back_rate.map(|rate| format!("link.reverse-rate={}bps", rate.bits_per_second())));
        settings.push(format!("link.delay={}ns", self.delay.0));
        settings.extend(self.loss.map(|share| format!("link.loss={share:?}")));
        settings.push(format!("link.limit={}", self.limit));
        settings.push(format!("link.both-ways={}", !self.one_way));
        let given = self.set.iter().cloned();
        let network = if self.one_way { NETWORK.to_owned() } else { [NETWORK, BACK].concat() };
        let settings = settings.into_iter().map(Override::new).chain([Override::aqm("--aqm", &self.aqm)]);
        let overrides: Vec<_> = settings.chain(given.map(Override::new)).collect();
        Ok((Scenario::parse("link", &network, &overrides)?, files))
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_have_a_meter_unless_one_has_the_queue() {
        let mut options = LinkOptions::default();
        let (scenario, files) = options.scenario().unwrap();
        assert_eq!((scenario.meters.len(), files.traces.len()), (2, 0));
        options.one_way = true;
        assert_eq!(options.scenario().unwrap().0.meters.len(), 1);
    }

    #[test]
    fn settings_are_of_the_link() {
        let set = vec!["link.loss=0.5".to_owned(), "flows=[]".to_owned()];
        let mut options = LinkOptions { set, ..LinkOptions::default() };
        let error = options.scenario().unwrap_err();
        assert_eq!(
            error.to_string(),
            "--set flows=[]: of a scenario, a command's link has what begins with link, access, seed"
        );
        options.set.pop();
        options.aqm = "nonsense".to_owned();
        assert!(matches!(options.scenario(), Err(Error::Text(_))));
    }
}
