//! Headers of journal files and of their frames.

/// Bytes of a file's header.
pub(crate) const FILE_HEADER: usize = 40;
/// Bytes of a frame's header.
pub(crate) const FRAME_HEADER: usize = 32;

const FILE_MAGIC: [u8; 8] = *b"QSJOURN2";
/// The first bytes of every frame.
pub(crate) const FRAME_MAGIC: [u8; 4] = *b"QSFR";

/// The header of a file of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// The position of its first record.
    pub first: u64,
    /// The number of records lost before it, because the disk could not keep up.
    pub lost: u64,
    /// Size of a record in bytes.
    pub record_size: u32,
    /// Checksum of the schema's text.
    pub schema: u32,
}

/// The header of records that were written at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// The number of records; 0: the file was closed here.
    pub records: u32,
    /// The position of the first record.
    pub position: u64,
    /// Bytes of the file that were certainly on the disk when this header was written.
    pub synced: u64,
    /// The checksum of the records.
    pub checksum: u32,
}

impl FileHeader {
    pub fn write(&self) -> [u8; FILE_HEADER] {
        let mut bytes = [0; FILE_HEADER];
        bytes[..8].copy_from_slice(&FILE_MAGIC);
        bytes[8..16].copy_from_slice(&self.first.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.lost.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.record_size.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.schema.to_le_bytes());
        seal(&mut bytes[..36]);
        bytes
    }

    /// Parses a header; `None` if the bytes are not a valid one.
    pub fn read(bytes: &[u8; FILE_HEADER]) -> Option<Self> {
        let whole = bytes[..8] == FILE_MAGIC && is_sealed(&bytes[..36]) && bytes[36..] == [0; 4];
        whole.then(|| Self {
            first: u64_at(bytes, 8),
            lost: u64_at(bytes, 16),
            record_size: u32_at(bytes, 24),
            schema: u32_at(bytes, 28),
        })
    }
}

impl FrameHeader {
    /// The header of these records.
    pub fn new(position: u64, records: u32, synced: u64, bytes: &[u8]) -> Self {
        Self { records, position, synced, checksum: crc32fast::hash(bytes) }
    }

    pub fn write(&self) -> [u8; FRAME_HEADER] {
        let mut bytes = [0; FRAME_HEADER];
        bytes[..4].copy_from_slice(&FRAME_MAGIC);
        bytes[4..8].copy_from_slice(&self.records.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.position.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.synced.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.checksum.to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    /// Parses a header; `None` if the bytes are not a valid one.
    pub fn read(bytes: &[u8; FRAME_HEADER]) -> Option<Self> {
        (bytes[..4] == FRAME_MAGIC && is_sealed(bytes)).then(|| Self {
            records: u32_at(bytes, 4),
            position: u64_at(bytes, 8),
            synced: u64_at(bytes, 16),
            checksum: u32_at(bytes, 24),
        })
    }
}

/// Writes a checksum of the bytes before it into the last four bytes.
fn seal(bytes: &mut [u8]) {
    let end = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
}

fn is_sealed(bytes: &[u8]) -> bool {
    let end = bytes.len() - 4;
    crc32fast::hash(&bytes[..end]) == u32_at(bytes, end)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().copied().map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().copied().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_a_flipped_bit_is_rejected() {
        let file = FileHeader { first: 7 << 40, lost: 5 << 33, record_size: 185, schema: 0xdead_beef };
        let frame = FrameHeader::new(3 << 33, 2, 5 << 35, b"some records");
        assert_eq!((FileHeader::read(&file.write()), FrameHeader::read(&frame.write())), (Some(file), Some(frame)));
        for bit in 0..FILE_HEADER * 8 {
            let mut bytes = file.write();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::read(&bytes), None, "{bit}");
        }
        for bit in 0..FRAME_HEADER * 8 {
            let mut bytes = frame.write();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::read(&bytes), None, "{bit}");
        }
    }
}
