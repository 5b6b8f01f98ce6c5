//! What the parser met that it could not take at face value.

/// Declares the counters once: as fields, and as rows for a report.
macro_rules! counters {
    ($($name:ident: $meaning:literal,)*) => {
        /// Frames counted by what was remarkable about them; a frame may count in several.
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
    frames: "all that were parsed",
    non_ip: "no IP header (ARP, LLC and the like); told apart by MAC address and EtherType",
    unsupported_link: "of a link type that is not understood; all of them are one flow",
    cut_before_network_header: "captured bytes end before or in the IP header; told apart by MAC address",
    bad_ip_header: "IP version or length impossible; ports were not read",
    cut_before_ports: "captured bytes end before the ports, which are taken as 0",
    short_transport: "IP payload too short, by its own length, to hold ports, which are taken as 0",
    extensions_not_followed: "more IPv6 extension headers than are followed; ports are taken as 0",
    first_fragments: "first fragment of a datagram",
    later_fragments_matched: "later fragment, given the flow of its first fragment",
    later_fragments_unmatched: "later fragment whose first fragment was not seen before it; ports are taken as 0",
    length_corrected: "record's length below what the IP header says; the IP header was believed",
    length_from_record: "IP length 0, as segmentation offload leaves it; the record's length was believed",
    tunnels: "an IP header found inside a tunnel (GRE, VXLAN, IP in IP)",
    tunnels_not_followed: "a tunnel whose inside is cut, not IP, or nested too deep",
}
