//! `queuescope p4 generate`: an algorithm as a P4 program.

mod explain;
mod folder;
mod legacy;
mod limits;
mod p4air;
mod printqueue;
mod readme;
mod set;
mod stands;
#[cfg(test)]
mod tests;

use crate::args::Generate as Args;
use crate::outcome::Outcome;
use anyhow::{Context, Result, anyhow, bail};
use folder::More;
use p4air::P4air;
use printqueue::PrintQueue;
use queuescope_p4::algorithms::{
    self, ConQuestLegacyParams, Dimensions, STEP_THRESHOLD, abc_at_border, conquest_defaults, conquest_legacy_with,
    conquest_stands_defaults, executable_with, p4air_control, p4air_with, pie_cp_control, red_egress_with, step_with,
};
use queuescope_p4::ir::{Architecture, SwitchProgram, print, refusal};
use queuescope_p4::{Fit, Grade, Target};
use queuescope_queue::{ConQuestAqmParams, DisciplineParams, PipelineParams};
use queuescope_scenario::{Management, Parameter};
use queuescope_sketch::ConQuestParams;
use stands::Stands;
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// Runs `p4 generate`.
///
/// # Errors
/// Fails if the algorithm has no program, a parameter is not valid, the program does not fit the target, or it cannot be written.
pub fn run(args: &Args) -> Result<Outcome> {
    let Some(name) = &args.algorithm else { return text(&list()?) };
    if let Some(set) = args.set.iter().find(|set| set.chars().any(char::is_control)) {
        bail!("--set {set:?} has a control character, such as a line break: write KEY=VALUE");
    }
    let is_twice =
        |number: usize| args.forward[..number].iter().any(|it| it.destination == args.forward[number].destination);
    if (0..args.forward.len()).any(is_twice) {
        bail!("--forward names an address twice: give each one port");
    }
    if let Some(port) = (1..args.border.len()).find(|number| args.border[..*number].contains(&args.border[*number])) {
        bail!("--border {} is given twice", args.border[port]);
    }
    let parameters = parameters(name, &args.set)?;
    let program = program(name, &parameters, &args.border)?;
    let architecture = |target: &String| Architecture::ALL.into_iter().find(|it| it.name() == target);
    let architecture = args.target.as_ref().and_then(architecture);
    let architecture = match architecture {
        _ if args.explain => return text(&explain::text(&parameters, &program, architecture)?),
        None => bail!("--target is missing: v1model or tna"),
        Some(architecture) => architecture,
    };
    check(&program, architecture)?;
    if architecture != Architecture::V1model && !args.forward.is_empty() {
        bail!("--forward writes entries for BMv2: leave it out, or use --target v1model");
    }
    if program.is_off_path() && !args.forward.is_empty() {
        bail!("{name} forwards nothing: leave --forward out");
    }
    let set: String = args.set.iter().map(|set| format!(" --set {}", quoted(set))).collect();
    let border: String = args.border.iter().map(|port| format!(" --border {port}")).collect();
    let made_by = format!("{MADE_BY}{name} --target {}{set}{border}\n", architecture.name());
    let code = made_by + &print(&program, architecture);
    match &args.output {
        Some(folder) => {
            let more = More { control: control(&parameters, architecture)?, forwarding: &args.forward };
            text(&folder::write(folder, &program, architecture, code, more)?)
        }
        None => text(&code),
    }
}

/// How the first line of a program begins.
const MADE_BY: &str = "// Made by: queuescope p4 generate ";

/// The program that a text was made from, by its first line. None if `p4 generate` did not make it.
///
/// # Errors
/// Fails if the line names an algorithm or parameters that do not exist here.
pub(super) fn made_from(text: &str) -> Result<Option<SwitchProgram>> {
    let Some(words) = text.lines().next().and_then(|line| line.strip_prefix(MADE_BY)) else { return Ok(None) };
    let words = shlex::split(words).context("its first line has a quotation mark without its end")?;
    let name = words.first().context("its first line names no algorithm")?;
    if !algorithms::NAMES.contains(&name.as_str()) {
        bail!("its first line names an unknown algorithm: {name}");
    }
    let values = |option: &'static str| words.windows(2).filter(move |pair| pair[0] == option).map(|pair| &pair[1]);
    let parameters = parameters(name, &values("--set").cloned().collect::<Vec<_>>())?;
    let border = values("--border").map(|port| port.parse()).collect::<Result<Vec<_>, _>>();
    Ok(Some(program(name, &parameters, &border.context("its first line has a port that is not a number")?)?))
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "=._-/:%+@".contains(letter);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

fn text(text: &str) -> Result<Outcome> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Outcome::Complete),
        other => other.context("cannot write to standard output").map(|()| Outcome::Complete),
    }
}

