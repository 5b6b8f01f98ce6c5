//! What the paper describes but did not run: a domain with several bottlenecks, and a sender that writes its own
//! activity.
//!
//! Both are graphs. Each client has an edge, which only meters. The links have the paper's rate, delay and buffer, and
//! only drop.

use super::{Size, start, tcp};
use crate::outcome::Finding;
use crate::results::{Point, Results};
use crate::study::Cell;
use std::fmt::Write;

pub const DOMAIN: &str = "domain";
pub const LIAR: &str = "own-activity";

/// The heavy clients, one for each bottleneck in a row.
const HEAVY: [&str; 3] = ["client 2", "client 3", "client 4"];
const HOPS: usize = HEAVY.len();
/// Flows of each heavy client.
const FLOWS: u32 = 16;
/// The varied parameter.
const ABC: &str = "ABC";
const CLIENT_0: &str = "client 0";

/// Where activity is measured in the domain.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measured {
    /// Nowhere: there is no ABC.
    Nowhere,
    /// At the edges; the links read what these wrote.
    AtEdges,
    /// At each link, independently.
    AtEachHop,
}

impl Measured {
    const ALL: [Self; 3] = [Self::Nowhere, Self::AtEdges, Self::AtEachHop];

    fn name(self) -> &'static str {
        match self {
            Self::Nowhere => "no",
            Self::AtEdges => "carried",
            Self::AtEachHop => "measured at each hop",
        }
    }
}

/// What a heavy client writes into its packets, and whether its edge measures it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Client {
    Honest,
    Overwritten,
    Trusted,
}

impl Client {
    const ALL: [Self; 3] = [Self::Honest, Self::Overwritten, Self::Trusted];

    fn name(self) -> &'static str {
        match self {
            Self::Honest => "writes nothing",
            Self::Overwritten => "writes -10, and is measured",
            Self::Trusted => "writes -10, and is not measured",
        }
    }
}

/// All cells of both experiments.
pub fn cells(size: Size, cells: &mut Vec<Cell>) {
    for seed in 1..=size.seeds {
        for measured in Measured::ALL {
            let parameters = vec![(ABC, measured.name().to_owned())];
            cells.push(Cell { figure: DOMAIN, parameters, seed, scenario: domain(size, measured, seed) });
        }
        for client in Client::ALL {
            let parameters = vec![(CLIENT_0, client.name().to_owned())];
            cells.push(Cell { figure: LIAR, parameters, seed, scenario: own_activity(size, client, seed) });
        }
    }
}

/// The client with one flow passes all hops. On each it meets a client with sixteen flows.
fn domain(size: Size, measured: Measured, seed: u64) -> String {
    let mut text = head(size, seed, "hop 2");
    edge(&mut text, "light", 1, measured == Measured::AtEdges);
    for hop in 1..=HOPS {
        edge(&mut text, &format!("heavy {hop}"), hop, measured == Measured::AtEdges);
        let program = match measured {
            Measured::Nowhere => "",
            Measured::AtEdges => "[wires.pipeline.abc]\nmeters = false\nstrips = false\n",
            Measured::AtEachHop => "[wires.pipeline.abc]\nstrips = false\n",
        };
        bottleneck(&mut text, hop, program);
    }
    flows(&mut text, "client 1", "light", HOPS + 1, start(seed, 0), &tcp(1));
    for (hop, name) in (1..).zip(HEAVY) {
        flows(&mut text, name, &format!("heavy {hop}"), hop + 1, start(seed, hop as u64), &tcp(FLOWS));
    }
    text
}

/// One bottleneck. Client 0 has sixteen flows and writes its own activity.
fn own_activity(size: Size, client: Client, seed: u64) -> String {
    let mut text = head(size, seed, "hop 1");
    edge(&mut text, "heavy", 1, client != Client::Trusted);
    edge(&mut text, "light", 1, true);
    bottleneck(&mut text, 1, "[wires.pipeline.abc]\nmeters = false\n");
    let writes = if client == Client::Honest { "" } else { "activity = -10.0\n" };
    flows(&mut text, "client 0", "heavy", 2, start(seed, 0), &format!("{}{writes}", tcp(FLOWS)));
    flows(&mut text, "client 1", "light", 2, start(seed, 1), &tcp(1));
    text
}

fn head(size: Size, seed: u64, meter: &str) -> String {
    format!(
        "seed = {seed}\nduration = \"{}s\"\ntopology = \"graph\"\n\n[access]\nrate = \"100mbps\"\ndelay = \"2.5ms\"\n\n\
         [[meters]]\nlink = \"{meter}\"\n",
        size.seconds
    )
}

/// A client's edge, before a hop. Writing to a string does not fail, here and below.
fn edge(text: &mut String, name: &str, hop: usize, meters: bool) {
    let program = if meters { "[wires.pipeline.abc]\nstrips = false\naqm = \"none\"\n" } else { "" };
    _ = write!(
        text,
        "\n[[wires]]\nfrom = \"{name}\"\nto = \"r{hop}\"\nrate = \"100mbps\"\ndelay = \"0ms\"\nlimit = \"1000packets\"\n{program}"
    );
}

fn bottleneck(text: &mut String, hop: usize, program: &str) {
    _ = write!(
        text,
        "\n[[wires]]\nname = \"hop {hop}\"\nfrom = \"r{hop}\"\nto = \"r{}\"\nrate = \"50040kbps\"\ndelay = \"5ms\"\n\
         limit = \"24packets\"\n{program}",
        hop + 1
    );
}

/// Flows to the host behind a router. They start after `start` ms.
fn flows(text: &mut String, name: &str, from: &str, to: usize, start: u64, traffic: &str) {
    _ = write!(
        text,
        "\n[[flows]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"r{to}\"\nstart = \"{start}ms\"\n{traffic}"
    );
}

/// Results of both experiments. The paper has none.
pub fn findings(results: &Results) -> Vec<Finding> {
    let goodput = |figure, parameter: &str, is: &str, who: &str| {
        let point = |point: &&Point| point.parameter(parameter) == is;
        let found = results.of(figure).find(point);
        found.map_or("-".to_owned(), |point| point.shown(&format!("{who} goodput (Mb/s)"), 1))
    };
    let of_domain = |measured: Measured, who: &str| goodput(DOMAIN, ABC, measured.name(), who);
    let of_liar = |client: Client, who: &str| goodput(LIAR, CLIENT_0, client.name(), who);
    let heavy = ["client 2", "client 3", "client 4"].map(|who| of_domain(Measured::AtEdges, who));
    vec![
        Finding {
            figure: DOMAIN,
            what: format!("one flow over {HOPS} bottlenecks beside {FLOWS} flows on each: its goodput (Mb/s)"),
            paper: "not run".to_owned(),
            ours: of_domain(Measured::AtEdges, "client 1"),
            difference: None,
            why: format!(
                "{} without ABC, {} if each hop measures again; the heavy ones get {}",
                of_domain(Measured::Nowhere, "client 1"),
                of_domain(Measured::AtEachHop, "client 1"),
                heavy.join(", ")
            ),
        },
        Finding {
            figure: LIAR,
            what: format!("client 1's goodput beside {FLOWS} flows that write an activity of -10 (Mb/s)"),
            paper: "not run".to_owned(),
            ours: of_liar(Client::Overwritten, "client 1"),
            difference: None,
            why: format!(
                "{} if they write nothing; {} if their edge does not measure them",
                of_liar(Client::Honest, "client 1"),
                of_liar(Client::Trusted, "client 1")
            ),
        },
    ]
}
