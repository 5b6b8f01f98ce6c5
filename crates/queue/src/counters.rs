//! Counters by name.

/// Lists the counters of a `*Stats` struct, in the order of reports. The compiler reports a field that is missing here.
macro_rules! counters {
    ($Stats:ident { $($counter:ident),* $(,)? }) => {
        impl $Stats {
            /// Each counter with its name in reports.
            pub(crate) fn by_name(&self) -> Vec<(&'static str, u64)> {
                let Self { $($counter),* } = *self;
                vec![$((stringify!($counter), $counter)),*]
            }
        }
    };
}
pub(crate) use counters;
