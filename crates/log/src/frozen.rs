//! A tail that stays where it is for a while.

use crate::log::Log;

/// A tail of a log that does not move while this lives (Confluo, section 4). Writers continue for up to a window of 131 072 records, and
/// then wait.
///
/// It borrows the log, or owns something that has one, such as a pointer to a recorder.
///
/// ```
/// use queuescope_log::{FrozenTail, Log, Memory, Options, Schema, departure};
///
/// let log = Log::new(Schema::departure().clone(), Options { records: 1_000, memory: Memory::Lazy })?;
/// log.append(&[0; departure::SIZE]);
/// let frozen = FrozenTail::of(&log);
/// log.append(&[0; departure::SIZE]); // written, and not visible yet
/// assert_eq!((frozen.position(), log.snapshot().len()), (1, 1));
/// drop(frozen);
/// assert_eq!(log.snapshot().len(), 2);
/// # Ok::<(), queuescope_log::MemoryError>(())
/// ```
#[derive(Debug)]
pub struct FrozenTail<L: AsRef<Log>> {
    holder: L,
    position: u64,
}

impl<L: AsRef<Log>> FrozenTail<L> {
    /// Freezes the tail of a log.
    ///
    /// # Panics
    /// Panics if 65 535 results exist.
    pub fn of(holder: L) -> Self {
        Self { position: holder.as_ref().freeze(), holder }
    }

    /// The position of the tail: the number of records that readers see.
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl<L: AsRef<Log>> Drop for FrozenTail<L> {
    fn drop(&mut self) {
        self.holder.as_ref().thaw();
    }
}
