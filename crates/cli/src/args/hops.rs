//! Arguments of `agent` for reports of switches.

use clap::{Args, ValueHint};
use queuescope_recording::{HopOptions, Occupancy};
use queuescope_wire::telemetry::{DscpMark, Marks};
use queuescope_wire::{ByteCount, Nanos};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Where reports of switches come from, and what their numbers mean.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reports of switches")]
pub struct SwitchReports {
    /// Instead of an interface, listen on this UDP port for reports of In-band Network Telemetry (version 2.0), and record each hop of a packet. Without an
    /// address, it listens on loopback only. Reports are not authenticated: name the address of a network that only switches reach
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address)]
    pub int: Option<SocketAddr>,

    /// Instead of an interface, read such reports from a capture, and then answer until the end; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "int_port")]
    pub int_capture: Option<PathBuf>,

    /// The UDP port of the reports in that capture
    #[arg(long, value_name = "PORT", requires = "int_capture")]
    pub int_port: Option<u16>,

    /// Only read reports of this address; may be repeated. The sender of a UDP datagram can be forged [default: all]
    #[arg(long, value_name = "ADDRESS", requires = "int")]
    pub int_from: Vec<IpAddr>,

    /// The most datagrams that are read in a second; further ones are counted
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub int_rate: u64,

    /// The unit of times and latencies in reports
    #[arg(long, value_name = "TIME", default_value = "1ns", value_parser = unit)]
    pub int_unit: Nanos,

    /// The bits of a time in reports, from 16 to 64: with fewer than 64, the arrival of the report says which turn it is of
    #[arg(long, value_name = "BITS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(16..=64))]
    pub int_time_bits: u32,

    /// What switches count in a queue: packets, or cells of a number of bytes
    #[arg(long, value_name = "packets|BYTES", default_value = "1B", value_parser = occupancy)]
    pub int_occupancy: Occupancy,

    /// The UDP port that marks packets with INT headers (INT-MD)
    #[arg(long, value_name = "PORT")]
    pub int_mark_port: Option<u16>,

    /// The DSCP that marks packets with INT headers, or some bits of it: 0x17, or 0x10/0x10
    #[arg(long, value_name = "DSCP[/MASK]", value_parser = dscp)]
    pub int_mark_dscp: Option<DscpMark>,
}

impl SwitchReports {
    /// Whether reports are the source.
    pub fn is_given(&self) -> bool {
        self.int.is_some() || self.int_capture.is_some()
    }

    /// How the reports are read.
    pub fn options(&self) -> HopOptions {
        let mut options = HopOptions::default();
        options.marks = Marks { udp_port: self.int_mark_port, dscp: self.int_mark_dscp, ..Marks::default() };
        options.unit = self.int_unit;
        options.time_bits = self.int_time_bits;
        options.occupancy = self.int_occupancy;
        options.rate = self.int_rate;
        options.senders = self.int_from.iter().map(IpAddr::to_canonical).collect();
        options
    }
}

/// Parses an address and a port; a port alone is on loopback.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse()
        .map_err(|_| format!("'{text}' is not a port or ADDRESS:PORT, such as 6000, 192.0.2.7:6000 or [::]:6000"))
}

/// Parses the unit of times.
fn unit(text: &str) -> Result<Nanos, String> {
    let unit = text.parse::<Nanos>().map_err(|error| error.to_string())?;
    if (1..=1_000_000_000).contains(&unit.0) { Ok(unit) } else { Err("use 1ns to 1s".to_owned()) }
}

/// Parses what a switch counts.
fn occupancy(text: &str) -> Result<Occupancy, String> {
    if text == "packets" {
        return Ok(Occupancy::Packets);
    }
    let cell = text.parse::<ByteCount>().map_err(|error| error.to_string())?;
    if (1..=1 << 20).contains(&cell.0) {
        Ok(Occupancy::Bytes(cell))
    } else {
        Err("use packets, or 1B to 1MiB".to_owned())
    }
}

/// Parses a DSCP and the bits of it that count.
fn dscp(text: &str) -> Result<DscpMark, String> {
    let (value, mask) = text.split_once('/').unwrap_or((text, "0x3f"));
    let number = |text: &str| {
        let text = text.trim();
        let digits = text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u8::from_str_radix(digits, 16));
        digits.ok().filter(|number| *number < 64).ok_or_else(|| format!("'{text}' is not a number from 0 to 63 (0x3f)"))
    };
    Ok(DscpMark { value: number(value)?, mask: number(mask)? })
}
