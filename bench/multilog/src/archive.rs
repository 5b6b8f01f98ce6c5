//! How fast journals become volumes, the size of volumes, and how fast one host of a million is found in them.

use crate::disk::{Folder, options, recorder};
use crate::traffic::{SIZE, attribute, expression, schema};
use crate::{cpu, median};
use queuescope_archive::{ArchiveQuery, Durability, History, RecorderOptions};
use queuescope_log::Dnf;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::RngCore;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// Number of hosts.
const HOSTS: u64 = 1_000_000;
/// Records in a batch.
const BATCH: u64 = 1000;
/// Records of which the rate is measured.
const RATE: u64 = 8 << 20;

pub fn measure(records: u64, runs: usize) {
    println!("volumes of {RATE} records, a million hosts: million/s of CPU time on one core, bytes a record");
    for indexes in [&[][..], &["src_ip", "dst_ip"]] {
        let mut bytes = 0;
        let rate = median(runs, || {
            let folder = Folder::new("rate");
            let journals = recorder(&folder.0, options(Durability::Relaxed, false));
            fill(RATE, |batch| assert_eq!(journals.append(batch).expect("there is room").refused, 0));
            journals.finish().unwrap_or_else(|error| panic!("{error}"));
            let start = cpu();
            let volumes = recorder(&folder.0, with(indexes));
            volumes.finish().unwrap_or_else(|error| panic!("{error}"));
            bytes = size(&folder.0);
            RATE as f64 / (cpu() - start) / 1e6
        });
        println!("{:24} {rate:>8.2} {:>8.1}", format!("{} indexes", indexes.len()), bytes as f64 / RATE as f64);
    }
    let folder = Folder::new("hosts");
    let start = Instant::now();
    let all = recorder(&folder.0, with(&["src_ip", "dst_ip"]));
    fill(records, |batch| assert_eq!(all.append(batch).expect("there is room").refused, 0));
    let appended = start.elapsed().as_secs_f64();
    all.finish().unwrap_or_else(|error| panic!("{error}"));
    println!(
        "{records} records recorded in {appended:.1} s, volumes {:.1} s later; {:.1} bytes a record",
        start.elapsed().as_secs_f64() - appended,
        size(&folder.0) as f64 / records as f64
    );
    let history = History::open(&folder.0).unwrap_or_else(|error| panic!("{error}"));
    for question in ["src_ip", "dst_ip", "either"] {
        let mut random = Pcg64::new(7, 7);
        let mut found = (0, 0);
        let seconds = median(runs.max(3), || {
            let host = host(random.next_u64());
            let address = std::net::Ipv4Addr::from_bits(host as u32);
            let text = match question {
                "either" => format!("src_ip == {address} or dst_ip == {address}"),
                name => format!("{name} == {address}"),
            };
            let start = Instant::now();
            found = ask(&history, &expression(&text));
            start.elapsed().as_secs_f64()
        });
        println!("{question:24} {:>8.0} ms, {} records, {} pages", seconds * 1e3, found.0, found.1);
    }
}

fn with(indexes: &[&str]) -> RecorderOptions {
    RecorderOptions {
        indexes: indexes.iter().map(|name| attribute(name)).collect(),
        ..options(Durability::Relaxed, true)
    }
}

/// The number of records found, and of pages read, with the attributes of a typical query.
fn ask(history: &History, expression: &Dnf) -> (u64, u64) {
    let needed = ["src_ip", "src_port", "dst_ip", "dst_port", "protocol"].map(attribute);
    let mut found = 0;
    let sources = history.each(ArchiveQuery { expression, from: 0, to: u64::MAX, needed: &needed }, &mut |_, _| {
        found += 1;
        ControlFlow::Continue(())
    });
    (found, sources.unwrap_or_else(|error| panic!("{error}")).pages)
}

fn host(random: u64) -> u64 {
    // Spread over all addresses.
    (random % HOSTS).wrapping_mul(2_654_435_761) & 0xffff_ffff
}

/// Packets between random hosts.
fn fill(records: u64, append: impl Fn(&[u8])) {
    let mut random = Pcg64::new(3, 4);
    let readers = ["src_ip", "dst_ip", "src_port", "dst_port", "tcp_seq"].map(|name| schema().reader(attribute(name)));
    let mut batch = vec![0; BATCH as usize * SIZE];
    for start in (0..records).step_by(BATCH as usize) {
        let count = BATCH.min(records - start);
        for record in batch.chunks_exact_mut(SIZE) {
            let (hosts, ports) = ([random.next_u64(), random.next_u64()].map(host), random.next_u64());
            let keys = [hosts[0], hosts[1], ports & 0xffff, [443, 80, 53, 22][(ports >> 62) as usize], ports >> 32];
            readers.iter().zip(keys).for_each(|(reader, key)| reader.write(record, key.into()));
        }
        append(&batch[..count as usize * SIZE]);
    }
}

/// Bytes of all files of a folder.
fn size(path: &Path) -> u64 {
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let of = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap_or_else(|error| panic!("{error}"));
        if entry.path().is_dir() { size(&entry.path()) } else { entry.metadata().map_or(0, |data| data.len()) }
    };
    entries.map(of).sum()
}
