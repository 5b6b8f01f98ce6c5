//! Departures to and from Parquet: round trips, all supported types, and damaged files.

use arrow_array::types::Int8Type;
use arrow_array::*;
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;
use queuescope_table::{
    DepartureReader, DepartureRow, DepartureWriter, Format, Problem, TableError, TableOptions, TableStats, TimeUnit,
};
use queuescope_wire::{Ecn, Nanos};
use std::sync::Arc;

type Owned = (String, u64, u64, u64, u8);

fn drain(mut reader: DepartureReader) -> (Vec<Owned>, TableStats, Option<TableError>) {
    let mut rows = Vec::new();
    let error = loop {
        match reader.next_row() {
            Ok(Some(row)) => rows.push((row.flow.to_owned(), row.size, row.enqueued.0, row.dequeued.0, row.class)),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(matches!(reader.next_row(), Ok(None)), "there are no rows after the end");
    (rows, reader.stats().clone(), error)
}

fn open(bytes: &[u8], options: TableOptions) -> Result<DepartureReader, TableError> {
    DepartureReader::from_parquet(bytes.to_vec(), "t.parquet", options)
}

fn row(flow: &str, size: u64, enqueued: u64, dequeued: u64, class: u8) -> Owned {
    (flow.to_owned(), size, enqueued, dequeued, class)
}

fn departure(packet: u64, flow: &str, enqueued: u64, wait: u64) -> DepartureRow<'_> {
    DepartureRow {
        packet,
        flow,
        size: 1500,
        class: 3,
        ecn: Ecn::Ce,
        enqueued: Nanos(enqueued),
        dequeued: Nanos(enqueued + wait),
        backlog_packets: packet % 7,
        backlog_bytes: packet % 7 * 1500,
        own_bytes: packet.is_multiple_of(2).then_some(1500),
    }
}

fn written(count: u64) -> Vec<u8> {
    let mut writer = DepartureWriter::new(Vec::new(), Nanos(1_700_000_000_000_000_000)).unwrap();
    for packet in 0..count {
        let flow = format!("10.0.{}.1:443 > 10.1.0.1:{}", packet % 5, packet * packet % 911);
        writer.write(&departure(packet, &flow, packet * 1200, packet * packet % 5000)).unwrap();
    }
    assert_eq!(writer.rows(), count);
    writer.finish().unwrap()
}

/// A Parquet file of these columns.
fn table(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn base() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("flow", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("size", Arc::new(Int32Array::from(vec![1500, 64]))),
        ("enqueued", Arc::new(Int64Array::from(vec![10, 20]))),
        ("dequeued", Arc::new(Int64Array::from(vec![30, 40]))),
    ]
}

fn with(name: &'static str, column: ArrayRef) -> Vec<u8> {
    let mut columns = base();
    match columns.iter_mut().find(|(other, _)| *other == name) {
        Some((_, there)) => *there = column,
        None => columns.push((name, column)),
    }
    table(columns)
}

#[test]
fn written_departures_read_back() {
    let bytes = written(300_000);
    let groups = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).unwrap();
    let groups: Vec<_> = groups.metadata().row_groups().iter().map(RowGroupMetaData::num_rows).collect();
    assert_eq!(groups, [131_072, 131_072, 37_856]);
    let mut reader = open(&bytes, TableOptions::default()).unwrap();
    assert_eq!((reader.format(), reader.format().to_string().as_str()), (Format::Parquet, "Parquet"));
    for packet in 0..300_000u64 {
        let row = reader.next_row().unwrap().unwrap();
        let enqueued = 1_700_000_000_000_000_000 + packet * 1200;
        assert_eq!(row.flow, format!("10.0.{}.1:443 > 10.1.0.1:{}", packet % 5, packet * packet % 911));
        assert_eq!((row.size, row.class), (1500, 3));
        assert_eq!((row.enqueued.0, row.dequeued.0), (enqueued, enqueued + packet * packet % 5000));
    }
    assert!(reader.next_row().unwrap().is_none());
    assert_eq!(reader.input_read(), bytes.len() as u64);
    assert_eq!(reader.stats().rows, 300_000);
}

#[test]
fn a_file_is_recognised_by_its_magic_number() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("departures.csv");
    std::fs::write(&path, written(10)).unwrap();
    let reader = DepartureReader::open(&path, TableOptions::default()).unwrap();
    assert_eq!(reader.format(), Format::Parquet);
    assert_eq!(drain(reader).0.len(), 10);
}

#[test]
fn a_time_past_the_last_timestamp_is_an_error() {
    let mut writer = DepartureWriter::new(Vec::new(), Nanos::ZERO).unwrap();
    let error = writer.write(&departure(7, "a", 1 << 63, 0)).unwrap_err().to_string();
    assert!(error.contains("packet 7 has the time 9223372036854775808 ns"), "{error}");
}

