//! Arguments of `coordinator` and `fleet`.

use super::{PacketName, packet_name};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use queuescope_fleet::coordinator::SinkAddress;
use queuescope_fleet::identity::MemberName;
use queuescope_fleet::journey::WhenAsked;
use queuescope_log::parse_date;
use queuescope_monitor::Listen;
use queuescope_wire::Nanos;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The subcommands of `coordinator`.
#[derive(Debug, Subcommand)]
pub enum Coordinator {
    /// Make a coordinator's folder: its certificate authority, and the credentials of a first administrator.
    Init(CoordinatorInit),
    /// Run the coordinator: agents and people connect to it.
    Run(CoordinatorRun),
}

/// Arguments of `coordinator init`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if the folder was made, 2 if not.\n\n\
                        Example: queuescope coordinator init /var/lib/queuescope --name monitor.example.net --name 192.0.2.7")]
pub struct CoordinatorInit {
    /// The folder. It must not exist, or be empty
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// A DNS name or an IP address at which the coordinator is reached; may be repeated. localhost and loopback addresses are always added. A connection to any other name is
    /// refused, so name all of them
    #[arg(long, value_name = "NAME", required = true)]
    pub name: Vec<String>,
}

/// Arguments of `coordinator run`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if it ended by SIGINT or SIGTERM, 2 if it could not run.\n\n\
                        Examples: queuescope coordinator run /var/lib/queuescope --listen 0.0.0.0:7401\n          \
                        queuescope coordinator run /var/lib/queuescope --send alertmanager:https://alerts.example.net:9093 --send syslog:/dev/log")]
pub struct CoordinatorRun {
    /// The folder that coordinator init made
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// The address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7401")]
    pub listen: SocketAddr,

    /// How long a host's log stays frozen for a cut if the coordinator does not thaw it, from 1ms to 1s
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = lease)]
    pub lease: Nanos,

    /// The newest alerts to keep. The file has at most twice as many
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub keep_alerts: u64,

    /// If another process runs this coordinator, wait, and take over when it ends. Both need the same folder and address
    #[arg(long)]
    pub standby: bool,

    /// Serve metrics for Prometheus at http://ADDRESS/metrics: a loopback address, such as 127.0.0.1:9091, because they have no certificates
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    pub metrics: Option<Listen>,

    /// Alerts to other systems.
    #[command(flatten)]
    pub sending: AlertSending,
}

/// Where and how alerts are sent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sending alerts")]
pub struct AlertSending {
    /// Send alerts to another system; may be repeated: jsonl:PATH (- for standard output), webhook:URL, alertmanager:URL, syslog:HOST:PORT (UDP),
    /// syslog+tcp:HOST:PORT, or syslog:/dev/log. The first start with a sink begins with the alerts that come from then on
    #[arg(long, value_name = "SINK")]
    pub send: Vec<SinkAddress>,

    /// Send equal alerts (same host, trigger and detail) once in this time, by their own times; 0 sends all
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = once, requires = "send")]
    pub send_once: Nanos,

    /// The most alerts that wait for a sink that does not take them: when there are more, the oldest are not sent to it
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..), requires = "send")]
    pub send_backlog: u64,

    /// A file with a token, which requests to webhooks and Alertmanager carry in the field Authorization. They must be on one host, over https
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "send")]
    pub send_token: Option<PathBuf>,

    /// A file with certificates in PEM of authorities that https servers may have certificates of, beside those of this machine
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "send")]
    pub send_authority: Option<PathBuf>,
}

/// The subcommands of `fleet`.
#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// Join a fleet with a token: get a certificate, and keep it in a folder.
    Join(FleetJoin),
    /// Make a token with which one host or person can join once.
    Invite(FleetInvite),
    /// Revoke all certificates of a host or person.
    Revoke(FleetRevoke),
    /// List the members, their states, and what they have recorded.
    Members(FleetMembers),
    /// Check whether the coordinator serves, and accepts this certificate; for scripts and monitoring.
    ///
    /// Any role may. The same check is the call Check of the standard service grpc.health.v1.Health, for programs that know it; it needs a client certificate, too.
    Health(FleetHealth),
    /// Take an atomic snapshot of the logs of all hosts: a cut.
    ///
    /// If one record was visible before another was written, on whatever hosts, a cut that has the second has the first.
    Cut(FleetCut),
    /// List the objects in a store that have the records of a cut, and what is not uploaded yet.
    ///
    /// It asks the store alone, so it can be made again later, when more is uploaded.
    Manifest(FleetManifest),
    /// Upload the volumes of a folder that no agent records to.
    ///
    /// What the store has already is not sent again. Records in journals are not uploaded: queuescope log compact makes volumes of them.
    Upload(FleetUpload),
    /// Ask all hosts, and merge their answers.
    ///
    /// Each host evaluates the question on its own records. The answer names the hosts whose part is missing.
    Query(FleetQuery),
    /// Show the way of a packet through the queues of all hosts and switches: how long it waited in each, and which flows made it wait.
    ///
    /// Of the packets that match, it is the one that waited longest in one queue, unless --packet gives one. With --flow or --at, the answer is about all packets of a flow or a time, queue by queue. It asks the members that record queues: live --log --credentials, and agent
    /// with --int, --int-capture or --departures.
    Why(FleetWhy),
    /// Print the alerts of all hosts, a line of JSON each.
    Alerts(FleetAlerts),
    /// List what control programs did to flows of hosts: marked, dropped and limited ones, dry runs, and what was refused.
    Actions(FleetActions),
    /// Add, list and remove control programs: what hosts compute, and what the coordinator asks and raises.
    #[command(subcommand)]
    Program(FleetProgram),
}

