//! Flows by name, as `analyze` prints them.

use super::JourneyError;
use super::ask::{Asking, Question};
use super::visit::{FLOW, flow_expression, flow_text};
use crate::protocol::{QueryRequest, QueryResponse};
use queuescope_wire::{Family, FlowKey, Granularity, Prefixes};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most flows of a host among which a part of a name is looked for.
const MOST: u64 = 100_000;
/// The most flows that an error names.
const SOME: usize = 5;

impl Asking {
    /// The name of a flow, and an expression that matches its packets. `text` is its name, or a part that no other name of the hosts' flows has.
    ///
    /// # Errors
    /// Fails if no flow has the text in its name, or several have, or if a call fails.
    pub async fn flow<E>(
        &mut self,
        hosts: &[&str],
        text: &str,
        span: (Option<u64>, Option<u64>),
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<(String, String), JourneyError<E>> {
        if let Some(expression) = FlowKey::named(text).and_then(|(granularity, key)| named(granularity, &key)) {
            return Ok((text.to_owned(), expression));
        }
        let (lower, mut left_out) = (text.to_lowercase(), 0);
        let mut matching: BTreeMap<String, String> = BTreeMap::new();
        for host in hosts {
            let question = Question {
                expression: String::new(),
                select: "count".to_owned(),
                group: FLOW.join(","),
                top: MOST,
                span,
            };
            let rows = self.rows(host, question, ask).await?;
            left_out += rows.left_out + u64::from(rows.groups.len() as u64 == MOST);
            let names = rows.groups.iter().map(|(keys, _)| (flow_text(keys), flow_expression(keys)));
            matching.extend(names.filter(|(name, _)| name.to_lowercase().contains(&lower)));
        }
        match matching.len() {
            0 => Err(JourneyError::NoFlow { text: text.to_owned(), is_searched: left_out == 0 }),
            1 => Ok(matching.into_iter().next().unwrap_or_default()),
            flows => {
                let some = matching.into_keys().take(SOME).collect();
                Err(JourneyError::SeveralFlows { text: text.to_owned(), flows, some })
            }
        }
    }
}

/// An expression for the packets of a flow of this granularity, if addresses and ports name it.
fn named(granularity: Granularity, key: &FlowKey) -> Option<String> {
    let address = |bits: u128| -> Option<IpAddr> {
        match key.family {
            Family::V4 => Some(Ipv4Addr::from(bits as u32).into()),
            Family::V6 => Some(Ipv6Addr::from(bits).into()),
            Family::Link => None,
        }
    };
    let (src, dst) = (address(key.src)?, address(key.dst)?);
    let within = |name: &str, address: IpAddr, bits: Prefixes| {
        let bits = if address.is_ipv6() { bits.v6 } else { bits.v4 };
        format!("{name} in {address}/{bits}")
    };
    let (src_port, dst_port, protocol) = (key.src_port, key.dst_port, key.protocol);
    let one_way = |src: IpAddr, dst: IpAddr, src_port: u16, dst_port: u16| {
        format!(
            "src_ip == {src} and dst_ip == {dst} and src_port == {src_port} and dst_port == {dst_port} and protocol == {protocol}"
        )
    };
    match granularity {
        Granularity::FiveTuple => Some(one_way(src, dst, src_port, dst_port)),
        Granularity::Connection => {
            Some(format!("({}) or ({})", one_way(src, dst, src_port, dst_port), one_way(dst, src, dst_port, src_port)))
        }
        Granularity::Pair => Some(format!("src_ip == {src} and dst_ip == {dst}")),
        Granularity::Source(bits) => Some(within("src_ip", src, bits)),
        Granularity::Destination(bits) => Some(within("dst_ip", dst, bits)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::named;
    use crate::answer::{Asked, Texts};
    use queuescope_log::Schema;
    use queuescope_wire::FlowKey;

    #[test]
    fn names_of_flows_are_expressions() {
        for (name, expected) in [
            (
                "10.0.0.1:443 > 10.0.1.7:50010 tcp",
                "src_ip == 10.0.0.1 and dst_ip == 10.0.1.7 and src_port == 443 and dst_port == 50010 and protocol == 6",
            ),
            ("10.0.0.1 > 10.0.1.7", "src_ip == 10.0.0.1 and dst_ip == 10.0.1.7"),
            ("> 10.0.1.0/24", "dst_ip in 10.0.1.0/24"),
            ("10.0.0.1 >", "src_ip in 10.0.0.1/32"),
            ("2001:db8::1 > 2001:db8::2", "src_ip == 2001:db8::1 and dst_ip == 2001:db8::2"),
        ] {
            let (granularity, key) = FlowKey::named(name).expect("it is a name");
            let expression = named(granularity, &key).expect("it has addresses");
            assert_eq!(expression, expected);
            let texts = Texts { expression: &expression, select: "count", ..Texts::default() };
            Asked::new(&texts, Schema::queued()).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        for name in ["vlan 7", "ipv4 ef", "02:00:00:00:00:01 > 02:00:00:00:00:02 ARP"] {
            let (granularity, key) = FlowKey::named(name).expect("it is a name");
            assert_eq!(named(granularity, &key), None, "{name}");
        }
    }
}
