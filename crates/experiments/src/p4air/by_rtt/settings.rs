//! The settings, and how each scheme treats their flows.

use super::super::figure_7;
use super::{MIXES, OTHERS, TIMES};
use std::fmt::Write as _;

/// How the link treats its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    P4air,
    ByRtt,
    P4airWithoutAcks,
    ByRttWithoutAcks,
    FqCodel,
    FqCodel1024,
}

/// The queues of a port.
const QUEUES: u64 = 32;
/// No lowered windows, which need ACKs.
const WITHOUT_ACKS: &str = "delay-based = \"drop\"\nmodel-based = \"drop\"\n";
const WITH_ACKS: &str = "delay-based = \"window\"\n";
/// `P4airParams::by_rtt`, but for the actions.
const BY_RTT: &str = "assignment = \"by-rtt\"\nscalable = true\nshare = \"parts\"\n";
const SLOW_PULSES: &str = "\n[link.pipeline.p4air.fingerprint]\npulse = 4\nperiod = 255\n";

impl Scheme {
    pub const ALL: [Self; 6] =
        [Self::P4air, Self::ByRtt, Self::P4airWithoutAcks, Self::ByRttWithoutAcks, Self::FqCodel, Self::FqCodel1024];

    pub fn name(self) -> &'static str {
        match self {
            Self::P4air => "P4air",
            Self::ByRtt => "P4air by RTT",
            Self::P4airWithoutAcks => "P4air without ACKs",
            Self::ByRttWithoutAcks => "by RTT without ACKs",
            Self::FqCodel => "FQ-CoDel, 32 queues",
            Self::FqCodel1024 => "FQ-CoDel, 1024 queues",
        }
    }

    /// Its lines of `[link]`, for a buffer of this many packets. P4air gives each queue an equal part of it.
    fn text(self, buffer: u64) -> String {
        let p4air = |keys: &str, fingerprint: &str, actions: &str| {
            let each = (buffer / QUEUES).max(1);
            format!(
                "limit = \"{each}packets\"\n\n[link.pipeline.p4air]\nqueues = {QUEUES}\n{keys}{fingerprint}\n\
                 [link.pipeline.p4air.actions]\n{actions}"
            )
        };
        let fq_codel =
            |queues: u64| format!("limit = \"{buffer}packets\"\n\n[link.discipline.fq-codel]\nqueues = {queues}\n");
        match self {
            Self::P4air => p4air("", "", WITH_ACKS),
            Self::ByRtt => p4air(BY_RTT, SLOW_PULSES, WITH_ACKS),
            Self::P4airWithoutAcks => p4air("", "", WITHOUT_ACKS),
            Self::ByRttWithoutAcks => p4air(BY_RTT, SLOW_PULSES, WITHOUT_ACKS),
            Self::FqCodel => fq_codel(QUEUES),
            Self::FqCodel1024 => fq_codel(1024),
        }
    }
}

/// Flows that share a link.
pub struct Setting {
    pub figure: &'static str,
    /// Its name in tables.
    pub name: String,
    megabits: u64,
    duration_ms: u64,
    warmup_ms: u64,
    /// The time within which flows start.
    spread_ms: u64,
    /// Congestion controls, with numbers of flows and round-trip times in ms.
    flows: Vec<(&'static str, u64, u64)>,
}

impl Setting {
    /// With a buffer of one bandwidth-delay product, of the mean round-trip time.
    pub fn scenario(&self, scheme: Scheme, seed: u64) -> String {
        let (count, times) =
            self.flows.iter().fold((0, 0), |(count, times), (_, own, rtt)| (count + own, times + own * rtt));
        let buffer = self.megabits * 1_000 * times / (count.max(1) * 1_500 * 8);
        let mut text = format!(
            "seed = {seed}\nduration = \"{}ms\"\nwarmup = \"{}ms\"\n\n[access]\nrate = \"{}mbps\"\ndelay = \"100us\"\n\n[link]\n\
             rate = \"{}mbps\"\ndelay = \"100us\"\n{}",
            self.duration_ms,
            self.warmup_ms,
            16 * self.megabits,
            self.megabits,
            scheme.text(buffer)
        );
        for (number, (control, count, rtt)) in self.flows.iter().enumerate() {
            // Writing to a string does not fail.
            _ = write!(
                text,
                "\n[[flows]]\nname = \"{control}-{number}\"\ntcp = \"{control}\"\ncount = {count}\nrtt = \"{rtt}ms\"\n\
                 spread = \"{}ms\"\n",
                self.spread_ms
            );
        }
        text
    }

