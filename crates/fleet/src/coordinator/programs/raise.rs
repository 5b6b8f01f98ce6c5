//! Alerts of control programs: they are stored first, and then the programs act.

use super::super::{AlertStoreError, Coordinator};
use super::held::HeldAlert;
use crate::act::Flow;
use crate::locked::lock;
use crate::program::Program;
use std::sync::Arc;

impl Coordinator {
    /// Stores alerts of a program, and acts on the flows that those are about which could be stored. Returns for each alert whether it was stored.
    pub(super) fn raise(
        &self,
        name: &str,
        program: &Arc<Program>,
        alerts: &[(usize, HeldAlert)],
    ) -> Vec<Result<(), Arc<AlertStoreError>>> {
        let stored = self.alerts().raise(alerts.iter().map(|(_, held)| held.alert.clone()).collect());
        for ((index, held), _) in alerts.iter().zip(&stored).filter(|(_, stored)| stored.is_ok()) {
            if program.acts().iter().any(|act| act.after == *index) {
                self.act_after(name, program, *index, held);
            }
        }
        stored
    }

    fn act_after(&self, name: &str, program: &Arc<Program>, index: usize, held: &HeldAlert) {
        // One that stands for many groups has none.
        let Some((question, keys)) = &held.group else { return };
        let asked = &program.asks()[*question].asked;
        let cause = format!("{}: {}", held.alert.trigger, held.alert.detail);
        // The program was checked; what hosts answered was not.
        let flow = match Flow::of_group(asked.keys(), asked.schema(), keys) {
            Ok(flow) => flow,
            Err(why) => return self.troubled(format!("there is no action after the alert {cause}: {why}")),
        };
        // As long as this is locked, the program cannot be removed: its actions end then.
        let programs = lock(&self.shared.programs);
        if programs.all.get(name).is_some_and(|known| Arc::ptr_eq(&known.program, program)) {
            self.act(name, program, index, &flow, &cause);
        }
    }
}
