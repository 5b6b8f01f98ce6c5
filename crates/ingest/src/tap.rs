//! Turns captures on both sides of a router into departures of the queue in between.
//!
//! The captures are read four times: for the captured length of packets, for the clocks, for the routes and better clocks
//! ([`Captures::survey`]), and for the departures ([`TapSurvey::read`]). Memory is bounded by the packets that can be in the
//! router at once.
//!
//! ```no_run
//! use queuescope_ingest::Listener;
//! use queuescope_ingest::tap::{Captures, Ingress, TapOptions, FinalPass};
//! use queuescope_wire::{Granularity, KeyMask, MaskedKey};
//!
//! fn read(listener: &mut impl Listener<Key = MaskedKey>) -> Result<(), Box<dyn std::error::Error>> {
//!     let ingress = Ingress { path: "lan.pcap".into(), rate: None };
//!     let captures = Captures::open(vec![ingress], "wan.pcap".as_ref(), TapOptions::default())?;
//!     let mut progress = |_, _| ();
//!     let survey = captures.survey(&mut progress)?;
//!     let flows = Granularity::FiveTuple;
//!     let tapped = survey.read(&FinalPass::new(KeyMask::covering(&[flows]), flows), listener)?;
//!     println!("{} packets left the router or were lost in it", tapped.source().packets);
//!     Ok(())
//! }
//! ```

mod bridge;
mod capture;
mod error;
mod headers;
mod options;
mod tapped;

pub use error::TapError;
pub use options::{Ingress, Stamps, TapOptions};
pub use tapped::Tapped;

use crate::Progress;
use crate::file_identity::FileIdentity;
use crate::listener::Listener;
use crate::packet_filter::{Flag, PacketFilter};
use crate::stop::Stop;
use bridge::Bridge;
use capture::{Capture, CaptureSurvey, Shift, TapProgress};
use headers::Headers;
use queuescope_meter::tap::{
    Clock, ClockEstimate, LinkSurvey, Matcher, Routes, Survey, SurveyParams, TapDeparture, TapOutput, TapPacket,
    TapParams, drive,
};
use queuescope_pcap::OpenError;
use queuescope_wire::parse::{InvariantParams, Reach, Tunnel};
use queuescope_wire::{Granularity, KeyMask, MaskedKey, Nanos};
use std::path::Path;

/// Number of passes over the captures.
const PASSES: u64 = 4;
/// Least and largest number of entries in the table of packets that came in. The largest needs 0.6 GB.
const ENTRIES: (u64, u64) = (1 << 12, 1 << 22);

/// All captures of a router.
#[derive(Debug)]
pub struct Captures {
    ingress: Vec<Capture>,
    egress: Capture,
    options: TapOptions,
}

impl Captures {
    /// Opens captures of the links into a router, and that of the link out of it, whose queue is analysed. Nothing is read
    /// yet.
    ///
    /// # Errors
    /// Fails if the expression is invalid, if two captures are the same file, or if one cannot be read several times.
    pub fn open(ingress: Vec<Ingress>, egress: &Path, options: TapOptions) -> Result<Self, TapError> {
        let chosen = PacketFilter::from_flag(Flag::Input, options.only.as_deref())?;
        let tunnel = if options.inner { Tunnel::Inner } else { Tunnel::Outer };
        let of = |path: &Path, shift| Capture { path: path.to_owned(), tunnel, shift, chosen: chosen.clone() };
        let ingress = ingress.into_iter().map(|Ingress { path, rate }| {
            of(&path, rate.filter(|_| options.stamps == Stamps::First).map_or(Shift::None, Shift::ToEnd))
        });
        let ingress: Vec<_> = ingress.collect();
        let shift = options.rate.filter(|_| options.stamps == Stamps::Last).map_or(Shift::None, Shift::ToStart);
        let egress = of(egress, shift);
        let mut places = Vec::new();
        for capture in ingress.iter().chain([&egress]) {
            capture.check()?;
            let place = FileIdentity::from_path(&capture.path);
            if places.contains(&place) {
                return Err(TapError::Twice { path: capture.path.clone() });
            }
            places.push(place);
        }
        Ok(Self { ingress, egress, options })
    }

