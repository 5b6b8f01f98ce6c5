//! Notes of packets, and what goes with them: queues, receive windows, and packets that come again.

use super::expression::{literal, operand_text};
use super::{Architecture, Printer};
use crate::ir::builder::SwitchProgram;
use crate::ir::validate::has_note;
use crate::ir::variable::{Input, Name, Operand};

/// The slots of the note that a program has: their names and widths.
pub(super) fn slots(program: &SwitchProgram) -> Vec<(Name, u32)> {
    let slots = program.variables.iter().filter(|it| it.input.is_some_and(Input::is_note));
    slots.map(|it| (it.name.clone(), it.bits)).collect()
}

/// The port on which copies come back to the ingress of a Tofino.
pub(super) const FEEDBACK_PORT: u32 = 70;

impl Printer<'_> {
    /// Whether packets have a note.
    pub(super) fn has_note(&self) -> bool {
        has_note(self.program)
    }

    /// Whether the program reads a TCP header.
    pub(super) fn reads_tcp(&self) -> bool {
        Input::OF_TCP.iter().any(|input| self.reads(*input))
    }

    /// The fields of the note.
    pub(super) fn note_fields(&self, before: &str) -> String {
        slots(self.program).into_iter().map(|(name, bits)| format!("{before}bit<{bits}> {name};\n")).collect()
    }

    /// The queue of the packet.
    pub(super) fn enqueue(&mut self, queue: Operand) {
        let text = |bits: u32| match queue {
            Operand::Constant(value) => literal(value, bits),
            queue => {
                let text = operand_text(&self.names(), queue, 7);
                format!("(bit<{bits}>)({text})")
            }
        };
        let line = match self.architecture {
            _ if self.is_test => format!("hdr.test.to_queue = {};", text(7)),
            Architecture::V1model => format!("standard_metadata.priority = {};", text(3)),
            Architecture::Tna => format!("ig_tm_md.qid = {};", text(5)),
        };
        if self.architecture == Architecture::V1model && !self.is_test {
            self.line("// BMv2 has eight priorities: those of the lowest bits of the queue.");
        }
        self.line(&line);
    }

    /// The receive window, and the checksum. The deparser of a Tofino computes it.
    pub(super) fn set_window(&mut self, window: Operand) {
        let text = operand_text(&self.names(), window, Input::Window.bits());
        match self.architecture {
            Architecture::Tna => self.lines(&format!("hdr.tcp.window = {text};\nmeta.sets_window = 1;")),
            Architecture::V1model => {
                let [window, checksum] = if self.is_test {
                    ["hdr.test.window", "hdr.test.tcp_checksum"]
                } else {
                    ["hdr.tcp.window", "hdr.tcp.checksum"]
                };
                self.lines(&WINDOW.replace("WINDOW", window).replace("CHECKSUM", checksum).replace("VALUE", &text));
            }
        }
    }

    /// The packet comes again.
    pub(super) fn recirculate(&mut self) {
        match self.architecture {
            _ if self.is_test => self.line("hdr.test.recirculated = 1;"),
            Architecture::V1model => self.line("resubmit_preserving_field_list(8w0);"),
            Architecture::Tna => self.lines(&format!(
                "hdr.bridge.kind = 1;\nig_tm_md.ucast_egress_port = {FEEDBACK_PORT};\nig_tm_md.bypass_egress = 1;"
            )),
        }
    }
}

/// Writes a window. The checksum follows (RFC 1624, equation 3).
const WINDOW: &str = "\
{
// The checksum follows (RFC 1624).
bit<32> window_checksum = (bit<32>)(~CHECKSUM) + (bit<32>)(~WINDOW) + (bit<32>)(VALUE);
window_checksum = (window_checksum & 32w0xffff) + (window_checksum >> 16);
window_checksum = (window_checksum & 32w0xffff) + (window_checksum >> 16);
CHECKSUM = ~window_checksum[15:0];
WINDOW = VALUE;
}";
