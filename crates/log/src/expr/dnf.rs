//! The disjunctive normal form: a set of terms, of which any must hold; each is a set of predicates, all of which must hold.
//!
//! The paper evaluates filters in this form because each term then shows which index narrows it most (Khandelwal et
//! al., NSDI 2019, section 3.3). A predicate here is a whole set of ranges, so `dst_port in {80, 443}` is one term
//! and not two, and terms that differ only in one attribute's ranges are joined. It is not minimised
//! further.

use super::{AggregateId, Expr, Predicate, Scope, Term};
use crate::{AttributeId, Schema};

/// Terms, of which any must hold.
///
/// ```
/// use queuescope_log::{Schema, Scope};
///
/// let scope = Scope::new(Schema::departure());
/// let dnf = scope.parse("delay > 1ms and (dst_port == 80 or src_ip == 10.0.0.1)")?.dnf(&scope)?;
/// println!("{}", dnf.expr(Schema::departure()).text(&scope));
/// assert_eq!(dnf.terms().len(), 2, "one for each side of `or`");
/// assert!(scope.parse("delay > 1ms and delay < 1us")?.dnf(&scope)?.is_false());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dnf {
    terms: Vec<Term>,
}

/// Why an expression has no normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DnfError {
    /// It would have too many terms.
    #[error(
        "the expression has more than {0} terms when its `or`s are put outside; sets, as `in {{80, 443}}`, make fewer, \
         or split it into several expressions"
    )]
    TooManyTerms(usize),
    /// It takes too many steps to find.
    #[error(
        "the expression is too entangled: after {0} steps its terms are still not found; split it into several expressions"
    )]
    TooManySteps(usize),
}

impl Expr {
    /// Its normal form, within the scope's limits.
    ///
    /// # Errors
    /// Fails if it would be too large, or take too many steps.
    pub fn dnf(&self, scope: &Scope) -> Result<Dnf, DnfError> {
        let limits = scope.limits();
        let mut making = Making { schema: scope.schema(), most: limits.terms, steps: 0, most_steps: limits.steps };
        let terms = making.terms(self, false)?;
        Ok(Dnf { terms })
    }
}

impl Dnf {
    /// The form that is always true.
    pub fn all() -> Self {
        Self { terms: vec![Term::default()] }
    }

    /// The terms; empty if it is never true.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Whether it is always true.
    pub fn is_true(&self) -> bool {
        self.terms.iter().any(Term::is_true)
    }

    /// Whether it is never true.
    pub fn is_false(&self) -> bool {
        self.terms.is_empty()
    }

    /// All attributes that it tests, in order.
    pub fn attributes(&self) -> Vec<AttributeId> {
        let all = self.terms.iter().flat_map(Term::predicates);
        sorted(all.map(|predicate| predicate.attribute()))
    }

    /// All aggregates that it names, in order.
    pub fn aggregates(&self) -> Vec<AggregateId> {
        sorted(self.terms.iter().flat_map(Term::predicates).filter_map(|predicate| match predicate {
            Predicate::Aggregate(test, _) => Some(test.aggregate),
            _ => None,
        }))
    }

    /// The same as an expression, for people.
    pub fn expr(&self, schema: &Schema) -> Expr {
        Expr::any(self.terms.iter().map(|term| term.expr(schema)))
    }
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<_> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// A normal form under construction.
struct Making<'a> {
    schema: &'a Schema,
    most: usize,
    steps: usize,
    most_steps: usize,
}

impl Making<'_> {
    /// The terms of an expression or of its negation (De Morgan's laws).
    fn terms(&mut self, expr: &Expr, negated: bool) -> Result<Vec<Term>, DnfError> {
        match (expr, negated) {
            (Expr::Constant(constant), _) if *constant != negated => Ok(vec![Term::default()]),
            (Expr::Constant(_), _) => Ok(Vec::new()),
            (Expr::Test(test), _) => Ok(Term::from_test(test, negated, self.schema).into_iter().collect()),
            (Expr::Not(expr), _) => self.terms(expr, !negated),
            (Expr::All(each), false) | (Expr::Any(each), true) => self.product(each, negated),
            (Expr::All(each), true) | (Expr::Any(each), false) => self.union(each, negated),
        }
    }

    fn union(&mut self, each: &[Expr], negated: bool) -> Result<Vec<Term>, DnfError> {
        let mut found = Vec::new();
        for expr in each {
            for term in self.terms(expr, negated)? {
                self.insert(&mut found, term)?;
            }
        }
        Ok(found)
    }

    fn product(&mut self, each: &[Expr], negated: bool) -> Result<Vec<Term>, DnfError> {
        let mut found = vec![Term::default()];
        for expr in each {
            let others = self.terms(expr, negated)?;
            let mut joined = Vec::new();
            for term in &found {
                for other in &others {
                    self.step(term, other)?;
                    if let Some(term) = term.join(other, self.schema) {
                        self.insert(&mut joined, term)?;
                    }
                }
            }
            found = joined;
        }
        Ok(found)
    }

    /// Adds a term, unless another one implies it. Terms that it implies are removed, and a term that differs only in one attribute's ranges
    /// is joined with it.
    fn insert(&mut self, terms: &mut Vec<Term>, mut term: Term) -> Result<(), DnfError> {
        let mut index = 0;
        while let Some(other) = terms.get(index) {
            self.step(&term, other)?;
            if term.implies(other) {
                return Ok(());
            }
            if other.implies(&term) {
                terms.swap_remove(index);
            } else if let Some(merged) = term.merge(other, self.schema) {
                terms.swap_remove(index);
                // It is wider now, so terms that were skipped may imply it.
                (term, index) = (merged, 0);
            } else {
                index += 1;
            }
        }
        terms.push(term);
        if terms.len() > self.most { Err(DnfError::TooManyTerms(self.most)) } else { Ok(()) }
    }

    fn step(&mut self, a: &Term, b: &Term) -> Result<(), DnfError> {
        self.steps += 1 + (a.weight() + b.weight()) / 8;
        if self.steps > self.most_steps { Err(DnfError::TooManySteps(self.most_steps)) } else { Ok(()) }
    }
}
