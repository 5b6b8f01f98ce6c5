//! Which pages of a row group may have records that match an expression, by the lowest and highest values of each page.

use super::{Columns, PAGE};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use queuescope_log::{Dnf, Kind, Predicate, Ranges, Schema, Term};

/// The most values of a set whose texts are compared with those of a page.
const MOST_TEXTS: u128 = 16;

/// Whether an expression has a predicate that can exclude pages.
pub(crate) fn can_exclude(expression: &Dnf, schema: &Schema) -> bool {
    let excludes = |term: &Term| term.predicates().any(|predicate| Bounds::new(&predicate, schema).is_some());
    !expression.is_false() && expression.terms().iter().all(excludes)
}

/// The pages of a row group that may have matching records; `None` if that is not known, or if all may.
pub(crate) fn pages(
    metadata: &ParquetMetaData,
    group: usize,
    expression: &Dnf,
    schema: &Schema,
    columns: &Columns,
) -> Option<Vec<usize>> {
    let rows = usize::try_from(metadata.row_group(group).num_rows()).ok()?;
    let count = rows.div_ceil(PAGE);
    let mut possible = vec![false; count];
    for term in expression.terms() {
        let mut of_term = vec![true; count];
        for predicate in term.predicates() {
            let Some(bounds) = Bounds::new(&predicate, schema) else { continue };
            let Some(place) = columns.attributes.iter().position(|(id, _)| *id == predicate.attribute()) else {
                continue;
            };
            let Some(index) = column_index(metadata, group, place, count) else { continue };
            of_term.iter_mut().enumerate().for_each(|(page, may)| *may &= bounds.may_be_in(index, page));
        }
        possible.iter_mut().zip(of_term).for_each(|(possible, may)| *possible |= may);
    }
    let pages: Vec<_> = (0..count).filter(|page| possible[*page]).collect();
    (pages.len() < count).then_some(pages)
}

/// The extremes of the pages of a column, if each of its `count` pages but the last has [`PAGE`] rows.
fn column_index(metadata: &ParquetMetaData, group: usize, column: usize, count: usize) -> Option<&ColumnIndexMetaData> {
    let locations = metadata.offset_index()?.get(group)?.get(column)?.page_locations();
    let is_usual = locations.len() == count
        && locations.iter().enumerate().all(|(page, location)| location.first_row_index == (page * PAGE) as i64);
    let index = metadata.column_index()?.get(group)?.get(column)?;
    Some(index).filter(|_| is_usual)
}

/// Values that a page must have to have a matching record.
enum Bounds<'a> {
    Numbers(&'a Ranges),
    Texts(Vec<String>),
}

impl<'a> Bounds<'a> {
    /// `None` if the predicate cannot exclude a page.
    fn new(predicate: &Predicate<'a>, schema: &Schema) -> Option<Self> {
        let Predicate::Within(id, ranges) = *predicate else { return None };
        let attribute = schema.attribute(id);
        if attribute.view {
            return None;
        }
        match attribute.kind {
            Kind::Unsigned | Kind::Size | Kind::Time if attribute.place.bits <= 64 => Some(Self::Numbers(ranges)),
            Kind::Unsigned | Kind::Address | Kind::Ipv4 | Kind::Ipv6 | Kind::Mac if ranges.count() <= MOST_TEXTS => {
                let keys = ranges.iter().flat_map(|(low, high)| low..=high);
                Some(Self::Texts(keys.map(|key| queuescope_log::arrow::text(id, schema, key)).collect()))
            }
            _ => None,
        }
    }

    /// Whether a page may have one of the values, by its extremes.
    fn may_be_in(&self, index: &ColumnIndexMetaData, page: usize) -> bool {
        match self {
            Self::Numbers(ranges) => {
                // Times are stored as signed numbers: a page with some from 2262 on has the highest of these as its lowest.
                let within = |low: u64, high: u64| {
                    low > high
                        || ranges.iter().any(|(first, last)| first <= u128::from(high) && last >= u128::from(low))
                };
                // Numbers are stored as signed ones with the same bits.
                match index {
                    ColumnIndexMetaData::BOOLEAN(index) => index
                        .min_value(page)
                        .zip(index.max_value(page))
                        .is_none_or(|(low, high)| within(u64::from(*low), u64::from(*high))),
                    ColumnIndexMetaData::INT32(index) => index
                        .min_value(page)
                        .zip(index.max_value(page))
                        .is_none_or(|(low, high)| within(u64::from(*low as u32), u64::from(*high as u32))),
                    ColumnIndexMetaData::INT64(index) => index
                        .min_value(page)
                        .zip(index.max_value(page))
                        .is_none_or(|(low, high)| within(*low as u64, *high as u64)),
                    _ => true,
                }
            }
            Self::Texts(texts) => match index {
                ColumnIndexMetaData::BYTE_ARRAY(index) => {
                    index.min_value(page).zip(index.max_value(page)).is_none_or(|(low, high)| {
                        texts.iter().any(|text| low <= text.as_bytes() && text.as_bytes() <= high)
                    })
                }
                _ => true,
            },
        }
    }
}
