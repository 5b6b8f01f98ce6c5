//! Arguments of `live` about acting on flows that contribute to the queue.

use anyhow::{Context, Result, anyhow};
use clap::{ArgGroup, Args, Parser, ValueHint};
use queuescope_live::{Acting, Action, Weigh};
use queuescope_monitor::{ActingBounds, ActingOptions, Policy, PolicyReader};
use queuescope_queue::{Curve, Response, Step, Steps};
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::path::PathBuf;
use std::str::FromStr;

/// The action on flows that contribute to the queue, given here or in a policy file.
#[derive(Debug, Args)]
pub struct ActingArgs {
    /// The action, and when it applies.
    #[command(flatten)]
    pub policy: PolicyArgs,

    /// Limits to acting, which a policy file cannot lift.
    #[command(flatten)]
    pub bounds: BoundsArgs,

    /// Act as a policy file says. It holds the options of this group, or `off`, and is read again when it changes. While it
    /// is missing, empty or invalid, nothing is done
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Acting", conflicts_with_all = ["mark", "drop", "limit", "threshold", "hold", "for_real"])]
    pub policy_file: Option<PathBuf>,
}

/// Limits to acting.
#[derive(Debug, Clone, Args)]
pub struct BoundsArgs {
    /// Never act on flows that match an expression, such as `tcp port 22 or net 10.0.0.0/8`. It can use src_ip, dst_ip,
    /// src_port, dst_port, protocol and ip_version. Can be given more than once; those in a policy file are added to those
    /// of the command line
    #[arg(long, value_name = "EXPRESSION", help_heading = "Acting")]
    pub never: Vec<String>,

    /// Stop acting after this time, such as 10m. In a policy file, the time counts from when the file was written
    #[arg(long, value_name = "TIME", value_parser = Nanos::read_long, help_heading = "Acting")]
    pub act_for: Option<Nanos>,
}

/// The action on flows that contribute to the queue.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("action").args(["mark", "drop", "limit"]).multiple(true))]
pub struct PolicyArgs {
    /// Set CE marks on packets of flows that contribute, before the queue. FUNCTION is one of these: `threshold`, the
    /// default, marks each packet whose flow has --threshold of the queue; `1/16` marks with that probability; `linear:20kB`
    /// and `squared:20kB` mark with a probability that grows above the threshold until it is 1; `queue` marks packets of any
    /// flow while the whole queue is above the threshold
    #[arg(long, value_name = "FUNCTION", num_args = 0..=1, require_equals = true, default_missing_value = "threshold", help_heading = "Acting")]
    pub mark: Option<Function>,

    /// Drop packets of flows that contribute; with --mark, only those that cannot be marked
    #[arg(long, value_name = "FUNCTION", num_args = 0..=1, require_equals = true, default_missing_value = "threshold", help_heading = "Acting")]
    pub drop: Option<Function>,

    /// Limit each flow that contributes to a rate, such as 10Mbit/s, and drop the excess
    #[arg(long, value_name = "RATE", help_heading = "Acting", conflicts_with_all = ["mark", "drop"])]
    pub limit: Option<Rate>,

    /// Bytes of the queue that a flow must have, such as 30kB; with `queue`, bytes that the whole queue must have
    #[arg(long, value_name = "SIZE", help_heading = "Acting", requires = "action")]
    pub threshold: Option<ByteCount>,

    /// Stop acting on a flow this long after its last packet that contributed: 1us to 1h
    #[arg(long, value_name = "TIME", value_parser = hold, default_value = "8ms", help_heading = "Acting", requires = "action")]
    pub hold: Nanos,

    /// Change packets. Without this option, actions are only counted
    #[arg(long, help_heading = "Acting", requires = "action")]
    pub for_real: bool,
}

/// The options in a policy file.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub struct PolicyFileArgs {
    /// Do nothing, even if other options are given.
    #[arg(value_parser = ["off"])]
    pub off: Option<String>,
    /// The action, and when it applies.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Limits to acting.
    #[command(flatten)]
    pub bounds: BoundsArgs,
}

/// The longest `--hold`: how long a flow may be acted on after its last packet that contributed.
const LONGEST_HOLD: Nanos = Nanos(3_600_000_000_000);

/// The function from a flow's or the queue's bytes to the probability that a packet is acted on.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    curve: Curve,
    weigh: Weigh,
}

impl PolicyFileArgs {
    /// Parses a policy file: `off`, or options as on the command line, in any number of lines, with quotes as in a shell,
    /// and `#` before comments.
    ///
    /// # Errors
    /// Fails if an option is invalid, as on the command line, or if a quote is not closed.
    pub fn read(text: &str) -> Result<Self> {
        let words = shlex::split(text).context("a quote in it is not closed")?;
        Self::try_parse_from(words).map_err(|error| {
            // The usage of the command line would only confuse in a message about a file.
            let text = error.render().to_string();
            let what = text.split("\n\nUsage:").next().and_then(|text| text.split("\n\nFor more").next());
            anyhow!("{}", what.unwrap_or(&text).trim_start_matches("error: ").trim())
        })
    }
}

fn hold(text: &str) -> Result<Nanos, String> {
    let time = Nanos::read_long(text).map_err(|why| why.to_string())?;
    let is_fit = (Nanos(1_000)..=LONGEST_HOLD).contains(&time);
    if is_fit { Ok(time) } else { Err("use 1us to 1h".to_owned()) }
}

