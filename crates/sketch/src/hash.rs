//! The hash functions of the rows.
//!
//! A key is already a digest. A folded product of the key and the seed gives 64 bits, 32 for each of the first two
//! rows. Every further pair of rows takes another product. A multiplication and a shift map 32 bits to a column, so
//! that the number of columns need not be a power of two.

/// The columns of a key, row by row.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    hash: u64,
    columns: u64,
    row: usize,
}

impl Columns {
    #[inline]
    pub(crate) fn new(key: u64, seed: u64, columns: usize) -> Self {
        Self { hash: fold(key ^ seed, 0x9e37_79b9_7f4a_7c15), columns: columns as u64, row: 0 }
    }

    /// The columns in the first two rows.
    #[inline]
    pub(crate) fn pair(&self) -> [usize; 2] {
        [self.reduce(self.hash & 0xffff_ffff), self.reduce(self.hash >> 32)]
    }

    #[inline]
    fn reduce(&self, bits: u64) -> usize {
        ((bits * self.columns) >> 32) as usize
    }
}

impl Iterator for Columns {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.row > 0 && self.row.is_multiple_of(2) {
            self.hash = fold(self.hash, 0xd1b5_4a32_d192_ed03);
        }
        let column = self.pair()[self.row % 2];
        self.row += 1;
        Some(column)
    }
}

/// The exclusive or of both halves of a 128-bit product.
#[inline]
fn fold(value: u64, secret: u64) -> u64 {
    let product = u128::from(value ^ 0x243f_6a88_85a3_08d3) * u128::from(secret);
    product as u64 ^ (product >> 64) as u64
}