/// All algorithms, and for which targets they can be generated.
fn list() -> Result<String> {
    let executable = algorithms::executable()?;
    let mut list = format!("{:<18}  v1model  tna  about\n", "algorithm");
    for steps in algorithms::all(Dimensions::default()) {
        let program = executable.iter().find(|program| program.name() == steps.name());
        let cell = |architecture| match program {
            Some(program) if check(program, architecture).is_ok() => "yes",
            _ => "no",
        };
        let [v1model, tna] = Architecture::ALL.map(cell);
        let _ = writeln!(list, "{:<18}  {v1model:>7}  {tna:>3}  {}", steps.name(), steps.about());
    }
    let without = algorithms::NAMES.iter().filter(|name| !algorithms::EXECUTABLE.contains(name));
    let without: Vec<_> = without.map(|name| format!("{name} ({})", forms(name).join(", "))).collect();
    let _ = writeln!(list, "\nWithout a program, and what a switch can have of each: {}.", without.join("; "));
    Ok(list)
}

/// The parameters of an algorithm.
#[derive(Debug, Clone, PartialEq)]
enum Parameters {
    /// Those of scenarios.
    Management(Management),
    PrintQueue(PrintQueue),
    Legacy(ConQuestLegacyParams),
    P4air(Box<P4air>),
    Stands(Box<Stands>),
}

impl Parameters {
    /// Each with its value.
    fn list(&self) -> Vec<Parameter> {
        match self {
            Self::Management(management) => management.parameters(),
            Self::PrintQueue(printqueue) => printqueue.parameters(),
            Self::Legacy(params) => legacy::parameters(params),
            Self::P4air(p4air) => p4air.parameters(),
            Self::Stands(stands) => stands.parameters(),
        }
    }
}

/// The parameters of an algorithm: its defaults, and those that are set.
///
/// # Errors
/// Fails if one is not a parameter of the program, or does not have this value.
fn parameters(name: &str, set: &[String]) -> Result<Parameters> {
    if set.is_empty() {
        return parsed(name, set);
    }
    let defaults = parsed(name, &[])?;
    match parsed(name, set) {
        Ok(parameters) => {
            limits::check_unused(name, set, &parameters, &defaults)?;
            Ok(parameters)
        }
        Err(error) => {
            limits::check_known(name, set, &defaults)?;
            Err(error)
        }
    }
}

/// The same, with parameters of scenarios that the program does not have.
fn parsed(name: &str, set: &[String]) -> Result<Parameters> {
    if !algorithms::EXECUTABLE.contains(&name) {
        return Err(without_program(name));
    }
    if let Some(printqueue) = PrintQueue::named(name) {
        return Ok(Parameters::PrintQueue(printqueue.with(set)?));
    }
    if name == "conquest-legacy" {
        return Ok(Parameters::Legacy(legacy::with(set)?));
    }
    if name == "p4air" {
        return Ok(Parameters::P4air(Box::new(P4air::with(set)?)));
    }
    if name == stands::NAME {
        return Ok(Parameters::Stands(Box::new(Stands::with(set)?)));
    }
    Ok(Parameters::Management(management(name, set)?))
}

/// Why an algorithm has no program, and the programs that a switch can have of it.
fn without_program(name: &str) -> anyhow::Error {
    let steps = algorithms::all(Dimensions::default()).into_iter().find(|steps| steps.name() == name);
    let fit = steps.map(|steps| Fit::new(&steps, &Target::tofino()));
    let infeasible = fit.iter().flat_map(|fit| &fit.aspects).filter(|(_, verdict)| verdict.grade == Grade::Infeasible);
    let why = infeasible.flat_map(|(_, verdict)| &verdict.reasons).next();
    let why = why.map_or("its steps have no integer form here".to_owned(), ToString::to_string);
    anyhow!("{name} has no program: {why}; programs of it for a switch: {}", forms(name).join(", "))
}

/// The programs that a switch can have of an algorithm that has none of its name.
fn forms(name: &str) -> Vec<&'static str> {
    let is_form = |program: &&&str| match name {
        "pi2" => **program == "egress-pi",
        _ => program.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')),
    };
    algorithms::EXECUTABLE.iter().filter(is_form).copied().collect()
}

/// The parameters of scenarios.
fn management(name: &str, set: &[String]) -> Result<Management> {
    let key = |text: &String| text.split('=').next().unwrap_or_default().trim().to_owned();
    if let Some(twice) = (1..set.len()).find(|number| set[..*number].iter().any(|it| key(it) == key(&set[*number]))) {
        bail!("--set {}: {} is set twice: give it one value", set[twice], key(&set[twice]));
    }
    let management =
        Management::parse_with("--set", &management_text(name, set), set).map_err(|why| anyhow!("{why}"))?;
    // A switch cleans; --aqm has tags.
    Ok(match management {
        Management::Program(PipelineParams::ConQuestAqm(params)) => {
            let sketch = ConQuestParams { expiry: conquest_defaults().sketch.expiry, ..params.sketch };
            Management::Program(PipelineParams::ConQuestAqm(ConQuestAqmParams { sketch, ..params }))
        }
        other => other,
    })
}

