//! The telemetry of each packet, as a table.

use crate::outputs::{cannot_write, create};
use anyhow::{Context, Result};
use queuescope_sim::{Hop, Journey, NodeId, Topology};
use queuescope_table::{HopRow, HopWriter, PacketRow};
use queuescope_wire::Granularity;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where the telemetry goes. An error is kept, and ends the run at its next step.
pub struct Table {
    path: PathBuf,
    writer: HopWriter<BufWriter<File>>,
    nodes: Vec<String>,
    links: Vec<String>,
    failure: Option<anyhow::Error>,
}

impl Table {
    /// Creates the file, so that what cannot be written fails before the work is done.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path, topology: &Topology) -> Result<Self> {
        let writer = HopWriter::new(BufWriter::new(create(path)?)).with_context(|| cannot_write(path))?;
        let nodes = (0..topology.len() as u32).map(|node| topology.node_name(NodeId(node)).to_owned()).collect();
        let links = topology.links().map(|link| topology.link(link).name.clone()).collect();
        Ok(Self { path: path.to_owned(), writer, nodes, links, failure: None })
    }

    /// The way of a packet has come to an end.
    pub fn add(&mut self, journey: &Journey<'_>) {
        if self.failure.is_some() {
            return;
        }
        let Self { nodes, links, writer, .. } = self;
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
        self.failure = written.with_context(|| cannot_write(&self.path)).err();
    }

    /// What went wrong since the last call.
    ///
    /// # Errors
    /// That.
    pub fn check(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it could not be written.
    pub fn finish(mut self) -> Result<()> {
        self.check()?;
        let mut out = self.writer.finish().with_context(|| cannot_write(&self.path))?;
        out.flush().with_context(|| cannot_write(&self.path))
    }
}
