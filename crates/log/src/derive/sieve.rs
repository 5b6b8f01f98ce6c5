//! A few terms, one after another: first the predicate that leaves the fewest records, then the others on what is left.

use super::matches::{Bits, WORDS, count, ones};
use crate::expr::{Dnf, Filter, MaskTest, NoAggregates, Predicate, Term};
use crate::schema::{Reader, Schema};

/// The most terms, each of which passes over the records: with more, a table for all of them is cheaper.
const TERMS: usize = 4;
/// Up to this many records of a chunk are tested one by one; with more, the next predicate is tested on all.
const FEW: u32 = 64;

/// Finds the matches in a chunk.
#[derive(Debug)]
pub(crate) struct Sieve {
    terms: Vec<Strand>,
}

/// One term.
#[derive(Debug)]
struct Strand {
    /// Predicates to test on all records, the most selective first.
    meshes: Vec<Mesh>,
    /// The whole term.
    term: Filter,
    /// Whether the term has more than these predicates.
    more: bool,
}

/// A predicate on a key of at most 64 bits.
#[derive(Debug)]
struct Mesh {
    reader: Reader,
    rule: Rule,
    /// The share of keys that it leaves.
    leaves: f64,
}

#[derive(Debug)]
enum Rule {
    /// From the first key on, this many further ones.
    Span(u64, u64),
    Mask(MaskTest),
}

impl Sieve {
    /// A sieve for `dnf`, if that is a few terms with a simple predicate each.
    pub fn new(dnf: &Dnf, schema: &Schema) -> Option<Self> {
        let few = (1..=TERMS).contains(&dnf.terms().len()) && dnf.aggregates().is_empty();
        let terms = few.then(|| dnf.terms().iter().map(|term| Strand::new(term, schema)).collect::<Option<_>>())??;
        Some(Self { terms })
    }

    /// The matches among the records of a chunk, or among the first of them.
    pub fn bits(&self, rows: &[u8], size: usize) -> Bits {
        let mut found = [0; WORDS];
        for strand in &self.terms {
            let bits = strand.bits(rows, size);
            found.iter_mut().zip(bits).for_each(|(found, bits)| *found |= bits);
        }
        found
    }
}

impl Strand {
    fn new(term: &Term, schema: &Schema) -> Option<Self> {
        let mut meshes: Vec<_> = term.predicates().filter_map(|predicate| Mesh::new(predicate, schema)).collect();
        meshes.sort_by(|a, b| a.leaves.total_cmp(&b.leaves));
        let more = term.predicates().count() > meshes.len();
        (!meshes.is_empty()).then(|| Self { meshes, term: Filter::of_term(term, schema), more })
    }

    fn bits(&self, rows: &[u8], size: usize) -> Bits {
        let mut bits = [0; WORDS];
        let mut left = self.meshes.iter();
        if let Some(first) = left.next() {
            first.test(rows, size, &mut bits);
        }
        let few = loop {
            if count(&bits) <= FEW {
                break left.len() > 0;
            }
            let Some(next) = left.next() else { break false };
            let mut other = [0; WORDS];
            next.test(rows, size, &mut other);
            bits.iter_mut().zip(other).for_each(|(bits, other)| *bits &= other);
        };
        if few || self.more {
            let all = bits;
            for place in ones(&all) {
                if !self.term.matches(&rows[place * size..(place + 1) * size], &NoAggregates) {
                    bits[place / 64] &= !(1 << (place % 64));
                }
            }
        }
        bits
    }
}

impl Mesh {
    fn new(predicate: Predicate<'_>, schema: &Schema) -> Option<Self> {
        let id = predicate.attribute();
        let keys = schema.attribute(id).place.bits;
        let (rule, leaves) = match predicate {
            _ if keys > 64 => return None,
            Predicate::Within(_, ranges) => match *ranges.as_slice() {
                [(low, high)] => {
                    (Rule::Span(low as u64, (high - low) as u64), (high - low + 1) as f64 * 0.5f64.powi(keys as i32))
                }
                _ => return None,
            },
            Predicate::Mask(test) => {
                let leaves = 0.5f64.powi(test.mask.count_ones() as i32);
                (Rule::Mask(test), if test.equal { leaves } else { 1.0 - leaves })
            }
            Predicate::Aggregate(..) => return None,
        };
        Some(Self { reader: schema.reader(id), rule, leaves })
    }