#[test]
fn times_of_every_type_read() {
    let micros = TableOptions { time_unit: TimeUnit::Micros, ..TableOptions::default() };
    let columns: Vec<(ArrayRef, [u64; 2])> = vec![
        (Arc::new(Int8Array::from(vec![40, 50])), [40_000, 50_000]),
        (Arc::new(UInt16Array::from(vec![40, 50])), [40_000, 50_000]),
        (Arc::new(UInt64Array::from(vec![40, 50])), [40_000, 50_000]),
        (Arc::new(Float64Array::from(vec![40.1, 50.0])), [40_100, 50_000]),
        (Arc::new(Float32Array::from(vec![40.1, 50.0])), [40_100, 50_000]),
        (Arc::new(StringArray::from(vec!["40.1", "5e1"])), [40_100, 50_000]),
        (Arc::new(StringViewArray::from(vec!["40.1", "5e1"])), [40_100, 50_000]),
        (
            Arc::new(Decimal128Array::from(vec![40_123_456, 50_000_000]).with_precision_and_scale(20, 6).unwrap()),
            [40_123, 50_000],
        ),
        (Arc::new(Decimal128Array::from(vec![4, 5]).with_precision_and_scale(20, 0).unwrap()), [4_000, 5_000]),
        // A type with its own unit ignores the option.
        (Arc::new(TimestampNanosecondArray::from(vec![40_000, 50_000])), [40_000, 50_000]),
        (Arc::new(TimestampMicrosecondArray::from(vec![40, 50]).with_timezone("Europe/Paris")), [40_000, 50_000]),
        (Arc::new(TimestampMillisecondArray::from(vec![40, 50])), [40_000_000, 50_000_000]),
        (Arc::new(TimestampSecondArray::from(vec![40, 50])), [40_000_000_000, 50_000_000_000]),
        (Arc::new(DurationMillisecondArray::from(vec![40, 50])), [40_000_000, 50_000_000]),
    ];
    for (column, expected) in columns {
        let kind = column.data_type().to_string();
        let mut all = base();
        all[2].1 = Arc::new(Int64Array::from(vec![1, 2]));
        all[3].1 = column;
        let (rows, stats, error) = drain(open(&table(all), micros.clone()).unwrap());
        assert!(error.is_none(), "{kind}: {error:?}");
        assert_eq!(stats.malformed, 0, "{kind}: {:?}", stats.first_malformed);
        let expected = [row("a", 1500, 1_000, expected[0], 0), row("b", 64, 2_000, expected[1], 0)];
        assert_eq!(rows, expected, "{kind}");
    }
}

#[test]
fn flows_of_every_type_read() {
    let dictionary: DictionaryArray<Int8Type> = vec![Some("x"), Some("y")].into_iter().collect();
    let numbers =
        DictionaryArray::<Int8Type>::new(Int8Array::from(vec![1, 0]), Arc::new(Int64Array::from(vec![5, -6])));
    let columns: Vec<(ArrayRef, [&str; 2])> = vec![
        (Arc::new(LargeStringArray::from(vec!["x", "y"])), ["x", "y"]),
        (Arc::new(StringViewArray::from(vec!["x", "a name that is not inlined"])), ["x", "a name that is not inlined"]),
        (Arc::new(BinaryArray::from(vec![b"x".as_slice(), b"\xff\x01"])), ["x", "0xff01"]),
        (
            Arc::new(FixedSizeBinaryArray::try_from_iter([b"\x0a\0\0\x01", b"1234"].into_iter()).unwrap()),
            ["0x0a000001", "0x31323334"],
        ),
        (Arc::new(Int64Array::from(vec![-1, 7])), ["-1", "7"]),
        (Arc::new(UInt64Array::from(vec![u64::MAX, 7])), ["18446744073709551615", "7"]),
        (Arc::new(dictionary), ["x", "y"]),
        (Arc::new(numbers), ["-6", "5"]),
    ];
    for (column, expected) in columns {
        let kind = column.data_type().to_string();
        let (rows, stats, error) = drain(open(&with("flow", column), TableOptions::default()).unwrap());
        assert!(error.is_none(), "{kind}: {error:?}");
        assert_eq!(stats.malformed, 0, "{kind}: {:?}", stats.first_malformed);
        assert_eq!([rows[0].0.as_str(), &rows[1].0], expected, "{kind}");
    }
}

