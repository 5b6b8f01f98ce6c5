//! The mapping of a table's columns: [`Columns`] as a user writes it, and its match with the names in a table.

use crate::TableError;
use std::fmt;
use std::str::FromStr;

/// The names of the columns with the fields of a departure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The flow of the packet. Several columns joined by `+` form one flow name, with spaces between their values.
    pub flow: String,
    /// The packet's size in bytes.
    pub size: String,
    /// When the packet entered the queue.
    pub enqueued: String,
    /// When the packet left the queue.
    pub dequeued: String,
    /// The class of service, from 0 to 255. `None`: the column `class` if there is one, otherwise 0.
    pub class: Option<String>,
    /// What distinguishes packets of a flow, in the order of [`Field::IDENTITY`]. It is read only from columns that are named here.
    pub identity: [Option<String>; 4],
}

impl Default for Columns {
    fn default() -> Self {
        let name = |field: Field| field.to_string();
        Self {
            flow: name(Field::Flow),
            size: name(Field::Size),
            enqueued: name(Field::Enqueued),
            dequeued: name(Field::Dequeued),
            class: None,
            identity: [const { None }; 4],
        }
    }
}

impl Columns {
    /// The name of the column for `field`.
    pub(crate) fn name(&self, field: Field) -> &str {
        match field {
            Field::Flow => &self.flow,
            Field::Size => &self.size,
            Field::Enqueued => &self.enqueued,
            Field::Dequeued => &self.dequeued,
            Field::Class => self.class.as_deref().unwrap_or(Field::Class.name()),
            Field::IpId | Field::TcpSeq | Field::TcpAck | Field::PayloadLength => {
                let place = Field::IDENTITY.iter().position(|other| *other == field);
                place.and_then(|place| self.identity[place].as_deref()).unwrap_or(field.name())
            }
        }
    }
}

/// Parses `flow=src_ip,size=bytes,enqueued=t_in,dequeued=t_out,class=prio`; omitted fields keep their default names.
impl FromStr for Columns {
    type Err = ColumnsError;
    fn from_str(text: &str) -> Result<Self, ColumnsError> {
        let error = |why: String| ColumnsError { text: text.to_owned(), why };
        let mut columns = Self::default();
        let mut seen = Vec::new();
        for part in text.split(',') {
            let Some((field, name)) = part.split_once('=') else {
                return Err(error(format!("'{part}' has no '='")));
            };
            let (field, name) = (field.trim(), name.trim());
            let Some(field) = Field::ALL.into_iter().find(|known| known.name() == field) else {
                let known = Field::ALL.map(Field::name).join(", ");
                return Err(error(format!("there is no field '{field}'; fields are {known}")));
            };
            if name.is_empty() {
                return Err(error(format!("the name of the column for {field} is empty")));
            }
            if seen.contains(&field) {
                return Err(error(format!("{field} is given twice")));
            }
            seen.push(field);
            let name = name.to_owned();
            match field {
                Field::Flow => columns.flow = name,
                Field::Size => columns.size = name,
                Field::Enqueued => columns.enqueued = name,
                Field::Dequeued => columns.dequeued = name,
                Field::Class => columns.class = Some(name),
                Field::IpId => columns.identity[0] = Some(name),
                Field::TcpSeq => columns.identity[1] = Some(name),
                Field::TcpAck => columns.identity[2] = Some(name),
                Field::PayloadLength => columns.identity[3] = Some(name),
            }
        }
        Ok(columns)
    }
}

/// The error for an invalid column mapping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' does not map columns: {why} (for example flow=src+dst,size=bytes,enqueued=t_in,dequeued=t_out)")]
pub struct ColumnsError {
    /// The text of the mapping.
    pub text: String,
    /// Why it is not a mapping.
    pub why: String,
}

/// A field of a departure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The flow of the packet.
    Flow,
    /// Its size in bytes.
    Size,
    /// When it entered the queue.
    Enqueued,
    /// When it left the queue.
    Dequeued,
    /// Its class of service.
    Class,
    /// Its identification in the IPv4 header.
    IpId,
    /// Its TCP sequence number.
    TcpSeq,
    /// Its TCP acknowledgement number.
    TcpAck,
    /// Bytes behind its transport header.
    PayloadLength,
}

