//! The table of a simulated router: the receive and transmit time of every packet at each port.

use queuescope_meter::Departed;
use queuescope_wire::{Class, FlowId, Nanos, PacketId};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The packets of one port, in order of departure.
pub struct Port {
    /// The discipline, as in the file: `FIFO`, `SP` (strict priority, class 0 first), `Drr`, `WFQ`.
    pub discipline: String,
    pub departures: Vec<Departed>,
    pub odd: Odd,
}

/// Inconsistencies of the file's times, which are truncated to microseconds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Odd {
    /// Packets that started before their arrival; they are corrected to start at their arrival.
    pub started_early: usize,
    /// Packets that started a microsecond or more before the previous one was sent.
    pub overlapped: usize,
    /// Pairs whose order of arrival and departure is unknown because of the truncation.
    pub ambiguous: usize,
}

/// All links have 20 Mb/s: 400 ns a byte.
pub const BYTE_TIME: u64 = 400;
/// The size of the PPP header, which the file's sizes of IP packets do not include.
const PPP: u64 = 2;
const MICROSECOND: u64 = 1_000;

/// The ports of a file by number; none if no `xz` can read it.
pub fn ports(path: &Path) -> Option<BTreeMap<String, Port>> {
    let output = Command::new("xz").arg("-dc").arg(path).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next()?;
    let column = |name: &str| header.iter().position(|column| *column == name).expect("a column of the table");
    let names = ["FlowId", "PacketSize", "Queue", "PhyRxEndTime", "PhyTxEndTime", "LinkRate"].map(column);
    let (port, discipline) = (column("EgressPort"), column("Type"));
    let mut ports = BTreeMap::<String, Port>::new();
    for line in lines {
        let [flow, size, class, received, sent, rate] = names.map(|at| line[at].parse::<u64>().expect("a number"));
        assert_eq!(rate, 20, "the rate of all links");
        let port = ports.entry(line[port].to_owned()).or_insert_with(|| Port {
            discipline: line[discipline].to_owned(),
            departures: Vec::new(),
            odd: Odd::default(),
        });
        assert_eq!(port.discipline, line[discipline]);
        let (size, enqueued) = (size + PPP, received * MICROSECOND);
        let start = sent * MICROSECOND - size * BYTE_TIME;
        port.odd.started_early += usize::from(start < enqueued);
        port.departures.push(Departed {
            packet: PacketId(0),
            flow: FlowId(flow as u32),
            class: Class(class as u8),
            size: size as u32,
            enqueued: Nanos(enqueued),
            dequeued: Nanos(start.max(enqueued)),
        });
    }
    ports.values_mut().for_each(Port::put_in_order);
    Some(ports)
}

impl Port {
    fn put_in_order(&mut self) {
        self.departures.sort_by_key(|departed| (departed.enqueued, departed.dequeued));
        for (number, departed) in self.departures.iter_mut().enumerate() {
            departed.packet = PacketId(number as u64);
        }
        self.departures.sort_by_key(|departed| departed.dequeued);
        for pair in self.departures.windows(2) {
            let end = pair[0].dequeued.0 + u64::from(pair[0].size) * BYTE_TIME;
            self.odd.overlapped += usize::from(pair[1].dequeued.0 + MICROSECOND <= end);
        }
        let leave: Vec<_> = self.departures.iter().map(|departed| departed.dequeued.0).collect();
        for departed in &self.departures {
            let came = departed.enqueued.0;
            let first = leave.partition_point(|left| left + MICROSECOND <= came);
            let near = leave[first..].iter().take_while(|left| **left < came + MICROSECOND).count();
            // The packet itself does not count.
            self.odd.ambiguous += near - usize::from(departed.dequeued.0 < came + MICROSECOND);
        }
    }
}
