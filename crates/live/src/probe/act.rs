//! Control of acting on flows.

use super::acting::{Acted, Acting, Victim};
use super::{Never, Probe, of, program_of};
use crate::ProbeError;
use crate::capabilities::raised;
use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::programs::SchedClassifier;
use std::collections::BTreeMap;

impl Probe {
    /// Starts to act on flows that contribute according to `tau` and `alpha` of the probe's parameters, or changes the action. The
    /// kernel's state of flows is kept. Acting ends with the probe, even if the process is killed.
    ///
    /// # Errors
    /// Returns the errors of the kernel, and fails if the function is impossible in the kernel.
    pub fn act(&mut self, acting: &Acting) -> Result<(), ProbeError> {
        self.set_acting(acting.words()?)?;
        self.acts = true;
        self.configure()?;
        raised(|| self.put_before_queue("act"))
    }

    /// Exempts these flows from now on, instead of those of an earlier call.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn never(&mut self, flows: &Never) -> Result<(), ProbeError> {
        let mut never: Array<&mut MapData, [u64; Never::WORDS]> = of(self.bpf.map_mut("never"))?;
        never.set(0, flows.words(), 0).map_err(|why| ProbeError::refused("set the flows that are never acted on", &why))
    }

    /// Stops acting on all flows.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn rest(&mut self) -> Result<(), ProbeError> {
        self.set_acting([0; Acting::WORDS])?;
        self.acts = false;
        self.configure()?;
        raised(|| self.put_before_queue("stamp"))
    }

    /// The outcomes of packets before the queue so far.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn acted(&self) -> Result<Acted, ProbeError> {
        let map: PerCpuArray<&MapData, [u64; Acted::WORDS]> = of(self.bpf.map("acted"))?;
        let values = map.get(&0, 0).map_err(|why| ProbeError::refused("read the outcomes of packets", &why))?;
        Ok(Acted::from_processors(&values))
    }

    /// The flows that are acted on, or were recently; unordered, 4096 at most.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    pub fn victims(&self) -> Result<Vec<Victim>, ProbeError> {
        let map: HashMap<&MapData, u64, [u64; Victim::WORDS]> = of(self.bpf.map("victims"))?;
        // Entries that are removed during the iteration may be missing. If the kernel restarts at a removed key, entries may repeat; and
        // while new entries arrive, the iteration might not end. So it is limited, and duplicates are removed.
        let entries = map.iter().take(Victim::MOST).filter_map(Result::ok);
        let victims: BTreeMap<_, _> =
            entries.map(|(digest, words)| (digest, Victim::from_words(digest, &words))).collect();
        Ok(victims.into_values().collect())
    }

    fn set_acting(&mut self, words: [u64; Acting::WORDS]) -> Result<(), ProbeError> {
        let mut acting: Array<&mut MapData, [u64; Acting::WORDS]> = of(self.bpf.map_mut("acting"))?;
        acting.set(0, words, 0).map_err(|why| ProbeError::refused("set the action on flows", &why))
    }

    /// Replaces the program before the queue, unless it is this one already. No packet passes in between.
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
