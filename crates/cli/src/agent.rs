//! `queuescope agent`: records the packets of an interface, or reports of switches, and answers a coordinator about them; or about the folder of another process.

mod folder;
mod reports;
mod table;

use crate::args::Agent as AgentArgs;
use crate::capture_live::{CaptureProgress, Limits, LiveCapture};
use crate::expressions::recording_error;
use crate::fleet::{Access, HostUploads, Network, Refused, Uploading};
use crate::flow_acts::{allowed, note_counts};
use crate::outcome::{Outcome, print};
use crate::terminal::note;
use anyhow::{Context, Result};
use queuescope_fleet::agent::Served;
use queuescope_ingest::Stop;
use queuescope_ingest::records::{Frames, Records};
use queuescope_live::capture::CaptureParams;
use queuescope_recording::{CpuBudget, Error, Headers, IntoFolder, into_folder};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are copied of each packet: the headers.
const SNAPLEN: u32 = 128;

/// Runs `agent`.
///
/// # Errors
/// Fails if nothing could be recorded, or if the coordinator refuses this host.
pub fn run(args: &AgentArgs) -> Result<Outcome> {
    if let Some(folder) = &args.folder {
        return folder::run(args, folder);
    }
    let Some(interface) = &args.interface else {
        return args.departures.as_deref().map_or_else(|| reports::run(args), |path| table::run(args, path));
    };
    let headers = Headers::of(args.recorded.chosen.as_deref(), args.recorded.inner, None)?;
    let access = Access::open(&args.access)?;
    let uploads = args.upload.as_deref().map(|url| HostUploads::of(&access, url)).transpose()?;
    let mut acts = allowed(&args.acting, &access.coordinator)?;
    let stop = Stop::on_signals()?;
    let params = CaptureParams { snaplen: SNAPLEN, direction: args.direction.into(), ring: args.buffer.0 };
    let limits = Limits { duration: args.run_time.duration, most: u64::MAX };
    let mut live = LiveCapture::open(interface, params, headers, stop.clone(), limits)?;
    if let Some(share) = args.cpu {
        live.limit(CpuBudget::new(share));
    }
    let refused = Refused::default();
    let mut uploaded = None;
    let put = |folder: &mut IntoFolder<'_>| {
        folder.take_installed()?;
        let (shed, complete) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let source = format!("interface {interface}");
        let served = Served::new(folder.recorder(), args.log().to_owned(), source, Arc::clone(&shed));
        let mut served = served.completing(Arc::clone(&complete));
        // Before the first packet: from then on, old volumes are removed.
        let uploading = uploads.as_ref().map(|uploads| uploads.beside(&folder.recorder())).transpose();
        let uploading = uploading.map_err(|error| Error::Source(error.into()))?;
        if let Some(uploading) = &uploading {
            served = served.with_uploads(uploading.status());
        }
        if let Some(acts) = acts.take() {
            served = served.acting(acts);
        }
        let network = Network::start(served.clone(), access, stop, refused.clone());
        let network = network.map_err(|error| Error::Source(error.into()))?;
        let mut progress = |so_far: CaptureProgress| {
            shed.store(so_far.shed, Ordering::Relaxed);
            // After the records, so that its readers find them.
            complete.fetch_max(so_far.complete.0, Ordering::Release);
        };
        let ended = live.to_folder(folder, Some(&mut progress));
        network.end();
        note_counts(served.act_counts());
        uploaded = uploading.map(Uploading::end);
        ended
    };
    let (keeping, derived) = (args.keeping.options(Frames::schema())?, args.derived.options()?);
    let (ended, kept) = into_folder(args.log(), &keeping, &derived, Box::new(note), put).map_err(recording_error)?;
    let counted = live.counted();
    let notes = live.notes(counted, Some(&kept));
    let to = kept.recorded.path.display().to_string();
    let missing = kept.recorded.unwritten.as_ref().map_or(0, |unwritten| unwritten.packets);
    print(false, |_| Ok(()), |out| live.write_summary(&to, missing, &notes, out))?;
    if let (Some(uploads), Some(counts)) = (&uploads, uploaded) {
        uploads.rest(args.log(), &counts);
    }
    refused.check()?;
    Ok(Outcome::from_damage(ended?.or_else(|| kept.recorded.damage())))
}

/// Answers the coordinator until the network is ended.
fn serve(served: Served, access: Access, stop: &Stop) -> Result<(Network, Refused)> {
    let refused = Refused::default();
    let network = Network::start(served, access, stop.clone(), refused.clone()).context("cannot start threads")?;
    Ok((network, refused))
}
