//! Packets that were found, in a file.

use super::held::Question;
use super::load::Loaded;
use super::select::Selection;
use super::show::{Form, Found, write_rows};
use crate::atomic_file::AtomicFile;
use crate::error::Error;
use queuescope_log::{AttributeId, Schema, arrow};
use queuescope_table::BatchWriter;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A file of packets with some of their attributes, as its name ends. It takes its place when it is whole.
pub struct Export {
    attributes: Vec<AttributeId>,
    to: To,
}

enum To {
    Parquet(Box<Parquet>),
    Rows(PathBuf, Form, BufWriter<AtomicFile>),
}

impl Export {
    /// Begins the file, so that what cannot be written fails before the work is done: `.parquet`, `.csv` or `.jsonl`.
    ///
    /// # Errors
    /// If it cannot be written, or its name ends otherwise.
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

    /// Writes the packets that are meant. Beside CSV, `note` gets what was remarkable.
    ///
    /// # Errors
    /// If the file cannot be written.
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

/// A Parquet file of packets, which takes its place when it is whole.
pub struct Parquet {
    path: PathBuf,
    attributes: Vec<AttributeId>,
    limit: u64,
    writer: BatchWriter<BufWriter<AtomicFile>>,
}

/// Rows that are handed to it at once.
const ROWS: usize = 8192;

impl Parquet {
    /// Begins a file of some attributes, and of so many packets at most, so that what cannot be written fails before the work is done.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, attributes: &[AttributeId], limit: Option<u64>, schema: &Schema) -> Result<Self, Error> {
        let columns = arrow::columns(schema, attributes);
        let writer =
            BatchWriter::new(BufWriter::new(AtomicFile::create(path)?), columns).map_err(Error::table(path))?;
        let (path, attributes) = (path.to_owned(), attributes.to_owned());
        Ok(Self { path, attributes, limit: limit.unwrap_or(u64::MAX), writer })
    }

    /// Writes the packets that are meant.
    ///
    /// # Errors
    /// If the file cannot be written.
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
        Ok(Found { packets, has_more, seen })
    }
}
