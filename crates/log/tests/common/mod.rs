//! A schema with every kind, random records of it, and random expressions about them.

use proptest::prelude::*;
use queuescope_log::{
    AggregateId, AggregateTest, AttributeId, Expr, Kind, Limits, Number, Ranges, Relation, Schema, Scope, Test,
};
use std::sync::LazyLock;

/// One attribute of each kind, including small ones so that values often coincide.
const EVERY_KIND: &str = include_str!("every-kind.toml");

pub fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> =
        LazyLock::new(|| Schema::parse("every-kind.toml", EVERY_KIND).unwrap_or_else(|error| panic!("{error}")));
    &SCHEMA
}

#[allow(dead_code, reason = "not each test file needs it")]
pub fn scope(schema: &Schema) -> Scope<'_> {
    // Few steps, so that entangled expressions fail early.
    let mut scope = Scope::new(schema).with_limits(Limits { steps: 50_000, ..Limits::default() });
    for name in ["SEQ", "MAXIMUM"] {
        scope.add_aggregate(name).expect("the names are free");
    }
    scope
}

/// Keys of an attribute, near each other so that comparisons go both ways.
fn key(id: AttributeId) -> impl Strategy<Value = u128> {
    let schema = schema();
    let attribute = schema.attribute(id);
    let highest = attribute.highest_key();
    let middle = highest / 2;
    let float = attribute.kind == Kind::Float;
    let mapped = if attribute.kind == Kind::Address { 0xffff_0000_0000 } else { 0 };
    prop_oneof![
        4 => (0..8u128).prop_map(move |key| key.min(highest)),
        2 => (0..8u128).prop_map(move |key| middle.saturating_add(key).min(highest)),
        1 => (0..4u128).prop_map(move |key| highest - key),
        2 => any::<u128>().prop_map(move |key| key & highest),
        3 => (0..8u128).prop_map(move |key| (mapped | key).min(highest)),
    ]
    // NaN cannot be written, nor can minus zero.
    .prop_filter("it is a number", move |key| !float || is_number(*key, highest))
}

fn is_number(key: u128, highest: u128) -> bool {
    let sign = (highest >> 1) + 1;
    let infinity: u128 = if highest == u128::from(u32::MAX) { 0x7f80_0000 } else { 0x7ff0_0000_0000_0000 };
    key != sign - 1 && key >= (!(infinity | sign) & highest) && key <= (infinity | sign)
}

fn comparable() -> impl Strategy<Value = AttributeId> {
    let ids: Vec<_> = schema().iter().filter(|(_, attribute)| attribute.is_comparable()).map(|(id, _)| id).collect();
    prop::sample::select(ids)
}

fn relation() -> impl Strategy<Value = Relation> {
    prop::sample::select(Relation::ALL.to_vec())
}

fn offset(kind: Kind) -> BoxedStrategy<Number> {
    match kind {
        Kind::Float => prop_oneof![Just(0.0), -1e3..1e3].prop_map(Number::Float).boxed(),
        Kind::Unsigned | Kind::Signed | Kind::Size | Kind::Time => {
            prop_oneof![Just(0), -5..5i128, -70_000..70_000i128].prop_map(Number::Signed).boxed()
        }
        _ => Just(Number::Signed(0)).boxed(),
    }
}

fn test() -> impl Strategy<Value = Expr> {
    comparable().prop_flat_map(|attribute| {
        let schema = schema();
        let (kind, highest) = (schema.attribute(attribute).kind, schema.attribute(attribute).highest_key());
        let compare =
            (relation(), key(attribute)).prop_map(move |(relation, key)| Test::Compare { attribute, relation, key });
        let range = (key(attribute), key(attribute)).prop_map(|(a, b)| (a.min(b), a.max(b)));
        let within = prop::collection::vec(range, 1..4)
            .prop_map(move |ranges| Test::Within { attribute, ranges: Ranges::new(ranges) });
        let aggregate = (0..2u32, offset(kind), relation()).prop_map(move |(aggregate, offset, relation)| {
            Test::Aggregate(AggregateTest { attribute, aggregate: AggregateId(aggregate), offset }, relation)
        });
        let part = (0..8u32, 0..4u32).prop_map(|(at, count)| (at, count));
        let mask = prop_oneof![
            any::<u8>().prop_map(u128::from),
            part.prop_map(|(at, count)| ((1u128 << (count * 8)) - 1) << (at * 8)),
            any::<u128>(),
        ];
        let mask =
            (mask, key(attribute), any::<bool>(), any::<bool>()).prop_map(move |(mask, value, equal, within)| {
                let mask = mask & highest;
                let value = if within { value & mask } else { value };
                Test::Mask { attribute, mask, value, equal }
            });
        if matches!(kind, Kind::Signed | Kind::Float) {
            prop_oneof![4 => compare, 2 => within, 1 => aggregate].prop_map(Expr::Test).boxed()
        } else {
            prop_oneof![4 => compare, 2 => within, 1 => aggregate, 3 => mask].prop_map(Expr::Test).boxed()
        }
    })
}

/// Any expression of some depth.
#[allow(dead_code, reason = "not each test file needs it")]
pub fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![12 => test(), 1 => any::<bool>().prop_map(Expr::Constant)];
    leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(Expr::not),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::all),
            prop::collection::vec(inner, 2..4).prop_map(Expr::any),
        ]
    })
}

/// A record whose values are near those that expressions use.
pub fn record() -> impl Strategy<Value = Vec<u8>> {
    let schema = schema();
    let size = schema.record_size();
    let keys: Vec<_> = schema
        .iter()
        .filter(|(_, attribute)| attribute.is_comparable())
        .map(|(id, _)| key(id).prop_map(move |key| (id, key)))
        .collect();
    (keys, prop::option::of(prop::collection::vec(any::<u8>(), size))).prop_map(move |(keys, noise)| {
        // Some records are noise, including NaN.
        noise.unwrap_or_else(|| {
            let mut record = vec![0; size];
            for (id, key) in keys {
                schema.reader(id).write(&mut record, key);
            }
            record
        })
    })
}

/// Values of the aggregates.
#[allow(dead_code, reason = "not each test file needs it")]
pub fn aggregates() -> impl Strategy<Value = Vec<Number>> {
    let number = prop_oneof![
        (0..8u128).prop_map(Number::Unsigned),
        any::<u128>().prop_map(Number::Unsigned),
        (-8..8i128).prop_map(Number::Signed),
        any::<f64>().prop_map(Number::Float),
        (-8.0..8.0).prop_map(Number::Float),
    ];
    prop::collection::vec(number, 2)
}