/// The subcommands of `fleet program`.
#[derive(Debug, Subcommand)]
pub enum FleetProgram {
    /// Add a control program, or replace the one of this name.
    Add(ProgramAdd),
    /// Check a control program, without a coordinator.
    Check(ProgramFile),
    /// List the control programs, their runs, and the hosts that have their definitions.
    List(ProgramList),
    /// Remove a control program, and its definitions from all hosts.
    Remove(ProgramRemove),
}

/// A control program in a file.
#[derive(Debug, Args)]
pub struct ProgramFile {
    /// File (TOML) with the program, such as one of recipes/fleet
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Set a parameter of that file: `switch=7`
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// Arguments of `fleet program add`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: queuescope fleet program add heavy recipes/fleet/heavy-hitters.toml --set limit=10MB --credentials me"
)]
pub struct ProgramAdd {
    /// Its name: letters, digits and underscores. Its alerts are named NAME.ALERT
    pub name: String,

    /// The program.
    #[command(flatten)]
    pub program: ProgramFile,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Arguments of `fleet program list`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if all programs work, 1 if one is in trouble or a host lacks a part of it, 2 if there is no answer."
)]
pub struct ProgramList {
    /// Print a line of JSON for each program, with its text
    #[arg(long)]
    pub json: bool,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Arguments of `fleet program remove`.
#[derive(Debug, Args)]
pub struct ProgramRemove {
    /// Its name
    pub name: String,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// How a coordinator is reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct FleetAccess {
    /// The folder with your certificate, which fleet join made
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub credentials: PathBuf,

    /// The coordinator's address, if it is not the one at which you joined
    #[arg(long, value_name = "HOST:PORT")]
    pub coordinator: Option<String>,
}

/// The same for a command that can do without, which has a folder with `--log`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct OptionalAccess {
    /// Answer the coordinator of a fleet about the folder of --log: the folder with this host's certificate, which fleet join made
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "log")]
    pub credentials: Option<PathBuf>,

    /// The coordinator's address, if it is not the one at which this host joined
    #[arg(long, value_name = "HOST:PORT", requires = "credentials")]
    pub coordinator: Option<String>,
}

impl OptionalAccess {
    /// How the coordinator is reached, if there is one.
    pub fn given(&self) -> Option<FleetAccess> {
        let credentials = self.credentials.clone()?;
        Some(FleetAccess { credentials, coordinator: self.coordinator.clone() })
    }
}

/// Arguments of `fleet join`.
#[derive(Debug, Args)]
pub struct FleetJoin {
    /// The token, which fleet invite printed; - reads it from standard input, so that it is not in the list of processes
    #[arg(value_name = "TOKEN")]
    pub token: String,

    /// The coordinator's address
    #[arg(long, value_name = "HOST:PORT")]
    pub coordinator: String,

    /// The folder for your key and certificate. It must not exist, or be empty
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub credentials: PathBuf,
}

/// A role in a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// A host that records
    Agent,
    /// Asks questions
    Reader,
    /// Also changes what hosts compute, and acts
    Operator,
    /// Also invites and revokes
    Admin,
}

impl RoleName {
    /// Its name in certificates.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Reader => "reader",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// Arguments of `fleet invite`.
#[derive(Debug, Args)]
pub struct FleetInvite {
    /// The name of the host or person: 1 to 64 letters, digits, dots, dashes and underscores
    pub name: String,

    /// What the holder may do
    #[arg(long, value_enum, default_value_t = RoleName::Agent)]
    pub role: RoleName,

