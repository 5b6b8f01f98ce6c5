//! Answers a question about recorded departures and drops.

use super::recorder::Recorder;
use super::{At, Nothing, Question, WhyError};
use crate::index::FlowIndex;
use queuescope_ingest::notes::unnamed;
use queuescope_ingest::{PacketFilter, Source};
use queuescope_meter::{Amount, Culprits, Departed, Dropped, Ranking, Share};
use queuescope_report::model;
use queuescope_wire::{FlowId, Nanos, PacketId, Rate};
use std::ops::Range;

/// An answer: the question in words, the culprits, and the victim, with its sojourn time if it left the queue.
struct Found {
    question: String,
    culprits: Culprits<FlowId>,
    victim: Option<(Dropped, Option<Nanos>)>,
    /// Number of packets in the question that were dropped.
    drops: u64,
}

/// A packet id that no packet has. It sorts after all others that come at the same moment.
const NOBODY: PacketId = PacketId((1 << 56) - 1);

impl<D: FlowIndex> Recorder<D> {
    /// Answers the question, after all of `source` was recorded.
    ///
    /// # Errors
    /// Fails if no recorded packet matches the question.
    pub fn answer(self, source: Source) -> Result<model::Why, WhyError> {
        if let Some(failure) = self.failure {
            return Err(failure.into());
        }
        if self.log.is_empty() {
            let dropped = self.log.drops(Nanos::ZERO..Nanos::MAX).count();
            let reason = match dropped {
                0 if self.frames > 0 => Nothing::LeftOut,
                0 => Nothing::Came,
                _ => Nothing::ButDrops,
            };
            return Err(WhyError::NothingLeft { input: source.input.name, reason });
        }
        let origin = source.span.0;
        let Question { packet, flow, at, victims, .. } = &self.question;
        let found = match (packet, flow, *at) {
            (Some(number), ..) => self.packet(number.get(), &source)?,
            (None, Some(name), at) => self.flow(name, at, origin)?,
            (None, None, at) if victims.is_some() => self.chosen(at, origin)?,
            (None, None, at) => self.moment(at.unwrap_or(At::EVER), origin),
        };
        Ok(self.report(found, source))
    }

    /// The number of a packet's frame or row in the input, counted from 1.
    fn number(&self, packet: PacketId) -> u64 {
        let before = self.splits.partition_point(|(first, ..)| *first <= packet.0);
        let more = match before.checked_sub(1).map(|last| self.splits[last]) {
            Some((first, count, more)) => more + (packet.0 - first).min(count - 1),
            None => 0,
        };
        packet.0 + 1 - more
    }

    /// The number of packets that were dropped in a time range.
    fn drops(&self, flows: impl Fn(FlowId) -> bool, during: Range<Nanos>) -> u64 {
        let is_meant = |dropped: &Dropped| flows(dropped.flow) && self.is_victim(dropped.packet);
        self.log.drops(during).filter(is_meant).count() as u64
    }

    /// A packet, by its number in the input.
    fn packet(&self, number: u64, source: &Source) -> Result<Found, WhyError> {
        // A table has no rate, and its packets are rows.
        let unit = if source.rate.is_some() { "packet" } else { "row" };
        let Some(packets) = self.packets.clone() else {
            let input = source.input.name.clone();
            return Err(WhyError::NoPacket { input, unit, number, packets: self.frames });
        };
        if packets.is_empty() {
            return Err(WhyError::LeftOut { unit, number });
        }
        // If the frame was split, the packet that waited longest is the victim.
        let departed = packets.clone().filter_map(|id| self.log.find(PacketId(id))).max_by_key(Departed::sojourn);
        let question = format!("why {unit} {number} waited");
        let found = match departed {
            Some(departed) => (self.log.of_departure(&departed), as_victim(&departed)),
            None => {
                let dropped = packets.filter_map(|id| self.log.find_drop(PacketId(id))).last();
                let dropped = dropped.ok_or(WhyError::NeverCame { unit, number })?;
                (Some(self.log.of_drop(&dropped)), (dropped, None))
            }
        };
        let culprits = found.0.ok_or(WhyError::Forgotten { unit, number })?;
        let drops = u64::from(departed.is_none());
        Ok(Found { question, culprits, victim: Some(found.1), drops })
    }

    /// All packets of a flow that may be victims, or those that waited in a time range.
    fn flow(&self, name: &str, at: Option<At>, origin: Nanos) -> Result<Found, WhyError> {
        check_range(at, "a flow waits")?;
        let (level, flow) = self.find_flow(name)?;
        let name = self.index.name(level, self.index.key(level, flow));
        let asked = match &self.question.victims {
            Some(victims) => [
                format!("{name}, of which '{}' holds,", victims.text()),
                format!("of {name} of which '{}' holds", victims.text()),
                format!("of {name} matches '{}'", victims.text()),
            ],
            None => [name.clone(), format!("of {name}"), String::new()],
        };
        self.waits(asked, |other| self.index.project(level, other) == flow, at, origin)
    }

