//! `queuescope why`: from a victim or a moment in the past to who made it wait.

use crate::args::{At, Input, Why};
use crate::door::Door;
use crate::expressions::explained;
use crate::outcome::{Outcome, print};
use crate::show::Show;
use crate::source;
use anyhow::{Context, Result, bail};
use queuescope_ingest::notes::unnamed;
use queuescope_ingest::records::{Departures, Unknown, as_departure, without_flow};
use queuescope_ingest::{Chosen, Listener, Opened, Source};
use queuescope_meter::{Amount, Culprits, Departed, Dropped, QueueLog, Ranking, Share};
use queuescope_pcap::Record;
use queuescope_queue::{self as queue, MarkReason, Sink};
use queuescope_report::{json, model, text};
use queuescope_sim::Output;
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowId, FlowTable, Flows, MaskedKey, Nanos, Packet, PacketId, Rate};
use std::num::NonZeroU64;
use std::ops::Range;

/// Runs `why`.
///
/// # Errors
/// If nothing could be done: no input, or nothing in it that the question is about.
pub fn run(args: &Why) -> Result<Outcome> {
    let frame = args.packet.map(NonZeroU64::get);
    let unknown = if args.input.table.departures { Unknown::OF_TABLE } else { Unknown::NOTHING };
    let victims = Chosen::victims(args.focus.victims.as_deref(), unknown).map_err(explained)?;
    let show = Show::of(args.focus.show.as_deref())?;
    let answer = match source::open(&args.input, None)? {
        Opened::Capture(opened) => {
            let mut log = Recorder::new(source::flows(&args.keys, &args.focus, usize::MAX), frame, victims);
            let source = source::replay(opened, &args.input, (&args.keys, &args.focus), &mut log)?;
            log.answer((args, show.as_ref()), source)?
        }
        Opened::Table(opened) => {
            let mut log = Recorder::new(FlowTable::with_limit(usize::MAX), frame, victims);
            let source = source::table(opened, &mut log)?;
            log.answer((args, show.as_ref()), source)?
        }
    };
    print(args.json, |mut out| json::write_why(&answer, &mut out), |mut out| text::write_why(&answer, &mut out))?;
    Ok(Outcome::of(answer.input.damage))
}

/// Remembers everything that left the queue or was dropped.
struct Recorder<D> {
    door: D,
    log: QueueLog,
    /// The frame that is asked about, counted from 1, and the packets that it became.
    frame: Option<u64>,
    packets: Option<Range<u64>>,
    /// Frames that were read, also those that are left out: each of these has a number that no packet has.
    frames: u64,
    /// Frames that became several packets: the first packet, how many, and how many more than frames came before it.
    splits: Vec<(u64, u64, u64)>,
    /// Who may be asked about, if not everybody; and by packet, whether it is one of them.
    victims: Option<Chosen<Departures>>,
    is_victim: Vec<bool>,
    /// Packets of which it is not known who they belong to, as that was asked.
    unnamed: u64,
    failure: Option<anyhow::Error>,
}

impl<D> Recorder<D> {
    fn new(door: D, frame: Option<u64>, victims: Option<Chosen<Departures>>) -> Self {
        Self {
            door,
            log: QueueLog::new(),
            frame,
            packets: None,
            frames: 0,
            splits: Vec::new(),
            victims,
            is_victim: Vec::new(),
            unnamed: 0,
            failure: None,
        }
    }

    /// A frame, or row, became these packets: none if it is left out.
    fn frame(&mut self, packets: Range<u64>) -> Result<()> {
        self.frames += 1;
        let count = packets.end - packets.start;
        if count > 1 {
            self.splits.push((packets.start, count, packets.start + 1 - self.frames));
        }
        if self.frame == Some(self.frames) {
            self.packets = Some(packets);
        }
        self.failure.take().map_or(Ok(()), Err)
    }
}

impl<D: Door> Recorder<D> {
    /// Something became of a packet: whether it may be asked about is remembered.
    fn judge(&mut self, departure: &Departure) {
        let Some(victims) = &mut self.victims else { return };
        let key = self.door.whole(departure.packet.flow);
        self.unnamed += u64::from(key.is_none());
        let packet = departure.packet.id.0 as usize;
        if self.is_victim.len() <= packet {
            self.is_victim.resize(packet + 1, false);
        }
        self.is_victim[packet] = victims.holds_uncounted(&without_flow(departure), &key.unwrap_or_default());
    }