/// The program of an algorithm with these parameters, and for ABC with these ports on the other side of the domain's border.
fn program(name: &str, parameters: &Parameters, border: &[u16]) -> Result<SwitchProgram> {
    if !border.is_empty() && !name.starts_with("abc-") {
        bail!(
            "--border is about the domain of ABC, and {name} has none: leave it out, or generate one of the abc programs"
        );
    }
    let management = match parameters {
        Parameters::Management(management) => management,
        Parameters::PrintQueue(printqueue) => return printqueue.program(),
        Parameters::Legacy(params) => return Ok(conquest_legacy_with(params)?),
        Parameters::P4air(p4air) => return Ok(p4air_with(&p4air.params)?),
        Parameters::Stands(stands) => return stands.program(),
    };
    match management {
        Management::Program(PipelineParams::Abc(params)) => {
            abc_at_border(name, params, border)?.with_context(|| format!("{name} has no program"))
        }
        Management::Program(params) => {
            let program = executable_with(params)?.with_context(|| format!("{name} has no program"))?;
            if program.name() != name {
                bail!("with these parameters, {name} is {}: name that", program.name());
            }
            Ok(program)
        }
        Management::Discipline(DisciplineParams::Codel(params)) if name == "step" => {
            Ok(step_with(params.ce_threshold.context("step has a threshold: --set ce-threshold=100us")?)?)
        }
        Management::Discipline(DisciplineParams::Red(params)) if name == "red-egress" => Ok(red_egress_with(params)?),
        Management::Discipline(_) => bail!("{name} is a discipline of one queue, not a program of a switch"),
    }
}

/// The program of the control plane, for the algorithm that has one.
fn control(parameters: &Parameters, architecture: Architecture) -> Result<Option<String>> {
    Ok(match parameters {
        Parameters::Management(Management::Program(PipelineParams::PieCp(params))) => {
            Some(pie_cp_control(params, architecture))
        }
        // There is no program for Tofino.
        Parameters::P4air(p4air) if architecture == Architecture::V1model => p4air_control(&p4air.params).map(Some)?,
        _ => None,
    })
}

/// The algorithm and its defaults as `--aqm` takes them, except those that are set. ConQuest has another name there, and defaults that a switch cannot have. The step
/// is a part of CoDel, RED has another average, and the roles of ABC have a program each.
fn management_text(name: &str, set: &[String]) -> String {
    if name.starts_with("abc-") {
        let (meters, strips) = (name == "abc-edge", name == "abc-strip");
        let role = [format!("meters={meters}"), format!("strips={strips}")];
        let is_set = set.iter().any(|it| it.trim_start().starts_with("aqm"));
        let aqm = ((meters || strips) && !is_set).then(|| "aqm=none".to_owned());
        let role = role.into_iter().chain(aqm);
        return ["abc".to_owned()].into_iter().chain(role).collect::<Vec<_>>().join(",");
    }
    let is_set = |key: &str| set.iter().any(|it| it.split('=').next().is_some_and(|it| it.trim() == key));
    let window = format!("window={}ns", conquest_defaults().sketch.window.0);
    let (name, defaults) = match name {
        "red-egress" => ("red", ["weight=0.001953125", "wait=false", "at-egress=true"].map(str::to_owned).to_vec()),
        "step" => ("codel", vec![format!("ce-threshold={}ns", STEP_THRESHOLD.0)]),
        "conquest" => ("conquest-aqm", vec![window, "estimator=inner".to_owned()]),
        stands::NAME => ("conquest-aqm", standing()),
        "conquest-ingress" => ("conquest-aqm", vec![window, "estimator=inner".to_owned(), "act-at=ingress".to_owned()]),
        "conquest-feedback" => ("conquest-aqm", vec![window, "estimator=inner".to_owned(), LIMITED.to_owned()]),
        other => (other, Vec::new()),
    };
    let defaults = defaults.into_iter().filter(|text| text.split('=').next().is_none_or(|key| !is_set(key)));
    [name.to_owned()].into_iter().chain(defaults).collect::<Vec<_>>().join(",")
}

/// What ConQuest's mark for a standing queue has by default.
fn standing() -> Vec<String> {
    let ConQuestAqmParams { sketch, tau, threshold, .. } = conquest_stands_defaults();
    let window = format!("window={}ns", sketch.window.0);
    let others = [format!("tau={}ns", tau.0), format!("threshold={threshold}")];
    let names = ["estimator=inner", "unit=share-of-queue"].map(str::to_owned);
    [window].into_iter().chain(others).chain(names).collect()
}

/// What `conquest-feedback` does by default.
const LIMITED: &str = "act-at.ingress.action=limit";

/// Checks that a target has what a program does, and that the program fits it, as `p4 fit` does. BMv2 has no stages.
fn check(program: &SwitchProgram, architecture: Architecture) -> Result<()> {
    if architecture == Architecture::V1model {
        return match refusal(program, architecture) {
            Some(why) => bail!("{} is not for {}: {why}", program.name(), architecture.name()),
            None => Ok(()),
        };
    }
    let fit = Fit::new(&program.steps(), &Target::tofino());
    if let Some(why) = &fit.refused {
        let instead = if program.name() == "abc-core" { ": abc-core-median does without" } else { "" };
        bail!("{} is not for {}: {why}{instead}", program.name(), architecture.name());
    }
    if fit.grade() < Grade::Infeasible {
        return Ok(());
    }
    bail!("{} does not fit a Tofino: {}", program.name(), fit.reasons().join("; "))
}
