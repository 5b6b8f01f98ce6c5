//! The source of random numbers: our own generator, or that of ns-3.
//!
//! ns-3 3.37 draws from MRG32k3a (L'Ecuyer, *Good parameters and implementations for combined multiple recursive random
//! number generators*, 1999), whose streams begin 2^127 numbers apart and whose substreams 2^76 (L'Ecuyer, Simard, Chen
//! and Kelton, *An object-oriented random-number package with many long streams and substreams*, 2002). With the same
//! numbers, a run can be compared with one of ns-3 packet by packet.

/// The source of random numbers.
///
/// ```
/// use queuescope_wire::Draws;
///
/// assert_eq!(Draws::default(), Draws::Own);
/// let as_ns3 = Draws::Ns3 { run: 1 };
/// assert_ne!(as_ns3, Draws::default());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Draws {
    /// Our own generator: each consumer of random numbers has a stream of its own, with its own seed.
    #[default]
    Own,
    /// That of ns-3 3.37 with its default seed: all consumers of one kind share a stream.
    Ns3 {
        /// ns-3's run number.
        run: u64,
    },
}

/// MRG32k3a: a substream of a stream.
///
/// ```
/// use queuescope_wire::Mrg32k3a;
///
/// let mut numbers = Mrg32k3a::new(0, 1);
/// let mean = (0..10_000).map(|_| numbers.unit()).sum::<f64>() / 10_000.0;
/// assert!((mean - 0.5).abs() < 0.02);
/// assert_eq!(Mrg32k3a::new(3, 1).unit(), Mrg32k3a::new(3, 1).unit());
/// ```
#[derive(Debug, Clone)]
pub struct Mrg32k3a {
    first: [u64; 3],
    second: [u64; 3],
}

impl Mrg32k3a {
    /// Starts at the beginning of `substream` of `stream`, from a state of ones.
    pub fn new(stream: u64, substream: u64) -> Self {
        let jump = |matrix: Matrix, modulus| {
            let from = advance([1; 3], power_of_two(matrix, 127, modulus), stream, modulus);
            advance(from, power_of_two(matrix, 76, modulus), substream, modulus)
        };
        Self {
            first: jump([[0, 1, 0], [0, 0, 1], [FIRST - 810_728, 1_403_580, 0]], FIRST),
            second: jump([[0, 1, 0], [0, 0, 1], [SECOND - 1_370_589, 0, 527_612]], SECOND),
        }
    }

    /// The next number, uniform between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        let first = dot([FIRST - 810_728, 1_403_580, 0], self.first, FIRST);
        self.first = [self.first[1], self.first[2], first];
        let second = dot([SECOND - 1_370_589, 0, 527_612], self.second, SECOND);
        self.second = [self.second[1], self.second[2], second];
        let difference = if first > second { first - second } else { FIRST + first - second };
        difference as f64 / (FIRST as f64 + 1.0)
    }
}

const FIRST: u64 = 4_294_967_087;
const SECOND: u64 = 4_294_944_443;

type Matrix = [[u64; 3]; 3];

fn dot(row: [u64; 3], column: [u64; 3], modulus: u64) -> u64 {
    let sum = row.iter().zip(&column).map(|(a, b)| u128::from(*a) * u128::from(*b)).sum::<u128>();
    (sum % u128::from(modulus)) as u64
}

fn square(matrix: Matrix, modulus: u64) -> Matrix {
    let column = |n: usize| [matrix[0][n], matrix[1][n], matrix[2][n]];
    matrix.map(|row| [0, 1, 2].map(|n| dot(row, column(n), modulus)))
}

/// `matrix^(2^power)`.
fn power_of_two(matrix: Matrix, power: u32, modulus: u64) -> Matrix {
    (0..power).fold(matrix, |matrix, _| square(matrix, modulus))
}

/// `matrix^times state`.
fn advance(mut state: [u64; 3], mut matrix: Matrix, mut times: u64, modulus: u64) -> [u64; 3] {
    while times > 0 {
        if times & 1 == 1 {
            state = matrix.map(|row| dot(row, state, modulus));
        }
        matrix = square(matrix, modulus);
        times >>= 1;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UniformRandomVariable::GetValue (0, 6)` of Debian's ns-3 3.37 with seed 1, runs 1 to 3, stream 4.
    #[test]
    fn numbers_are_ns3s() {
        let expected = [
            [0.910_531_531_877_480_3, 2.342_984_787_034_997, 3.732_890_412_779_806, 5.773_999_231_167_11],
            [0.454_135_021_301_937_5, 3.867_285_445_424_582, 0.785_837_194_755_239_6, 5.215_265_698_911_452],
            [2.871_820_574_938_012_5, 2.306_011_780_083_750_3, 5.146_602_485_909_433, 4.208_973_261_403_487],
        ];
        for (run, expected) in (1..).zip(expected) {
            let mut random = Mrg32k3a::new((1 << 63) + 4, run);
            for value in expected {
                assert!((6.0 * random.unit() - value).abs() < 1e-12);
            }
        }
    }
}