    /// Whether a packet may be asked about.
    fn is_victim(&self, packet: PacketId) -> bool {
        self.victims.is_none() || self.is_victim.get(packet.0 as usize) == Some(&true)
    }
}

impl<D: Door> Sink for Recorder<D> {
    fn dropped(&mut self, dropped: &queue::Dropped) {
        self.judge(&as_departure(dropped.packet, dropped.queue, (dropped.at, dropped.at)));
        let Packet { id, flow, size, class, .. } = dropped.packet;
        let size = u32::try_from(size.0).unwrap_or(u32::MAX);
        let recorded = self.log.record_drop(&Dropped { packet: id, flow, class, size, at: dropped.at });
        self.failure = self.failure.take().or(recorded.err().map(Into::into));
    }

    fn marked(&mut self, _packet: &Packet, _reason: MarkReason, _now: Nanos) {}
}

impl<D: Door> Output for Recorder<D> {
    fn departed(&mut self, departure: &Departure) {
        self.judge(departure);
        let recorded = self.log.record(&Departed::from(departure));
        self.failure = self.failure.take().or(recorded.err().map(Into::into));
    }
}

impl Listener for Recorder<Flows> {
    type Key = MaskedKey;
    type Error = anyhow::Error;

    fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
        self.door.intern(key, now, |_, _| {})
    }

    fn read(&mut self, _record: &Record<'_>, _frame: Frame, _time: Nanos, packets: Range<u64>) -> Result<()> {
        self.frame(packets)
    }
}

impl Listener for Recorder<FlowTable<Box<str>>> {
    type Key = str;
    type Error = anyhow::Error;

    fn intern(&mut self, name: &str, now: Nanos) -> FlowId {
        self.door.intern(name, crate::door::name_digest(name), now).0
    }

    fn row(&mut self, packets: Range<u64>) -> Result<()> {
        self.frame(packets)
    }
}

/// What was found: the question in words, the culprits, and the packet that suffered, with how long it waited if it did.
struct Found {
    question: String,
    culprits: Culprits<FlowId>,
    victim: Option<(Dropped, Option<Nanos>)>,
    /// Packets that the question is about and that were dropped.
    drops: u64,
}

/// The number of a packet that never came: it stands after every other that comes at the same moment.
const NOBODY: PacketId = PacketId((1 << 56) - 1);

