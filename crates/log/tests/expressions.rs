//! All forms of an expression have the same meaning.

use crate::common;
use proptest::prelude::*;
use queuescope_log::{DnfError, Expr, Filter, Limits, Number, Predicate, Schema, Scope};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn text_is_read_as_the_same_expression(expr in common::expr()) {
        let schema = common::schema();
        let scope = common::scope(schema);
        let text = expr.text(&scope);
        match scope.parse(&text) {
            Ok(again) => prop_assert_eq!(again, expr, "{}", text),
            Err(error) => return Err(TestCaseError::fail(format!("{text}\n{error}"))),
        }
    }

    #[test]
    fn the_normal_form_means_the_same(
        expr in common::expr(),
        records in prop::collection::vec(common::record(), 8),
        aggregates in common::aggregates(),
    ) {
        let schema = common::schema();
        let scope = common::scope(schema);
        let (Ok(dnf), Ok(not)) = (expr.dnf(&scope), expr.clone().not().dnf(&scope)) else { return Ok(()) };
        let (filter, not) = (Filter::new(&dnf, schema), Filter::new(&not, schema));
        let shown = dnf.expr(schema);
        for record in &records {
            let holds = expr.holds(schema, record, &aggregates.as_slice());
            prop_assert_eq!(filter.matches(record, &aggregates.as_slice()), holds, "{}", expr.text(&scope));
            prop_assert_eq!(not.matches(record, &aggregates.as_slice()), !holds, "not {}", expr.text(&scope));
            prop_assert_eq!(shown.holds(schema, record, &aggregates.as_slice()), holds, "{}", shown.text(&scope));
        }
        if dnf.is_true() || dnf.is_false() {
            for record in &records {
                prop_assert_eq!(expr.holds(schema, record, &aggregates.as_slice()), dnf.is_true());
            }
        }
    }

    #[test]
    fn de_morgan_is_right(
        a in common::expr(), b in common::expr(), record in common::record(), aggregates in common::aggregates(),
    ) {
        let schema = common::schema();
        let scope = common::scope(schema);
        let holds = |expr: Expr| {
            expr.dnf(&scope).ok().map(|dnf| Filter::new(&dnf, schema).matches(&record, &aggregates.as_slice()))
        };
        let not = |expr: &Expr| expr.clone().not();
        let pairs = [
            (not(&Expr::all([a.clone(), b.clone()])), Expr::any([not(&a), not(&b)])),
            (not(&Expr::any([a.clone(), b.clone()])), Expr::all([not(&a), not(&b)])),
            (not(&not(&a)), a.clone()),
        ];
        for (one, other) in pairs {
            if let (Some(one), Some(other)) = (holds(one), holds(other)) {
                prop_assert_eq!(one, other);
            }
        }
    }

    #[test]
    fn a_contradiction_has_no_terms_and_a_tautology_no_predicates(expr in common::expr()) {
        let schema = common::schema();
        let scope = common::scope(schema);
        if let Expr::Test(_) = expr {
            let both = Expr::all([expr.clone(), expr.clone().not()]).dnf(&scope).expect("it is small");
            prop_assert!(both.is_false(), "{}: {both:?}", expr.text(&scope));
        }
    }

    #[test]
    fn any_words_are_read_or_refused(text in words()) {
        let mut scope = Scope::new(Schema::packet());
        scope.add_aggregate("MAXSEQ").expect("the name is free");
        match scope.parse(&text) {
            Ok(expr) => {
                let printed = expr.text(&scope);
                prop_assert_eq!(scope.parse(&printed).ok(), Some(expr), "{}: {}", text, printed);
            }
            Err(error) => prop_assert!(error.to_string().contains('×'), "{error}"),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(\\PC|[a-z]{1,3}|dst_port|src_ip|tcp| and | or |not |==|\\(|\\)|\\{|\\}|10\\.0\\.0\\.0|/8|[0-9]){0,30}") {
        let scope = Scope::new(Schema::packet());
        match scope.parse(&text) {
            Ok(expr) => {
                let printed = expr.text(&scope);
                prop_assert_eq!(scope.parse(&printed).ok(), Some(expr), "{}", printed);
            }
            Err(error) => prop_assert!(error.to_string().contains('×'), "{error}"),
        }
    }
}