    /// Flows of these controls with one round-trip time, for 50 s. Flows are measured once they are in their groups.
    fn mix(figure: &'static str, [megabits, rtt]: [u64; 2], flows: &[(&'static str, u64)]) -> Self {
        let all: u64 = flows.iter().map(|(_, count)| count).sum();
        let shares: Vec<_> = flows.iter().map(|(control, count)| format!("{count} {control}")).collect();
        Self {
            figure,
            name: format!("{megabits} Mb/s, {rtt} ms, {all} flows: {}", shares.join(", ")),
            megabits,
            duration_ms: 50_000,
            warmup_ms: 30_000,
            spread_ms: 1_000,
            flows: flows.iter().map(|(control, count)| (*control, *count, rtt)).collect(),
        }
    }

    /// As many flows of each of `times` round-trip times, the multiples of a difference in ms. All durations are divided by
    /// `faster`.
    fn times(
        figure: &'static str,
        control: &'static str,
        [megabits, difference, times, each, faster]: [u64; 5],
    ) -> Self {
        Self {
            figure,
            name: format!(
                "{megabits} Mb/s, {difference} to {} ms, {} flows: {control}",
                times * difference,
                times * each
            ),
            megabits,
            duration_ms: 60_000 / faster,
            warmup_ms: 20_000 / faster,
            spread_ms: 1_000 / faster,
            flows: (1..=times).map(|number| (control, each, number * difference)).collect(),
        }
    }

    /// Fewer flows for a shorter time.
    fn small(self) -> Self {
        let flows = self.flows.into_iter().take(4).map(|(control, _, rtt)| (control, 3, rtt.min(40))).collect();
        Self { megabits: 60, duration_ms: 6_000, warmup_ms: 2_000, flows, ..self }
    }
}

pub fn settings(small: bool) -> Vec<Setting> {
    let mixes = figure_7::mixes().into_iter().map(|percents| {
        let flows = figure_7::CONTROLS.into_iter().zip(percents.map(|percent| 128 * percent / 100));
        let flows: Vec<_> = flows.filter(|(_, count)| *count > 0).collect();
        Setting::mix(MIXES, [625, 100], &flows)
    });
    let differences = [[1_250, 10, 32, 8, 1], [10_000, 1, 32, 8, 8]];
    let times = differences
        .into_iter()
        .flat_map(|layout| figure_7::CONTROLS.map(|control| Setting::times(TIMES, control, layout)));
    let links = [([300, 60], 12), ([900, 140], 40), ([250, 40], 20)];
    let other_mixes = links.into_iter().flat_map(|(link, each)| {
        let equal = |controls: [&'static str; 4]| Setting::mix(OTHERS, link, &controls.map(|control| (control, each)));
        let halves = |one, other| Setting::mix(OTHERS, link, &[(one, 2 * each), (other, 2 * each)]);
        [
            equal(figure_7::CONTROLS),
            equal(["cubic", "bbr3", "prague", "vegas"]),
            halves("bbr3", "prague"),
            halves("cubic", "bbr3"),
        ]
    });
    // Two packets for each flow: a share that is rounded badly leaves the link idle.
    let small_shares =
        ["cubic", "bbr3", "prague", "vegas"].map(|control| Setting::mix(OTHERS, [20, 50], &[(control, 40)]));
    let layouts = [[900, 20, 16, 10, 1], [2_000, 3, 24, 6, 4]];
    let controls = ["cubic", "illinois", "bbr", "vegas", "bbr3", "prague"];
    let other_times =
        layouts.into_iter().flat_map(|layout| controls.map(|control| Setting::times(OTHERS, control, layout)));
    if small {
        let few: Vec<_> = mixes.skip(12).take(1).chain(times.take(1)).chain(other_mixes.skip(1).take(1)).collect();
        return few.into_iter().map(Setting::small).collect();
    }
    mixes.chain(times).chain(other_mixes).chain(small_shares).chain(other_times).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_queue::{P4airParams, PipelineParams};
    use queuescope_scenario::Scenario;
    use std::collections::BTreeSet;

    #[test]
    fn all_settings_have_different_names_and_scenarios_that_can_be_read() {
        let all = settings(false);
        let names: BTreeSet<_> = all.iter().map(|setting| setting.name.clone()).collect();
        assert_eq!((names.len(), all.len()), (35 + 8 + 12 + 4 + 12, 35 + 8 + 12 + 4 + 12));
        for setting in &all {
            for scheme in Scheme::ALL {
                Scenario::parse("test", &setting.scenario(scheme, 1), &[]).unwrap();
            }
        }
    }

    #[test]
    fn with_acks_the_parameters_are_those_of_the_library() {
        let text = settings(true)[0].scenario(Scheme::ByRtt, 1);
        let scenario = Scenario::parse("test", &text, &[]).unwrap();
        let Some(PipelineParams::P4air(params)) = scenario.link.pipeline else { panic!("it has no P4air") };
        assert_eq!(params, P4airParams { ports: params.ports.clone(), queue: params.queue, ..P4airParams::by_rtt() });
    }
}