impl Field {
    /// What distinguishes packets of a flow.
    pub const IDENTITY: [Self; 4] = [Self::IpId, Self::TcpSeq, Self::TcpAck, Self::PayloadLength];

    pub(crate) const ALL: [Self; 9] = [
        Self::Flow,
        Self::Size,
        Self::Enqueued,
        Self::Dequeued,
        Self::Class,
        Self::IpId,
        Self::TcpSeq,
        Self::TcpAck,
        Self::PayloadLength,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Size => "size",
            Self::Enqueued => "enqueued",
            Self::Dequeued => "dequeued",
            Self::Class => "class",
            Self::IpId => "ip_id",
            Self::TcpSeq => "tcp_seq",
            Self::TcpAck => "tcp_ack",
            Self::PayloadLength => "payload_length",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The positions of a table's columns in a list of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnPositions {
    pub flow: Vec<usize>,
    pub size: usize,
    pub enqueued: usize,
    pub dequeued: usize,
    pub class: Option<usize>,
    pub identity: [Option<usize>; 4],
}

impl ColumnPositions {
    /// Finds the columns in the names `there` of `table`.
    pub fn find(columns: &Columns, there: &[String], table: &str) -> Result<Self, TableError> {
        let find = |field, wanted: &str| {
            place(wanted, there).map_err(|trouble| match trouble {
                ColumnMatchError::Missing => TableError::MissingColumn {
                    table: table.to_owned(),
                    field,
                    wanted: wanted.to_owned(),
                    there: there.to_vec(),
                },
                ColumnMatchError::Twice => {
                    TableError::AmbiguousColumn { table: table.to_owned(), field, wanted: wanted.to_owned() }
                }
            })
        };
        // A column whose name is really 'a+b' is that column, not a sum.
        let flow = match place(&columns.flow, there) {
            Ok(whole) => vec![whole],
            Err(_) => columns.flow.split('+').map(|part| find(Field::Flow, part.trim())).collect::<Result<_, _>>()?,
        };
        let class = match &columns.class {
            Some(name) => Some(find(Field::Class, name)?),
            None => match place(Field::Class.name(), there) {
                Err(ColumnMatchError::Missing) => None,
                _ => Some(find(Field::Class, Field::Class.name())?),
            },
        };
        let mut identity = [None; 4];
        for (place, field) in Field::IDENTITY.into_iter().enumerate() {
            identity[place] = columns.identity[place].as_deref().map(|name| find(field, name)).transpose()?;
        }
        Ok(Self {
            flow,
            size: find(Field::Size, &columns.size)?,
            enqueued: find(Field::Enqueued, &columns.enqueued)?,
            dequeued: find(Field::Dequeued, &columns.dequeued)?,
            class,
            identity,
        })
    }

    /// Each field with the position of its column; a flow may have several.
    pub fn all(&self) -> impl Iterator<Item = (Field, usize)> + '_ {
        let flow = self.flow.iter().map(|&index| (Field::Flow, index));
        let others = [(Field::Size, self.size), (Field::Enqueued, self.enqueued), (Field::Dequeued, self.dequeued)];
        let identity = Field::IDENTITY.into_iter().zip(self.identity);
        let identity = identity.filter_map(|(field, index)| index.map(|index| (field, index)));
        flow.chain(others).chain(self.class.map(|index| (Field::Class, index))).chain(identity)
    }

    /// The same columns by their positions in `chosen`, which contains all of them in ascending order.
    pub fn among(self, chosen: &[usize]) -> Self {
        let position = |index: usize| chosen.partition_point(|&other| other < index);
        Self {
            flow: self.flow.into_iter().map(position).collect(),
            size: position(self.size),
            enqueued: position(self.enqueued),
            dequeued: position(self.dequeued),
            class: self.class.map(position),
            identity: self.identity.map(|index| index.map(position)),
        }
    }

