//! Reading all of a folder.

use queuescope_archive::{Ask, FolderError, History, Sources};
use queuescope_log::Dnf;
use std::ops::ControlFlow;
use std::path::Path;

/// All records of a folder, whose positions follow each other from 0, and what was read for that.
pub fn read(path: &Path) -> Result<(Vec<u8>, Sources), FolderError> {
    let history = History::open(path)?;
    let needed: Vec<_> = history.schema().iter().map(|(id, _)| id).collect();
    let mut records = Vec::new();
    let mut next = 0;
    let ask = Ask { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &needed };
    let sources = history.each(ask, &mut |position, record| {
        assert_eq!(position, next, "a position is missing");
        next += 1;
        records.extend_from_slice(record);
        ControlFlow::Continue(())
    })?;
    Ok((records, sources))
}
