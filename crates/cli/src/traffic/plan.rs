//! Which flows start when: all known before the first does.

use crate::args::Send;
use anyhow::{Context, Result, anyhow, bail};
use queuescope_live::traffic::{LARGEST, Start};
use queuescope_sim::workload::{
    Arrivals, Empirical, Interpolation, Pairs, Random, Sizes, Workload, WorkloadParams, merge,
};
use queuescope_wire::{ByteCount, Nanos};
use std::path::Path;

/// Kinds of flows.
#[derive(Debug)]
pub struct Plan {
    kinds: Vec<Kind>,
    /// Congestion controls; the kernel's choice, if there are none.
    pub congestion: Vec<String>,
    seed: u64,
}

/// Flows of a kind.
#[derive(Debug)]
struct Kind {
    name: String,
    params: WorkloadParams,
    /// Those of the plan's congestion controls that its flows take in turn.
    congestion: Vec<usize>,
}

impl Plan {
    /// What the arguments say.
    ///
    /// # Errors
    /// If that means nothing.
    pub fn of(args: &Send) -> Result<Self> {
        let mut congestion = args.congestion.clone();
        let mut kinds = Vec::new();
        let sizes = sizes(&args.sizes)?;
        let arrivals = match (args.rate, args.every) {
            (Some(rate), _) => Some(Arrivals::at_load(1.0, rate, sizes.mean())),
            (_, Some(Nanos(0))) => bail!("--every 0s never ends: use a longer time"),
            (_, Some(every)) => Some(Arrivals::Poisson { rate: 1.0 / every.as_secs_f64() }),
            _ => None,
        };
        let arrivals = arrivals.map(|arrivals| match (args.periodic, args.every, arrivals.mean_rate()) {
            (true, Some(every), _) => Arrivals::Periodic { every, jitter: Nanos::ZERO },
            (true, None, Some(rate)) => Arrivals::Periodic { every: Nanos((1e9 / rate) as u64), jitter: Nanos::ZERO },
            _ => arrivals,
        });
        if let Some(arrivals) = arrivals {
            let mut params = WorkloadParams::new(arrivals, Some(sizes), PAIR);
            params.flows = args.count.map(Into::into);
            kinds.push(Kind { name: args.sizes.clone(), params, congestion: (0..congestion.len()).collect() });
        }
        for burst in &args.burst {
            let arrivals = Arrivals::Periodic { every: burst.every, jitter: Nanos::ZERO };
            let mut params = WorkloadParams::new(arrivals, Some(Sizes::constant(burst.size)?), PAIR);
            params.start = Nanos(burst.every.0 / 2);
            let own = burst.congestion.as_ref().map(|name| {
                let known = congestion.iter().position(|other| other == name);
                vec![known.unwrap_or_else(|| {
                    congestion.push(name.clone());
                    congestion.len() - 1
                })]
            });
            let turn = own.unwrap_or_else(|| (0..args.congestion.len()).collect());
            kinds.push(Kind { name: burst.name.clone(), params, congestion: turn });
        }
        if args.congestion.is_empty() && !congestion.is_empty() && kinds.iter().any(|kind| kind.congestion.is_empty()) {
            bail!("some bursts have a congestion control of their own: say by --congestion what the other flows have");
        }
        kinds.iter_mut().for_each(|kind| kind.params.until = Some(args.duration));
        Ok(Self { kinds, congestion, seed: args.seed })
    }

    /// What kinds are called.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|kind| kind.name.as_str())
    }

    /// All flows, in the order of their times.
    ///
    /// # Errors
    /// If there can be no such flows.
    pub fn starts(&self) -> Result<impl Iterator<Item = Start> + use<>> {
        let mut seeds = Random::new(self.seed);
        let workloads: Vec<_> = self
            .kinds
            .iter()
            .map(|kind| Workload::new(&kind.params, seeds.below(u64::MAX)))
            .collect::<Result<_, _>>()?;
        let mut turns: Vec<_> = self.kinds.iter().map(|kind| kind.congestion.clone().into_iter().cycle()).collect();
        Ok(merge(workloads).map(move |(class, flow)| {
            let bytes = flow.bytes.unwrap_or_default().min(LARGEST);
            Start { at: flow.at, bytes, class, congestion: turns[class].next().unwrap_or_default() }
        }))
    }
}

/// Everybody here sends to the server.
const PAIR: Pairs = Pairs::Fixed { from: 0, to: 1 };

/// A name, a list or a file.
#[expect(clippy::disallowed_methods, reason = "the command reads the points that it is given")]
fn sizes(text: &str) -> Result<Sizes> {
    if let Some(named) = Sizes::named(text) {
        return Ok(named);
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let mut sizes = text.split(',').map(str::parse).collect::<Result<Vec<ByteCount>, _>>()?;
        sizes.sort_unstable();
        let share = |index: usize| (index + 1) as f64 / sizes.len() as f64;
        let points: Vec<_> = sizes.iter().enumerate().map(|(index, size)| (size.0 as f64, share(index))).collect();
        return Ok(Sizes::empirical(Empirical::new(&points, Interpolation::Step)?));
    }
    let points = std::fs::read_to_string(Path::new(text)).with_context(|| {
        let names = Sizes::NAMES.join(", ");
        format!("'{text}' is no distribution that has a name ({names}), no sizes such as 1kB,10kB, and no file")
    })?;
    let points = Empirical::parse(&points, Interpolation::Linear).map_err(|error| anyhow!("{text}: {error}"))?;
    Ok(Sizes::empirical(points))
}