#[test]
fn several_columns_make_a_flow_in_the_order_of_the_mapping() {
    let bytes = with("port", Arc::new(UInt16Array::from(vec![443, 80])));
    let options = TableOptions { columns: "flow=port+flow".parse().unwrap(), ..TableOptions::default() };
    let (rows, ..) = drain(open(&bytes, options).unwrap());
    assert_eq!([rows[0].0.as_str(), &rows[1].0], ["443 a", "80 b"]);
}

#[test]
fn malformed_rows_are_skipped_counted_and_described() {
    let flows: ArrayRef =
        Arc::new(StringArray::from(vec![Some("a"), None, Some("c"), Some("d"), Some("e"), Some("f")]));
    let bytes = table(vec![
        ("flow", flows),
        ("size", Arc::new(Float64Array::from(vec![1.0, 1.0, 1.5, f64::NAN, 2.0, 2.0]))),
        ("enqueued", Arc::new(Int64Array::from(vec![Some(10), Some(10), Some(10), Some(10), Some(-3), Some(10)]))),
        ("dequeued", Arc::new(Int64Array::from(vec![20, 20, 20, 20, 20, 4]))),
        ("class", Arc::new(Int16Array::from(vec![255, 0, 0, 0, 0, 0]))),
    ]);
    let (rows, stats, error) = drain(open(&bytes, TableOptions::default()).unwrap());
    assert!(error.is_none());
    assert_eq!(rows, [row("a", 1, 10, 20, 255)]);
    let described: Vec<_> = stats.first_malformed.iter().map(ToString::to_string).collect();
    assert_eq!(
        described,
        [
            "t.parquet: row 2: column 'flow': there is no value",
            "t.parquet: row 3: column 'size': '1.5' is not a whole number",
            "t.parquet: row 4: column 'size': 'NaN' is not a number",
            "t.parquet: row 5: column 'enqueued': '-3' is negative",
            "t.parquet: row 6: column 'dequeued': '4' is 6 ns before the packet entered the queue",
        ]
    );
    assert_eq!(stats.malformed, 5);
}

#[test]
fn numbers_that_do_not_fit_are_malformed() {
    let problem = |name, column: ArrayRef| {
        let (rows, stats, _) = drain(open(&with(name, column), TableOptions::default()).unwrap());
        assert!(rows.is_empty());
        stats.first_malformed[0].problem
    };
    let seconds = |value: i64| Arc::new(TimestampSecondArray::from(vec![value; 2])) as ArrayRef;
    assert_eq!(problem("dequeued", seconds(i64::MAX)), Problem::TooLarge);
    assert_eq!(problem("dequeued", seconds(-1)), Problem::Negative);
    assert_eq!(problem("size", Arc::new(Float64Array::from(vec![1e300, f64::INFINITY]))), Problem::TooLarge);
    assert_eq!(problem("class", Arc::new(Int64Array::from(vec![256, 1 << 40]))), Problem::TooLarge);
    assert_eq!(problem("size", Arc::new(StringArray::from(vec!["x", "y"]))), Problem::NotANumber);
}

#[test]
fn unusable_tables_say_why() {
    let error = |bytes: &[u8]| open(bytes, TableOptions::default()).err().map(|error| error.to_string()).unwrap();
    let mut columns = base();
    columns[0].0 = "src";
    assert_eq!(
        error(&table(columns)),
        "t.parquet: there is no column 'flow' for flow; the columns are 'src', 'size', 'enqueued', 'dequeued' \
         (map names with --columns flow=NAME,...)"
    );
    assert_eq!(
        error(&with("size", Arc::new(BooleanArray::from(vec![true, false])))),
        "t.parquet: column 'size' is of type Boolean, which cannot be size; size is a number of bytes"
    );
    assert!(error(&with("enqueued", Arc::new(Date32Array::from(vec![1, 2])))).contains("of type Date32"));
    assert!(error(b"").contains("is empty"));
    let bytes = written(100);
    assert_eq!(
        error(&bytes[..bytes.len() / 2]),
        "t.parquet: cannot read Parquet: footer: it does not end with PAR1: it is cut short, or still being written"
    );
    assert!(error(b"PAR1PARE").contains("encrypted"));
    assert!(error(b"PAR1\xff\xff\xff\x7fPAR1").contains("footer"));
    let (rows, _, error) = drain(open(&written(0), TableOptions::default()).unwrap());
    assert!(rows.is_empty());
    assert!(matches!(error, Some(TableError::NoRows { .. })), "{error:?}");
}