    /// How long the token is valid, from 1min to 30d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = expiry)]
    pub expires: Nanos,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Arguments of `fleet revoke`.
#[derive(Debug, Args)]
pub struct FleetRevoke {
    /// The name
    pub name: String,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Arguments of `fleet members`.
#[derive(Debug, Args)]
pub struct FleetMembers {
    /// Print a line of JSON for each member
    #[arg(long)]
    pub json: bool,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Arguments of `fleet health`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if the coordinator serves; 1 if it does, and with --hosts a host is not here, sheds packets or cannot answer; 2 if it cannot be reached or refuses the certificate.\n\n\
                        Example: queuescope fleet health --hosts --within 2s --credentials me || alert"
)]
pub struct FleetHealth {
    /// Also check that all hosts are here. This needs the role reader
    #[arg(long)]
    pub hosts: bool,

    /// How long to wait for the answer
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub within: Nanos,

    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Arguments of `fleet actions`.
#[derive(Debug, Args)]
pub struct FleetActions {
    /// Only the last N [default: all that the coordinator keeps, some 4000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub last: Option<u64>,

    /// Print a line of JSON for each action
    #[arg(long)]
    pub json: bool,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Arguments of `fleet cut`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if the cut has all hosts; 1 if hosts are missing from it, or if it is void; 2 if there is none."
)]
pub struct FleetCut {
    /// Only these hosts; may be repeated
    #[arg(long, value_name = "NAME")]
    pub member: Vec<String>,

    /// Cut by time: the packets of each host up to this time by its own clock, when they are complete: a date. How far each clock is off is printed
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub at: Option<Nanos>,

    /// Also count packets that a host has in the cut although they passed another before, which recorded them behind it; they are looked for within 100ms of the cut
    #[arg(long, conflicts_with = "at")]
    pub order: bool,

    /// How long to wait for each reply: at most half the coordinator's lease, and 10ms by default; with --at, 5s by default
    #[arg(long, value_name = "TIME")]
    pub within: Option<Nanos>,

    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Arguments of `fleet manifest`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if the store has all records of the cut; 1 if some are missing (they are listed); 2 if there is no manifest.\n\n\
                        Example: queuescope fleet cut --json --credentials me > cut.json; queuescope fleet manifest cut.json --store s3://traffic/fleet"
)]
pub struct FleetManifest {
    /// The line that fleet cut --json printed; - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cut: PathBuf,

    /// Where the agents upload to: file:///DIR, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub store: String,
}

/// Arguments of `fleet upload`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if the store has all volumes; 1 if some wait; 2 if nothing was tried.\n\n\
                        Example: queuescope fleet upload traffic --to s3://traffic/fleet --host web-1")]
pub struct FleetUpload {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// The place: file:///DIR, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. Credentials come from the environment
    /// (AWS_*, GOOGLE_*, AZURE_*)
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub to: String,

    /// The host whose records they are
    #[arg(long, value_name = "NAME")]
    pub host: MemberName,
}

/// Arguments of `fleet query`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if all hosts answered fully; 1 if a part is missing (which is printed); 2 if there is no answer.\n\n\
                        Examples: queuescope fleet query 'tcp port 443' --group src_ip --select 'sum(length),count' --top 10 --credentials me\n          \
                        queuescope fleet query --select count --cut new --credentials me"
)]
pub struct FleetQuery {
    /// Which packets: an expression as for queuescope query, or all
    #[arg(value_name = "EXPRESSION")]
    pub expression: Option<String>,

    /// What to compute: count, sum(length), min(ts), max(length), mean(length), stddev(length), distinct(src_ip); separated by commas
    #[arg(long, value_name = "FUNCTIONS", default_value = "count")]
    pub select: String,

    /// Compute it for each group of packets that have these attributes in common, or the same interval of time: dst_ip,ts/100ms
    #[arg(long, value_name = "ATTRIBUTES")]
    pub group: Option<String>,

    /// Only the groups with the highest values in the first column
    #[arg(long, value_name = "N", requires = "group")]
    pub top: Option<u64>,

    /// Only packets from this time on: a date such as 2026-11-27T12:00:00Z
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub from: Option<Nanos>,

    /// Only packets before this time
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub to: Option<Nanos>,

    /// Only packets up to this time by the clock of each host, when they are complete: a date. How far each clock is off is printed
    #[arg(long, value_name = "DATE", value_parser = date, conflicts_with = "cut")]
    pub at: Option<Nanos>,

    /// Only packets that a filter of a control program matched, as far as they are in memory: PROGRAM.FILTER
    #[arg(long, value_name = "NAME")]
    pub filter: Option<String>,

    /// Which records: packet, those of captures, or queued, those of queues. It goes only to hosts that have them [default: packet]
    #[arg(long, value_name = "SCHEMA")]
    pub schema: Option<String>,

