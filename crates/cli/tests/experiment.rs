//! Small versions of the experiments: their results stay the same.
//!
//! `GOLDEN=overwrite cargo test -p queuescope-cli --test it experiment::` writes the present results.

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

use crate::common::{file, printed, run};
use std::fs;

#[test]
fn abc_small() {
    let folder = tempfile::tempdir().unwrap();
    let again = || printed(run("experiment abc --small --out", &[folder.path()]), 0);
    let first = again();
    let made = folder.path().join("abc-small");
    golden("abc", &fs::read_to_string(made.join("findings.md")).unwrap());
    for figure in ["figure-4", "figure-5", "figure-6"] {
        let plot = fs::read_to_string(made.join(format!("{figure}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("client 1, with ABC") && plot.contains("goodput (Mb/s)"));
        let data = fs::read_to_string(made.join(format!("{figure}.csv"))).unwrap();
        let first = data.lines().next().unwrap();
        assert!(first.starts_with("ABC,") && first.contains(",seed,client 0 goodput (Mb/s)"), "{first}");
    }
    // Stored results are reused and give the same output. Damaged ones are run again.
    assert_eq!(again(), first);
    let cells = fs::read_dir(made.join("cells")).unwrap().map(|entry| entry.unwrap().path());
    let cell = cells.into_iter().find(|path| path.extension().is_some_and(|it| it == "json")).unwrap();
    // The scenario stored with a result can be run by itself.
    printed(run("sim --explain", &[&cell.with_extension("toml")]), 0);
    fs::write(&cell, "{").unwrap();
    let output = run("experiment abc --small --out", &[folder.path()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("run again, since its result is damaged: "), "{said}");
    assert_eq!(printed(output, 0), first);
    assert!(fs::read_to_string(&cell).unwrap().len() > 1);
}

#[test]
fn egress_pi_small() {
    let folder = tempfile::tempdir().unwrap();
    printed(run("experiment egress-pi --small --out", &[folder.path()]), 0);
    let made = folder.path().join("egress-pi-small");
    golden("egress-pi", &fs::read_to_string(made.join("findings.md")).unwrap());
    for plot in ["delay-1gbps", "goodput-1gbps"] {
        assert!(fs::read_to_string(made.join(format!("{plot}.svg"))).unwrap().contains("Egress PI"));
    }
    assert!(!made.join("delay-10gbps.svg").exists());
}

#[test]
fn p4air_small() {
    let folder = tempfile::tempdir().unwrap();
    let again = || printed(run("experiment p4air --small --out", &[folder.path()]), 0);
    let first = again();
    let made = folder.path().join("p4air-small");
    golden("p4air", &fs::read_to_string(made.join("findings.md")).unwrap());
    for (plot, line) in [("figure-1b", "Vegas"), ("figure-6ab", "Cubic"), ("figure-7e", "No AQM, the paper")] {
        let plot = fs::read_to_string(made.join(format!("{plot}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains(line), "{line}");
    }
    let data = fs::read_to_string(made.join("figure-6.csv")).unwrap();
    assert!(data.starts_with("congestion control,m_LD,m_PL,m_M,seed,RTT (ms),ended delay-based (%),"), "{data}");
    // Two runs of three controls.
    assert_eq!(data.lines().count(), 1 + 2 * 3);
    assert_eq!(again(), first, "stored results give the same output");
}

#[test]
fn pie_tofino_small() {
    let folder = tempfile::tempdir().unwrap();
    printed(run("experiment pie-tofino --small --out", &[folder.path()]), 0);
    let made = folder.path().join("pie-tofino-small");
    golden("pie-tofino", &fs::read_to_string(made.join("findings.md")).unwrap());
    for (plot, axis) in
        [("figure-5", "probability"), ("figure-6-goodput", "goodput (Gb/s)"), ("figure-6-delay", "delay (us)")]
    {
        for (form, line) in [("stated", "PIE_TABLE"), ("published", "PIE_TABLE, published")] {
            let plot = fs::read_to_string(made.join(format!("{plot}-{form}.svg"))).unwrap();
            assert!(plot.starts_with("<svg") && plot.contains(line) && plot.contains(axis));
        }
    }
    let data = fs::read_to_string(made.join("figure-5.csv")).unwrap();
    assert!(
        data.starts_with("algorithm,seed,dropped by the full queue,dropped early,fall (s),probability at 00.00 s,")
    );
    assert_eq!(data.lines().count(), 9);
    // This experiment has only one seed.
    printed(run("experiment pie-tofino --small --seeds 1 --out", &[folder.path()]), 0);
    assert_eq!(fs::read_to_string(made.join("figure-5.csv")).unwrap(), data);
}

#[test]
fn some_figures_can_be_made_alone() {
    let folder = tempfile::tempdir().unwrap();
    printed(run("experiment pie-tofino --small --figures figure-5 --out", &[folder.path()]), 0);
    let made = folder.path().join("pie-tofino-small");
    let findings = fs::read_to_string(made.join("findings.md")).unwrap();
    assert!(findings.contains("| figure-5 |") && !findings.contains("igure 6"), "{findings}");
    assert!(!findings.contains("| figure-6 |"), "{findings}");
    let there = |name: &str| made.join(name).exists();
    assert!(there("figure-5.csv") && there("figure-5-stated.svg") && !there("figure-6.csv"));
    assert!(!there("figure-6-goodput-stated.svg"));
}

#[test]
fn conquest_small() {
    let folder = tempfile::tempdir().unwrap();
    let again = || printed(run("experiment conquest --small --out", &[folder.path()]), 0);
    let first = again();
    let made = folder.path().join("conquest-small");
    golden("conquest", &fs::read_to_string(made.join("findings.md")).unwrap());
    let plots = ["figure-6-", "figure-7-", "figure-9-", "figure-15a-", "figure-15b-"];
    let names = plots.iter().flat_map(|plot| ["inner", "outer", "overlap"].map(|it| format!("{plot}{it}")));
    for name in names.chain(["figure-8".to_owned()]) {
        let plot = fs::read_to_string(made.join(format!("{name}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("<circle"), "{name}");
    }
    let rows = |name: &str| {
        let data = fs::read_to_string(made.join(format!("{name}.csv"))).unwrap();
        data.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    // Two seeds of three numbers of snapshots, with three of columns and without collisions.
    let grid = rows("figures-6-7-8-15b");
    assert!(grid[0].starts_with("h,C,seed,inner mean error (kB)"), "{}", grid[0]);
    assert_eq!(grid.len(), 1 + 2 * 3 * 4);
    assert_eq!(rows("figure-9").len(), 1 + 2 * 2 * 3);
    let scatter = rows("figure-15a");
    assert_eq!(scatter[0], "h,C,packet,true size (kB),inner (kB),outer (kB),overlap (kB)");
    assert!(scatter.len() > 4 * 200, "{}", scatter.len());
    assert_eq!(again(), first);
    // The traffic stored with a result can be run by itself.
    let cells = fs::read_dir(made.join("cells")).unwrap().map(|entry| entry.unwrap().path());
    let cell = cells.into_iter().find(|path| path.extension().is_some_and(|it| it == "toml")).unwrap();
    printed(run("sim --explain", &[&cell]), 0);
}

#[test]
fn conquest_on_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let demo = file("data/demo.pcap.xz");
    let arguments = format!("experiment conquest --small --capture {} --rate", demo.display());
    let printed = |rate: &str| printed(run(&format!("{arguments} {rate} --out"), &[folder.path()]), 0);
    let first = printed("20mbps");
    let made = folder.path().join("conquest-demo.pcap-small");
    let findings = fs::read_to_string(made.join("findings.md")).unwrap();
    golden("conquest-capture", &findings);
    // The figure agrees with analyze.
    assert!(findings.contains("| longest wait (ms) | 77.59 |"), "{findings}");
    assert!(!findings.contains("63.6"), "63.6 belongs to the paper's trace");
    // Another rate is another experiment, and leaves the first as it was.
    let cells = || fs::read_dir(made.join("cells")).unwrap().count();
    let before = cells();
    assert_ne!(printed("10mbps"), first);
    assert!(cells() > before);
    let both = cells();
    assert_eq!(printed("20mbps"), first);
    assert_eq!(cells(), both);
}

#[test]
fn errors_say_why_an_experiment_cannot_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display();
    let demo = file("data/demo.pcap.xz");
    let demo = demo.display();
    let fails = |arguments: &str, why: &str| {
        let output = run(&format!("experiment {arguments} --small --out {out}"), &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(why), "{arguments}: {said}");
    };
    fails(&format!("conquest --capture {demo}"), "--rate <RATE>");
    fails("conquest --rate 10gbps", "--capture <FILE>");
    fails(&format!("conquest --capture {out}/none.pcap --rate 10gbps"), "cannot read");
    fails("conquest --capture - --rate 10gbps", "name a file, not standard input");
    fails(&format!("abc --capture {demo} --rate 10gbps"), "--capture is for conquest");
    fails(&format!("conquest --capture {demo} --rate 10"), "invalid value '10'");
    fails(
        &format!("conquest --capture {} --rate 1gbps", file("README.md").display()),
        "is not a pcap or pcapng capture",
    );
    fails(
        &format!("conquest --capture {} --rate 400gbps", file("data/formats/bigendian.pcap").display()),
        "no packet of 2 waits, so there is no queue to measure",
    );
}

#[test]
fn conquest_aqm_small() {
    let folder = tempfile::tempdir().unwrap();
    printed(run("experiment conquest-aqm --small --out", &[folder.path()]), 0);
    let made = folder.path().join("conquest-aqm-small");
    golden("conquest-aqm", &fs::read_to_string(made.join("findings.md")).unwrap());
    for (plot, axis) in [("figure-10-99", "99 % (us)"), ("figure-11-queue", "queue (packets)")] {
        let plot = fs::read_to_string(made.join(format!("{plot}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("ConQuest 512") && plot.contains(axis));
    }
    let data = fs::read_to_string(made.join("figure-11.csv")).unwrap();
    assert!(data.starts_with("tcp,marks,seed,") && data.contains("at 012 ms (packets)"));
}

fn golden(name: &str, text: &str) {
    let path = file(&format!("crates/cli/tests/data/experiments/{name}.md"));
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "overwrite") {
        fs::write(&path, text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&path).unwrap(), "{}", path.display());
}
