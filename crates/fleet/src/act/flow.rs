//! The flow of an action: what its packets have in common.

use crate::protocol;
use queuescope_log::{GroupKey, Schema};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// What the packets of an action have in common: at least an address. Parts that are `None` can have any value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// The source address.
    pub src: Option<IpAddr>,
    /// The destination address.
    pub dst: Option<IpAddr>,
    /// The source port.
    pub src_port: Option<u16>,
    /// The destination port.
    pub dst_port: Option<u16>,
    /// The number of the transport protocol.
    pub protocol: Option<u8>,
}

/// Why something does not name a flow that can be acted on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// An attribute that a flow does not have.
    #[error("`{0}` is not a part of a flow: use src_ip, dst_ip, src_port, dst_port and protocol")]
    Attribute(String),
    /// Nothing limits it to a host.
    #[error("an action needs an address: src_ip, dst_ip or both")]
    NoAddress,
    /// The packets of the group are not IP, or have an address that no packet may have.
    #[error("{0} is not the address of a host")]
    Address(IpAddr),
    /// A value that is too large for its part.
    #[error("{value} is not a value of {part}")]
    Value {
        /// The part.
        part: &'static str,
        /// The value.
        value: u128,
    },
    /// One address is of IPv4 and the other of IPv6.
    #[error("one address is of IPv4, and the other of IPv6")]
    Mixed,
}

impl Flow {
    /// Checks that groups with these keys name flows.
    ///
    /// # Errors
    /// Fails if a key is no part of a flow, or if there is no address.
    pub fn check_keys(keys: &[GroupKey], schema: &Schema) -> Result<(), FlowError> {
        let names: Vec<_> = keys.iter().map(|key| schema.attribute(key.attribute()).name.as_str()).collect();
        let is_part = |name: &str| PARTS.contains(&name);
        let is_plain = |key: &GroupKey| matches!(key, GroupKey::Attribute(_));
        if let Some((name, _)) = names.iter().zip(keys).find(|(name, key)| !is_part(name) || !is_plain(key)) {
            return Err(FlowError::Attribute((*name).to_owned()));
        }
        if names.iter().any(|name| ["src_ip", "dst_ip"].contains(name)) { Ok(()) } else { Err(FlowError::NoAddress) }
    }

    /// The flow of a group.
    ///
    /// # Errors
    /// Fails if its packets are not those of a flow between hosts. Answers come from hosts, so any value is possible.
    pub fn of_group(keys: &[GroupKey], schema: &Schema, values: &[u128]) -> Result<Self, FlowError> {
        Self::check_keys(keys, schema)?;
        let mut flow = Self::default();
        for (key, value) in keys.iter().zip(values) {
            match schema.attribute(key.attribute()).name.as_str() {
                "src_ip" => flow.src = Some(address(*value)?),
                "dst_ip" => flow.dst = Some(address(*value)?),
                "src_port" => flow.src_port = Some(small("src_port", *value)?),
                "dst_port" => flow.dst_port = Some(small("dst_port", *value)?),
                _ => flow.protocol = Some(small("protocol", *value)?),
            }
        }
        flow.checked()
    }

    /// The flow of a message.
    ///
    /// # Errors
    /// Fails if it is not one between hosts.
    pub fn of_message(message: Option<&protocol::Flow>) -> Result<Self, FlowError> {
        let none = protocol::Flow::default();
        let message = message.unwrap_or(&none);
        let of_bytes = |bytes: &[u8]| match bytes {
            [] => Ok(None),
            _ => match <[u8; 16]>::try_from(bytes) {
                Ok(bytes) => address(u128::from_be_bytes(bytes)).map(Some),
                Err(_) => Err(FlowError::Value { part: "an address, in bytes", value: bytes.len() as u128 }),
            },
        };
        let part = |part, value: Option<u32>| value.map(|value| small(part, value.into())).transpose();
        let flow = Self {
            src: of_bytes(&message.src)?,
            dst: of_bytes(&message.dst)?,
            src_port: part("src_port", message.src_port)?,
            dst_port: part("dst_port", message.dst_port)?,
            protocol: message.protocol.map(|value| small("protocol", value.into())).transpose()?,
        };
        flow.checked()
    }

    /// The message of a flow.
    pub fn message(&self) -> protocol::Flow {
        let bytes = |address: Option<IpAddr>| address.map(|address| mapped(address).octets().to_vec());
        protocol::Flow {
            src: bytes(self.src).unwrap_or_default(),
            dst: bytes(self.dst).unwrap_or_default(),
            src_port: self.src_port.map(u32::from),
            dst_port: self.dst_port.map(u32::from),
            protocol: self.protocol.map(u32::from),
        }
    }

