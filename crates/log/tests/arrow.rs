//! Arrow batches have the values of their records.
#![cfg(feature = "arrow")]

use crate::common;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use proptest::prelude::*;
use queuescope_log::arrow::{Batches, Column, columns};
use queuescope_log::{AttributeId, Kind, LAST_TIME, Number, Schema};

/// Compares a value of a column with the record's number or text.
fn same(column: &ArrayRef, row: usize, id: AttributeId, schema: &Schema, record: &[u8]) -> bool {
    let attribute = schema.attribute(id);
    let number = || Number::of_key(attribute, schema.key(id, record));
    let whole = |value: i128| {
        let value = if value < 0 { Number::Signed(value) } else { Number::Unsigned(value as u128) };
        number().compare(value).is_eq()
    };
    let float = |value: f64| number().compare(Number::Float(value)).is_eq();
    assert!(!column.is_null(row));
    match column.data_type() {
        DataType::Boolean => whole(i128::from(column.as_boolean().value(row))),
        DataType::UInt8 => whole(column.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => whole(column.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => whole(column.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => whole(column.as_primitive::<UInt64Type>().value(row).into()),
        DataType::Int8 => whole(column.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => whole(column.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => whole(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => whole(column.as_primitive::<Int64Type>().value(row).into()),
        DataType::Float32 => float(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row)),
        DataType::Timestamp(..) => {
            whole(i128::from(column.as_primitive::<TimestampNanosecondType>().value(row) as u64))
        }
        DataType::FixedSizeBinary(_) => {
            let place = attribute.place;
            column.as_fixed_size_binary().value(row) == &record[place.offset as usize..place.end() as usize]
        }
        DataType::Dictionary(..) => {
            let texts = column.as_dictionary::<Int32Type>();
            let text = texts.values().as_string::<i32>().value(texts.keys().value(row) as usize);
            assert!(!matches!(attribute.kind, Kind::Float | Kind::Size | Kind::Bytes));
            attribute.key_of(text) == Ok(schema.key(id, record))
        }
        other => panic!("{other} is none of ours"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn batches_have_the_records_values(
        records in prop::collection::vec(common::record(), 0..40), rows in 0..20usize,
    ) {
        let schema = common::schema();
        let all: Vec<_> = schema.iter().map(|(id, _)| id).collect();
        let mut batches = Batches::new(schema, &all, rows);
        prop_assert_eq!(batches.schema(), columns(schema, &all));
        let time = schema.reader(schema.time().expect("records have a time"));
        let (mut kept, mut made) = (Vec::new(), Vec::new());
        for record in &records {
            let pushed = batches.push(record);
            prop_assert_eq!(pushed.is_err(), time.key(record) > u128::from(LAST_TIME), "what is refused is too late");
            if let Ok(batch) = pushed {
                kept.push(record);
                made.extend(batch);
            }
        }
        let last = batches.rest().expect("its columns are those of the schema");
        let mut next = 0;
        for batch in made.into_iter().chain(last) {
            prop_assert!(batch.num_rows() <= rows.max(1));
            for row in 0..batch.num_rows() {
                for (id, column) in all.iter().zip(batch.columns()) {
                    let name = &schema.attribute(*id).name;
                    prop_assert!(same(column, row, *id, schema, kept[next]), "{} of {}", name, next);
                }
                next += 1;
            }
        }
        prop_assert_eq!(next, kept.len());
    }

    #[test]
    fn columns_convert_back_to_the_same_bits(records in prop::collection::vec(common::record(), 1..40)) {
        let schema = common::schema();
        let (size, rows) = (schema.record_size(), records.concat());
        let mut back = vec![0; rows.len()];
        for (id, _) in schema.iter() {
            let column = Column::new(id, schema);
            let array = column.array(&rows, size);
            let field = column.field();
            prop_assert_eq!(array.data_type(), field.data_type());
            let written = column.write(&array, &mut back, size);
            prop_assert!(written.is_ok(), "{:?}", written);
        }
        for (expected, found) in records.iter().zip(back.chunks_exact(size)) {
            for (id, attribute) in schema.iter() {
                let place = attribute.place;
                if place.bit == 0 && place.bits.is_multiple_of(8) {
                    let bytes = place.offset as usize..place.end() as usize;
                    prop_assert_eq!(&found[bytes.clone()], &expected[bytes], "{}", attribute.name);
                } else {
                    prop_assert_eq!(schema.key(id, found), schema.key(id, expected), "{}", attribute.name);
                }
            }
        }
    }
}

#[test]
fn a_column_of_something_else_is_refused() {
    let schema = common::schema();
    let rows = vec![0; 2 * schema.record_size()];
    for (id, _) in schema.iter() {
        let column = Column::new(id, schema);
        let array = column.array(&rows, schema.record_size());
        let mut one = vec![0; schema.record_size()];
        assert!(column.write(&array, &mut one, schema.record_size()).is_err(), "two values for one record");
        let other: ArrayRef = std::sync::Arc::new(arrow_array::LargeStringArray::from(vec!["a", "b"]));
        let error = column.write(&other, &mut rows.clone(), schema.record_size()).expect_err("it is a text");
        assert!(error.to_string().contains("should be"), "{error}");
    }
}
