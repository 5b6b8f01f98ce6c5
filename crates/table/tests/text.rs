//! Departures from CSV and similar formats: round trips, and messages for unusable tables.

use proptest::prelude::*;
use queuescope_table::{Columns, DepartureReader, Problem, Row, TableError, TableOptions, TableStats, TimeUnit};
use std::io::{Cursor, Read, Write};

type Owned = (String, u64, u64, u64, u8);

const HEADER: &str = "flow,size,enqueued,dequeued\n";

fn owned(row: &Row<'_>) -> Owned {
    (row.flow.to_owned(), row.size, row.enqueued.0, row.dequeued.0, row.class)
}

fn drain(mut reader: DepartureReader) -> (Vec<Owned>, TableStats, Option<TableError>) {
    let mut rows = Vec::new();
    let error = loop {
        match reader.next_row() {
            Ok(Some(row)) => rows.push(owned(&row)),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(matches!(reader.next_row(), Ok(None)), "there are no rows after the end");
    (rows, reader.stats().clone(), error)
}

fn open(text: impl Into<Vec<u8>>, options: TableOptions) -> Result<DepartureReader, TableError> {
    DepartureReader::from_csv(Cursor::new(text.into()), "t.csv", options)
}

fn read(text: impl Into<Vec<u8>>) -> (Vec<Owned>, TableStats, Option<TableError>) {
    drain(open(text, TableOptions::default()).unwrap())
}

fn options(columns: &str, time_unit: TimeUnit) -> TableOptions {
    TableOptions { columns: columns.parse().unwrap(), time_unit }
}

fn row(flow: &str, size: u64, enqueued: u64, dequeued: u64, class: u8) -> Owned {
    (flow.to_owned(), size, enqueued, dequeued, class)
}

#[test]
fn a_plain_table_reads() {
    let (rows, stats, error) = read("flow,size,enqueued,dequeued,class\na,1500,10,20,3\nb,64,15,40,0\n");
    assert!(error.is_none());
    assert_eq!(rows, [row("a", 1500, 10, 20, 3), row("b", 64, 15, 40, 0)]);
    assert_eq!(stats, TableStats { rows: 2, ..TableStats::default() });
}

#[test]
fn names_and_units_are_mapped() {
    let text = "t_out\tt_in\tlen\tsrc\tdst\tprio\n1.000002\t1.000001\t1500\t10.0.0.1\t10.0.0.2\t7\n";
    let options = options("flow=src+dst,size=len,enqueued=t_in,dequeued=t_out,class=prio", TimeUnit::Seconds);
    let reader = open(text, options).unwrap();
    assert_eq!(reader.format().to_string(), "TSV");
    let (rows, _, error) = drain(reader);
    assert!(error.is_none());
    assert_eq!(rows, [row("10.0.0.1 10.0.0.2", 1500, 1_000_001_000, 1_000_002_000, 7)]);
}

#[test]
fn the_header_reveals_the_separator() {
    for (separator, shown) in
        [(",", "CSV"), (";", "CSV separated by ';'"), ("\t", "TSV"), ("|", "CSV separated by '|'")]
    {
        // The other separators are in a name that is not mapped.
        let text = "flow,size,enqueued,dequeued,\"a;|;|;|\tb\"\r\nx,1,2,3,4\r\n".replace(',', separator);
        let reader = open(text, TableOptions::default()).unwrap();
        assert_eq!(reader.format().to_string(), shown);
        assert_eq!(drain(reader).0, [row("x", 1, 2, 3, 0)], "{separator}");
    }
}

#[test]
fn a_byte_order_mark_and_padding_do_not_hide_the_header() {
    let (rows, stats, _) = read("\u{feff}flow, Size, enqueued ,dequeued\nx, 1, 2, 3\n");
    assert_eq!((rows, stats.malformed), (vec![row("x", 1, 2, 3, 0)], 0));
}

#[test]
fn malformed_rows_are_skipped_counted_and_described() {
    let text = "flow,size,enqueued,dequeued,class\n\
                a,1500,10,20,0\n\
                a,12x,10,20,0\n\
                a,-1,10,20,0\n\
                a,,10,20,0\n\
                a,1500,10,9,0\n\
                a,1500,10,20,256\n\
                a,b,1500,10,20,0\n\
                a,1500\n\
                \"multi\nline\",1.5,10,20,0\n\
                ,1500,10,20,0\n\
                a,1500,99999999999999999999,20,0\n\
                a,1500,10,20,x\n\
                a,1500,10,20,0,\n\
                b,64,30,40,0";
    let (rows, stats, error) = read(text);
    assert!(error.is_none());
    assert_eq!(rows, [row("a", 1500, 10, 20, 0), row("a", 1500, 10, 20, 0), row("b", 64, 30, 40, 0)]);
    assert_eq!(stats.malformed, 11);
    let described: Vec<_> = stats.first_malformed.iter().map(ToString::to_string).collect();
    assert_eq!(
        described,
        [
            "t.csv: line 3: column 'size': '12x' is not a number",
            "t.csv: line 4: column 'size': '-1' is negative",
            "t.csv: line 5: column 'size': there is no value",
            "t.csv: line 6: column 'dequeued': '9' is 1 ns before the packet entered the queue",
            "t.csv: line 7: column 'class': '256' is too large",
            "t.csv: line 8: the row has 6 fields where the header has 5 (a separator inside a value needs quotes)",
            "t.csv: line 9: the row has 2 fields where the header has 5 (a separator inside a value needs quotes)",
            "t.csv: line 10: column 'size': '1.5' is not a whole number",
            "t.csv: line 12: column 'flow': there is no value",
            "t.csv: line 13: column 'enqueued': '99999999999999999999' is too large",
        ]
    );
}

#[test]
fn dates_read_whatever_the_unit() {
    let text = format!("{HEADER}a,1,2024-05-06 07:08:09.000001+00,2024-05-06T07:08:09.000002Z\na,1,2024-05-06,7\n");
    let (rows, stats, _) = drain(open(text, options("flow=flow", TimeUnit::Seconds)).unwrap());
    assert_eq!(rows, [row("a", 1, 1_714_979_289_000_001_000, 1_714_979_289_000_002_000, 0)]);
    assert_eq!(
        stats.first_malformed[0].to_string(),
        "t.csv: line 3: column 'enqueued': '2024-05-06' is not a date with a time of day, like 2024-05-06T07:08:09.123Z"
    );
}

#[test]
fn a_value_that_is_not_utf8_is_a_malformed_row() {
    let text = [HEADER.as_bytes(), b"caf\xe9,1,2,3\nok,1,2,3\n"].concat();
    let (rows, stats, _) = read(text);
    assert_eq!(rows, [row("ok", 1, 2, 3, 0)]);
    assert_eq!(stats.first_malformed[0].problem, Problem::NotText);
}

#[test]
fn order_and_rounding_are_counted() {
    let text = format!("{HEADER}a,1,0,10.25\na,1,0,5\na,1,0,10\na,1,0.5,11\n");
    let (_, stats, _) = read(text);
    assert_eq!((stats.rows, stats.out_of_order, stats.rounded), (4, 1, 2));
}

#[test]
fn unusable_tables_say_why() {
    let error = |text: &[u8]| open(text, TableOptions::default()).err().map(|error| error.to_string()).unwrap();
    assert_eq!(error(b""), "t.csv: is empty; departures need a header line that names the columns, or a Parquet file");
    assert!(error(b"\n\n").contains("is empty"));
    assert_eq!(
        error(b"src,size,enqueued,dequeued\n"),
        "t.csv: there is no column 'flow' for flow; the columns are 'src', 'size', 'enqueued', 'dequeued' \
         (map names with --columns flow=NAME,...)"
    );
    assert!(error(b"\xff\xfef\0l\0").contains("UTF-16"));
    assert!(error(b"\xd4\xc3\xb2\xa1\x02\0\x04\0").contains("neither CSV nor Parquet"));
    assert!(error(b"caf\xe9,size\n1,2\n").contains("not UTF-8"));
    assert_eq!(
        error(b"PAR1...."),
        "t.csv: is Parquet from a pipe; Parquet is read from its end, so save it and name the file"
    );
    assert!(error(&gzip(b"PAR1....")).contains("is Parquet inside gzip"));
    let none = read(HEADER).2.unwrap().to_string();
    assert_eq!(none, "t.csv: has a header but no rows; was it cut short, or is it still being written?");
}

#[test]
fn paths_that_are_not_files_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let error = |path: &std::path::Path| DepartureReader::open(path, TableOptions::default()).err().unwrap();
    assert!(matches!(error(directory.path()), TableError::Directory { .. }));
    let missing = error(&directory.path().join("none.csv")).to_string();
    assert!(missing.contains("none.csv: cannot open: "), "{missing}");
}

#[test]
fn compressed_tables_read_and_cut_ones_say_where() {
    let text: String = std::iter::once(HEADER.to_owned())
        .chain((0..20_000u64).map(|n| format!("flow{},{},{n},{}\n", n * n % 977, n % 1500, n + n * n % 1013)))
        .collect();
    let packed = [
        ("CSV (gzip)", gzip(text.as_bytes())),
        ("CSV (zstd)", zstd::encode_all(text.as_bytes(), 1).unwrap()),
        ("CSV (xz)", xz(text.as_bytes())),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (format, bytes) in packed {
        let path = directory.path().join("packed");
        std::fs::write(&path, &bytes).unwrap();
        let reader = DepartureReader::open(&path, TableOptions::default()).unwrap();
        assert_eq!(reader.format().to_string(), format);
        let (rows, _, error) = drain(reader);
        assert!(error.is_none(), "{format}: {error:?}");
        assert_eq!(rows.len(), 20_000);

        let half = bytes.len() / 2;
        let (rows, stats, error) = drain(open(&bytes[..half], TableOptions::default()).unwrap());
        let error = error.unwrap();
        let TableError::Read { offset, line, .. } = &error else { panic!("{format}: {error}") };
        assert_eq!((*offset, *line), (half as u64, rows.len() as u64 + 1), "{format}");
        assert_eq!(stats.rows, rows.len() as u64);
    }
}

#[test]
fn zeros_after_gzip_are_padding() {
    let padded = [gzip(format!("{HEADER}a,1,2,3\n").as_bytes()), vec![0; 4096]].concat();
    let (rows, _, error) = drain(open(padded, TableOptions::default()).unwrap());
    assert!(error.is_none() && rows == [row("a", 1, 2, 3, 0)], "{error:?} {rows:?}");
}

#[test]
fn a_quote_left_open_ends_with_its_line() {
    let mut text = format!("{HEADER}a,1,2,3\n\"b,1,2,3\n");
    text.push_str(&"a,1,2,3\n".repeat(400_000));
    let (rows, _, error) = read(text);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        error.unwrap().to_string(),
        "t.csv: the row that starts at line 3 is longer than 1048576 bytes; is a quote left open?"
    );
}

#[test]
fn rows_arrive_before_the_stream_ends() {
    // Two chunks, then a source that must not be read: a live pipe would block there.
    struct Live(std::collections::VecDeque<&'static [u8]>);
    impl Read for Live {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let mut chunk = self.0.pop_front().expect("read more than was needed");
            let count = chunk.read(buffer)?;
            if !chunk.is_empty() {
                self.0.push_front(chunk);
            }
            Ok(count)
        }
    }
    let chunks: Vec<&[u8]> = vec![b"flow,size,enqueued", b",dequeued\n", b"a,1,2,3\n"];
    let mut reader = DepartureReader::from_csv(Live(chunks.into()), "-", TableOptions::default()).unwrap();
    assert_eq!(reader.next_row().unwrap().map(|row| owned(&row)), Some(row("a", 1, 2, 3, 0)));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Names that are difficult for a text format, but not blank.
fn name() -> impl Strategy<Value = String> {
    "[a,;|\t\"'\n\r é流\u{1f40c}=+#-]{0,12}[a,;|\"'é流]"
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

proptest! {
    #[test]
    fn rows_read_back(
        rows in prop::collection::vec((name(), any::<u64>(), 0u64..1 << 40, 0u64..1 << 20, any::<u8>()), 1..40),
        columns in prop::collection::vec(name().prop_filter("a name of its own", |name| name.trim() == name), 5),
        separator in prop::sample::select(vec![',', ';', '\t', '|']),
    ) {
        let columns: Vec<_> = columns.iter().enumerate().map(|(n, name)| format!("{name}{n}")).collect();
        let line = |fields: [&str; 5]| fields.map(quoted).join(&separator.to_string());
        let mut text = line([&columns[0], &columns[1], &columns[2], &columns[3], &columns[4]]) + "\n";
        let mut expected = Vec::new();
        for (flow, size, enqueued, wait, class) in &rows {
            let dequeued = enqueued + wait;
            let numbers = [size.to_string(), enqueued.to_string(), dequeued.to_string(), class.to_string()];
            text += &line([flow, &numbers[0], &numbers[1], &numbers[2], &numbers[3]]);
            text += "\n";
            expected.push(row(flow, *size, *enqueued, dequeued, *class));
        }
        let mapping = Columns {
            flow: columns[0].clone(),
            size: columns[1].clone(),
            enqueued: columns[2].clone(),
            dequeued: columns[3].clone(),
            class: Some(columns[4].clone()),
            ..Columns::default()
        };
        let options = TableOptions { columns: mapping, time_unit: TimeUnit::Nanos };
        let (read, stats, error) = drain(open(text, options).unwrap());
        prop_assert!(error.is_none());
        prop_assert_eq!(stats.malformed, 0);
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn no_bytes_panic(tail in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read([HEADER.as_bytes(), &tail].concat());
        if let Ok(reader) = open(tail, TableOptions::default()) {
            drain(reader);
        }
    }
}
