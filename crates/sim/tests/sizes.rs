//! A million draws of each distribution of sizes compared with its exact mean, percentiles and curve; and published tables in
//! the form in which they are shared.

use queuescope_sim::workload::{Empirical, Interpolation, Random, Sizes};
use queuescope_wire::ByteCount;
use std::path::Path;

const DRAWS: usize = 1_000_000;

/// A sorted sample.
fn draws(sizes: &Sizes, count: usize) -> Vec<f64> {
    let mut random = Random::new(1);
    let mut draws: Vec<_> = (0..count).map(|_| sizes.sample(&mut random).0).collect();
    draws.sort_unstable();
    draws.into_iter().map(|draw| draw as f64).collect()
}

/// The Kolmogorov-Smirnov distance. Draws are whole bytes: each represents the values that round to it.
fn distance(sizes: &Sizes, sorted: &[f64]) -> f64 {
    let mut farthest = 0.0f64;
    for (n, draw) in sorted.iter().enumerate() {
        if sorted.get(n + 1).is_none_or(|next| next > draw) {
            let empirical = (n + 1) as f64 / sorted.len() as f64;
            farthest = farthest.max((empirical - sizes.cumulative(draw + 0.5)).abs());
        }
    }
    farthest
}

fn kinds() -> Vec<(&'static str, Sizes)> {
    let bytes = ByteCount;
    let points = [(40.0, 0.1), (1_500.0, 0.1), (1_500.0, 0.5), (20_000.0, 0.5), (1e6, 1.0)];
    let empirical = |interpolation| Sizes::empirical(Empirical::new(&points, interpolation).unwrap());
    let mut kinds = vec![
        ("constant", Sizes::constant(bytes(1_500)).unwrap()),
        ("uniform", Sizes::uniform(bytes(3), bytes(12)).unwrap()),
        ("exponential", Sizes::exponential(bytes(10_000)).unwrap()),
        ("pareto of 1.2", Sizes::pareto(1.2, bytes(1_000), bytes(10_000_000)).unwrap()),
        ("pareto of 1", Sizes::pareto(1.0, bytes(1_000), bytes(10_000_000)).unwrap()),
        ("pareto of 0.4", Sizes::pareto(0.4, bytes(1_000), bytes(10_000_000)).unwrap()),
        ("lognormal", Sizes::lognormal(9.0, 1.5).unwrap()),
        ("linear", empirical(Interpolation::Linear)),
        ("log", empirical(Interpolation::Log)),
        ("step", empirical(Interpolation::Step)),
    ];
    kinds.extend(Sizes::NAMES.map(|name| (name, Sizes::named(name).unwrap())));
    kinds
}

#[test]
fn a_million_draws_are_the_distribution() {
    for (name, sizes) in kinds() {
        let sorted = draws(&sizes, DRAWS);
        let mean = sorted.iter().sum::<f64>() / DRAWS as f64;
        let deviation = (sorted.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / DRAWS as f64).sqrt();
        // Five standard errors, and at most a byte of rounding.
        let room = 5.0 * deviation / (DRAWS as f64).sqrt() + 1.0;
        assert!((mean - sizes.mean()).abs() <= room, "{name}: a mean of {mean} for {} +- {room}", sizes.mean());
        // Exceeded once in a million samples.
        let distance = distance(&sizes, &sorted);
        assert!(distance < 2.7 / (DRAWS as f64).sqrt(), "{name}: {distance}");
        for share in [0.1, 0.25, 0.5, 0.9, 0.99] {
            // The range of five standard deviations of the rank, rounded like the draws.
            let room = 5.0 * f64::sqrt(share * (1.0 - share) / DRAWS as f64);
            let (low, high) = (sizes.quantile(share - room).round() - 1.0, sizes.quantile(share + room).round() + 1.0);
            let value = sorted[(share * DRAWS as f64) as usize];
            assert!((low..=high).contains(&value), "{name}: {value} at {share}, not {low} to {high}");
        }
    }
}