impl ActingArgs {
    /// The arguments as options of what acts.
    pub fn options(&self) -> ActingOptions {
        let reader: PolicyReader =
            |text| PolicyFileArgs::read(text).map(Policy::from).map_err(|why| format!("{why:#}"));
        ActingOptions {
            acting: self.policy.acting(),
            bounds: self.bounds.clone().into(),
            file: self.policy_file.clone().map(|path| (path, reader)),
        }
    }
}

impl From<BoundsArgs> for ActingBounds {
    fn from(BoundsArgs { never, act_for }: BoundsArgs) -> Self {
        Self { never, act_for }
    }
}

impl From<PolicyFileArgs> for Policy {
    fn from(PolicyFileArgs { off, policy, bounds }: PolicyFileArgs) -> Self {
        Self { off: off.is_some(), acting: policy.acting(), bounds: bounds.into() }
    }
}

impl PolicyArgs {
    /// How to act on flows, or `None` if no action is given.
    pub fn acting(&self) -> Option<Acting> {
        let threshold = Function { curve: Curve::Threshold, weigh: Weigh::Bytes };
        let (action, function) = match (&self.mark, &self.drop, self.limit) {
            (Some(mark), Some(_), _) => (Action::Respond(Response::MarkOrDrop), mark),
            (Some(mark), None, _) => (Action::Respond(Response::MarkOnly), mark),
            (None, Some(drop), _) => (Action::Respond(Response::Drop), drop),
            // The burst is ten large packets.
            (None, None, Some(rate)) => (Action::Limit { rate, burst: ByteCount(15_000) }, &threshold),
            (None, None, None) => return None,
        };
        Some(Acting {
            action,
            weigh: function.weigh,
            curve: function.curve.clone(),
            threshold: self.threshold.unwrap_or_default().0 as f64,
            hold: self.hold,
            dry: !self.for_real,
            until: Nanos::MAX,
        })
    }
}

impl FromStr for Function {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes_weighed = |curve| Ok(Self { curve, weigh: Weigh::Bytes });
        let (name, full) = text.split_once(':').unwrap_or((text, ""));
        let full = full.parse::<ByteCount>().ok().map(|full| full.0 as f64);
        match (name, full) {
            ("threshold", None) if name == text => bytes_weighed(Curve::Threshold),
            ("queue", None) if name == text => Ok(Self { curve: Curve::Threshold, weigh: Weigh::Queue }),
            ("linear", Some(full)) if full > 0.0 => bytes_weighed(Curve::Linear { full }),
            ("squared", Some(full)) if full > 0.0 => bytes_weighed(Curve::Squared { full }),
            _ => {
                let (number, parts) = text.split_once('/').unwrap_or((text, "1"));
                let probability = number.parse::<f64>().ok().zip(parts.parse::<f64>().ok()).map(|(n, parts)| n / parts);
                let steps = probability.map(|probability| Steps::new([Step { from: 0.0, probability }]));
                match steps {
                    Some(Ok(steps)) => bytes_weighed(Curve::Steps(steps)),
                    _ => Err(format!(
                        "'{text}' is not a function: use threshold, queue, linear:20kB, squared:20kB or a probability such as 1/16"
                    )),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_file_takes_the_options_of_the_command_line() {
        let read = |text: &str| PolicyFileArgs::read(text).map(|policy_file_args| policy_file_args.policy.acting());
        assert_eq!(read("# nothing\n").unwrap(), None);
        let marking = Acting { threshold: 30_000.0, dry: false, ..Acting::default() };
        let text = "--mark=linear:20kB # gently\n\n--threshold 30kB\n--for-real";
        let linear = Acting { curve: Curve::Linear { full: 20_000.0 }, ..marking.clone() };
        assert_eq!(read(text).unwrap(), Some(linear));
        assert_eq!(read("--mark --threshold 30kB --for-real").unwrap(), Some(marking));
        let limit = read("--limit 10Mbit/s").unwrap().unwrap();
        assert!(matches!(limit.action, Action::Limit { .. }) && limit.dry);
        assert_eq!(read("--mark=1/16 --drop").unwrap().unwrap().action, Action::Respond(Response::MarkOrDrop));
        assert_eq!(read("--drop=queue").unwrap().unwrap().weigh, Weigh::Queue);
        for wrong in [
            "--mark=17/16",
            "--mark=linear",
            "--mark=squared:0",
            "--mark=queue:3",
            "--limit 1Mbit/s --drop",
            "mark",
            "on",
            "off off",
            "--hold 1s",
            "--drop --hold 0",
            "--drop --hold 2h",
            "--drop --never 'tcp",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(read("--drop --hold 3s").unwrap().unwrap().hold, Nanos(3_000_000_000));
    }

    #[test]
    fn a_policy_file_takes_limits_and_off() {
        let read = |text: &str| PolicyFileArgs::read(text).unwrap();
        let bounds = read("--drop --never 'tcp port 22' # the way in\n--never \"udp\" --act-for 10m").bounds;
        assert_eq!(
            (bounds.never, bounds.act_for),
            (vec!["tcp port 22".to_owned(), "udp".to_owned()], Some(Nanos(600_000_000_000)))
        );
        assert!(read("off").off.is_some() && read("off\n--drop --for-real").off.is_some());
        assert!(read("# off\n--drop").off.is_none());
    }
}