    /// The bytes that all passes read together, if all captures are regular files.
    pub fn length(&self) -> Option<u64> {
        let all = self.ingress.iter().chain([&self.egress]).map(Capture::length).sum::<Option<u64>>();
        all.map(|all| all * PASSES)
    }

    /// Runs all passes but the last: for the captured length, the clocks, and then the routes and better clocks. `progress`
    /// is also used in the last pass.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is not a capture, or if no capture before the router shares packets with the one
    /// behind it.
    pub fn survey(self, progress: Progress<'_>) -> Result<TapSurvey<'_>, TapError> {
        let options = &self.options;
        let params = TapParams {
            max_delay: options.max_delay,
            shared_clock: options.shared_clock,
            unseen: options.unseen,
            ..TapParams::default()
        };
        let work = TapProgress::new(progress);
        let stretch = params.max_delay.saturating_add(params.early);
        let content = |capture: &Capture| capture.content(stretch, &work);
        let egress = content(&self.egress)?;
        let contents = self.ingress.iter().map(content).collect::<Result<Vec<_>, _>>()?;
        let reach = contents.iter().chain([&egress]).map(|content| content.reach).min().unwrap_or(Reach::MOST);
        let entries: u64 = contents.iter().map(|content| content.busiest).sum();
        let entries = entries.clamp(ENTRIES.0, ENTRIES.1) as usize;
        let invariant = InvariantParams { nat: options.nat, reach, checksums: options.checksums };
        let clocks = self.clocks(&params, invariant, &work)?;
        let links = contents.into_iter().zip(clocks).map(|(content, clock)| Link { content, clock }).collect();
        let routes = Routes::new(params.routes, params.most_routes);
        let params = TapParams { entries, ..params };
        let mut survey =
            TapSurvey { captures: self, work, links, egress, invariant, params, routes, disorder: Nanos::ZERO };
        let mut order = Disorder::default();
        let matcher = survey.matched(None, None, None, &mut order)?;
        let (routes, clocks) = (matcher.routes(), matcher.clocks());
        (survey.routes, survey.disorder) = (routes, order.disorder);
        let used = survey.links.iter_mut().filter_map(|link| link.clock.as_mut());
        for (clock, better) in used.zip(clocks) {
            clock.estimate = better.unwrap_or(clock.estimate);
        }
        Ok(survey)
    }

    /// Estimates the clocks of the links from a sample of packets.
    fn clocks(
        &self,
        params: &TapParams,
        invariant: InvariantParams,
        work: &TapProgress<'_>,
    ) -> Result<Vec<Option<LinkSurvey>>, TapError> {
        let survey =
            SurveyParams { max_delay: params.max_delay, shared_clock: params.shared_clock, ..SurveyParams::default() };
        let mut survey = Survey::new(survey, self.ingress.len());
        let mut reading = self.egress.read(invariant, work, None)?;
        while let Some(seen) = reading.next_seen() {
            survey.egress(&seen);
        }
        for (link, capture) in self.ingress.iter().enumerate() {
            let mut reading = capture.read(invariant, work, None)?;
            while let Some(seen) = reading.next_seen() {
                survey.ingress(link, &seen);
            }
        }
        let found = survey.finish();
        if let Some(why) = found.iter().find_map(|found| found.err()).filter(|_| found.iter().all(Result::is_err)) {
            let [before, behind] = [&self.ingress[0], &self.egress].map(|capture| capture.path.clone());
            return Err(TapError::Unmatched { before, behind, why });
        }
        Ok(found.into_iter().map(Result::ok).collect())
    }
}

/// The results of the first passes, before packets are matched for a listener.
pub struct TapSurvey<'p> {
    captures: Captures,
    work: TapProgress<'p>,
    links: Vec<Link>,
    egress: CaptureSurvey,
    invariant: InvariantParams,
    params: TapParams,
    routes: Routes,
    /// The most by which a packet came earlier than one that left before it.
    disorder: Nanos,
}

/// A link into the router.
struct Link {
    content: CaptureSurvey,
    /// Its clock. `None` if none of its packets came out; the link is then left out.
    clock: Option<LinkSurvey>,
}

