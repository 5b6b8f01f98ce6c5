//! The link of a command, as a scenario.

use crate::error::Error;
use queuescope_run::trace;
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::Files;
use queuescope_wire::{Nanos, Rate};
use std::path::PathBuf;

/// Describes the link of a command.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LinkOptions {
    /// The rate of each direction.
    pub rate: Rate,
    /// A trace file in mahimahi's format, which replaces the rate.
    pub trace: Option<PathBuf>,
    /// The rate of the direction to the command; `None`: the same as `rate`.
    pub back_rate: Option<Rate>,
    /// The propagation delay of each direction.
    pub delay: Nanos,
    /// The share of packets that is lost on the link, in each direction.
    pub loss: Option<f64>,
    /// The queue's discipline, with parameters in the format of scenarios.
    pub aqm: String,
    /// The limit of the queue.
    pub limit: String,
    /// Whether only the packets that the command sends wait in such a queue. The queue of the other direction then has no limit.
    pub one_way: bool,
    /// Other settings of the link, each as `path=value`.
    pub set: Vec<String>,
}

impl Default for LinkOptions {
    /// One Gb/s, no delay, and a tail-drop queue of 1000 packets in each direction.
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

/// The network of every link. Only the link itself delays packets.
const NETWORK: &str = "
name = \"link\"
access = { rate = \"100gbps\", delay = \"0s\" }
[[flows]]
name = \"command\"
[[meters]]
link = \"bottleneck\"
";

/// Analyses the queue of the direction to the command as well.
const BACK: &str = "
[[meters]]
link = \"bottleneck\"
reverse = true
";

/// The parts of a scenario that describe its link, and not its traffic.
const OF_A_LINK: &[&str] = &["link", "access", "seed"];

impl LinkOptions {
    /// The scenario, with one group of hosts that stands for all that the command sends, and the files that it names.
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

/// A string as a TOML literal.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_a_meter_unless_only_one_has_the_queue() {
        let mut options = LinkOptions::default();
        let (scenario, files) = options.scenario().unwrap();
        assert_eq!((scenario.meters.len(), files.traces.len()), (2, 0));
        options.one_way = true;
        assert_eq!(options.scenario().unwrap().0.meters.len(), 1);
    }

    #[test]
    fn settings_must_be_about_the_link() {
        let set = vec!["link.loss=0.5".to_owned(), "flows=[]".to_owned()];
        let mut options = LinkOptions { set, ..LinkOptions::default() };
        let error = options.scenario().unwrap_err();
        assert_eq!(
            error.to_string(),
            "--set flows=[]: a command's link has only settings that begin with link, access, seed"
        );
        options.set.pop();
        options.aqm = "nonsense".to_owned();
        assert!(matches!(options.scenario(), Err(Error::Text(_))));
    }
}
