//! Counters of irregular frames.

/// Declares the counters once: as fields, and as rows for a report.
macro_rules! counters {
    ($($name:ident: $meaning:literal,)*) => {
        /// Frames by what was irregular about them. One frame may count in several.
        ///
        /// ```
        /// let parser = queuescope_wire::parse::Parser::new(queuescope_wire::parse::Tunnel::Outer);
        /// for (name, count, meaning) in parser.stats().iter() {
        ///     println!("{name}: {count} ({meaning})");
        ///     assert_eq!(count, 0);
        /// }
        /// ```
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct ParseStats {
            $(#[doc = concat!("Frames: ", $meaning, ".")] pub $name: u64,)*
        }

        impl ParseStats {
            /// Every counter as (name, count, meaning), in the order of the fields.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
                [$((stringify!($name), self.$name, $meaning),)*].into_iter()
            }
        }
    };
}

counters! {
    frames: "frames parsed",
    non_ip: "no IP header (ARP, LLC and the like); their flow is their MAC addresses and EtherType",
    unsupported_link: "link type not supported; all such frames are one flow",
    cut_before_network_header: "captured bytes end before or in the IP header; their flow is their MAC addresses",
    bad_ip_header: "IP version or length impossible; ports were not read",
    cut_before_ports: "captured bytes end before the ports, which are taken as 0",
    short_transport: "IP payload too short, by its own length, to hold ports, which are taken as 0",
    extensions_not_followed: "too many IPv6 extension headers; ports are taken as 0",
    first_fragments: "first fragment of a datagram",
    later_fragments_matched: "later fragment, given the flow of its first fragment",
    later_fragments_unmatched: "later fragment whose first fragment was not seen before it; ports are taken as 0",
    length_corrected: "record's length below that of the IP header; the length of the IP header was used",
    length_from_record: "IP length 0, as segmentation offload leaves it; the record's length was used",
    tunnels: "an IP header found inside a tunnel (GRE, VXLAN, IP in IP)",
    tunnels_not_followed: "a tunnel whose inside is cut, not IP, or nested too deep",
}
