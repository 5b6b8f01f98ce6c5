//! The messages of an Arrow IPC stream from outside, checked before anything is read or allocated by their lengths.
//!
//! Format: Arrow columnar format 1.5, "IPC Streaming Format". Of its features, streams here have no compression and no deltas of
//! dictionaries.

use arrow_ipc::{Message, MessageHeader, RecordBatch, root_as_message};

/// The word before the length of each message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes of that word and of the length.
const PREFIX: usize = 8;

/// What a stream may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpcLimits {
    /// The most bytes.
    pub bytes: usize,
    /// The most rows of all its batches.
    pub rows: usize,
}

/// Why a stream is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IpcError {
    /// It is too long.
    #[error("an answer of {bytes} bytes; at most {most} are read")]
    Bytes {
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// It has too many rows.
    #[error("an answer of more than {most} groups")]
    Rows {
        /// The limit.
        most: usize,
    },
    /// It is not a stream as it should be.
    #[error("a malformed answer: {0}")]
    Malformed(&'static str),
    /// Its columns are not those of the question.
    #[error("the answer to another question: column {place} should be `{wanted}`")]
    Column {
        /// The place of the first wrong column.
        place: usize,
        /// The name of the right one.
        wanted: String,
    },
}

/// A message of a stream.
pub(super) struct Frame<'a> {
    pub message: Message<'a>,
    pub body: &'a [u8],
    /// The whole message.
    pub bytes: &'a [u8],
}

/// The messages of a stream, which is complete: first a schema, then batches.
pub(super) fn frames(mut stream: &[u8], limits: IpcLimits) -> Result<Vec<Frame<'_>>, IpcError> {
    if stream.len() > limits.bytes {
        return Err(IpcError::Bytes { bytes: stream.len(), most: limits.bytes });
    }
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let mut rows = 0;
    loop {
        let bytes = stream;
        let (prefix, rest) = stream.split_at_checked(PREFIX).ok_or(IpcError::Malformed("its end is missing"))?;
        let (continuation, length) = prefix.split_at(CONTINUATION.len());
        if continuation != CONTINUATION {
            return Err(IpcError::Malformed("a message has no length"));
        }
        let length = length.try_into().map_or(0, u32::from_le_bytes) as usize;
        if length == 0 {
            let is_whole = rest.is_empty() && !frames.is_empty();
            return if is_whole { Ok(frames) } else { Err(IpcError::Malformed("it ends too early")) };
        }
        let (metadata, rest) = rest.split_at_checked(length).ok_or(IpcError::Malformed("a message is cut short"))?;
        let message = root_as_message(metadata).map_err(|_| IpcError::Malformed("a message cannot be read"))?;
        let length = usize::try_from(message.bodyLength()).ok();
        let (body, rest) = length
            .and_then(|length| rest.split_at_checked(length))
            .ok_or(IpcError::Malformed("the body of a message is cut short"))?;
        let is_schema = message.header_type() == MessageHeader::Schema;
        let batch = message.header_as_record_batch();
        let values = message.header_as_dictionary_batch().and_then(|values| values.data());
        if is_schema != frames.is_empty() || (!is_schema && batch.is_none() && values.is_none()) {
            return Err(IpcError::Malformed("a message of another kind"));
        }
        for batch in batch.iter().chain(&values) {
            let length = check(*batch, body.len())?;
            if length > limits.rows || (values.is_none() && rows + length > limits.rows) {
                return Err(IpcError::Rows { most: limits.rows });
            }
        }
        rows += batch.and_then(|batch| usize::try_from(batch.length()).ok()).unwrap_or(0);
        frames.push(Frame { message, body, bytes: &bytes[..bytes.len() - rest.len()] });
        stream = rest;
    }
}

/// Checks the lengths of a batch with a body of some bytes; returns its number of rows.
fn check(batch: RecordBatch<'_>, body: usize) -> Result<usize, IpcError> {
    if batch.compression().is_some() {
        return Err(IpcError::Malformed("it is compressed"));
    }
    let length = usize::try_from(batch.length()).map_err(|_| IpcError::Malformed("a negative number of rows"))?;
    let nodes = batch.nodes();
    if nodes
        .into_iter()
        .flatten()
        .any(|node| node.length() != batch.length() || !(0..=node.length()).contains(&node.null_count()))
    {
        return Err(IpcError::Malformed("columns of different lengths"));
    }
    for buffer in batch.buffers().into_iter().flatten() {
        range(buffer, body).ok_or(IpcError::Malformed("values outside of a message"))?;
    }
    Ok(length)
}

