//! What is told of a machine is what it can do.

use queuescope_live::{Namespace, Probe, ProbeParams, abilities};

#[test]
fn a_probe_is_attached_where_nothing_is_missing_and_nowhere_else() {
    let found = abilities();
    let is_there = |name: &str| found.iter().any(|ability| ability.name == name && ability.missing.is_none());
    let all = ["btf", "ringbuf", "tp_btf", "tcx"].into_iter().all(is_there);
    let attach = || Probe::attach("lo", ProbeParams::default()).map(drop).map_err(|error| error.to_string());
    let attached = match Namespace::new() {
        Ok(namespace) => namespace.run(attach),
        Err(_) => attach(),
    };
    assert_eq!(attached.is_ok(), all, "{attached:?}: {found:?}");
    assert_eq!(Namespace::new().is_ok(), is_there("namespaces"));
    let missing = Probe::attach("no-such-one", ProbeParams::default()).map(drop).expect_err("there is none");
    assert!(missing.to_string().contains("no interface no-such-one"), "{missing}");
}
