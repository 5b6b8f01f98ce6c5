//! `queuescope why`: which flows made a packet, a flow, or the packets at some time wait.

use crate::args::{AskedTime, PacketName, Why};
use crate::expressions::{expression_error, show};
use crate::outcome::{Outcome, print};
use crate::setup::focused;
use crate::source;
use anyhow::{Result, anyhow, bail};
use queuescope_analysis::why::{At, Nothing, Question, Recorder, WhyError};
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{Opened, PacketFilter};
use queuescope_report::{json, text};
use queuescope_wire::FlowTable;

/// Runs `why`.
///
/// # Errors
/// Fails if the input cannot be read, or if no packet in it matches the question.
pub fn run(args: &Why) -> Result<Outcome> {
    #[cfg(all(target_os = "linux", feature = "fleet"))]
    if let (Some(coordinator), Some(credentials)) = (&args.asked.fleet, &args.asked.credentials) {
        return crate::fleet::why(args, coordinator, credentials);
    }
    #[cfg(not(all(target_os = "linux", feature = "fleet")))]
    if args.asked.fleet.is_some() {
        anyhow::bail!("this build of queuescope cannot ask a fleet");
    }
    let question = question(args)?;
    let answer = match source::open(&args.input, None)? {
        Opened::Capture(opened) => {
            let analysis_options = focused(&args.keys, &args.focus);
            let mut recorder = Recorder::new(analysis_options.flows(usize::MAX), question);
            let queue = source::queue(&args.input, &args.keys, None);
            let source = source::replay(opened, &queue, analysis_options.mask(), &mut recorder)?;
            recorder.answer(source)
        }
        Opened::Table(opened) => {
            let mut recorder = Recorder::new(FlowTable::with_limit(usize::MAX), question);
            let source = source::table(opened, &mut recorder)?;
            recorder.answer(source)
        }
    };
    let answer = answer.map_err(in_options)?;
    print(args.json, |mut out| json::write_why(&answer, &mut out), |mut out| text::write_why(&answer, &mut out))?;
    Ok(Outcome::from_damage(answer.input.damage))
}

fn question(args: &Why) -> Result<Question> {
    let unknown = if args.input.table.departures { Unknown::OF_TABLE } else { Unknown::NOTHING };
    let mut question = Question::default();
    question.packet = match &args.packet {
        Some(PacketName::Number(number)) => Some(*number),
        Some(PacketName::Digest(digest)) => {
            bail!(
                "--packet {digest} is the digest of a packet, which the hosts of a fleet know (--fleet HOST:PORT); a file has numbers"
            )
        }
        None => None,
    };
    question.flow = args.flow.clone();
    question.victims = PacketFilter::victims(args.focus.victims.as_deref(), unknown).map_err(expression_error)?;
    question.at = args.at.as_ref().map(after_first).transpose()?;
    question.alpha = args.alpha.0;
    question.show = show(args.focus.show.as_deref())?;
    Ok(question)
}

/// The time of `--at`.
fn after_first(asked: &AskedTime) -> Result<At> {
    let AskedTime { text, after_first } = asked;
    after_first.ok_or_else(|| {
        anyhow!("--at {text} is a date, and times in a file count from its first packet: write 1.2s, or 1.2s..1.5s")
    })
}

/// Words an error in terms of the options that fix it.
fn in_options(error: WhyError) -> anyhow::Error {
    match error {
        WhyError::NothingLeft { input, reason } => {
            let why = match reason {
                Nothing::LeftOut => "--input leaves every packet out".to_owned(),
                Nothing::ButDrops => "every packet was dropped: is --limit too small?".to_owned(),
                other => other.to_string(),
            };
            anyhow!("{input}: nothing left the queue, so nothing waited; {why}")
        }
        WhyError::LeftOut { unit, number } => {
            anyhow!("--input leaves {unit} {number} out: choose one that matches it, or leave --input out")
        }
        WhyError::Moment { they_wait, moment } => {
            anyhow!("{they_wait} for a range of time, and {moment} is a moment: write --at FROM..TO")
        }
        WhyError::OnlyDrops { packets, drops } => {
            anyhow!("no packet {packets}, but {drops} were dropped: choose one of them with --packet")
        }
        WhyError::NoFlow { text } => {
            anyhow!("no flow has a name with '{text}' in it; names are as analyze prints them")
        }
        error => error.into(),
    }
}