    fn test(&self, rows: &[u8], size: usize, bits: &mut Bits) {
        match &self.rule {
            Rule::Span(low, more) => self.reader.test(rows, size, bits, |key| key.wrapping_sub(*low) <= *more),
            Rule::Mask(test) => {
                let (mask, value) = (test.mask as u64, test.value as u64);
                if test.equal {
                    self.reader.test(rows, size, bits, |key| key & mask == value);
                } else {
                    self.reader.test(rows, size, bits, |key| key & mask != value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::CHUNK;
    use crate::expr::Scope;
    use proptest::prelude::*;

    /// Every kind of predicate, attributes at all sorts of places, terms with few and with many records.
    const EXPRESSIONS: [&str; 8] = [
        "a == 3",
        "a == 3 and b == 1",
        "a < 9 and c == -2",
        "a & 1 and b != 2 and c > -3",
        "flag == 3 and a & 6 == 2 or c == 0 and wide == 5",
        "a in {1, 5} and b == 0",
        "c >= 0 and (a == 1 or a == 4 or b == 3)",
        "not (a & 3 == 3) and flag < 2",
    ];

    fn schema() -> Schema {
        let attribute = |name: &str, kind: &str| format!("[[attribute]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
        let named = [("a", "u16"), ("flag", "u8"), ("b", "u8"), ("c", "i32"), ("wide", "u128")];
        let text: String = named.iter().map(|(name, kind)| attribute(name, kind)).collect();
        Schema::parse("s.toml", &format!("name = \"s\"\n{text}")).unwrap_or_else(|error| panic!("{error}"))
    }

    proptest! {
        #[test]
        fn a_sieve_leaves_what_matches(seeds in prop::collection::vec(any::<u64>(), 0..=CHUNK as usize)) {
            let schema = schema();
            let size = schema.record_size();
            let mut rows = vec![0; seeds.len() * size];
            for (seed, row) in seeds.iter().zip(rows.chunks_exact_mut(size)) {
                let mut left = *seed;
                for (id, attribute) in schema.iter() {
                    let reader = schema.reader(id);
                    let middle = if attribute.name == "c" { 1 << 31 } else { 4 };
                    reader.write(row, (middle - 4 + u128::from(left % 8)) & crate::schema::low_bits(attribute.place.bits));
                    left /= 8;
                }
            }
            let scope = Scope::new(&schema);
            for text in EXPRESSIONS {
                let expr = scope.parse(text).unwrap_or_else(|error| panic!("{error}"));
                let dnf = expr.dnf(&scope).unwrap_or_else(|error| panic!("{error}"));
                let Some(sieve) = Sieve::new(&dnf, &schema) else { continue };
                let filter = Filter::new(&dnf, &schema);
                let found = sieve.bits(&rows, size);
                for place in 0..CHUNK as usize {
                    let row = rows.get(place * size..(place + 1) * size);
                    let expected = row.is_some_and(|row| filter.matches(row, &NoAggregates));
                    prop_assert_eq!(found[place / 64] >> (place % 64) & 1 == 1, expected, "{} at {}", text, place);
                }
            }
        }
    }

    #[test]
    fn simple_expressions_have_a_sieve() {
        let schema = schema();
        let scope = Scope::new(&schema);
        let made = |text: &str| {
            let dnf = scope.parse(text).ok().and_then(|expr| expr.dnf(&scope).ok());
            Sieve::new(&dnf.unwrap_or_else(|| panic!("{text}")), &schema).is_some()
        };
        assert!(EXPRESSIONS.iter().all(|text| made(text)));
        assert!(!made("wide == 3") && !made("a in {1, 5}") && !made("false"));
        assert!(!made(
            "a == 1 and b == 1 or a == 2 and b == 3 or a == 5 and c == 1 or a == 8 and c == 2 or b == 9 and c == 7"
        ));
    }
}
