//! Parts of a result: the groups of some of the records, which others can join.

use super::{Grouping, Groups, KeyIds, PartState};

/// A group of a part: its keys, in the order of the [`GroupKey`](super::GroupKey)s, and the state of each function.
pub type GroupPart = (Vec<u128>, Vec<PartState>);

/// A part that does not belong to a grouping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// It has another number of keys.
    #[error("it has {found} keys, and should have {wanted}")]
    Keys {
        /// Its number.
        found: usize,
        /// The number of the grouping.
        wanted: usize,
    },
    /// It has another number of states.
    #[error("it has {found} states, and should have {wanted}: one for each function")]
    States {
        /// Its number.
        found: usize,
        /// The number of the grouping.
        wanted: usize,
    },
    /// Records cannot have this key.
    #[error("no record has the key {key:#x} in place {place}")]
    Key {
        /// The key.
        key: u128,
        /// Its place among the keys.
        place: usize,
    },
    /// The function cannot have this state.
    #[error("the function in place {place} cannot have this state")]
    State {
        /// The place of the function.
        place: usize,
    },
}

impl Grouping<'_> {
    /// Adds a group of another grouping's [`parts`](super::Grouped::parts), with the same keys and functions: it may be of records elsewhere. The groups
    /// are then those of all these records. Joining is possible in any order, with the same result for functions
    /// [of any order](crate::Function::is_of_any_order).
    ///
    /// The part may come from outside: states that no records have are refused, or saturate.
    ///
    /// ```
    /// use queuescope_log::{Function, GroupKey, Grouping, Number, Schema, departure};
    ///
    /// let schema = Schema::departure();
    /// let port = schema.find("dst_port").ok_or("unknown attribute")?;
    /// let new = || Grouping::new(schema, &[GroupKey::Attribute(port)], &[Function::Count]);
    /// let mut all = new();
    /// for _host in 0..3 {
    ///     let mut one = new();
    ///     one.add(&[0; departure::SIZE]);
    ///     for (keys, states) in one.finish().parts() {
    ///         all.add_part(&keys, &states)?;
    ///     }
    /// }
    /// let groups: Vec<_> = all.finish().iter().collect();
    /// assert_eq!(groups, [(vec![0], vec![Number::Unsigned(3)])]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the part has other keys or functions, or values that no records have. Then nothing is added.
    pub fn add_part(&mut self, keys: &[u128], states: &[PartState]) -> Result<(), PartError> {
        self.check_part(keys, states)?;
        let is_wanted = self.after.as_ref().is_none_or(|after| keys > after.as_slice())
            && self.last.as_ref().is_none_or(|last| keys <= last.as_slice());
        if is_wanted {
            self.groups.add_part(keys, states);
            self.shrink();
        }
        Ok(())
    }

    /// Checks that a group can be [added](Self::add_part).
    ///
    /// # Errors
    /// As [`add_part`](Self::add_part).
    pub fn check_part(&self, keys: &[u128], states: &[PartState]) -> Result<(), PartError> {
        let groups = &self.groups;
        let (wanted, found) = (groups.keys.len(), keys.len());
        if wanted != found {
            return Err(PartError::Keys { found, wanted });
        }
        let (wanted, found) = (groups.sums.len(), states.len());
        if wanted != found {
            return Err(PartError::States { found, wanted });
        }
        let allowed = |ids: &KeyIds, key: u128| {
            key <= self.schema.attribute(ids.attribute()).highest_key() && ids.key.of(key) == key
        };
        let mut each = groups.keys.iter().zip(keys);
        if let Some(place) = each.position(|(ids, key)| !allowed(ids, *key)) {
            return Err(PartError::Key { key: keys[place], place });
        }
        let mut each = groups.sums.iter().zip(states);
        if let Some(place) = each.position(|(sums, state)| !sums.way().allows(state)) {
            return Err(PartError::State { place });
        }
        Ok(())
    }
}

impl Groups {
    /// Adds a group of other records.
    fn add_part(&mut self, keys: &[u128], states: &[PartState]) {
        let numbers: Vec<_> = self.keys.iter_mut().zip(keys).map(|(ids, key)| ids.number(*key)).collect();
        let number = self.number(&numbers);
        for (sums, state) in self.sums.iter_mut().zip(states) {
            sums.join(number, state, self.count);
        }
    }
}
