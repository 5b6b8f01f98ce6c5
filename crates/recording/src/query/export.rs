//! Writes the packets found to a file.

use super::held::Question;
use super::load::Loaded;
use super::rows::Form;
use super::select::Selection;
use super::show::{Found, write_rows};
use crate::atomic_file::AtomicFile;
use crate::error::Error;
use queuescope_log::{AttributeId, Schema, arrow};
use queuescope_table::BatchWriter;
use std::collections::BTreeSet;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A file of packets with some of their attributes; its extension selects the format. It appears only when it is complete.
pub struct Export {
    attributes: Vec<AttributeId>,
    to: To,
}

enum To {
    Parquet(Box<Parquet>),
    Rows(PathBuf, Form, BufWriter<AtomicFile>),
}

impl Export {
    /// Creates the file, so that a path that cannot be written fails before the work is done: `.parquet`, `.csv` or `.jsonl`.
    ///
    /// # Errors
    /// Fails if it cannot be written, or has another extension.
    pub fn create(path: &Path, attributes: &[AttributeId], schema: &Schema) -> Result<Self, Error> {
        let rows = |form| Ok(To::Rows(path.to_owned(), form, BufWriter::new(AtomicFile::create(path)?)));
        let to = match path.extension().and_then(|end| end.to_str()) {
            Some("parquet") => {
                Parquet::create(path, attributes, None, schema).map(|parquet| To::Parquet(Box::new(parquet)))
            }
            Some("csv") => rows(Form::Csv),
            Some("jsonl") => rows(Form::Json),
            _ => Err(Error::NoFormat(path.to_owned())),
        };
        Ok(Self { attributes: attributes.to_owned(), to: to? })
    }

    /// Writes the packets of `question`. With CSV, `note` receives the notes.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(self, loaded: &Loaded, question: Question<'_>, note: &mut dyn FnMut(&str)) -> Result<Found, Error> {
        let Self { attributes, to } = self;
        match to {
            To::Parquet(parquet) => parquet.write(loaded, question),
            To::Rows(path, form, mut out) => {
                let selection = Selection::Packets(attributes, None);
                let found =
                    write_rows(&selection, question, loaded, form, &mut out, note).map_err(Error::write(&path))?;
                AtomicFile::commit_written(out)?;
                Ok(found)
            }
        }
    }
}

/// A Parquet file of packets, which appears only when it is complete.
pub struct Parquet {
    path: PathBuf,
    attributes: Vec<AttributeId>,
    limit: u64,
    writer: BatchWriter<BufWriter<AtomicFile>>,
}

/// Rows that are written at once.
const ROWS: usize = 8192;

impl Parquet {
    /// Creates a file for some attributes and at most `limit` packets, so that a path that cannot be written fails before the work is done.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn create(path: &Path, attributes: &[AttributeId], limit: Option<u64>, schema: &Schema) -> Result<Self, Error> {
        let columns = arrow::columns(schema, attributes);
        let writer =
            BatchWriter::new(BufWriter::new(AtomicFile::create(path)?), columns).map_err(Error::table(path))?;
        let (path, attributes) = (path.to_owned(), attributes.to_owned());
        Ok(Self { path, attributes, limit: limit.unwrap_or(u64::MAX), writer })
    }

    /// Writes the packets of `question`.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(mut self, loaded: &Loaded, question: Question<'_>) -> Result<Found, Error> {
        let mut batches = arrow::Batches::new(loaded.held.schema(), &self.attributes, ROWS);
        let (mut packets, mut has_more) = (0, false);
        let writer = &mut self.writer;
        let seen = loaded.held.each(question, &mut |record| {
            has_more = packets == self.limit;
            if has_more {
                return Ok(ControlFlow::Break(()));
            }
            packets += 1;
            if let Some(batch) = batches.push(record).map_err(io::Error::other)? {
                writer.write(&batch).map_err(io::Error::other)?;
            }
            Ok(ControlFlow::Continue(()))
        });
        let seen = seen.map_err(Error::write(&self.path))?;
        if let Some(batch) = batches.rest().map_err(|why| Error::write(&self.path)(io::Error::other(why)))? {
            self.writer.write(&batch).map_err(Error::table(&self.path))?;
        }
        let out = self.writer.finish().map_err(Error::table(&self.path))?;
        AtomicFile::commit_written(out)?;
        Ok(Found { packets, has_more, estimates: BTreeSet::new(), seen })
    }
}