/// The place of a buffer in a body of some bytes, if it is in it.
fn range(buffer: &arrow_ipc::Buffer, body: usize) -> Option<std::ops::Range<usize>> {
    let (start, length) = (usize::try_from(buffer.offset()).ok()?, usize::try_from(buffer.length()).ok()?);
    let end = start.checked_add(length)?;
    (end <= body).then_some(start..end)
}

impl<'a> Frame<'a> {
    /// Checks the names of the columns of a schema.
    pub fn check_names<'n>(&self, names: impl ExactSizeIterator<Item = &'n str>) -> Result<(), IpcError> {
        let fields = self.message.header_as_schema().and_then(|schema| schema.fields());
        let count = fields.map_or(0, |fields| fields.len());
        let wanted = names.len();
        for (place, wanted) in names.enumerate() {
            let found = fields.filter(|fields| place < fields.len()).and_then(|fields| fields.get(place).name());
            if found != Some(wanted) {
                return Err(IpcError::Column { place, wanted: wanted.to_owned() });
            }
        }
        if count == wanted { Ok(()) } else { Err(IpcError::Malformed("further columns")) }
    }

    /// The number in the metadata of a schema under this name.
    pub fn number(&self, name: &str) -> Result<u64, IpcError> {
        let metadata = self.message.header_as_schema().and_then(|schema| schema.custom_metadata());
        let value = metadata.into_iter().flatten().find(|pair| pair.key() == Some(name)).and_then(|pair| pair.value());
        value.and_then(|value| value.parse().ok()).ok_or(IpcError::Malformed("a total is missing"))
    }

    /// The values of a batch whose columns have values of these widths in bytes, or of different lengths, without nulls; and the number of rows.
    pub fn columns(&self, widths: impl ExactSizeIterator<Item = Width>) -> Result<(usize, Vec<Values<'a>>), IpcError> {
        let wrong = IpcError::Malformed("a batch has other columns");
        let batch = self.message.header_as_record_batch().ok_or(wrong.clone())?;
        let rows = usize::try_from(batch.length()).map_err(|_| wrong.clone())?;
        let (nodes, buffers) = (batch.nodes().ok_or(wrong.clone())?, batch.buffers().ok_or(wrong.clone())?);
        let widths: Vec<_> = widths.collect();
        // Each column has a buffer of bits, which is empty without nulls, perhaps one of offsets, and one of values.
        let wanted: usize = widths.iter().map(|width| width.buffers()).sum();
        if nodes.len() != widths.len() || buffers.len() != wanted {
            return Err(wrong);
        }
        if nodes.iter().any(|node| node.null_count() != 0) {
            return Err(IpcError::Malformed("values are missing"));
        }
        let mut first = 0;
        let mut column = |width: &Width| {
            let buffer =
                |place: usize| range(buffers.get(first + place), self.body.len()).map(|range| &self.body[range]);
            let values = match width {
                Width::Bytes(width) => Values::Even(*width, buffer(1)?.get(..rows.checked_mul(*width)?)?),
                Width::Any => Values::Uneven(buffer(1)?, buffer(2)?),
            };
            first += width.buffers();
            Some(values)
        };
        let columns = widths.iter().map(&mut column).collect::<Option<_>>().ok_or(wrong)?;
        Ok((rows, columns))
    }
}

/// The length of each value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// This number of bytes: `FixedSizeBinary`.
    Bytes(usize),
    /// Each its own: `Binary`.
    Any,
}

impl Width {
    fn buffers(self) -> usize {
        match self {
            Self::Bytes(_) => 2,
            Self::Any => 3,
        }
    }
}

/// The values of a column.
pub(super) enum Values<'a> {
    /// Values of this number of bytes.
    Even(usize, &'a [u8]),
    /// Offsets of 4 bytes, one more than there are values, and the values.
    Uneven(&'a [u8], &'a [u8]),
}

impl<'a> Values<'a> {
    /// The value in a row. `None` if offsets are wrong.
    pub fn get(&self, row: usize) -> Option<&'a [u8]> {
        match *self {
            Self::Even(width, values) => values.get(row * width..)?.get(..width),
            Self::Uneven(offsets, values) => {
                let offset = |row: usize| {
                    let bytes = offsets.get(4 * row..)?.first_chunk()?;
                    usize::try_from(i32::from_le_bytes(*bytes)).ok()
                };
                values.get(offset(row)?..offset(row + 1)?)
            }
        }
    }
}