    /// How many of the mapped columns `there` contains. This distinguishes the right separator from wrong ones.
    pub fn matches(columns: &Columns, there: &[String]) -> usize {
        let flow = columns.flow.split('+').map(str::trim);
        let others = [columns.size.as_str(), &columns.enqueued, &columns.dequeued];
        let named = columns.class.iter().chain(columns.identity.iter().flatten()).map(String::as_str);
        flow.chain(others).chain(named).filter(|wanted| place(wanted, there).is_ok()).count()
    }
}

enum ColumnMatchError {
    Missing,
    Twice,
}

/// The position of the only column called `wanted`: an exact match, or else one that ignores case.
fn place(wanted: &str, there: &[String]) -> Result<usize, ColumnMatchError> {
    let only = |same: &dyn Fn(&str) -> bool| {
        let mut found = there.iter().enumerate().filter(|(_, name)| same(name)).map(|(index, _)| index);
        match (found.next(), found.next()) {
            (Some(index), None) => Ok(index),
            (Some(_), Some(_)) => Err(ColumnMatchError::Twice),
            (None, _) => Err(ColumnMatchError::Missing),
        }
    };
    match only(&|name| name == wanted) {
        Err(ColumnMatchError::Missing) => only(&|name| name.eq_ignore_ascii_case(wanted)),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_partial_mapping_keeps_the_other_names() {
        let columns: Columns = "flow=src+dst, size = bytes,class=prio".parse().unwrap();
        assert_eq!(columns.flow, "src+dst");
        assert_eq!(columns.size, "bytes");
        assert_eq!(columns.enqueued, "enqueued");
        assert_eq!(columns.dequeued, "dequeued");
        assert_eq!(columns.class.as_deref(), Some("prio"));
    }

    #[test]
    fn an_invalid_mapping_says_why() {
        let why = |text: &str| text.parse::<Columns>().unwrap_err().to_string();
        assert!(why("src_ip").contains("'src_ip' has no '='"));
        assert!(why("").contains("no '='"));
        assert!(why("flow=a,bytes=b").contains("no field 'bytes'; fields are flow, size, enqueued, dequeued, class"));
        assert!(why("flow=").contains("empty"));
        assert!(why("flow=a,flow=b").contains("twice"));
    }

    #[test]
    fn columns_are_found_in_any_order_and_case() {
        let there = names("Dequeued x ENQUEUED size flow");
        let places = ColumnPositions::find(&Columns::default(), &there, "t").unwrap();
        assert_eq!(
            places,
            ColumnPositions { flow: vec![4], size: 3, enqueued: 2, dequeued: 0, class: None, identity: [None; 4] }
        );
        let there = names("flow size Size enqueued dequeued class");
        let places = ColumnPositions::find(&Columns::default(), &there, "t").unwrap();
        assert_eq!((places.size, places.class), (1, Some(5)));
    }

    #[test]
    fn several_columns_make_a_flow_unless_one_has_exactly_that_name() {
        let columns = Columns { flow: "a+b".to_owned(), ..Columns::default() };
        let there = names("a b size enqueued dequeued");
        assert_eq!(ColumnPositions::find(&columns, &there, "t").unwrap().flow, [0, 1]);
        let there = names("a b size enqueued dequeued a+b");
        assert_eq!(ColumnPositions::find(&columns, &there, "t").unwrap().flow, [5]);
    }

    #[test]
    fn missing_and_ambiguous_columns_are_errors() {
        let error = |columns: &str, there: &str| {
            ColumnPositions::find(&columns.parse().unwrap(), &names(there), "t.csv").unwrap_err().to_string()
        };
        assert_eq!(
            error("size=bytes", "flow len enqueued dequeued"),
            "t.csv: there is no column 'bytes' for size; the columns are 'flow', 'len', 'enqueued', 'dequeued' \
             (map names with --columns size=NAME,...)"
        );
        assert!(error("size=size", "flow size size enqueued dequeued").contains("more than one column 'size'"));
        assert!(error("class=prio", "flow size enqueued dequeued").contains("no column 'prio' for class"));
    }
}