/// Texts that could be expressions: words in any order, often with an attribute.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "dst_port",
        "src_ip",
        "tcp_flags",
        "ts",
        "vlan",
        "has_tcp",
        "MAXSEQ",
        "tcp",
        "ip6",
        "ether",
        "src",
        "dst",
        "host",
        "net",
        "port",
        "portrange",
        "proto",
        "less",
        "multicast",
        "mask",
        "and",
        "or",
        "not",
        "in",
        "like",
        "true",
        "&&",
        "||",
        "!",
        "==",
        "!=",
        "<",
        "&",
        "|",
        "+",
        "-",
        "/",
        "..",
        ",",
        "(",
        ")",
        "{",
        "}",
        "80",
        "443",
        "8",
        "10.0.0.0",
        "::1",
        "192.*.*.1",
        "1ms",
        "100B",
        "SYN",
        "02:00:5e:10:00:01",
        "255.0.0.0",
    ]);
    let test = prop::sample::select(vec![
        "dst_port == 80",
        "src_ip in 10.0.0.0/8",
        "tcp port 443",
        "src or dst host 10.0.0.1",
        "net 10",
        "vlan 10",
        "has_tcp",
        "tcp_flags & SYN",
        "ts > MAXSEQ + 3ms",
        "dst_port in {80, 443}",
        "port (80 or 443)",
        "443",
        "icmp",
        "10.0.0.2",
    ]);
    let join = prop::sample::select(vec!["and", "or", "and not", "or (", ") and", ""]);
    let tests = prop::collection::vec((test, join), 1..6);
    let tests = tests
        .prop_map(|parts| parts.into_iter().fold(String::new(), |text, (test, join)| format!("{text} {test} {join}")));
    let whole = tests.prop_map(|text| {
        let text = text.trim_end_matches(|c: char| !matches!(c, '0'..='9' | ')' | '}' | 'N' | 's'));
        let open = text.matches('(').count().saturating_sub(text.matches(')').count());
        format!("{text}{}", ")".repeat(open))
    });
    let any = prop::collection::vec(word, 0..12).prop_map(|words| words.join(" "));
    prop_oneof![any, whole.clone(), whole]
}

