//! The telemetry of each packet, as a table.

use crate::atomic_file::AtomicFile;
use crate::error::Error;
use crate::spool::Unwritten;
use queuescope_sim::{Hop, Journey, NodeId, Topology};
use queuescope_table::{HopRow, HopWriter, PacketRow};
use queuescope_wire::Granularity;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Where the telemetry goes. Once something cannot be written, the packets that came are counted: a table without its end cannot be read.
pub struct TelemetryTable {
    path: PathBuf,
    writer: Option<HopWriter<BufWriter<AtomicFile>>>,
    nodes: Vec<String>,
    links: Vec<String>,
    /// Packets that came, and why they are not in the table.
    packets: u64,
    lost: Option<Unwritten>,
}

impl TelemetryTable {
    /// Creates the file, so that what cannot be written fails before the work is done.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path, topology: &Topology) -> Result<Self, Error> {
        let writer = HopWriter::new(BufWriter::new(AtomicFile::create(path)?)).map_err(Error::table(path))?;
        let nodes = (0..topology.len() as u32).map(|node| topology.node_name(NodeId(node)).to_owned()).collect();
        let links = topology.links().map(|link| topology.link(link).name.clone()).collect();
        Ok(Self { path: path.to_owned(), writer: Some(writer), nodes, links, packets: 0, lost: None })
    }

    /// The way of a packet has come to an end.
    pub fn add(&mut self, journey: &Journey<'_>) {
        self.packets += 1;
        let Self { nodes, links, writer, .. } = self;
        let Some(writer) = writer else { return };
        let row = |hop: &Hop| HopRow {
            switch: &nodes[hop.node.0 as usize],
            link: &links[hop.link.index()],
            ingress: hop.ingress,
            egress: hop.egress,
            backlog_in: hop.backlog_in,
            backlog_out: hop.backlog_out,
            marked: hop.marked,
        };
        let packet = PacketRow {
            packet: journey.number + 1,
            flow: &Granularity::FiveTuple.name(&journey.packet.key()),
            size: journey.packet.bytes,
            ended: journey.at,
            dropped: journey.dropped.map(|(link, reason)| (links[link.index()].as_str(), reason.name())),
        };
        let written = writer.write(&packet, journey.hops.iter().map(row));
        if let Err(why) = written {
            self.lose(&why);
        }
    }

    fn lose(&mut self, why: &impl ToString) {
        self.lost = Some(Unwritten::new("telemetry", &self.path, why));
        self.writer = None;
    }

    /// Ends the file: what could not be written, if anything could not.
    pub fn finish(mut self) -> Option<Unwritten> {
        if let Some(writer) = self.writer.take()
            && let Err(why) = end(writer)
        {
            self.lose(&why);
        }
        self.lost.map(|lost| Unwritten { packets: self.packets, ..lost })
    }
}

fn end(writer: HopWriter<BufWriter<AtomicFile>>) -> Result<(), Box<dyn std::error::Error>> {
    Ok(AtomicFile::commit_written(writer.finish()?)?)
}