#[test]
fn damaged_pages_end_with_an_error_that_says_where() {
    let bytes = written(300_000);
    let metadata = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).unwrap();
    let chunk = metadata.metadata().row_group(1).column(1).clone();
    let start = chunk.dictionary_page_offset().unwrap() as usize;
    let mut damaged = bytes;
    damaged[start..start + 64].fill(0xff);
    let (rows, _, error) = drain(open(&damaged, TableOptions::default()).unwrap());
    let error = error.unwrap().to_string();
    assert!(error.starts_with("t.parquet: cannot read Parquet: row group 1 of 3, after row "), "{error}");
    assert!(rows.len() > 120_000 && rows.len() <= 131_072, "{}", rows.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_read_back(
        rows in prop::collection::vec(
            ("[^ ]{0,20}[a\"',流]", any::<u32>(), 0u64..1 << 61, 0u64..1 << 61, any::<u8>(), any::<Option<u64>>()),
            1..60,
        ),
        origin in 0u64..1 << 60,
    ) {
        let mut writer = DepartureWriter::new(Vec::new(), Nanos(origin)).unwrap();
        let mut expected = Vec::new();
        for (packet, (flow, size, enqueued, wait, class, own)) in rows.iter().enumerate() {
            let mut departure = departure(packet as u64, flow, *enqueued, *wait);
            (departure.size, departure.class, departure.own_bytes) = (*size, *class, *own);
            writer.write(&departure).unwrap();
            expected.push(row(flow, u64::from(*size), origin + enqueued, origin + enqueued + wait, *class));
        }
        // The unit is part of the type, so the option cannot change it.
        let options = TableOptions { time_unit: TimeUnit::Seconds, ..TableOptions::default() };
        let (read, stats, error) = drain(open(&writer.finish().unwrap(), options).unwrap());
        prop_assert!(error.is_none());
        prop_assert_eq!(stats.malformed, 0);
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn damage_never_panics(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = written(200);
        let end = bytes.len() - 4;
        for (at, value) in flips {
            bytes[at.index(end)] = value;
        }
        if let Ok(reader) = open(&bytes, TableOptions::default()) {
            drain(reader);
        }
    }
}

/// The batches of a Parquet file, cut into pieces of `rows` rows, as another library hands them over.
fn batches(bytes: &[u8], rows: usize) -> Box<dyn RecordBatchReader + Send> {
    let bytes = bytes::Bytes::from(bytes.to_vec());
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    Box::new(reader.with_batch_size(rows.max(1)).build().unwrap())
}

#[test]
fn arrow_batches_are_read_as_parquet_is() {
    for (count, rows) in [(1, 1), (1_000, 7), (100_000, 100_000), (70_000, 32_768)] {
        let bytes = written(count);
        let reader = DepartureReader::from_batches(batches(&bytes, rows), "t", TableOptions::default()).unwrap();
        assert_eq!((reader.format(), reader.format().to_string().as_str()), (Format::Arrow, "Arrow"));
        let (read, stats, error) = drain(reader);
        let (expected, of_parquet, _) = drain(open(&bytes, TableOptions::default()).unwrap());
        assert!(error.is_none());
        assert_eq!((read.len() as u64, stats), (count, of_parquet));
        assert!(read == expected);
    }
}

#[test]
fn arrow_batches_without_rows_or_columns_are_errors() {
    let bytes = written(10);
    let none = Box::new(RecordBatchIterator::new(Vec::new(), batches(&bytes, 1).schema()));
    let (rows, _, error) = drain(DepartureReader::from_batches(none, "t", TableOptions::default()).unwrap());
    assert!(rows.is_empty() && matches!(error, Some(TableError::NoRows { .. })), "{error:?}");
    let options = TableOptions { columns: "size=bytes".parse().unwrap(), ..TableOptions::default() };
    let error = DepartureReader::from_batches(batches(&bytes, 1), "t", options).unwrap_err();
    assert!(matches!(&error, TableError::MissingColumn { wanted, .. } if wanted == "bytes"), "{error}");
    let options = TableOptions { columns: "size=flow,flow=enqueued".parse().unwrap(), ..TableOptions::default() };
    let error = DepartureReader::from_batches(batches(&bytes, 1), "t", options).unwrap_err();
    assert!(matches!(&error, TableError::ColumnType { column, .. } if column == "enqueued"), "{error}");
}

#[test]
fn a_library_that_fails_ends_the_table() {
    let bytes = written(10);
    let schema = batches(&bytes, 1).schema();
    let failure = Err(arrow_schema::ArrowError::ComputeError("the cable was cut".to_owned()));
    let parts: Vec<_> = batches(&bytes, 4).take(2).chain([failure]).collect();
    let reader = RecordBatchIterator::new(parts, schema);
    let (rows, _, error) =
        drain(DepartureReader::from_batches(Box::new(reader), "t", TableOptions::default()).unwrap());
    assert_eq!(rows.len(), 8);
    let error = error.unwrap().to_string();
    assert!(error.starts_with("t: reading stopped after row 8: ") && error.contains("the cable was cut"), "{error}");
}
