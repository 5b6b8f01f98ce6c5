//! The parameters of P4air as a program of a switch: those of scenarios, and two of the switch.

use anyhow::{Result, anyhow, bail};
use queuescope_queue::{P4airParams, PipelineParams, SwitchP4airParams};
use queuescope_scenario::{Management, Parameter};

/// P4air on a switch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct P4air {
    /// The parameters of scenarios.
    management: Management,
    /// All of them.
    pub params: SwitchP4airParams,
}

impl P4air {
    /// The defaults with some parameters replaced: `KEY=VALUE`.
    ///
    /// # Errors
    /// Names the first text that is not a parameter with a value that it takes.
    pub fn with(set: &[String]) -> Result<Self> {
        let mut params = SwitchP4airParams::default();
        let mut others = Vec::new();
        let mut keys = Vec::new();
        for text in set {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            let (key, value) = (key.trim(), value.trim());
            if keys.contains(&key) {
                bail!("--set {text}: {key} is set twice: give it one value");
            }
            keys.push(key);
            match key {
                "rate" => params.rate = value.parse().map_err(|why| anyhow!("--set {text}: {why}"))?,
                "window-scale" => {
                    let Ok(scale) = value.parse() else {
                        bail!("--set {text}: '{value}' must be a whole number from 0 to 8");
                    };
                    params.window_scale = scale;
                }
                _ => others.push(text.clone()),
            }
        }
        let management = Management::parse_with("--set", "p4air", &others).map_err(|why| anyhow!("{why}"))?;
        let Management::Program(PipelineParams::P4air(p4air)) = &management else {
            bail!("p4air is not a program of a switch");
        };
        params.p4air = P4airParams { ..p4air.clone() };
        Ok(Self { management, params })
    }

    /// The parameters with their values and ranges.
    pub fn parameters(&self) -> Vec<Parameter> {
        let of = |key: &str, value: String, range: &str, about| Parameter {
            key: key.to_owned(),
            value,
            range: range.to_owned(),
            about,
        };
        let mut all = self.management.parameters();
        all.push(of("rate", self.params.rate.to_string(), "", "The rate of each link"));
        let scale = self.params.window_scale.to_string();
        all.push(of(
            "window-scale",
            scale,
            "0 to 8",
            "The scale of receive windows, as a power of two: that of all flows",
        ));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[&str]) -> Result<P4air> {
        P4air::with(&set.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn parameters_of_scenarios_and_of_the_switch_can_be_set() {
        let set = with(&["queues=16", "rate=1gbps", "window-scale=3", "delay-passes=4"]).expect("they are valid");
        let SwitchP4airParams { p4air, rate, window_scale } = set.params.clone();
        assert_eq!((p4air.queues, p4air.delay_passes, window_scale), (16, 4, 3));
        assert_eq!(rate, "1gbps".parse().expect("a rate"));
        let keys = set.parameters().into_iter().map(|it| it.key).collect::<Vec<_>>();
        assert!(["queues", "rate", "window-scale"].iter().all(|key| keys.iter().any(|it| it == key)), "{keys:?}");
    }

    #[test]
    fn other_texts_are_errors() {
        for (set, expected) in [
            (&["window-scale=x"][..], "--set window-scale=x: 'x' must be a whole number from 0 to 8"),
            (&["rate=1gbps", "rate=2gbps"][..], "--set rate=2gbps: rate is set twice: give it one value"),
        ] {
            assert_eq!(with(set).expect_err("it is not valid").to_string(), expected);
        }
        for set in [&["rate=fast"][..], &["bows=3"], &["queues"]] {
            assert!(!with(set).expect_err("it is not valid").to_string().is_empty());
        }
    }
}
