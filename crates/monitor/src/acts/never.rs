//! `--never`: expressions for flows that are never acted on, translated to conditions that the kernel checks.

use crate::error::{ActError, ExemptError};
use queuescope_ingest::expression;
use queuescope_live::{Condition, Field, Never};
use queuescope_log::{Predicate, Schema, departure};

/// Flows that are never acted on: any of the inner lists exempts a flow for which all of its conditions hold.
pub type Exemptions = Vec<Vec<Condition>>;

/// The flows for which any of the expressions holds.
///
/// # Errors
/// Fails if an expression is invalid, uses a property that differs between packets of a flow, or uses one that the kernel does not
/// read.
pub fn exemptions(expressions: &[String]) -> Result<Exemptions, ActError> {
    let each = expressions.iter().map(|text| parse(text).map_err(|why| ActError::Exempt { text: text.clone(), why }));
    Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
}

/// The flows for which any of the expressions holds, as the kernel stores them.
///
/// # Errors
/// Fails if an expression is invalid, uses a property that differs between packets of a flow, or uses one that the kernel does not
/// read; also if there are too many.
pub fn flows(expressions: &[String]) -> Result<Never, ActError> {
    Ok(Never::new(exemptions(expressions)?)?)
}

fn parse(text: &str) -> Result<Exemptions, ExemptError> {
    if text.trim().is_empty() {
        return Err(ExemptError::Empty);
    }
    let schema = departure::schema();
    let expression = expression(schema, text)?;
    let of_term = |term: &queuescope_log::Term| term.predicates().map(|one| condition(schema, one)).collect();
    expression.terms().iter().map(of_term).collect()
}

fn condition(schema: &Schema, predicate: Predicate<'_>) -> Result<Condition, ExemptError> {
    let field = match schema.attribute(predicate.attribute()).name.as_str() {
        "src_ip" => Field::Source,
        "dst_ip" => Field::Destination,
        "src_port" => Field::SourcePort,
        "dst_port" => Field::DestinationPort,
        "protocol" => Field::Protocol,
        "ip_version" => Field::Version,
        other => return Err(ExemptError::Unknown(other.to_owned())),
    };
    Ok(match predicate {
        Predicate::Within(_, ranges) => Condition::Within(field, ranges.iter().collect()),
        Predicate::Mask(test) => Condition::Bits { field, mask: test.mask, value: test.value, equal: test.equal },
        Predicate::Aggregate(..) => return Err(ExemptError::Aggregate),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use queuescope_ingest::records::{Departures, Records};
    use queuescope_log::{Filter, NoAggregates};
    use queuescope_wire::{
        Backlog, ByteCount, Class, Departure, Ecn, Family, FlowId, FlowKey, Nanos, Packet, PacketId, QueueId,
    };

    fn exempts(text: &str, key: &FlowKey) -> bool {
        Never::new(exemptions(&[text.to_owned()]).unwrap_or_else(|why| panic!("{text}: {why:?}"))).unwrap().holds(key)
    }

    #[test]
    fn properties_that_a_flow_lacks_are_refused() {
        for (text, why) in [
            ("delay > 5ms", "`delay` is not known of a flow before the queue"),
            ("dst_port == 22 and length > 100", "`length`"),
            ("vlan 7", "`vlan`"),
            ("nonsense == 1", "nonsense"),
            ("", "it is empty"),
            (" ", "it is empty"),
        ] {
            let error = exemptions(&[text.to_owned()]).expect_err(text);
            let cause = std::error::Error::source(&error).expect("it has a cause").to_string();
            assert!(cause.contains(why) && error.to_string().starts_with("cannot use --never"), "{error}: {cause}");
        }
    }

    #[test]
    fn one_matching_expression_is_enough() {
        let key = |port| FlowKey { dst_port: port, protocol: 6, family: Family::V4, ..FlowKey::default() };
        let never =
            Never::new(exemptions(&["tcp port 22".to_owned(), "dst_port in {80, 443}".to_owned()]).unwrap()).unwrap();
        assert_eq!([22, 80, 443, 23].map(|port| never.holds(&key(port))), [true, true, true, false]);
    }

    fn expression() -> impl Strategy<Value = String> {
        let test = prop_oneof![
            prop::sample::select(vec![
                "tcp",
                "udp",
                "ip",
                "ip6",
                "net 10.9.0.0/30",
                "src net fd09::/126",
                "dst host 10.9.0.2",
                "src_ip < 10.9.0.2",
                "dst_ip >= fd09::2",
                "src_ip like 10.*.0.1",
                "src_ip like 10.9.*.3",
                "port 3",
                "tcp dst port 2",
                "src portrange 1-2",
                "dst_port in {1, 3}",
                "src_port != 2",
                "dst_port & 1 == 1",
                "ip_version == 0",
                "protocol in {1, 17}",
            ])
            .prop_map(str::to_owned),
        ];
        test.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|one| format!("not ({one})")),
                prop::collection::vec(inner.clone(), 2..4).prop_map(|each| format!("({})", each.join(") and ("))),
                prop::collection::vec(inner, 2..4).prop_map(|each| format!("({})", each.join(") or ("))),
            ]
        })
    }

    fn key() -> impl Strategy<Value = FlowKey> {
        let family = prop::sample::select(vec![Family::Link, Family::V4, Family::V6]);
        (family, prop::array::uniform4(0..5u8), prop::sample::select(vec![1u8, 6, 17])).prop_map(
            |(family, [a, b, c, d], protocol)| {
                let base = match family {
                    Family::V6 => 0xfd09 << 112,
                    _ => 0x0a09_0000,
                };
                let (src, dst) = (base + u128::from(a), base + u128::from(b));
                match family {
                    Family::Link => FlowKey { src, dst, ethertype: 0x0806, family, ..FlowKey::default() },
                    _ => FlowKey {
                        src,
                        dst,
                        src_port: c.into(),
                        dst_port: d.into(),
                        protocol,
                        family,
                        ..FlowKey::default()
                    },
                }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        /// A flow is exempt exactly if `--where` with the same expression holds for it.
        #[test]
        fn never_selects_the_same_flows_as_where(text in expression(), keys in prop::collection::vec(key(), 20)) {
            let Ok(terms) = exemptions(std::slice::from_ref(&text)) else { return Ok(()) };
            let Ok(never) = Never::new(terms) else { return Ok(()) };
            let filter = Filter::new(&super::expression(departure::schema(), &text).unwrap(), Departures::schema());
            let packet = Packet { id: PacketId(0), flow: FlowId(0), size: ByteCount(0), class: Class(0), ecn: Ecn::NotEct };
            let none = Backlog::default();
            let (enqueued, dequeued) = (Nanos(0), Nanos(0));
            let departure = Departure { packet, queue: QueueId(0), enqueued, dequeued, backlog_in: none, backlog_out: none };
            let mut records = Departures::default();
            for key in keys {
                let holds = filter.matches(records.fill(&departure, &key), &NoAggregates);
                prop_assert_eq!(never.holds(&key), holds, "{} {:?}", text, key);
            }
        }
    }

    #[test]
    fn parts_of_networks_are_exempt() {
        let key =
            |last: u128| FlowKey { src: 0x0a09_0000 + last, protocol: 17, family: Family::V4, ..FlowKey::default() };
        assert!(exempts("src net 10.9.0.0/24 and not host 10.9.0.7", &key(8)));
        assert!(!exempts("src net 10.9.0.0/24 and not host 10.9.0.7", &key(7)));
    }
}
