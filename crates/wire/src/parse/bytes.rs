//! Reading at an offset, where there may be nothing to read.

/// `N` bytes from `at` on, if they were captured.
#[inline]
pub(crate) fn chunk<const N: usize>(data: &[u8], at: usize) -> Option<&[u8; N]> {
    data.get(at..)?.first_chunk()
}

/// A 16-bit number in network order.
#[inline]
pub(crate) fn be16(data: &[u8], at: usize) -> Option<u16> {
    chunk(data, at).map(|bytes| u16::from_be_bytes(*bytes))
}