    /// All packets that may be victims, or those that waited in a time range.
    fn chosen(&self, at: Option<At>, origin: Nanos) -> Result<Found, WhyError> {
        check_range(at, "packets wait")?;
        let text = self.question.victims.as_ref().map_or("", PacketFilter::text);
        let holds = format!("of which '{text}' holds");
        self.waits([format!("packets {holds}"), holds, format!("matches '{text}'")], |_| true, at, origin)
    }

    /// Packets of some flows, or those of them that waited in a time range. The texts name them in the question, in an error if none of
    /// them waited, and in an error if none matches the expression for victims.
    fn waits(
        &self,
        [whose, none, matches]: [String; 3],
        flows: impl Fn(FlowId) -> bool,
        at: Option<At>,
        origin: Nanos,
    ) -> Result<Found, WhyError> {
        let during = at.map_or(Nanos::ZERO..Nanos::MAX, |at| at.range(origin));
        let drops = self.drops(&flows, during.clone());
        let when = at.map_or(String::new(), |at| format!(" {at}"));
        let is_victim = |departed: &Departed| flows(departed.flow) && self.is_victim(departed.packet);
        let Some(culprits) = self.log.of_victims(is_victim, during) else {
            if self.question.victims.is_some() && !self.victim_flows.iter().any(|flow| flows(*flow)) {
                return Err(WhyError::NothingMatches { packets: matches });
            }
            let packets = format!("{none} waited{when}");
            return Err(if drops > 0 {
                WhyError::OnlyDrops { packets, drops }
            } else {
                WhyError::NothingWaited { packets }
            });
        };
        let victim = culprits.victims.longest.as_ref().map(as_victim);
        Ok(Found { question: format!("why {whose} waited{when}"), culprits, victim, drops })
    }

    /// All packets that waited in a time range, or that were in the queue at a moment.
    fn moment(&self, at: At, origin: Nanos) -> Found {
        if let At::Moment(_) = at {
            let nobody = Dropped {
                packet: NOBODY,
                flow: FlowId(0),
                class: Default::default(),
                size: 0,
                at: at.range(origin).start,
            };
            let mut culprits = self.log.of_drop(&nobody);
            culprits.victims = Default::default();
            return Found { question: format!("who was in the queue {at}"), culprits, victim: None, drops: 0 };
        }
        let question = format!("why packets waited {at}");
        let drops = self.drops(|_| true, at.range(origin));
        match self.log.of_range(at.range(origin)) {
            Some(culprits) => {
                let victim = culprits.victims.longest.as_ref().map(as_victim);
                Found { question, culprits, victim, drops }
            }
            None => Found { question, drops, ..self.moment(At::Moment(at.range(Nanos::ZERO).start), origin) },
        }
    }

    /// Finds a flow by its name, or the only one whose name contains the text, at the finest granularity that has one.
    fn find_flow(&self, text: &str) -> Result<(usize, FlowId), WhyError> {
        let levels = 0..self.index.granularities().len();
        let lower = text.to_lowercase();
        let mut similar = Vec::new();
        for level in levels {
            let flows = self.index.flows(level);
            let named = flows.iter().map(|flow| (*flow, self.index.name(level, self.index.key(level, *flow))));
            let matching: Vec<_> = named.filter(|(_, name)| name.to_lowercase().contains(&lower)).collect();
            if let Some((flow, _)) = matching.iter().find(|(_, name)| name == text) {
                return Ok((level, *flow));
            }
            similar.push(matching);
        }
        let text = text.to_owned();
        let found = similar.into_iter().enumerate().find(|(_, matching)| !matching.is_empty());
        let Some((level, matching)) = found else { return Err(WhyError::NoFlow { text }) };
        match matching.as_slice() {
            [(flow, _)] => Ok((level, *flow)),
            several => {
                let flows = several.len();
                let some = several.iter().take(SOME).map(|(_, name)| name.clone()).collect();
                Err(WhyError::SeveralFlows { text, flows, some })
            }
        }
    }

