//! A diagnosis over many hosts: a cut, and a question about its records.

use crate::hosts::Fleet;
use hdrhistogram::Histogram;
use queuescope_fleet::client::Client;
use queuescope_fleet::identity::{Credentials, CurrentCredentials};
use queuescope_fleet::protocol::{QueryRequest, State};
use queuescope_wire::Nanos;
use std::time::Instant;

/// Records of each host.
pub const RECORDS: u64 = 10_000;

/// Measures fleets of 1, 2, 4 and so on agents, up to `most`: medians of `rounds`.
pub fn measure(most: usize, rounds: usize) {
    println!("agents   connection       cut     question   in all, 99 %");
    let mut agents = 1;
    while agents <= most {
        let fleet = Fleet::start(agents);
        wait_for_records(&fleet, agents);
        let [connection, cut, question, whole] = diagnose(&fleet, agents, rounds);
        let ms = |times: &Histogram<u64>, at| times.value_at_quantile(at) as f64 / 1e6;
        println!(
            "{agents:6} {:9.2} ms {:6.2} ms {:9.2} ms {:6.2} {:6.2} ms",
            ms(&connection, 0.5),
            ms(&cut, 0.5),
            ms(&question, 0.5),
            ms(&whole, 0.5),
            ms(&whole, 0.99)
        );
        agents *= 2;
    }
}

fn wait_for_records(fleet: &Fleet, agents: usize) {
    let begun = Instant::now();
    while fleet.coordinator.members().iter().map(|member| member.records).sum::<u64>() < agents as u64 * RECORDS {
        assert!(begun.elapsed().as_secs() < 120, "{:?}", fleet.coordinator.members());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// The times of a new connection, a cut, a question, and all of it.
fn diagnose(fleet: &Fleet, agents: usize, rounds: usize) -> [Histogram<u64>; 4] {
    let own =
        Credentials::load(&fleet.dir.path().join("coordinator/admin")).expect("it is whole").expect("it is there");
    let credentials = CurrentCredentials::new(own);
    let mut times = [(); 4].map(|()| Histogram::<u64>::new(3).expect("three digits"));
    for _ in 0..rounds {
        let steps = fleet.runtime.block_on(async {
            let begun = Instant::now();
            let mut client = Client::connect(&fleet.address, &credentials).await.expect("it listens");
            let connected = begun.elapsed();
            let cut = client.cut(&[], Nanos(500_000_000)).await.expect("nobody else makes one");
            assert!(cut.void.is_empty() && cut.members.len() == agents, "{cut:?}");
            let is_cut = begun.elapsed();
            let request = QueryRequest {
                expression: "dst_port == 80".to_owned(),
                select: "sum(length),count".to_owned(),
                group: "src_ip".to_owned(),
                cut: Some(cut.cut),
                within: 10_000,
                ..QueryRequest::default()
            };
            let answer = client.query(request).await.expect("it answers");
            assert!(answer.members.iter().all(|member| member.state() == State::Answered), "{:?}", answer.members);
            let whole = begun.elapsed();
            [connected, is_cut - connected, whole - is_cut, whole]
        });
        for (times, step) in times.iter_mut().zip(steps) {
            times.record(step.as_nanos() as u64).expect("any value fits");
        }
    }
    times
}
