//! Draws a view with the terminal's own colours, and only for alarms, so that it is readable on dark and light backgrounds.

use super::flows::FlowRow;
use super::history::{Moment, SECOND, rate};
use super::{BurstRow, Mode, View, ViewSnapshot};
use queuescope_live::Counters;
use queuescope_report::format;
use queuescope_report::model::Owner;
use queuescope_wire::Nanos;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline, SparklineBar};
use textwrap::core::display_width;

/// From this width on, bursts are beside the flows.
const WIDE: u16 = 140;
/// The columns that identify a flow: its source address and port.
const SENDER: usize = 16;
/// Below this width, a row cannot show both a flow and its owner.
const NARROW: usize = 36;
/// The columns for the scale of a chart.
const SCALE: u16 = 10;

impl View {
    /// Draws the view as of `now`, or as it was frozen.
    pub fn draw(&self, frame: &mut Frame<'_>, now: Nanos) {
        match &self.frozen {
            Some(shot) => self.draw_shot(shot, frame),
            None => self.draw_shot(&self.shot(now), frame),
        }
    }

    fn draw_shot(&self, shot: &ViewSnapshot, frame: &mut Frame<'_>) {
        let area = frame.area();
        let chart = 4 + area.height.saturating_sub(24) / 6;
        let is_wide = area.width >= WIDE;
        let bursts = if is_wide { 0 } else { 5 + area.height.saturating_sub(24) / 3 };
        let lines =
            3 + u16::from(shot.acting.is_some()) + u16::from(shot.unwritten.is_some()) + shot.p4air.len() as u16;
        let rows = [lines, chart, chart].map(Constraint::Length);
        let rows = rows.into_iter().chain([Constraint::Min(2), Constraint::Length(bursts), Constraint::Length(1)]);
        let [head, delay, depth, flows, bursts, keys] = Layout::vertical(rows).areas(area);
        frame.render_widget(Paragraph::new(self.head(shot, usize::from(area.width))), head);
        let tau = self.tau.0;
        let delays = |moment: &Moment| (moment.delay_max, moment.delay_max >= tau);
        self.chart("delay", "longest", shot, delays, format::duration, frame, delay);
        let depths = |moment: &Moment| (moment.depth_bytes, moment.delay_max >= tau);
        self.chart("depth", "most", shot, depths, format::bytes, frame, depth);
        let (flows, bursts) = if is_wide {
            let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2);
            let [left, right] = halves.areas(flows);
            (left, right)
        } else {
            (flows, bursts)
        };
        frame.render_widget(Paragraph::new(self.flow_lines(shot, flows)), flows);
        frame.render_widget(Paragraph::new(self.burst_lines(shot, bursts)), bursts);
        frame.render_widget(Paragraph::new(self.key_line()), keys);
    }

    /// The interface, the last second, and the totals since the start.
    fn head(&self, shot: &ViewSnapshot, width: usize) -> Vec<Line<'static>> {
        let seconds = shot.since.0 / 1_000_000_000;
        let title =
            format!("{}   {}:{:02} min   congested from {} on", self.interface, seconds / 60, seconds % 60, self.tau);
        let mut title = vec![Span::styled(title, bold())];
        if self.frozen.is_some() {
            title.push(Span::raw("   "));
            title.push(Span::styled(" frozen ", bold().reversed()));
        }
        let last = &shot.moments[shot.moments.len().saturating_sub(SECOND as usize)..];
        let (slices, last) = (last.len() as u64, Moment::all(last));
        let mean = last.delay_sum.checked_div(last.packets).unwrap_or(0);
        let is_congested = last.delay_max >= self.tau.0;
        let delay = format!("delay {}, longest {}", format::duration(mean), format::duration(last.delay_max));
        let now = vec![
            Span::raw(format!(
                "last second  {:>10}  {:>9} packets  ",
                format::rate(rate(last.bytes, slices)),
                format::count(last.packets)
            )),
            if is_congested { self.wrong(delay) } else { Span::raw(delay) },
        ];
        let counters = &shot.counters;
        // Packets in the queue count as unseen until the end, so this number is not shown.
        let mut so_far = vec![Span::raw(format!(
            "so far       {:>10}  {:>9} packets",
            format::bytes(counters.bytes),
            format::count(counters.packets)
        ))];
        let counts = [
            (counters.dropped, "dropped", true),
            (shot.lost, "lost on the link", false),
            (counters.marked, "marked", false),
            (counters.unseen(), "unseen", false),
            (counters.untold, "not handed over", true),
        ];
        // These are rare, and there is little room.
        let is_rare = |what: &str| ["not handed over", "lost on the link"].contains(&what);
        for (count, what, is_wrong) in counts.into_iter().filter(|(count, what, _)| *count > 0 || !is_rare(what)) {
            let text = format!("{} {what}", format::count(count));
            so_far.push(Span::raw("  "));
            so_far.push(if is_wrong && count > 0 { self.wrong(text) } else { Span::raw(text) });
        }
        if width >= usize::from(WIDE) {
            so_far.push(Span::raw(format!(
                "  {} congested  {} without a time  {} not IP",
                format::count(counters.congested),
                format::count(counters.unstamped),
                format::count(counters.other)
            )));
            let reasons = Counters::REASONS.into_iter().zip(counters.drops).filter(|(_, count)| *count > 0);
            let reasons: Vec<_> = reasons.map(|(reason, count)| format!("{} {reason}", format::count(count))).collect();
            if !reasons.is_empty() {
                so_far.push(Span::raw(format!("  drops by: {}", reasons.join(", "))));
            }
        }
        let acting = shot.acting.as_ref().map(|acting| {
            let (mode, words) = acting.words();
            Line::from(vec![
                Span::styled(format!("{mode:<13}"), bold()),
                Span::raw(cut(&words, width.saturating_sub(13))),
            ])
        });
        let unwritten = shot.unwritten.as_ref().map(|what| {
            Line::from(vec![
                self.wrong(format!("{:<13}", "not written")),
                Span::raw(cut(what, width.saturating_sub(13))),
            ])
        });
        let p4air = shot.p4air.iter().map(|(heading, text)| {
            Line::from(vec![
                Span::styled(format!("{heading:<13}"), bold()),
                Span::raw(cut(text, width.saturating_sub(13))),
            ])
        });
        let lines = [title.into(), now.into(), so_far.into()].into_iter().chain(acting);
        lines.chain(p4air).chain(unwritten).collect()
    }

    /// One bar per slice; the newest is on the right.
    #[expect(clippy::too_many_arguments, reason = "two charts differ in all of it")]
    fn chart(
        &self,
        name: &str,
        most: &str,
        shot: &ViewSnapshot,
        value: impl Fn(&Moment) -> (u64, bool),
        write: fn(u64) -> String,
        frame: &mut Frame<'_>,
        area: Rect,
    ) {
        let [heading, below] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        let [scale, bars] = Layout::horizontal([Constraint::Length(SCALE), Constraint::Fill(1)]).areas(below);
        let width = usize::from(bars.width);
        let seen = &shot.moments[shot.moments.len().saturating_sub(width)..];
        let values: Vec<_> = seen.iter().map(value).collect();
        let top = values.iter().map(|value| value.0).max().unwrap_or(0);
        let seconds = (width as u64 * 67) as f64 / 1000.0;
        let meaning = format!("  {most} in each 67 ms of the last {seconds:.1} s");
        frame.render_widget(Line::from(vec![Span::styled(name.to_owned(), bold()), Span::raw(meaning)]), heading);
        let mut labels = vec![Line::raw(format!("{:>8}", write(top)))];
        labels.resize(usize::from(below.height).saturating_sub(1).max(1), Line::default());
        labels.push(Line::raw(format!("{:>8}", "0")));
        frame.render_widget(Paragraph::new(labels), scale);
        let missing = std::iter::repeat_n(SparklineBar::from(0), width.saturating_sub(values.len()));
        let bar =
            |(value, is_congested): (u64, bool)| SparklineBar::from(value).style(is_congested.then(|| self.alarming()));
        let data: Vec<_> = missing.chain(values.into_iter().map(bar)).collect();
        frame.render_widget(Sparkline::default().data(data).max(top.max(1)), bars);
    }

    fn flow_lines(&self, shot: &ViewSnapshot, area: Rect) -> Vec<Line<'static>> {
        let is_acting = shot.acting.is_some();
        let name = usize::from(area.width).saturating_sub(if is_acting { 48 } else { 41 });
        let heading = cut("flows that waited in the last second", name);
        let mut heading = format!("{heading:name$} {:>7} {:>11} {:>9} {:>10}", "share", "rate", "trend", "longest");
        if is_acting {
            heading += " chosen";
        }
        let rows = self.chosen(&shot.flows);
        let unlisted = shot.flows.iter().filter(|row| !row.is_listed);
        let (unlisted, bytes) = unlisted.fold((0, 0), |(flows, bytes), row| (flows + 1, bytes + row.bytes));
        let room = usize::from(area.height).saturating_sub(if unlisted > 0 { 2 } else { 1 });
        // The last line counts the flows that do not fit.
        let shown = if rows.len() > room { room.saturating_sub(1) } else { rows.len() };
        let mut lines = vec![Line::styled(heading, bold())];
        lines.extend(rows.iter().take(shown).map(|row| self.flow_line(row, shot.bytes_last_second, name)));
        if rows.len() > shown {
            lines.push(Line::raw(format!("{} more", format::count((rows.len() - shown) as u64))));
        } else if rows.is_empty() {
            let nothing = match unlisted {
                _ if shot.flows.is_empty() => "none",
                0 => "no flow matches the filter",
                _ if self.filter.is_empty() => "no flow that --show lists",
                _ => "no flow that --show lists and that matches the filter",
            };
            lines.push(Line::raw(nothing));
        }
        if unlisted > 0 {
            let share = if shot.bytes_last_second == 0 { 0.0 } else { bytes as f64 / shot.bytes_last_second as f64 };
            let not_shown = format!("{} not shown (--show)", format::count(unlisted));
            lines.push(Line::raw(format!("{:name$} {:>7}", cut(&not_shown, name), format::percent(share))));
        }
        lines
    }

    fn flow_line(&self, row: &FlowRow, total: u64, width: usize) -> Line<'static> {
        let share = if total == 0 { 0.0 } else { row.bytes as f64 / total as f64 };
        let bits = format::rate(rate(row.bytes, SECOND));
        let start = format!(
            "{} {:>7} {bits:>11} ",
            fit(&self.named(&row.name, row.owner.as_ref(), width), width),
            format::percent(share)
        );
        let trend = format!("{:>9}", trend(row));
        let trend = if row.growth() >= 2000 { self.wrong(trend) } else { Span::raw(trend) };
        let chosen = row.chosen.map_or(String::new(), |probability| format!(" {:>6}", whole_percent(probability)));
        let end = format!(" {:>10}{chosen}", format::duration(row.delay.0));
        Line::from(vec![Span::raw(start), trend, Span::raw(end)])
    }

    fn burst_lines(&self, shot: &ViewSnapshot, area: Rect) -> Vec<Line<'static>> {
        let start = format!("{:>6} {:>9} {:>8} {:>8} {:>8}", "bursts", "start", "length", "delay", "depth");
        let mut lines = vec![Line::styled(format!("{start} {:>5}  culprit", "drops"), bold())];
        let room = usize::from(area.height).saturating_sub(1);
        lines.extend(shot.bursts.iter().take(room).map(|burst| self.burst_line(burst, usize::from(area.width))));
        if shot.bursts.is_empty() {
            lines.push(Line::raw("  none so far"));
        }
        lines
    }

    fn burst_line(&self, burst: &BurstRow, width: usize) -> Line<'static> {
        let [start, length, delay] = [burst.start, burst.length, burst.peak_delay].map(format::duration);
        let numbers =
            format!("{:>6} {start:>9} {length:>8} {delay:>8} {:>8} ", burst.number, format::bytes(burst.peak_depth));
        let drops = format!("{:>5}", format::count(burst.drops));
        let drops = if burst.drops > 0 { self.wrong(drops) } else { Span::raw(drops) };
        let culprit = burst.culprit.as_ref().map_or_else(String::new, |culprit| {
            let share = format::percent(culprit.share);
            let room = width.saturating_sub(52 + share.chars().count());
            // If there is little room, the owner is enough: the flow is in the list above.
            let who = culprit.owner.as_ref().filter(|_| self.with_owners && room < NARROW).and_then(Owner::who);
            match who {
                Some(who) => format!("{share} {}", cut(&who, room)),
                None => format!("{share} {}", self.named(&culprit.flow, culprit.owner.as_ref(), room)),
            }
        });
        Line::from(vec![Span::raw(numbers), drops, Span::raw(format!("  {culprit}"))])
    }

    /// A flow and its owner, as much of each as fits; if there is room, enough of each to identify it.
    fn named(&self, flow: &str, owner: Option<&Owner>, width: usize) -> String {
        let Some(owner) = owner.filter(|_| self.with_owners) else { return cut(flow, width) };
        let whole = format!("{flow}  {owner}");
        match owner.who() {
            _ if display_width(&whole) <= width => whole,
            Some(who) => {
                let rest = width.saturating_sub(display_width(&who) + 2);
                format!("{}  {}", cut(flow, rest.max(SENDER)), cut(&who, width.saturating_sub(SENDER + 2)))
            }
            None => cut(&whole, width),
        }
    }

    fn key_line(&self) -> Line<'static> {
        if self.is_typing {
            return keys(&[("/", &format!("{}_", self.filter)), ("Enter", "keep it"), ("Esc", "all flows")]);
        }
        let filter = if self.filter.is_empty() { "filter".to_owned() } else { format!("filter: {}", self.filter) };
        let freeze = if self.frozen.is_some() { "go on" } else { "freeze" };
        let owners = if self.with_owners { "flows alone" } else { "owners" };
        let sort = format!("sort: {}", self.sort.name());
        // The most important keys first, because not all may fit.
        let mut meanings = vec![("q", "quit")];
        match self.acting.mode() {
            Some(Mode::Real) => meanings.push(("p", "pause acting")),
            Some(Mode::Paused) => meanings.push(("p", "act again")),
            Some(Mode::Dry | Mode::Stopped) | None => {}
        }
        meanings.extend([("s", &sort[..]), ("f", freeze), ("/", &filter), ("o", owners)]);
        keys(&meanings)
    }

    fn wrong(&self, text: String) -> Span<'static> {
        Span::styled(text, self.alarming().bold())
    }

    fn alarming(&self) -> Style {
        if self.is_coloured { Style::new().fg(Color::Red) } else { Style::new() }
    }
}

