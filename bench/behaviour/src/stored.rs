//! Files of rounds: of each flow whether it has rounds, its round-trip time, counts of ECN, the first round, and the rows.

use crate::cells::Cell;
use anyhow::{Result, bail};
use queuescope_meter::{FlowRounds, Round};
use queuescope_wire::Nanos;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The version of what the meter records. With another one, all cells run again.
const VERSION: u32 = 1;

/// The file of a cell.
pub fn path(folder: &Path, cell: &Cell) -> PathBuf {
    let key = Sha256::digest(format!("{VERSION}\n{}", cell.scenario));
    let name: String = key.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    folder.join(name).with_extension("rounds")
}

/// The bytes of a file.
pub fn write(flows: &[Option<FlowRounds>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for flow in flows {
        let count = flow.as_ref().map_or(0, |flow| flow.rounds().len() as u64);
        let rtt = flow.as_ref().and_then(FlowRounds::rtt).map_or(0, |rtt| rtt.0);
        let first = flow.as_ref().map_or(0, FlowRounds::first);
        let [packets, capable, l4s] = flow.as_ref().map_or([0; 3], FlowRounds::ecn);
        for word in [count, rtt, first, packets, capable, l4s] {
            bytes.extend(word.to_le_bytes());
        }
        for round in flow.iter().flat_map(FlowRounds::rounds) {
            for word in [
                round.packets,
                round.bytes,
                round.waited.to_bits(),
                round.least_sojourn,
                round.most_sojourn,
                round.total,
            ] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(round.drops.to_le_bytes());
            bytes.extend(round.marks.to_le_bytes());
        }
    }
    bytes
}

/// Reads the bytes of a file: the rounds of each flow; `None` for a flow that was never heavy.
pub fn read(mut bytes: &[u8]) -> Result<Vec<Option<FlowRounds>>> {
    let mut flows = Vec::new();
    while !bytes.is_empty() {
        let mut words = [0; 6];
        for word in &mut words {
            *word = u64::from_le_bytes(take(&mut bytes)?);
        }
        let [count, rtt, first, packets, capable, l4s] = words;
        let mut rounds = Vec::new();
        for _ in 0..count {
            let mut word = || take(&mut bytes).map(u32::from_le_bytes);
            rounds.push(Round {
                packets: word()?,
                bytes: word()?,
                waited: f32::from_bits(word()?),
                least_sojourn: word()?,
                most_sojourn: word()?,
                total: word()?,
                drops: u16::from_le_bytes(take(&mut bytes)?),
                marks: u16::from_le_bytes(take(&mut bytes)?),
            });
        }
        let rtt = (rtt > 0).then_some(Nanos(rtt));
        flows.push((count > 0).then(|| FlowRounds::from_rounds(rtt, first, &rounds, [packets, capable, l4s])));
    }
    Ok(flows)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
    let Some((first, rest)) = bytes.split_first_chunk() else { bail!("the file ends early") };
    *bytes = rest;
    Ok(*first)
}