impl<D: Door> Recorder<D> {
    fn answer(self, (args, show): (&Why, Option<&Show>), source: Source) -> Result<model::Why> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if self.log.is_empty() {
            let dropped = self.log.drops(Nanos::ZERO..Nanos::MAX).count();
            let why = match dropped {
                0 if self.frames > 0 => "--input leaves every packet out",
                0 => "it holds no packet",
                _ => "every packet was dropped: is --limit too small?",
            };
            bail!("{}: nothing left the queue, so nothing waited; {why}", source.input.name);
        }
        let origin = source.span.0;
        let found = match (&args.flow, args.at) {
            (Some(name), at) => self.flow(name, at, origin)?,
            (None, at) if self.victims.is_some() => self.chosen(at, origin)?,
            (None, Some(at)) => self.moment(at, origin),
            (None, None) => self.packet(&args.input)?,
        };
        Ok(self.tell(found, (args.alpha.0, show), source))
    }

    /// The number in the input, from 1, of the frame or row that a packet was.
    fn number(&self, packet: PacketId) -> u64 {
        let before = self.splits.partition_point(|(first, ..)| *first <= packet.0);
        let more = match before.checked_sub(1).map(|last| self.splits[last]) {
            Some((first, count, more)) => more + (packet.0 - first).min(count - 1),
            None => 0,
        };
        packet.0 + 1 - more
    }

    /// Packets that were dropped within a stretch of time.
    fn drops(&self, flows: impl Fn(FlowId) -> bool, during: Range<Nanos>) -> u64 {
        let is_meant = |dropped: &Dropped| flows(dropped.flow) && self.is_victim(dropped.packet);
        self.log.drops(during).filter(is_meant).count() as u64
    }

    /// A packet, by its number in the input.
    fn packet(&self, input: &Input) -> Result<Found> {
        let frame = self.frame.unwrap_or_default();
        let what = if input.table.departures { "row" } else { "packet" };
        let Some(packets) = self.packets.clone() else {
            bail!("{}: there is no {what} {frame}; it has {}", input.file.display(), self.frames);
        };
        if packets.is_empty() {
            bail!("{what} {frame} is left out by --input: ask about one of which that holds, or without it");
        }
        // Of a frame that was split, the packet that waited longest.
        let departed = packets.clone().filter_map(|id| self.log.find(PacketId(id))).max_by_key(Departed::sojourn);
        let question = format!("why {what} {frame} waited");
        let found = match departed {
            Some(departed) => (self.log.of_departure(&departed), suffered(&departed)),
            None => {
                let dropped = packets.filter_map(|id| self.log.find_drop(PacketId(id))).last();
                let dropped = dropped.with_context(|| format!("{what} {frame} never came to the queue"))?;
                (Some(self.log.of_drop(&dropped)), (dropped, None))
            }
        };
        let culprits = found.0.with_context(|| format!("{what} {frame} is no longer remembered"))?;
        let drops = u64::from(departed.is_none());
        Ok(Found { question, culprits, victim: Some(found.1), drops })
    }

    /// All packets of a flow that may be asked about, or those that waited in a stretch of time.
    fn flow(&self, name: &str, at: Option<At>, origin: Nanos) -> Result<Found> {
        is_stretch(at, "a flow waits")?;
        let (level, flow) = self.find_flow(name)?;
        let name = self.door.name(level, self.door.key(level, flow));
        let asked = match &self.victims {
            Some(victims) => [
                format!("{name}, of which '{}' holds,", victims.text()),
                format!("of {name} of which '{}' holds", victims.text()),
            ],
            None => [name.clone(), format!("of {name}")],
        };
        self.waits(asked, |other| self.door.project(level, other) == flow, at, origin)
    }

    /// All packets that may be asked about, or those that waited in a stretch of time.
    fn chosen(&self, at: Option<At>, origin: Nanos) -> Result<Found> {
        is_stretch(at, "packets wait")?;
        let text = self.victims.as_ref().map_or("", Chosen::text);
        let holds = format!("of which '{text}' holds");
        self.waits([format!("packets {holds}"), holds], |_| true, at, origin)
    }

    /// Packets of some flows, or those of them that waited in a stretch of time: which those are, and that no packet is one.
    fn waits(
        &self,
        [whose, none]: [String; 2],
        flows: impl Fn(FlowId) -> bool,
        at: Option<At>,
        origin: Nanos,
    ) -> Result<Found> {
        let during = at.map_or(Nanos::ZERO..Nanos::MAX, |at| at.range(origin));
        let drops = self.drops(&flows, during.clone());
        let when = at.map_or(String::new(), |at| format!(" {at}"));
        let is_victim = |departed: &Departed| flows(departed.flow) && self.is_victim(departed.packet);
        let Some(culprits) = self.log.of_victims(is_victim, during) else {
            if drops > 0 {
                bail!("no packet {none} waited{when}, but {drops} were dropped: ask about one with --packet");
            }
            bail!("no packet {none} waited{when}: nobody was in its way")
        };
        let victim = culprits.victims.longest.as_ref().map(suffered);
        Ok(Found { question: format!("why {whose} waited{when}"), culprits, victim, drops })
    }

    /// Everybody who waited in a stretch of time, or who was in the queue at a moment.
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
                let victim = culprits.victims.longest.as_ref().map(suffered);
                Found { question, culprits, victim, drops }
            }
            None => Found { question, drops, ..self.moment(At::Moment(at.range(Nanos::ZERO).start), origin) },
        }
    }

    /// A flow by its name, or the only one whose name contains the text, at the finest granularity that has one.
    fn find_flow(&self, text: &str) -> Result<(usize, FlowId)> {
        let levels = 0..self.door.granularities().len();
        let lower = text.to_lowercase();
        let mut similar = Vec::new();
        for level in levels {
            let flows = self.door.flows(level);
            let named = flows.iter().map(|flow| (*flow, self.door.name(level, self.door.key(level, *flow))));
            let matching: Vec<_> = named.filter(|(_, name)| name.to_lowercase().contains(&lower)).collect();
            if let Some((flow, _)) = matching.iter().find(|(_, name)| name == text) {
                return Ok((level, *flow));
            }
            similar.push(matching);
        }
        let found = similar.iter().position(|matching| !matching.is_empty());
        let Some((level, matching)) = found.map(|level| (level, &similar[level])) else {
            bail!("no flow has a name with '{text}' in it; names are as analyze prints them");
        };
        match matching.as_slice() {
            [(flow, _)] => Ok((level, *flow)),
            several => {
                let names: Vec<_> = several.iter().take(5).map(|(_, name)| format!("  {name}")).collect();
                let more = if several.len() > 5 { "\n  ..." } else { "" };
                bail!("{} flows have '{text}' in their names; name one:\n{}{more}", several.len(), names.join("\n"))
            }
        }
    }

    fn tell(&self, found: Found, (alpha, show): (f64, Option<&Show>), source: Source) -> model::Why {
        let Found { question, culprits, victim, drops } = found;
        let Culprits { victims, standing, direct, indirect, original, complete } = culprits;
        let offset = |time: Nanos| time.saturating_sub(source.span.0).0;
        let name = |flow: FlowId| self.door.name(0, self.door.key(0, self.door.project(0, flow)));
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
        skipped.extend(show.and_then(|show| self.door.note(show, &self.door.granularities())));
        skipped.extend((!complete).then(|| model::Skipped {
            reason: "forgotten".to_owned(),
            count: self.log.forgotten(),
            meaning: "departures that are no longer remembered; the oldest culprits are missing".to_owned(),
        }));
        model::Why {
            rate_bps: source.rate.map(Rate::bits_per_second),
            question,
            show: show.map(|show| show.text().to_owned()),
            victim: victim.map(|(packet, waited)| model::Victim {
                packet: self.number(packet.packet),
                flow: name(packet.flow),
                bytes: packet.size.into(),
                class: packet.class.0,
                came_ns: offset(packet.at),
                waited_ns: waited.map(|waited| waited.0),
            }),
            packets: victims.packets,
            bytes: victims.bytes,
            waited_ns: victims.waited.0,
            drops,
            at_ns: offset(standing.at),
            depth_bytes: standing.backlog.bytes.0,
            depth_packets: standing.backlog.packets,
            since_ns: offset(standing.since),
            on_link,
            direct: self.ranked(&direct, alpha, show),
            indirect: self.ranked(&indirect, alpha, show),
            original: self.ranked(&original, alpha, show),
            skipped,
            input: source.input,
        }
    }

    fn ranked(&self, ranking: &Ranking<FlowId>, alpha: f64, show: Option<&Show>) -> model::Ranked {
        let total = ranking.total;
        let share = |bytes: u64| if total.bytes > 0 { bytes as f64 / total.bytes as f64 } else { 0.0 };
        let level = |(level, granularity): (usize, String)| {
            let ranking = ranking.by(|flow| self.door.project(level, flow));
            let show = show.filter(|show| self.door.can_show(show, level));
            let lists = |flow| show.is_none_or(|show| self.door.shows(show, level, self.door.key(level, flow)));
            let listed: Vec<_> = ranking.parts.iter().filter(|(flow, _)| lists(*flow)).collect();
            let heavy = listed.iter().take_while(|(_, part)| share(part.bytes) >= alpha).count();
            let part = |(flow, part): &&(FlowId, _)| self.part(level, *flow, part, share);
            let flows: Vec<_> = listed.iter().take(heavy.max(AT_LEAST)).map(part).collect();
            let all = (ranking.parts.len() as u64, total.bytes);
            model::Parts {
                granularity,
                not_shown: show.map(|_| model::NotShown::beside(all, flows.iter().map(|part| part.bytes))),
                flows,
                flows_total: all.0,
            }
        };
        let classes = ranking.classes.iter().filter(|_| ranking.classes.len() > 1);
        let first = ranking.by(|flow| self.door.project(0, flow));
        let keyed = first.parts.iter().map(|(flow, part)| {
            (self.door.key(0, *flow).clone(), Share { bytes: part.bytes, packets: part.packets, peak: 0 })
        });
        model::Ranked {
            bytes: total.bytes,
            packets: Some(total.packets),
            by: self.door.granularities().into_iter().enumerate().map(level).collect(),
            groups: self.door.groups(&keyed.collect::<Vec<_>>(), None),
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
            flow: self.door.name(level, self.door.key(level, flow)),
            bytes: part.bytes,
            packets: Some(part.packets),
            share: share(part.bytes),
        }
    }
}

/// Refuses a moment, in which nothing waits.
fn is_stretch(at: Option<At>, they_wait: &str) -> Result<()> {
    match at {
        Some(moment @ At::Moment(_)) => {
            bail!("{they_wait} for a stretch of time, and {moment} is a moment: write --at FROM..TO")
        }
        _ => Ok(()),
    }
}

/// Flows that are told although they are below alpha.
const AT_LEAST: usize = 3;

/// A packet that waited, as one that came.
fn suffered(departed: &Departed) -> (Dropped, Option<Nanos>) {
    let &Departed { packet, flow, class, size, enqueued, .. } = departed;
    (Dropped { packet, flow, class, size, at: enqueued }, Some(departed.sojourn()))
}