/// Options of the last pass.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FinalPass<'a> {
    /// The part of flow keys to keep.
    pub mask: KeyMask,
    /// What a flow is in the count of losses by flow.
    pub granularity: Granularity,
    /// Whether the headers of packets that came in are passed to [`Listener::came`].
    pub headers: bool,
    /// Stops the pass early, if it is given.
    pub stop: Option<&'a Stop>,
}

impl FinalPass<'_> {
    /// Options without headers, for a pass to the end of the captures.
    pub fn new(mask: KeyMask, granularity: Granularity) -> Self {
        Self { mask, granularity, headers: false, stop: None }
    }
}

impl<'p> TapSurvey<'p> {
    /// The uncertainty of the clocks: times that differ by at most this may be the same.
    pub fn tolerance(&self) -> Nanos {
        // Twice, because the order was determined before the clocks were improved.
        Nanos(2 * self.within().max().unwrap_or_default().0)
    }

    /// The most by which a packet came earlier than one that left before it, within the uncertainty of the clocks.
    pub fn disorder(&self) -> Nanos {
        self.disorder.saturating_add(self.tolerance()).min(self.params.max_delay)
    }

    /// Runs the last pass. It passes packets that left the router or were lost in it to `listener`.
    ///
    /// # Errors
    /// Fails if a capture cannot be read any more.
    pub fn read<L: Listener<Key = MaskedKey>>(
        self,
        wanted: &FinalPass<'_>,
        listener: &mut L,
    ) -> Result<Tapped<'p>, TapError> {
        let headers = wanted.headers.then(|| Headers::new(self.params.max_delay, self.params.early));
        let mut bridge = Bridge::new(
            listener,
            wanted.mask,
            wanted.granularity,
            self.params.max_delay,
            self.within().collect(),
            headers.as_ref(),
        );
        let routes = Some(self.routes.clone());
        let matcher = self.matched(routes, headers.as_ref(), wanted.stop, &mut bridge)?;
        let (handed, stats) = (bridge.finish(), *matcher.stats());
        Ok(Tapped { survey: self, handed, stats, granularity: wanted.granularity })
    }

    /// The uncertainty of the clock of each link that is used.
    fn within(&self) -> impl Iterator<Item = Nanos> {
        self.links.iter().filter_map(|link| Some(link.clock?.estimate.within))
    }

    /// Runs a pass that matches packets. A signal ends it if `stop` is given. Stores the headers of packets that come in if
    /// `headers` is given.
    fn matched(
        &self,
        routes: Option<Routes>,
        headers: Option<&Headers>,
        stop: Option<&Stop>,
        output: &mut impl TapOutput,
    ) -> Result<Matcher, OpenError> {
        let used = self.captures.ingress.iter().zip(&self.links);
        let used = used.filter_map(|(capture, link)| Some((capture, link.clock?.estimate)));
        let (captures, clocks): (Vec<_>, Vec<ClockEstimate>) = used.unzip();
        let clocks: Vec<Clock> = clocks.iter().map(|estimate| estimate.clock).collect();
        let ingress = captures.iter().enumerate().map(|(link, capture)| {
            let reading = capture.read(self.invariant, &self.work, stop)?;
            Ok(reading.keeping(headers.map(|headers| (headers, link))))
        });
        let mut ingress = ingress.collect::<Result<Vec<_>, OpenError>>()?;
        let mut egress = self.captures.egress.read(self.invariant, &self.work, stop)?;
        let mut matcher = match routes {
            Some(routes) => Matcher::with_routes(self.params, &clocks, routes),
            None => Matcher::new(self.params, &clocks),
        };
        let Ok(()) = drive(&mut ingress, &mut egress, &mut matcher, output);
        Ok(matcher)
    }
}

/// Measures by how much packets overtake one another in the router.
#[derive(Default)]
struct Disorder {
    latest: Nanos,
    disorder: Nanos,
}

impl TapOutput for Disorder {
    fn departed(&mut self, departure: &TapDeparture) {
        if let Some(enqueued) = departure.enqueued() {
            self.disorder = self.disorder.max(self.latest.saturating_sub(enqueued));
            self.latest = self.latest.max(enqueued);
        }
    }

    fn lost(&mut self, _packet: &TapPacket, _link: usize, _enqueued: Nanos) {}
}
