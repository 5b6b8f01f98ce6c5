//! temp
use queuescope_wire::Nanos;
/// A flow that starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowStart {
    /// When.
    pub at: Nanos,
    /// From.
    pub from: usize,
    /// To.
    pub to: usize,
    /// Bytes.
    pub bytes: Option<u64>,
}