    /// Ask about a cut: its number, or new to make one
    #[arg(long, value_name = "N|new")]
    pub cut: Option<String>,

    /// Only these hosts; may be repeated
    #[arg(long, value_name = "NAME")]
    pub member: Vec<String>,

    /// How long to wait for each host
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub within: Nanos,

    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Print lines of JSON
    #[arg(long)]
    pub json: bool,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Arguments of `fleet why`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if all hosts answered fully; 1 if a part is missing (which is printed); 2 if there is no packet.\n\n\
                        Examples: queuescope fleet why 'src_ip == 10.0.0.4 and tcp' --from 2026-11-27T12:00:00Z --credentials me\n          \
                        queuescope fleet why --packet 4711 --capture trace.pcap --credentials me\n          \
                        queuescope fleet why --flow '10.0.0.4:443 > 10.0.0.9:50010 tcp' --at 2026-11-27T12:00:00Z..2026-11-27T12:00:01Z --credentials me"
)]
pub struct FleetWhy {
    /// Which packets: an expression as for queuescope query, or all
    #[arg(value_name = "EXPRESSION")]
    pub expression: Option<String>,

    /// The way of this packet: its number in the file of --capture, counted from 1; or without --capture the digest that an earlier answer printed
    #[arg(long, value_name = "NUMBER|DIGEST", value_parser = packet_name, conflicts_with_all = ["at", "flow", "expression"])]
    pub packet: Option<PacketName>,

    /// The capture that has the packet: pcap or pcapng, plain or compressed; - is standard input. The question is about the minute before and after the packet's time,
    /// unless --from or --to is given
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "packet")]
    pub capture: Option<PathBuf>,

    /// Why the packets of this flow waited, in each queue: its name as analyze prints it, or a part that occurs in no other name. With a moment in --at, the way of its packet
    /// that was in a queue then, or of the next one
    #[arg(long, value_name = "NAME")]
    pub flow: Option<String>,

    /// A moment, as a date: which flows were in each queue then. Or a range of dates, FROM..TO: why packets waited in each queue. By the clock of each host; how far it is off is printed
    #[arg(long, value_name = "DATE|FROM..TO", conflicts_with_all = ["from", "to"])]
    pub at: Option<WhenAsked>,

    /// Only packets that left a queue from this time on: a date such as 2026-11-27T12:00:00Z
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub from: Option<Nanos>,

    /// Only packets that left a queue before this time
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub to: Option<Nanos>,

    /// The most flows that are named at each queue; the bytes of the others are summed up
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub flows: usize,

    /// How long to wait for each host
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub within: Nanos,

    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Arguments of `fleet alerts`.
#[derive(Debug, Args)]
pub struct FleetAlerts {
    /// The number of the first alert; 1 is the oldest
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub from: u64,

    /// Go on until SIGINT, as alerts come
    #[arg(long)]
    pub follow: bool,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,
}

/// Parses a lease. A shorter one ends before replies come; a longer one could fill the window of writers.
fn lease(text: &str) -> Result<Nanos, String> {
    let lease = text.parse::<Nanos>().map_err(|error| error.to_string())?;
    if (1_000_000..=1_000_000_000).contains(&lease.0) { Ok(lease) } else { Err("use 1ms to 1s".to_owned()) }
}

/// Parses the time in which equal alerts are sent once.
fn once(text: &str) -> Result<Nanos, String> {
    if text.trim() == "0" { Ok(Nanos::ZERO) } else { Nanos::read_long(text).map_err(|error| error.to_string()) }
}

/// Parses a loopback address and a port.
fn loopback(text: &str) -> Result<Listen, String> {
    let listen = Listen::read(text)
        .map_err(|_| "expected a loopback address and a port, such as 127.0.0.1:9090 or [::1]:9090".to_owned())?;
    if listen.addresses().iter().all(|address| address.ip().is_loopback()) {
        return Ok(listen);
    }
    Err("metrics have no certificates, so they are served on a loopback address only: use 127.0.0.1:PORT, and a proxy or a tunnel to reach it from elsewhere".to_owned())
}

/// Parses a date, as the time since 1970.
fn date(text: &str) -> Result<Nanos, String> {
    parse_date(text).map_err(|error| error.to_string())
}

/// Parses the time for which a token is valid.
fn expiry(text: &str) -> Result<Nanos, String> {
    const SECOND: u64 = 1_000_000_000;
    let expiry = Nanos::read_long(text).map_err(|error| error.to_string())?;
    let is_valid = (60 * SECOND..=30 * 86_400 * SECOND).contains(&expiry.0);
    if is_valid { Ok(expiry) } else { Err("use 1min to 30d".to_owned()) }
}
