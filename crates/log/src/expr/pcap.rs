//! Tests in the words of pcap-filter(7): `tcp dst port 443`, `net 10.0.0.0/8`, `vlan 10`, `greater 1000`.
//!
//! They become tests of the attributes with these names or aliases: `src_ip`, `dst_ip`, `src_port`, `dst_port`,
//! `protocol`, `ip_version`, `ethertype`, `src_mac`, `dst_mac`, `vlan`, `length`; a schema that lacks one does not support the tests of
//! it. Differences from pcap: no names of hosts, ports and networks are looked up; a VLAN tag does not shift the
//! tests behind it, and headers behind tags, labels and extension headers are found; `host` applies to IP only; `or`
//! before `and` needs parentheses; bytes of headers (`tcp[13]`) are not read; `ip multicast` is 224.0.0.0/4 and nothing
//! above.

use super::lex::Kind;
use super::parse::{Parsed, Parser};
use super::{Expr, Ranges, Relation, Test};
use crate::{AttributeId, Kind as Class};
use queuescope_text::{Problem, quoted};

/// The subject of a pcap test, without the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keyword {
    protocol: Option<Protocol>,
    direction: Direction,
    class: AddressClass,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Protocol {
    word: &'static str,
    layer: Layer,
}

/// The header field that a protocol's word tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Ether,
    /// Version, EtherType.
    Network(u128, u128),
    /// EtherType.
    Link(u128),
    /// IP protocol.
    Transport(u128),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Either,
    Source,
    Destination,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressClass {
    Host,
    Net,
    Port,
    PortRange,
    Protocol,
}

const PROTOCOLS: &[Protocol] = &[
    Protocol { word: "ether", layer: Layer::Ether },
    Protocol { word: "ip", layer: Layer::Network(4, 0x0800) },
    Protocol { word: "ip6", layer: Layer::Network(6, 0x86dd) },
    Protocol { word: "arp", layer: Layer::Link(0x0806) },
    Protocol { word: "rarp", layer: Layer::Link(0x8035) },
    Protocol { word: "icmp", layer: Layer::Transport(1) },
    Protocol { word: "igmp", layer: Layer::Transport(2) },
    Protocol { word: "tcp", layer: Layer::Transport(6) },
    Protocol { word: "udp", layer: Layer::Transport(17) },
    Protocol { word: "icmp6", layer: Layer::Transport(58) },
    Protocol { word: "sctp", layer: Layer::Transport(132) },
];

