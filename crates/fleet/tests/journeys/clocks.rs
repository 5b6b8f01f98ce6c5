//! Hosts whose clocks differ by up to a second and drift: the order of the hops, and the true times between them, are found.

use super::*;

const START: u64 = 1_700_000_000_000_000_000;

/// The clock of a router.
struct HostClock {
    ahead: u64,
    ppm: i64,
}

impl HostClock {
    /// What it shows at a time of the simulation.
    fn shown(&self, at: Nanos) -> Nanos {
        let drift = i128::from(at.0) * i128::from(self.ppm) / 1_000_000;
        Nanos((i128::from(START + at.0 + self.ahead) + drift) as u64)
    }
}

/// Which packets the routers record, and with which headers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Recorded {
    /// All, with their times to live.
    All,
    /// All, and the time to live is not known.
    WithoutTtl,
    /// Only those in the direction of the data.
    OneWay,
}

#[test]
fn the_true_times_between_hops_are_in_the_stated_intervals() {
    let kinds = [Recorded::All, Recorded::WithoutTtl, Recorded::OneWay];
    for (seed, recorded) in seeds().flat_map(|seed| kinds.map(|recorded| (seed, recorded))) {
        let network = chain(seed);
        let mut chance = Random::new(seed + 2_000);
        let clocks: Vec<_> = (network.routers.iter())
            .map(|_| HostClock { ahead: chance.below(1_000 * MS), ppm: chance.below(101) as i64 - 50 })
            .collect();
        let folder = tempfile::tempdir().expect("there is room");
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("there are threads");
        let coordinator = coordinator(folder.path());
        let mut logs = Vec::new();
        for (n, visits) in network.routers.iter().enumerate() {
            let path = folder.path().join(format!("router-{n}"));
            let shown = |visit: &Visit| {
                let mut headers = visit.headers;
                if recorded == Recorded::WithoutTtl {
                    headers[TTL] = 0;
                }
                let [enqueued, dequeued] = [visit.enqueued, visit.dequeued].map(|at| clocks[n].shown(at));
                Visit { headers, enqueued, dequeued, ..visit.clone() }
            };
            let is_recorded = |visit: &&Visit| recorded != Recorded::OneWay || is_data(visit);
            let visits: Vec<_> = visits.iter().filter(is_recorded).map(shown).collect();
            let log = record(&path, &visits);
            attach(&runtime, &coordinator, &format!("router-{n}"), log.recorder(), &path);
            logs.push(log);
        }
        let mut texts = BTreeMap::new();
        network.routers[0].iter().for_each(|visit| *texts.entry(expression(&visit.headers)).or_insert(0) += 1);
        let long: Vec<_> = network.routers[0].iter().filter(|visit| is_data(visit)).collect();
        let (mut gaps, mut known, mut widths) = (0, 0, 0);
        for _ in 0..10 {
            let visit = long[chance.below(long.len() as u64) as usize];
            let text = expression(&visit.headers);
            // A segment that was sent again looks like the first.
            if texts[&text] > 1 {
                continue;
            }
            let journey = runtime.block_on(way(&coordinator, &text)).unwrap_or_else(|error| panic!("{error}"));
            let mut own: Vec<_> = (network.routers.iter().enumerate())
                .flat_map(|(n, visits)| visits.iter().map(move |visit| (n, visit)))
                .filter(|(_, other)| other.packet == visit.packet)
                .collect();
            own.sort_by_key(|(_, visit)| visit.enqueued);
            let names: Vec<_> = journey.hops.iter().map(|hop| hop.member.clone()).collect();
            let truth: Vec<_> = own.iter().map(|(n, _)| format!("router-{n}")).collect();
            assert_eq!(names, truth, "seed {seed}, {recorded:?}: {journey:?}");
            for ((at, gap), pair) in journey.gaps.iter().enumerate().zip(own.windows(2)) {
                let [(a, before), (b, behind)] = pair else { unreachable!("windows of two") };
                let between = Nanos(behind.enqueued.0 - before.dequeued.0);
                let what = format!("seed {seed}, {recorded:?}, gap {at} of {between}: {gap:?}");
                // Clocks that run slow or fast show a time in between that is as much shorter or longer.
                let longest = Nanos(between.0 + between.0 / 10_000 + 2);
                assert!(gap.least.is_some_and(|least| least <= longest), "{what}");
                assert!(gap.most.is_none_or(|most| between <= Nanos(most.0 + most.0 / 10_000 + 2)), "{what}");
                let [of_a, of_b] = [*a, *b].map(|n| clocks[n].shown(before.dequeued).0 as i64);
                let offset = of_b - of_a;
                assert!(gap.offset.most.is_some_and(|most| offset <= most + 2), "{what}, {offset}");
                assert!(gap.offset.least.is_none_or(|least| least - 2 <= offset), "{what}, {offset}");
                gaps += 1;
                if let (Some(least), Some(most)) = (gap.least, gap.most) {
                    known += 1;
                    widths += most.0 - least.0;
                }
            }
        }
        let width = Nanos(widths / known.max(1));
        println!("seed {seed}, {recorded:?}: {known} of {gaps} times between hops are known, to {width} on average");
        assert!(
            gaps > 0 && known == if recorded == Recorded::OneWay { 0 } else { gaps },
            "seed {seed}: {known} of {gaps}"
        );
        runtime.shutdown_timeout(PATIENCE);
        drop(coordinator);
        logs.into_iter().for_each(|log| drop(log.finish().unwrap_or_else(|error| panic!("{error}"))));
    }
}

/// Whether a packet goes in the direction of the data: receivers send no payload.
fn is_data(visit: &Visit) -> bool {
    field(&visit.headers, "payload_length") > 0
}