fn bold() -> Style {
    Style::new().bold()
}

fn keys(meanings: &[(&str, &str)]) -> Line<'static> {
    let each = |(key, meaning): &(&str, &str)| {
        [Span::styled(format!(" {key} "), Style::new().reversed()), Span::raw(format!(" {meaning}   "))]
    };
    meanings.iter().flat_map(each).collect::<Vec<_>>().into()
}

/// The change of a flow's bytes since the second before.
fn trend(row: &FlowRow) -> String {
    match (row.before, row.bytes) {
        (0, _) => "new".to_owned(),
        (_, 0) => "over".to_owned(),
        _ => match row.growth() {
            growth @ 1100.. => format!("▲ {:.1}x", growth as f64 / 1000.0),
            growth @ ..=900 => format!("▼ {:.1}x", growth as f64 / 1000.0),
            _ => "=".to_owned(),
        },
    }
}

/// A probability in whole percent; a small one is not shown as zero.
fn whole_percent(probability: f64) -> String {
    match probability * 100.0 {
        percent @ ..0.5 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// The text, shortened to a width.
fn cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |letter: &char| match room.checked_sub(display_width(letter.encode_utf8(&mut [0; 4]))) {
        Some(rest) => {
            room = rest;
            true
        }
        None => false,
    };
    text.chars().take_while(fits).chain((width > 0).then_some('…')).collect()
}

/// The text, shortened or padded to a width.
fn fit(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let spaces = width.saturating_sub(display_width(&text));
    text + &" ".repeat(spaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fill_their_columns_exactly() {
        let cases = [("flow", 6, "flow  "), ("flow", 4, "flow"), ("flow", 3, "fl…"), ("flow", 1, "…"), ("flow", 0, "")];
        let wide = [("流量大", 6, "流量大"), ("流量大", 5, "流量…"), ("流量大", 4, "流… "), ("流量大", 2, "… ")];
        for (text, width, expected) in cases.into_iter().chain(wide) {
            assert_eq!(fit(text, width), expected, "{text} in {width}");
            assert_eq!(display_width(&fit(text, width)), width);
        }
    }
}
