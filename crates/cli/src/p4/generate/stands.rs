//! The parameters of ConQuest's mark for a standing queue: those of scenarios, where the queue behind a packet is a number of packets.

use super::management;
use anyhow::{Result, bail};
use queuescope_p4::algorithms::{BEHIND, conquest_stands_with};
use queuescope_p4::ir::SwitchProgram;
use queuescope_queue::PipelineParams;
use queuescope_scenario::{Management, Parameter};

/// Its name.
pub(super) const NAME: &str = "conquest-stands";
/// The key of the packets behind a packet.
const KEY: &str = "behind-packets";

/// The mark for a standing queue.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stands {
    management: Management,
    behind: u32,
}

impl Stands {
    /// The defaults with some parameters replaced: `KEY=VALUE`.
    ///
    /// # Errors
    /// Names the first text that is not a parameter with a value that it takes.
    pub fn with(set: &[String]) -> Result<Self> {
        let key = |text: &&String| text.split('=').next().is_some_and(|key| key.trim() == KEY);
        let (own, others): (Vec<_>, Vec<_>) = set.iter().partition(key);
        let behind = match own[..] {
            [] => BEHIND,
            [text] => {
                let value = text.split_once('=').map_or("", |(_, value)| value.trim());
                match value.parse() {
                    Ok(behind) => behind,
                    Err(_) => bail!("--set {text}: '{value}' must be a whole number of packets"),
                }
            }
            [_, text, ..] => bail!("--set {text}: {KEY} is set twice: give it one value"),
        };
        let others: Vec<_> = others.into_iter().cloned().collect();
        Ok(Self { management: management(NAME, &others)?, behind })
    }

    /// The parameters with their values and ranges.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut all = self.management.parameters();
        all.push(Parameter {
            key: KEY.to_owned(),
            value: self.behind.to_string(),
            range: "0 to 524287".to_owned(),
            about: "The fewest packets that a packet leaves in the queue, if it is marked",
        });
        all
    }

    /// The program.
    ///
    /// # Errors
    /// Names the parameter that it cannot have.
    pub fn program(&self) -> Result<SwitchProgram> {
        match &self.management {
            Management::Program(PipelineParams::ConQuestAqm(params)) => Ok(conquest_stands_with(params, self.behind)?),
            _ => bail!("{NAME} is not a program of a switch"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(set: &[&str]) -> Option<String> {
        let set: Vec<_> = set.iter().map(|it| (*it).to_owned()).collect();
        Stands::with(&set).and_then(|it| it.program()).err().map(|error| error.to_string())
    }

    #[test]
    fn packets_behind_and_parameters_of_scenarios_can_be_set() {
        for set in [&[][..], &["behind-packets=20"], &["snapshots=8", "behind-packets = 0"], &["tau=2ms"]] {
            assert_eq!(error(set), None, "{set:?}");
        }
        let set = Stands::with(&["behind-packets=20".to_owned()]).expect("it is valid");
        assert!(set.parameters().iter().any(|it| it.key == KEY && it.value == "20"));
        assert_eq!(
            error(&["behind-packets=2ms"]).as_deref(),
            Some("--set behind-packets=2ms: '2ms' must be a whole number of packets")
        );
        assert_eq!(
            error(&["behind-packets=2", "behind-packets=3"]).as_deref(),
            Some("--set behind-packets=3: behind-packets is set twice: give it one value")
        );
        for set in ["threshold=0.25", "unit=bytes", "act-at=ingress", "behind-packets=524288", "estimator=outer"] {
            let error = error(&[set]).unwrap_or_else(|| panic!("it takes {set}"));
            assert!(error.starts_with("the program conquest-stands: the parameter "), "{error}");
        }
    }
}