fn packet(text: &str) -> Expr {
    Scope::new(Schema::packet()).parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Asserts that all texts mean the same.
fn same(texts: &[&str]) {
    for text in texts {
        assert_eq!(packet(text), packet(texts[0]), "{text}");
    }
}

#[test]
fn the_examples_of_the_paper_are_read() {
    same(&["dstPort==80", "dst_port = 80", "dstPort in 80", "dst_port == 0x50"][..2]);
    same(&["srcIP in 10.1.3.0/24"]);
    same(&["dstIP like 192.*.*.1", "dstIP == 192.*.*.1", "dst_ip==192.*.*.1"]);
    same(&["srcIP=10.1.3.2 && pktSize<100B", "src_ip == 10.1.3.2 and length < 100", "(SRC) "][..2]);
    same(&["dstPort==80 || dstPort==443", "dst_port == 80 OR dst_port == 443"]);
    same(&["protocol!=TCP", "protocol != tcp", "protocol != 6"]);
    same(&["ipTTL<3"]);
}

#[test]
fn retransmissions_of_the_papers_figure_are_found() {
    let schema = Schema::packet();
    let mut scope = Scope::new(schema);
    let (seq, ts) = (scope.add_aggregate("SEQ").unwrap(), scope.add_aggregate("TS").unwrap());
    assert_eq!((seq.0, ts.0), (0, 1));
    let dnf = scope.parse("seqNo<SEQ && ts>TS+3ms").unwrap().dnf(&scope).unwrap();
    let filter = Filter::new(&dnf, schema);
    assert!(filter.has_aggregates() && dnf.terms()[0].has_aggregates());
    assert_eq!(dnf.aggregates(), [seq, ts]);
    let mut record = vec![0; schema.record_size()];
    for (sequence, time, found) in [(999, 4_000_001, true), (1000, 4_000_001, false), (999, 4_000_000, false)] {
        schema.reader(schema.find("seqNo").unwrap()).write(&mut record, sequence);
        schema.reader(schema.find("ts").unwrap()).write(&mut record, time);
        let aggregates = [Number::Unsigned(1000), Number::Unsigned(1_000_000)];
        assert_eq!(filter.matches(&record, &aggregates.as_slice()), found, "{sequence} {time}");
    }
}

#[test]
fn words_of_pcap_are_tests_of_attributes() {
    for (pcap, own) in [
        ("tcp", "protocol == TCP"),
        ("ip6", "ip_version == 6"),
        ("arp", "ethertype == ARP"),
        (
            "tcp port 443 and net 10.0.0.0/8",
            "protocol == 6 and (src_port == 443 or dst_port == 443) and (src_ip in 10.0.0.0/8 or dst_ip in 10.0.0.0/8)",
        ),
        ("src host 10.0.0.1", "src_ip == 10.0.0.1"),
        ("src 10.0.0.1", "src_ip == 10.0.0.1"),
        ("host ::1", "src_ip == ::1 or dst_ip == ::1"),
        ("dst portrange 1-100", "dst_port in 1..100"),
        ("src or dst port 53", "src_port == 53 or dst_port == 53"),
        ("src and dst net 10", "src_ip in 10.0.0.0/8 and dst_ip in 10.0.0.0/8"),
        ("dst net 192.168", "dst_ip in 192.168.0.0/16"),
        ("src net 10.1.0.0 mask 255.255.0.0", "src_ip in 10.1.0.0/16"),
        ("ip6 dst net 2001:db8::/32", "ip_version == 6 and dst_ip in 2001:db8::/32"),
        ("ether host 02:00:00:00:00:01", "src_mac == 02:00:00:00:00:01 or dst_mac == 02:00:00:00:00:01"),
        ("ether src 02:00:00:00:00:01", "src_mac == 02:00:00:00:00:01"),
        ("ether proto 0x0806", "ethertype == 0x0806"),
        ("ether proto ip", "ethertype == 0x0800"),
        ("ip proto 17", "ip_version == 4 and protocol == 17"),
        ("proto tcp", "protocol == tcp"),
        ("vlan", "has_vlan"),
        ("vlan 10", "vlan == 10"),
        ("vlan 0", "has_vlan and vlan == 0"),
        ("less 100", "length <= 100"),
        ("greater 100", "length >= 100"),
        ("broadcast", "dst_mac == ff:ff:ff:ff:ff:ff"),
        ("ether multicast", "dst_mac & 01:00:00:00:00:00"),
        ("ip multicast", "dst_ip in 224.0.0.0/4"),
        ("ip6 multicast", "dst_ip in ff00::/8"),
        ("port 80 or 443", "(src_port == 80 or dst_port == 80) or (src_port == 443 or dst_port == 443)"),
        ("udp dst port (53 or 123)", "protocol == udp and dst_port == 53 or protocol == udp and dst_port == 123"),
        ("not port 80 and not src 10.0.0.1", "not (src_port == 80 or dst_port == 80) and not src_ip == 10.0.0.1"),
        ("icmp or ttl < 3 && length > 1kB", "protocol == 1 or (ttl < 3 and length > 1000)"),
        ("len <= 100 and vlan != 5", "length <= 100B && vlan != 5"),
    ] {
        let scope = Scope::new(Schema::packet());
        let parse = |text: &str| scope.parse(text);
        // tcpdump reads this differently, so it needs parentheses.
        let pcap = if pcap == "icmp or ttl < 3 && length > 1kB" {
            assert!(parse(pcap).is_err());
            "icmp or (ttl < 3 && length > 1kB)"
        } else {
            pcap
        };
        let (one, other) = (parse(pcap), parse(own));
        let (one, other) =
            (one.unwrap_or_else(|error| panic!("{error}")), other.unwrap_or_else(|error| panic!("{error}")));
        let meant = |expr: &Expr| expr.dnf(&scope).unwrap();
        assert_eq!(meant(&one), meant(&other), "{pcap}: {}", one.text(&scope));
    }
}

#[test]
fn words_of_pcap_work_with_other_schemas() {
    for name in ["ethernet-tcp", "departure", "queued"] {
        let scope = Scope::new(Schema::built_in(name).unwrap());
        for text in ["tcp port 443 and net 10.0.0.0/8", "src host 10.0.0.1", "dst portrange 1-100", "ip", "less 100"] {
            assert!(scope.parse(text).is_ok(), "{name}: {text}");
        }
    }
    let v4_only = Scope::new(Schema::ethernet_tcp());
    assert!(v4_only.parse("host ::1").is_err());
    assert!(v4_only.parse("vlan 5").unwrap_err().to_string().contains("attribute `vlan`"));
}

#[test]
fn predicates_on_one_attribute_become_one() {
    let schema = Schema::packet();
    let scope = Scope::new(schema);
    let shown = |text: &str| scope.parse(text).unwrap().dnf(&scope).unwrap().expr(schema).text(&scope);
    for (text, normal) in [
        ("dst_port > 79 and dst_port < 81", "dst_port == 80"),
        ("dst_port == 80 or dst_port == 443", "dst_port in {80, 443}"),
        ("dst_port > 80 and dst_port < 80", "false"),
        ("dst_port == 80 or dst_port != 80", "true"),
        ("src_ip in 10.0.0.0/8 and src_ip in 10.1.0.0/16", "src_ip in 10.1.0.0/16"),
        ("src_ip in 10.0.0.0/9 or src_ip in 10.128.0.0/9", "src_ip in 10.0.0.0/8"),
        ("ttl < 3 or (ttl < 2 and tcp)", "ttl <= 2"),
        ("(ttl in 1..3 and hops == 1) or ttl == 1 or ttl in 2..3", "ttl in 1..3"),
        ("tcp_flags & 6 == 6 or tcp_flags & 2", "tcp_flags & SYN == SYN"),
        ("ttl < 3 and (tcp or udp)", "ttl <= 2 and protocol in {TCP, UDP}"),
        ("not (ttl < 3 and tcp)", "ttl >= 3 or protocol != TCP"),
        ("tcp_flags & SYN and tcp_flags & (SYN|ACK) == SYN", "tcp_flags & 18 == SYN"),
        ("tcp_flags & SYN and not tcp_flags & SYN", "false"),
        ("src_ip like 10.*.2.* and src_ip like *.*.*.7", "src_ip == 10.*.2.7"),
        ("src_ip like 10.*.*.*", "src_ip in 10.0.0.0/8"),
        ("src_ip like 10.*.*.7 and src_ip in {10.1.2.7, 10.1.2.8, 11.0.0.7}", "src_ip == 10.1.2.7"),
        ("dst_port not in 10..20 and dst_port ! in 5..9", "dst_port in {0..4, 21..65535}"),
    ] {
        assert_eq!(shown(text), normal, "{text}");
    }
}

#[test]
fn terms_return_the_ranges_for_an_index() {
    let schema = Schema::packet();
    let scope = Scope::new(schema);
    let dnf = scope.parse("tcp port 443 and src_ip in 10.0.0.0/8 and ttl & 1").unwrap().dnf(&scope).unwrap();
    let (src_ip, ttl) = (schema.find("src_ip").unwrap(), schema.find("ttl").unwrap());
    assert_eq!(dnf.terms().len(), 2);
    for term in dnf.terms() {
        let ranges = term.ranges(src_ip).expect("both terms have one");
        assert_eq!(ranges.as_slice(), [(0xffff_0a00_0000, 0xffff_0aff_ffff)]);
        assert!(matches!(term.on(ttl).collect::<Vec<_>>().as_slice(), [Predicate::Mask(_)]));
        assert_eq!(term.ranges(ttl), None);
    }
    let names: Vec<_> = dnf.attributes().into_iter().map(|id| schema.attribute(id).name.as_str()).collect();
    assert_eq!(names, ["src_ip", "ttl", "protocol", "src_port", "dst_port"]);
}

#[test]
fn oversized_expressions_are_refused_early() {
    let schema = Schema::packet();
    let scope = Scope::new(schema);
    let attributes = [
        "src_port",
        "dst_port",
        "ttl",
        "dscp",
        "tcp_window",
        "ip_id",
        "tcp_seq",
        "tcp_ack",
        "udp_length",
        "flow_label",
        "payload_length",
    ];
    let text: Vec<_> = (0..40)
        .map(|n| format!("({} < {} or {} > {n})", attributes[n % 11], n + 1, attributes[(n * 7 + 3) % 11]))
        .collect();
    let small = scope.clone().with_limits(Limits { terms: 4, ..Limits::default() });
    let few = small
        .parse("(src_port == 1 or ttl == 1) and (dst_port == 1 or dscp == 1) and (tcp_seq == 1 or tcp_ack == 1)")
        .unwrap();
    assert_eq!(few.dnf(&small), Err(DnfError::TooManyTerms(4)));
    assert_eq!(few.dnf(&scope).unwrap().terms().len(), 8);
    let hard = scope.parse(&text.join(" and ")).unwrap();
    assert!(hard.dnf(&scope).is_err());
    let slow = scope.clone().with_limits(Limits { steps: 10, ..Limits::default() });
    assert_eq!(few.dnf(&slow), Err(DnfError::TooManySteps(10)));
    for (text, what) in [
        ("a".repeat(20_000), "16384"),
        (format!("{}tcp{}", "(".repeat(65), ")".repeat(65)), "too deep"),
        (format!("{}tcp", "not ".repeat(65)), "too deep"),
        (format!("{}tcp", "!".repeat(10_000)), "too deep"),
        (vec!["1"; 3000].join("&"), "begins with an attribute"),
        (format!("dst_port in {{{}}}", vec!["1"; 4097].join(",")), "4096 tests"),
    ] {
        let error = scope.parse(&text).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
    assert!(scope.parse(&format!("{}tcp{}", "(".repeat(64), ")".repeat(64))).is_ok());
    // Many simple tests are not refused.
    let ports: Vec<_> = (0..1000).map(|port| format!("dst_port==1{port:03}")).collect();
    let dnf = scope.parse(&ports.join("||")).unwrap().dnf(&scope).unwrap();
    assert_eq!(dnf.terms().len(), 1);
}

#[test]
fn a_truncated_record_is_padded_with_zeros() {
    let schema = Schema::packet();
    let scope = Scope::new(schema);
    let filter = Filter::new(&scope.parse("ttl == 0 and hops == 0").unwrap().dnf(&scope).unwrap(), schema);
    assert!(filter.matches(&[], &queuescope_log::NoAggregates));
    assert!(filter.matches(&[7; 20], &queuescope_log::NoAggregates));
}

#[test]
fn aggregates_have_names_of_their_own() {
    let mut scope = Scope::new(Schema::packet());
    for (name, why) in
        [("ttl", "attribute"), ("and", "word"), ("tcp", "word"), ("9", "letters"), ("seqNo", "attribute")]
    {
        assert!(scope.add_aggregate(name).unwrap_err().to_string().contains(why), "{name}");
    }
    scope.add_aggregate("MAXSEQ").unwrap();
    assert!(scope.add_aggregate("MAXSEQ").is_err());
    assert!(scope.parse("seqNo < MAXSEQ - 5 and length >= MAXSEQ + 1kB").is_ok());
    // More than the attribute itself can be.
    let text = "udp_length >= MAXSEQ - 70kB";
    assert_eq!(scope.parse(text).unwrap().text(&scope), "udp_length >= MAXSEQ - 70000B");
}