    fn report(&self, found: Found, source: Source) -> model::Why {
        let show = self.question.show.as_ref();
        let Found { question, culprits, victim, drops } = found;
        let Culprits { victims, standing, direct, indirect, original, complete } = culprits;
        let offset = |time: Nanos| time.saturating_sub(source.span.0).0;
        let name = |flow: FlowId| self.index.name(0, self.index.key(0, self.index.project(0, flow)));
        let on_link =
            source.rate.and_then(|rate: Rate| self.log.on_link(standing.at, rate, source.on_link)).map(|on_link| {
                let departed = on_link.departed;
                model::OnLink {
                    flow: name(departed.flow),
                    bytes: departed.size.into(),
                    remaining_ns: on_link.remaining.0,
                }
            });
        let mut skipped = source.skipped;
        skipped.extend(unnamed(self.unnamed));
        skipped.extend(show.and_then(|show| self.index.note(show, &self.index.granularities())));
        skipped.extend((!complete).then(|| model::Skipped {
            reason: "departures_forgotten".to_owned(),
            count: self.log.forgotten(),
            meaning: "departures that were forgotten; the oldest culprits are missing".to_owned(),
        }));
        model::Why {
            rate_bps: source.rate.map(Rate::bits_per_second),
            question,
            show_filter: show.map(|show| show.text().to_owned()),
            victim: victim.map(|(packet, waited)| model::Victim {
                packet: self.number(packet.packet),
                flow: name(packet.flow),
                bytes: packet.size.into(),
                class: packet.class.0,
                arrived_ns: offset(packet.at),
                delay_ns: waited.map(|waited| waited.0),
            }),
            packets: victims.packets,
            bytes: victims.bytes,
            total_delay_ns: victims.waited.0,
            drops,
            at_ns: offset(standing.at),
            depth_bytes: standing.backlog.bytes.0,
            depth_packets: standing.backlog.packets,
            since_ns: offset(standing.since),
            on_link,
            direct: self.ranked(&direct),
            indirect: self.ranked(&indirect),
            original: self.ranked(&original),
            skipped,
            input: source.input,
        }
    }

    fn ranked(&self, ranking: &Ranking<FlowId>) -> model::Ranked {
        let Question { alpha, show, .. } = &self.question;
        let total = ranking.total;
        let share = |bytes: u64| if total.bytes > 0 { bytes as f64 / total.bytes as f64 } else { 0.0 };
        let level = |(level, granularity): (usize, String)| {
            let ranking = ranking.by(|flow| self.index.project(level, flow));
            let show = show.as_ref().filter(|show| self.index.can_show(show, level));
            let lists = |flow| show.is_none_or(|show| self.index.shows(show, level, self.index.key(level, flow)));
            let listed: Vec<_> = ranking.parts.iter().filter(|(flow, _)| lists(*flow)).collect();
            let heavy = listed.iter().take_while(|(_, part)| share(part.bytes) >= *alpha).count();
            let part = |(flow, part): &&(FlowId, _)| self.part(level, *flow, part, share);
            let flows: Vec<_> = listed.iter().take(heavy.max(AT_LEAST)).map(part).collect();
            let all = ranking.parts.len() as u64;
            model::Parts {
                granularity,
                not_shown: show.map(|_| model::NotShown::beside(all, total.bytes, flows.iter().map(|part| part.bytes))),
                flows,
                flows_total: all,
            }
        };
        let classes = ranking.classes.iter().filter(|_| ranking.classes.len() > 1);
        let first = ranking.by(|flow| self.index.project(0, flow));
        let keyed = first.parts.iter().map(|(flow, part)| {
            (self.index.key(0, *flow).clone(), Share { bytes: part.bytes, packets: part.packets, peak: 0 })
        });
        model::Ranked {
            bytes: total.bytes,
            packets: Some(total.packets),
            by: self.index.granularities().into_iter().enumerate().map(level).collect(),
            groups: self.index.groups(&keyed.collect::<Vec<_>>(), None),
            classes: classes
                .map(|(class, part)| model::ClassPart {
                    class: class.0,
                    bytes: part.bytes,
                    packets: part.packets,
                    share: share(part.bytes),
                })
                .collect(),
        }
    }

    fn part(&self, level: usize, flow: FlowId, part: &Amount, share: impl Fn(u64) -> f64) -> model::Part {
        model::Part {
            flow: self.index.name(level, self.index.key(level, flow)),
            bytes: part.bytes,
            packets: Some(part.packets),
            share: share(part.bytes),
        }
    }
}

/// Fails if `at` is a moment, in which nothing waits.
fn check_range(at: Option<At>, they_wait: &'static str) -> Result<(), WhyError> {
    match at {
        Some(moment @ At::Moment(_)) => Err(WhyError::Moment { they_wait, moment }),
        _ => Ok(()),
    }
}

/// Number of flows that are listed even if they are below alpha.
const AT_LEAST: usize = 3;
/// Largest number of flows that an error names.
const SOME: usize = 5;

/// A departed packet as a victim, with its sojourn time.
fn as_victim(departed: &Departed) -> (Dropped, Option<Nanos>) {
    let &Departed { packet, flow, class, size, enqueued, .. } = departed;
    (Dropped { packet, flow, class, size, at: enqueued }, Some(departed.sojourn()))
}