    /// The addresses that it names.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        [self.src, self.dst].into_iter().flatten()
    }

    fn checked(self) -> Result<Self, FlowError> {
        match (self.src, self.dst) {
            (None, None) => Err(FlowError::NoAddress),
            (Some(src), Some(dst)) if src.is_ipv4() != dst.is_ipv4() => Err(FlowError::Mixed),
            _ => Ok(self),
        }
    }
}

impl fmt::Display for Flow {
    /// As alerts name groups: `src_ip 10.0.0.1, dst_port 443`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.src.map(|value| format!("src_ip {value}")),
            self.dst.map(|value| format!("dst_ip {value}")),
            self.src_port.map(|value| format!("src_port {value}")),
            self.dst_port.map(|value| format!("dst_port {value}")),
            self.protocol.map(|value| format!("protocol {value}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// The attributes that name a flow.
const PARTS: [&str; 5] = ["src_ip", "dst_ip", "src_port", "dst_port", "protocol"];

/// An address as records have it: IPv4 as `::ffff:192.0.2.1`. Packets without IP have `::`.
fn address(key: u128) -> Result<IpAddr, FlowError> {
    let address = Ipv6Addr::from_bits(key).to_canonical();
    if address.is_unspecified() { Err(FlowError::Address(address)) } else { Ok(address) }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn small<T: TryFrom<u128>>(part: &'static str, value: u128) -> Result<T, FlowError> {
    T::try_from(value).map_err(|_| FlowError::Value { part, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow() -> impl Strategy<Value = Flow> {
        let v4 = || any::<u32>().prop_filter("a host", |bits| *bits != 0).prop_map(|bits| IpAddr::V4(bits.into()));
        let v6 = || any::<u64>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(0xfd09 << 112 | u128::from(bits))));
        let pair = prop_oneof![
            (prop::option::of(v4()), prop::option::of(v4())),
            (prop::option::of(v6()), prop::option::of(v6())),
        ];
        let pair = pair.prop_filter("an address", |(src, dst)| src.is_some() || dst.is_some());
        (pair, any::<(Option<u16>, Option<u16>, Option<u8>)>())
            .prop_map(|((src, dst), (src_port, dst_port, protocol))| Flow { src, dst, src_port, dst_port, protocol })
    }

    proptest! {
        #[test]
        fn a_message_names_the_same_flow(flow in flow()) {
            prop_assert_eq!(Flow::of_message(Some(&flow.message())), Ok(flow));
        }

        /// Whatever a coordinator sends, the result is an error or a flow with an address.
        #[test]
        fn messages_are_flows_or_errors(
            src in prop::collection::vec(any::<u8>(), 0..18),
            dst in prop::collection::vec(any::<u8>(), 0..18),
            (src_port, dst_port, protocol) in any::<(Option<u32>, Option<u32>, Option<u32>)>(),
        ) {
            let message = protocol::Flow { src, dst, src_port, dst_port, protocol };
            if let Ok(flow) = Flow::of_message(Some(&message)) {
                prop_assert!(flow.addresses().next().is_some());
                prop_assert_eq!(flow.message(), message);
            }
        }
    }

    #[test]
    fn groups_name_flows() {
        let schema = Schema::packet();
        let keys = |names: &[&str]| -> Vec<_> {
            names.iter().map(|name| GroupKey::Attribute(schema.find(name).expect("packets have it"))).collect()
        };
        let of = |names: &[&str], values: &[u128]| Flow::of_group(&keys(names), schema, values);
        let host = 0xffff_0a00_0001;
        let flow = of(&["src_ip", "dst_port", "protocol"], &[host, 443, 6]).expect("it is one");
        assert_eq!(flow.to_string(), "src_ip 10.0.0.1, dst_port 443, protocol 6");
        assert_eq!(of(&["src_ip"], &[0]), Err(FlowError::Address(Ipv6Addr::UNSPECIFIED.into())));
        assert_eq!(of(&["src_port"], &[1]), Err(FlowError::NoAddress));
        assert_eq!(of(&["src_ip", "ttl"], &[host, 1]), Err(FlowError::Attribute("ttl".to_owned())));
        // A forged answer.
        let value = FlowError::Value { part: "dst_port", value: 65_536 };
        assert_eq!(of(&["src_ip", "dst_port"], &[host, 65_536]), Err(value));
        assert_eq!(of(&["src_ip", "dst_ip"], &[host, 1 << 120]), Err(FlowError::Mixed));
    }
}
