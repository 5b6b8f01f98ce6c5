//! The aggregates that an expression names.

use super::{AggregateId, Expr, Test};

impl Expr {
    /// Passes each aggregate that it names to `visit`, once for each occurrence.
    pub(crate) fn for_each_aggregate(&self, visit: &mut impl FnMut(AggregateId)) {
        match self {
            Self::Test(Test::Aggregate(test, _)) => visit(test.aggregate),
            Self::Constant(_) | Self::Test(_) => {}
            Self::Not(expr) => expr.for_each_aggregate(visit),
            Self::All(each) | Self::Any(each) => each.iter().for_each(|expr| expr.for_each_aggregate(visit)),
        }
    }

    /// The same expression with other ids for its aggregates.
    #[must_use]
    pub(crate) fn with_aggregates(mut self, id_of: &impl Fn(AggregateId) -> AggregateId) -> Self {
        self.rename(id_of);
        self
    }

    fn rename(&mut self, id_of: &impl Fn(AggregateId) -> AggregateId) {
        match self {
            Self::Test(Test::Aggregate(test, _)) => test.aggregate = id_of(test.aggregate),
            Self::Constant(_) | Self::Test(_) => {}
            Self::Not(expr) => expr.rename(id_of),
            Self::All(each) | Self::Any(each) => each.iter_mut().for_each(|expr| expr.rename(id_of)),
        }
    }
}
