//! `--input`, `--victims`, and `--where` of what is recorded: which packets are meant, by an expression.

use crate::error::ExpressionError;
use crate::notes::noted;
use crate::records::{Departures, Frames, Records, Unknown};
use queuescope_log::{Dnf, Filter, NoAggregates, Schema, Scope};
use queuescope_pcap::Record;
use queuescope_report::model::Skipped;
use queuescope_text::quoted;
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowKey, Nanos};

/// Decides which packets are meant, and counts the others.
#[derive(Debug, Clone)]
pub struct PacketFilter<R> {
    pub(crate) filter: Filter,
    pub(crate) records: R,
    pub(crate) left_out: u64,
    flag: Flag,
    /// The expression.
    text: String,
}

/// What packets are chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// They are recorded.
    Where,
    /// They enter the queue.
    Input,
    /// Their waiting is examined.
    Victims,
}

impl<R: Records> PacketFilter<R> {
    /// What the expression of `flag` means, if there is one; without, no record has to be made.
    ///
    /// # Errors
    /// What is wrong with it, in its text.
    pub fn of(flag: Flag, text: Option<&str>) -> Result<Option<Self>, ExpressionError> {
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

    /// How many packets were not meant.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The same for the report.
    pub fn note(&self) -> Option<Skipped> {
        let (reason, flag, fate) = match self.flag {
            Flag::Where => ("left_out_by_where", "where", "left out"),
            Flag::Input => ("left_out_by_input", "input", "as if they were not in the input"),
            Flag::Victims => ("not_victims", "victims", "part of the queue, and their own waiting is not examined"),
        };
        let meaning = format!("packets of which --{flag} '{}' does not hold; {fate}", quoted(&self.text));
        noted(reason, self.left_out, &meaning)
    }
}

impl PacketFilter<Frames> {
    /// When a frame was captured, as [`Frames::time`] has it; to be asked of each.
    #[inline]
    pub fn time(&mut self, record: &Record<'_>) -> Option<Nanos> {
        self.records.time(record)
    }

    /// Whether a frame that was captured then is meant. It is taken as a copy, so that where nothing is chosen it can stay in
    /// registers.
    #[inline(never)]
    pub fn holds(&mut self, record: &Record<'_>, time: Option<Nanos>, frame: Frame) -> bool {
        let holds = self.filter.matches(self.records.fill(record, time, &frame), &NoAggregates);
        self.left_out += u64::from(!holds);
        holds
    }
}

impl PacketFilter<Departures> {
    /// What the expression of `flag` means, if there is one, where some attributes are not known.
    ///
    /// # Errors
    /// What is wrong with it, in its text; if it is about what is not known.
    pub fn where_unknown(flag: Flag, text: Option<&str>, unknown: Unknown) -> Result<Option<Self>, ExpressionError> {
        if let Some(text) = text {
            unknown.check(expression(Departures::schema(), text)?.attributes())?;
        }
        Self::of(flag, text)
    }

    /// Which packets are victims, if an expression says so, where some attributes are not known.
    ///
    /// # Errors
    /// As those of [`where_unknown`](Self::where_unknown).
    pub fn victims(text: Option<&str>, unknown: Unknown) -> Result<Option<Self>, ExpressionError> {
        Self::where_unknown(Flag::Victims, text, Unknown::OF_VICTIMS)?;
        Self::where_unknown(Flag::Victims, text, unknown)
    }

    /// Whether a departure of the flow `key` is meant.
    pub fn holds(&mut self, departure: &Departure, key: &FlowKey) -> bool {
        let holds = self.holds_uncounted(departure, key);
        self.left_out += u64::from(!holds);
        holds
    }

    /// The same of what is no packet more: a mark.
    pub fn holds_uncounted(&mut self, departure: &Departure, key: &FlowKey) -> bool {
        self.filter.matches(self.records.fill(departure, key), &NoAggregates)
    }
}

/// An expression in its normal form.
///
/// # Errors
/// What is wrong with it, in its text.
pub fn expression(schema: &Schema, text: &str) -> Result<Dnf, ExpressionError> {
    let scope = Scope::new(schema);
    let expr = scope.parse(text)?;
    Ok(expr.dnf(&scope)?)
}