impl Parser<'_> {
    /// A test that begins with one of pcap's words.
    pub fn primitive(&mut self) -> Parsed<Expr> {
        let span = self.span();
        let Kind::Word(word) = self.peek() else { return Err(self.wrong("a word is expected", "here")) };
        match word {
            "less" | "greater" => return self.length(word),
            "vlan" => return self.vlan(),
            "broadcast" | "multicast" => return self.group_address(None),
            "mask" => return Err(self.wrong("`mask` stands behind `net` and its address", "not here")),
            _ => {}
        }
        let protocol = PROTOCOLS.iter().find(|protocol| protocol.word == word).copied();
        if protocol.is_some() {
            self.next();
        }
        if let (Some(_), Kind::Word("broadcast" | "multicast")) = (protocol, self.peek()) {
            return self.group_address(protocol);
        }
        let direction = self.direction();
        let class = self.what();
        if let (Some(protocol), None, None) = (protocol, direction, class) {
            // `tcp 80` does not say whether 80 is a port.
            if let Kind::Word(next) = self.peek()
                && next.starts_with(|c: char| c.is_ascii_digit())
            {
                let problem = Problem::new(format!("'{}' behind `{word}`: a port, a host?", quoted(next)));
                return Err(Box::new(problem.at(self.span(), "a keyword is missing").help(format!("{word} port 80"))));
            }
            self.keyword = None;
            return match protocol.layer {
                Layer::Ether => Err(Box::new(
                    Problem::new("`ether` alone is not a test")
                        .at(&span, "")
                        .help("ether host 02:00:5e:10:00:01, ether proto 0x0806"),
                )),
                _ => self.of_protocol(protocol),
            };
        }
        // pcap takes an address without a word as a host.
        let class = class.unwrap_or(AddressClass::Host);
        let keyword = Keyword { protocol, direction: direction.unwrap_or(Direction::Either), class };
        self.keyword = Some(keyword);
        if self.peek() != Kind::Open {
            return self.value_of_keyword(keyword);
        }
        self.alternatives(keyword)
    }

    /// `port (80 or 443)`.
    fn alternatives(&mut self, keyword: Keyword) -> Parsed<Expr> {
        let open = self.span();
        self.next();
        let mut any = vec![self.value_of_keyword(keyword)?];
        while self.operator(Kind::Or, "or") {
            any.push(self.value_of_keyword(keyword)?);
        }
        if self.peek() != Kind::Close {
            let found = self.found();
            let problem = Problem::new(format!("`or` or `)` is expected, not {found}"));
            return Err(Box::new(problem.at(self.span(), "here").at(&open, "for this")));
        }
        self.next();
        Ok(Expr::any(any))
    }

    fn direction(&mut self) -> Option<Direction> {
        let first = match self.peek() {
            Kind::Word("src") => Direction::Source,
            Kind::Word("dst") => Direction::Destination,
            _ => return None,
        };
        self.next();
        let other = if first == Direction::Source { "dst" } else { "src" };
        if self.peek_at(1) == Kind::Word(other) {
            if self.operator(Kind::Or, "or") {
                self.next();
                return Some(Direction::Either);
            }
            if self.operator(Kind::And, "and") {
                self.next();
                return Some(Direction::Both);
            }
        }
        Some(first)
    }

    fn what(&mut self) -> Option<AddressClass> {
        let class = match self.peek() {
            Kind::Word("host") => AddressClass::Host,
            Kind::Word("net") => AddressClass::Net,
            Kind::Word("port") => AddressClass::Port,
            Kind::Word("portrange") => AddressClass::PortRange,
            Kind::Word("proto") => AddressClass::Protocol,
            _ => return None,
        };
        self.next();
        Some(class)
    }

    /// Reads the next value, as the last words require.
    pub fn value_of_keyword(&mut self, keyword: Keyword) -> Parsed<Expr> {
        let Keyword { protocol, direction, class } = keyword;
        let ether = protocol.filter(|protocol| protocol.layer == Layer::Ether);
        if let Kind::Word(name) = self.peek()
            && class != AddressClass::Protocol
            && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && !name.contains(':')
        {
            let problem = Problem::new(format!("'{}' is a name, and names are not looked up", quoted(name)));
            let number =
                if matches!(class, AddressClass::Port | AddressClass::PortRange) { "a number" } else { "an address" };
            return Err(Box::new(problem.at(self.span(), format!("{number} is expected"))));
        }
        let value = match (class, ether) {
            (AddressClass::Protocol, _) => return self.protocol_number(protocol),
            (AddressClass::Host, Some(_)) => self.either(["src_mac", "dst_mac"], direction, Self::range)?,
            (_, Some(protocol)) => {
                let message = format!("`{}` has hosts and protocols only", protocol.word);
                return Err(self.wrong(message, "not this"));
            }
            (AddressClass::Host, None) => self.either(["src_ip", "dst_ip"], direction, |parser, attribute| {
                let (key, _) = parser.value(attribute)?;
                Ok((key, key))
            })?,
            (AddressClass::Net, None) => self.either(["src_ip", "dst_ip"], direction, Self::net)?,
            (AddressClass::Port, None) => self.either(["src_port", "dst_port"], direction, |parser, attribute| {
                let (key, _) = parser.value(attribute)?;
                Ok((key, key))
            })?,
            (AddressClass::PortRange, None) => self.either(["src_port", "dst_port"], direction, Self::port_range)?,
        };
        match protocol.filter(|_| ether.is_none()) {
            Some(protocol) => Ok(Expr::all([self.of_protocol(protocol)?, value])),
            None => Ok(value),
        }
    }

    /// A test of the source, the destination, or both, with one value.
    fn either(
        &mut self,
        names: [&str; 2],
        direction: Direction,
        read: impl FnOnce(&mut Self, &crate::Attribute) -> Parsed<(u128, u128)>,
    ) -> Parsed<Expr> {
        let [source, destination] = [self.needed(names[0])?, self.needed(names[1])?];
        let (low, high) = read(self, self.attribute(source))?;
        let test = |attribute| {
            Expr::Test(if low == high {
                Test::Compare { attribute, relation: Relation::Equal, key: low }
            } else {
                Test::Within { attribute, ranges: Ranges::new([(low, high)]) }
            })
        };
        Ok(match direction {
            Direction::Source => test(source),
            Direction::Destination => test(destination),
            Direction::Either => Expr::any([test(source), test(destination)]),
            Direction::Both => Expr::all([test(source), test(destination)]),
        })
    }

    /// `10.0.0.0/8`, `10.1` for `10.1.0.0/16`, `10.0.0.0 mask 255.0.0.0`.
    fn net(&mut self, attribute: &crate::Attribute) -> Parsed<(u128, u128)> {
        let (word, span) = self.word(attribute)?;
        self.count(1)?;
        let parts = word.split('.').count() as u32;
        let short = parts < 4 && !word.contains(':') && word.bytes().all(|c| c.is_ascii_digit() || c == b'.');
        let whole = if short { format!("{word}{}", ".0".repeat(4 - parts as usize)) } else { word.to_owned() };
        let low = attribute.key_of(&whole).map_err(|why| Box::new(Problem::new(why).at(&span, "not a network")))?;
        if self.peek() == Kind::Slash {
            self.next();
            return self.prefix(attribute, low, &span);
        }
        if self.word_at(0, "mask") {
            self.next();
            let (mask, at) = self.value(attribute)?;
            let rest = !mask & attribute.highest_key();
            let v4 = attribute.kind == Class::Address && !word.contains(':');
            let rest = if v4 { rest & crate::schema::low_bits(32) } else { rest };
            if rest & rest.wrapping_add(1) != 0 {
                return Err(Box::new(Problem::new("the mask of a network is ones, then zeros").at(&at, "not so")));
            }
            if low & rest != 0 {
                return Err(Box::new(
                    Problem::new("bits are set that the mask leaves out").at(&span, "not within the mask"),
                ));
            }
            return Ok((low, low | rest));
        }
        let rest = if short { crate::schema::low_bits(8 * (4 - parts)) } else { 0 };
        Ok((low, low | rest))
    }

    /// `1-100`.
    fn port_range(&mut self, attribute: &crate::Attribute) -> Parsed<(u128, u128)> {
        let (low, span) = self.value(attribute)?;
        if !matches!(self.peek(), Kind::Minus | Kind::To) {
            return Ok((low, low));
        }
        self.next();
        let (high, end) = self.value(attribute)?;
        self.ordered(attribute, (low, high), span.start..end.end)
    }

    /// `ip proto 17`, `ether proto 0x0806`, `proto tcp`.
    fn protocol_number(&mut self, protocol: Option<Protocol>) -> Parsed<Expr> {
        let (name, within) = match protocol.map(|protocol| protocol.layer) {
            Some(Layer::Ether) => ("ethertype", None),
            Some(Layer::Network(..)) => ("protocol", protocol),
            None => ("protocol", None),
            Some(_) => return Err(self.wrong("`proto` stands behind `ip`, `ip6`, `ether`, or alone", "not here")),
        };
        let attribute = self.needed(name)?;
        // `ether proto ip`: with the words for protocols, which need not be names of values.
        let named = PROTOCOLS.iter().find(|other| self.peek() == Kind::Word(other.word)).map(|other| other.layer);
        let key = match (name, named) {
            ("ethertype", Some(Layer::Network(_, number) | Layer::Link(number)))
            | ("protocol", Some(Layer::Transport(number))) => {
                self.next();
                self.count(1)?;
                number
            }
            _ => self.value(self.attribute(attribute))?.0,
        };
        let test = Expr::Test(Test::Compare { attribute, relation: Relation::Equal, key });
        match within {
            Some(protocol) => Ok(Expr::all([self.of_protocol(protocol)?, test])),
            None => Ok(test),
        }
    }

    /// A test that a packet is of a protocol.
    fn of_protocol(&mut self, protocol: Protocol) -> Parsed<Expr> {
        self.count(1)?;
        let schema = self.scope.schema();
        let (name, key) = match protocol.layer {
            Layer::Network(version, _) if schema.find("ip_version").is_some() => ("ip_version", version),
            Layer::Network(_, ethertype) | Layer::Link(ethertype) => ("ethertype", ethertype),
            Layer::Transport(number) => ("protocol", number),
            Layer::Ether => ("ethertype", 0),
        };
        Ok(Expr::Test(Test::Compare { attribute: self.needed(name)?, relation: Relation::Equal, key }))
    }

    /// `less 100` and `greater 1000`, both including the length itself.
    fn length(&mut self, word: &str) -> Parsed<Expr> {
        let attribute = self.needed("length")?;
        let relation = if word == "less" { Relation::AtMost } else { Relation::AtLeast };
        self.next();
        self.keyword = None;
        let (key, _) = self.value(self.attribute(attribute))?;
        Ok(Expr::Test(Test::Compare { attribute, relation, key }))
    }

    /// `vlan` and `vlan 10`: the outer tag.
    fn vlan(&mut self) -> Parsed<Expr> {
        let attribute = self.needed("vlan")?;
        self.next();
        self.keyword = None;
        let present = self.scope.schema().find("has_vlan").unwrap_or(attribute);
        let present = Expr::Test(Test::Compare { attribute: present, relation: Relation::NotEqual, key: 0 });
        match self.peek() {
            Kind::Word(word) if word.starts_with(|c: char| c.is_ascii_digit()) => {
                let (key, _) = self.value(self.attribute(attribute))?;
                let same = Expr::Test(Test::Compare { attribute, relation: Relation::Equal, key });
                // A packet without a tag has an identifier of zero, too.
                Ok(if key == 0 { Expr::all([present, same]) } else { same })
            }
            _ => {
                self.count(1)?;
                Ok(present)
            }
        }
    }

    /// `broadcast`, `ether multicast`, `ip multicast`, `ip6 multicast`.
    fn group_address(&mut self, protocol: Option<Protocol>) -> Parsed<Expr> {
        self.count(1)?;
        let broadcast = self.peek() == Kind::Word("broadcast");
        let (name, text) = match (protocol.map(|protocol| protocol.layer), broadcast) {
            (None | Some(Layer::Ether), _) => ("dst_mac", ""),
            (Some(Layer::Network(4, _)), false) => ("dst_ip", "224.0.0.0"),
            (Some(Layer::Network(..)), false) => ("dst_ip", "ff00::"),
            _ => {
                let message = format!("there is no {} of this protocol that its address could show", self.found());
                return Err(self.wrong(message, "not here"));
            }
        };
        let attribute = self.needed(name)?;
        let span = self.span();
        self.next();
        self.keyword = None;
        if name == "dst_mac" {
            return Ok(Expr::Test(if broadcast {
                Test::Compare { attribute, relation: Relation::Equal, key: 0xffff_ffff_ffff }
            } else {
                Test::Mask { attribute, mask: 1 << 40, value: 0, equal: false }
            }));
        }
        let low = self.attribute(attribute).key_of(text);
        let low = low.map_err(|why| Box::new(Problem::new(why).at(&span, "not of these addresses")))?;
        let rest = if text == "ff00::" { 120 } else { 28 };
        let ranges = Ranges::new([(low, low | crate::schema::low_bits(rest))]);
        Ok(Expr::Test(Test::Within { attribute, ranges }))
    }

    /// The attribute that a pcap word needs.
    fn needed(&self, name: &str) -> Parsed<AttributeId> {
        let schema = self.scope.schema();
        match schema.find(name) {
            Some(id) if self.attribute(id).is_comparable() => Ok(id),
            _ => {
                let message = format!("this is about an attribute `{name}`, which `{}` does not have", schema.name());
                let help = "words of pcap's are about attributes or aliases with the usual names";
                Err(Box::new(Problem::new(message).at(self.span(), "here").help(help)))
            }
        }
    }
}
