//! Acting on flows, as this side of the kernel has it.

use super::acting::{Acted, Acting, Victim};
use super::{Never, Probe, of, program_of};
use crate::ProbeError;
use crate::capabilities::raised;
use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::programs::SchedClassifier;
use std::collections::BTreeMap;

impl Probe {
    /// Acts on flows that contribute (`tau` and `alpha` of its parameters say which do), or does so otherwise from now on; what
    /// the kernel knows of flows stays. It ends with the probe, also if the process is killed.
    ///
    /// # Errors
    /// Those of the kernel; and if its function is none that the kernel can have.
    pub fn act(&mut self, acting: &Acting) -> Result<(), ProbeError> {
        self.ask(acting.words()?)?;
        raised(|| self.put_before_queue("act"))
    }

    /// Never acts on these flows, from now on, in place of those that were given before.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn never(&mut self, flows: &Never) -> Result<(), ProbeError> {
        let mut never: Array<&mut MapData, [u64; Never::WORDS]> = of(self.bpf.map_mut("never"))?;
        never.set(0, flows.words(), 0).map_err(|why| ProbeError::refused("say which flows are never acted on", &why))
    }

    /// Acts on no flow any longer.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn rest(&mut self) -> Result<(), ProbeError> {
        self.ask([0; Acting::WORDS])?;
        raised(|| self.put_before_queue("stamp"))
    }

    /// What became of packets before the queue so far.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn acted(&self) -> Result<Acted, ProbeError> {
        let map: PerCpuArray<&MapData, [u64; Acted::WORDS]> = of(self.bpf.map("acted"))?;
        let values = map.get(&0, 0).map_err(|why| ProbeError::refused("read what became of packets", &why))?;
        Ok(Acted::of(&values))
    }

    /// The flows that are acted on, or were not long ago, in no order; 4096 at most.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn victims(&self) -> Result<Vec<Victim>, ProbeError> {
        let map: HashMap<&MapData, u64, [u64; Victim::WORDS]> = of(self.bpf.map("victims"))?;
        // What goes while it is read is not there. The kernel begins again where the last key has gone, so some may come twice, and
        // as long as new ones come there is no end.
        let found = map.iter().take(Victim::MOST).filter_map(Result::ok);
        let victims: BTreeMap<_, _> = found.map(|(digest, words)| (digest, Victim::of(digest, &words))).collect();
        Ok(victims.into_values().collect())
    }

    fn ask(&mut self, words: [u64; Acting::WORDS]) -> Result<(), ProbeError> {
        let mut acting: Array<&mut MapData, [u64; Acting::WORDS]> = of(self.bpf.map_mut("acting"))?;
        acting.set(0, words, 0).map_err(|why| ProbeError::refused("say how to act on flows", &why))
    }

    /// This program takes the place of the one before the queue, if it is another; no packet passes between them.
    fn put_before_queue(&mut self, name: &'static str) -> Result<(), ProbeError> {
        let program: &mut SchedClassifier = program_of(&mut self.bpf, name)?;
        if program.fd().is_err() {
            self.check_classifier(name, &|| false)?;
        }
        let Some((before, link)) = self.before.take_if(|(before, _)| *before != name) else { return Ok(()) };
        let replaced: &mut SchedClassifier = program_of(&mut self.bpf, before)?;
        let link =
            replaced.take_link(link).map_err(|why| ProbeError::refused("find the program before the queue", &why))?;
        let program: &mut SchedClassifier = program_of(&mut self.bpf, name)?;
        let link = program
            .attach_to_link(link)
            .map_err(|why| ProbeError::refused("change the program before the queue", &why))?;
        self.before = Some((name, link));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