#[test]
fn quantiles_and_shares_are_inverse() {
    for (name, sizes) in kinds() {
        let mut last = 0.0;
        for n in 1..1_000 {
            let share = f64::from(n) / 1_000.0;
            let bytes = sizes.quantile(share);
            assert!(bytes >= last, "{name}");
            last = bytes;
            assert!(sizes.cumulative(bytes * (1.0 + 1e-12)) >= share - 1e-9, "{name} at {share}");
            assert!(sizes.cumulative(bytes * (1.0 - 1e-12) - 1e-12) <= share + 1e-9, "{name} at {share}");
        }
        assert_eq!((sizes.cumulative(-1.0), sizes.cumulative(0.0)), (0.0, 0.0), "{name}");
        // The quantile in the middle of each of many equal shares: their mean, except for the tail beyond the last.
        const PARTS: u32 = 200_000;
        let parts = (0..PARTS).map(|n| sizes.quantile((f64::from(n) + 0.5) / f64::from(PARTS)));
        let mean = parts.sum::<f64>() / f64::from(PARTS);
        assert!((mean / sizes.mean() - 1.0).abs() < 0.02, "{name}: {mean} for {}", sizes.mean());
    }
}

/// Hand-computed results where there is a closed form.
#[test]
fn means_and_medians_are_exact() {
    let close = |value: f64, exact: f64| assert!((value / exact - 1.0).abs() < 1e-9, "{value} for {exact}");
    // Shape 1: L H / (H - L) ln(H / L). Shape 2: 2 L H / (L + H).
    let pareto = |shape| Sizes::pareto(shape, ByteCount(1_000), ByteCount(4_000)).unwrap();
    close(pareto(1.0).mean(), 4_000_000.0 / 3_000.0 * 4f64.ln());
    close(pareto(1.0 + 1e-13).mean(), pareto(1.0).mean());
    close(pareto(2.0).mean(), 8_000_000.0 / 5_000.0);
    close(pareto(2.0).quantile(0.5), (2.0f64 / (1.0 / 1e6 + 1.0 / 16e6)).sqrt());
    let one = Sizes::pareto(1.5, ByteCount(7), ByteCount(7)).unwrap();
    assert_eq!((one.mean(), one.quantile(0.3), one.cumulative(6.9), one.cumulative(7.0)), (7.0, 7.0, 0.0, 1.0));
    let rack = Sizes::named("web-rack").unwrap();
    close(rack.mean(), 38_800.0);
    close(rack.quantile(0.5), 1_440.0);
    let stated = Sizes::lognormal(7.2724, 2.5667).unwrap();
    assert!((stated.mean() / 38_800.0 - 1.0).abs() < 2e-4 && (stated.quantile(0.5) / 1_440.0 - 1.0).abs() < 1e-4);
    close(Sizes::exponential(ByteCount(1_000)).unwrap().quantile(0.5), 1_000.0 * 2f64.ln());
    close(Sizes::named("web-search").unwrap().mean(), 1_711_250.0);
    assert_eq!(Sizes::named("web-search").unwrap().quantile(0.5).round(), 73_077.0);
    close(Sizes::named("data-mining").unwrap().mean(), 12_658_198.6);
    assert_eq!(Sizes::named("data-mining").unwrap().quantile(0.5), 1_100.0);
    assert_eq!(Sizes::named("unknown"), None);
}

