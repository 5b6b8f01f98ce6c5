//! The filters of `--input`, `--victims` and `--where`, which choose packets by an expression.

use crate::error::ExpressionError;
use crate::notes::noted;
use crate::records::{Departures, Frames, Records, Unknown};
use queuescope_log::{Dnf, Filter, NoAggregates, Schema, Scope};
use queuescope_pcap::Record;
use queuescope_report::model::Skipped;
use queuescope_text::quoted;
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowKey, Nanos};

/// Chooses packets by an expression, and counts the others.
#[derive(Debug, Clone)]
pub struct PacketFilter<R> {
    pub(crate) filter: Filter,
    pub(crate) records: R,
    pub(crate) left_out: u64,
    flag: Flag,
    /// The expression.
    text: String,
}

/// The option that a filter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// `--where`: packets that match are recorded.
    Where,
    /// `--input`: packets that match enter the queue.
    Input,
    /// `--victims`: the waiting of packets that match is examined.
    Victims,
}

impl<R: Records> PacketFilter<R> {
    /// Parses the expression of `flag`, if there is one. Without an expression, no records need to be made.
    ///
    /// # Errors
    /// Fails if the expression is invalid, and points at the place in its text.
    pub fn from_flag(flag: Flag, text: Option<&str>) -> Result<Option<Self>, ExpressionError> {
        let Some(text) = text else { return Ok(None) };
        let expression = expression(R::schema(), text)?;
        R::askable(&expression)?;
        let filter = Filter::new(&expression, R::schema());
        Ok(Some(Self { filter, records: R::default(), left_out: 0, flag, text: text.to_owned() }))
    }

    /// The expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of packets that did not match.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The same as a note for the report.
    pub fn note(&self) -> Option<Skipped> {
        // Callers of the library set these filters by methods, not by flags.
        let (reason, what, fate) = match self.flag {
            Flag::Where => ("left_out_by_where", "filter of recorded packets", "left out"),
            Flag::Input => ("left_out_by_input", "filter of the input", "as if they were not in the input"),
            Flag::Victims => (
                "not_victims",
                "filter of victims",
                "they are part of the queue, but their own waiting is not examined",
            ),
        };
        let meaning = format!("packets that the {what}, '{}', does not match; {fate}", quoted(&self.text));
        noted(reason, self.left_out, &meaning)
    }
}

impl PacketFilter<Frames> {
    /// The capture time of a frame, as [`Frames::time`] gives it. Call this for each frame, in order.
    #[inline]
    pub fn time(&mut self, record: &Record<'_>) -> Option<Nanos> {
        self.records.time(record)
    }

    /// Whether a frame that was captured at `time` matches. The frame is passed as a copy, so that it can stay in registers
    /// where there is no filter.
    #[inline(never)]
    pub fn holds(&mut self, record: &Record<'_>, time: Option<Nanos>, frame: Frame) -> bool {
        let holds = self.filter.matches(self.records.fill(record, time, &frame), &NoAggregates);
        self.left_out += u64::from(!holds);
        holds
    }
}

impl PacketFilter<Departures> {
    /// Parses the expression of `flag`, if there is one, for packets that lack the `unknown` attributes.
    ///
    /// # Errors
    /// Fails if the expression is invalid, or uses an unknown attribute.
    pub fn where_unknown(flag: Flag, text: Option<&str>, unknown: Unknown) -> Result<Option<Self>, ExpressionError> {
        if let Some(text) = text {
            unknown.check(expression(Departures::schema(), text)?.attributes())?;
        }
        Self::from_flag(flag, text)
    }

    /// Parses the expression of `--victims`, if there is one, for packets that lack the `unknown` attributes.
    ///
    /// # Errors
    /// Fails as [`where_unknown`](Self::where_unknown) does.
    pub fn victims(text: Option<&str>, unknown: Unknown) -> Result<Option<Self>, ExpressionError> {
        Self::where_unknown(Flag::Victims, text, Unknown::OF_VICTIMS)?;
        Self::where_unknown(Flag::Victims, text, unknown)
    }

    /// Whether a departure of the flow `key` matches.
    pub fn holds(&mut self, departure: &Departure, key: &FlowKey) -> bool {
        let holds = self.holds_uncounted(departure, key);
        self.left_out += u64::from(!holds);
        holds
    }

    /// The same for an event that is not one more packet, such as a mark. It is not counted.
    pub fn holds_uncounted(&mut self, departure: &Departure, key: &FlowKey) -> bool {
        self.filter.matches(self.records.fill(departure, key), &NoAggregates)
    }
}

/// Parses an expression to its disjunctive normal form.
///
/// # Errors
/// Fails if the expression is invalid, and points at the place in its text.
pub fn expression(schema: &Schema, text: &str) -> Result<Dnf, ExpressionError> {
    let scope = Scope::new(schema);
    let expr = scope.parse(text)?;
    Ok(expr.dnf(&scope)?)
}