#[test]
fn impossible_sizes_say_why() {
    let b = ByteCount;
    assert!(Sizes::constant(b(0)).unwrap_err().to_string().contains("0 bytes"));
    assert!(Sizes::exponential(b(0)).unwrap_err().to_string().contains("0 bytes"));
    assert!(Sizes::uniform(b(5), b(4)).unwrap_err().to_string().contains("from 5 to 4 bytes are not a range"));
    assert!(Sizes::pareto(1.2, b(0), b(4)).is_err());
    for shape in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let why = Sizes::pareto(shape, b(1), b(4)).unwrap_err().to_string();
        assert!(why.contains(&format!("a shape of {shape} is impossible")), "{why}");
    }
    assert!(Sizes::lognormal(7.0, -1.0).unwrap_err().to_string().contains("a sigma of -1"));
    assert!(Sizes::lognormal(f64::NAN, 1.0).unwrap_err().to_string().contains("a mu of NaN"));
    assert!(Sizes::lognormal(40.0, 8.0).unwrap_err().to_string().contains("a mu of 40"));
    assert!(Sizes::lognormal_with(1_500.0, 1_000.0).unwrap_err().to_string().contains("a mean of 1000"));
    assert_eq!(Sizes::lognormal_with(1_500.0, 1_500.0).unwrap().mean().round(), 1_500.0);
}

/// A shared table, if the file exists.
fn shared(name: &str) -> Option<String> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/cdf")).join(name);
    #[allow(clippy::disallowed_methods, reason = "a test may read files")]
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        eprintln!("skipped: sizes as they are shared: there is no {}", path.display());
    }
    text
}

fn parse(name: &str, interpolation: Interpolation) -> Option<Empirical> {
    shared(name).map(|text| Empirical::parse(&text, interpolation).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// The built-in tables are those that simulations share, whether as fractions or in percent.
#[test]
fn named_tables_are_those_that_are_shared() {
    let tables = [
        ("web-search", "websearch_dctcp_hkust_bytes.txt"),
        ("web-search", "websearch_hpcc_bytes_pct.txt"),
        ("data-mining", "datamining_vl2_hkust_bytes.txt"),
    ];
    for (name, file) in tables {
        if let Some(shared) = parse(file, Interpolation::Linear) {
            let (named, shared) = (Sizes::named(name).unwrap(), Sizes::empirical(shared));
            assert!((named.mean() / shared.mean() - 1.0).abs() < 1e-12, "{file}");
            for n in 1..1_000 {
                let share = f64::from(n) / 1_000.0;
                assert!((named.quantile(share) / shared.quantile(share) - 1.0).abs() < 1e-9, "{file} at {share}");
            }
        }
    }
}

/// Files that state a mean computed it with the upper end of each interval.
#[test]
fn stated_means_are_those_of_steps() {
    let files = [
        ("fb_web_intracluster_homa_bytes.txt", 62_874.27),
        ("fb_hadoop_all_homa_bytes.txt", 127_796.6),
        ("google_searchrpc_homa_bytes.txt", 440.790_7),
    ];
    for (file, stated) in files {
        if let Some(steps) = parse(file, Interpolation::Step) {
            assert_eq!(steps.stated_mean(), Some(stated));
            assert!((steps.mean() / stated - 1.0).abs() < 1e-3, "{file}: {} for {stated}", steps.mean());
        }
    }
    if let Some(web) = parse("fb_web_intracluster_homa_bytes.txt", Interpolation::Linear) {
        assert!((web.mean() - 62_229.0).abs() < 1.0 && (web.quantile(0.5) - 3_406.0).abs() < 1.0);
    }
}

#[test]
fn every_shared_table_is_read() {
    let files = [
        "datamining_opera.csv",
        "fb_hadoop_hkust_pkts.txt",
        "fb_hadoop_hpcc_bytes_pct.txt",
        "fb_hkust_unit-unstated.txt",
        "websearch_opera.csv",
    ];
    for file in files {
        for interpolation in [Interpolation::Linear, Interpolation::Log, Interpolation::Step] {
            if let Some(table) = parse(file, interpolation) {
                assert!(table.mean() > table.quantile(0.5), "{file}: all are skewed");
                let sizes = Sizes::empirical(table);
                let sorted = draws(&sizes, DRAWS / 20);
                assert!(distance(&sizes, &sorted) < 2.7 / (sorted.len() as f64).sqrt(), "{file}");
            }
        }
    }
}
