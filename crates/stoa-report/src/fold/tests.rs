#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, BooleanArray, Decimal128Array};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;
use stoa_rangeio::ReadMetrics;

use super::*;
use crate::report::{Column, ValueKind, kind_of};
use crate::scan::ScanFilter;
use crate::scan::tests::{ROWS, Seen, batch_of, column, seen};
use crate::tests::{Home, rows};
use crate::warm::columns_of;

/// The type of sums.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// A value, as the model has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Number(i128),
    Text(String),
    Null,
}

fn value(array: &ArrayRef, row: usize) -> Value {
    match seen(array, row) {
        Seen::Null => Value::Null,
        Seen::Number(number) => Value::Number(number),
        Seen::Text(text) => Value::Text(text.to_owned()),
        Seen::Float => Value::Text("float".to_owned()),
    }
}

/// What there is of a group: rows, and per measure a number or a value.
type Model = BTreeMap<Vec<Value>, Vec<Value>>;

fn merge(measure: Measure, known: &Value, more: &Value) -> Value {
    match (measure, known, more) {
        (
            Measure::Rows | Measure::Values(_) | Measure::Sum(_),
            Value::Number(a),
            Value::Number(b),
        ) => Value::Number(a + b),
        (_, Value::Null, value) | (_, value, Value::Null) => value.clone(),
        (Measure::Least(_), a, b) => a.min(b).clone(),
        (_, a, b) => a.max(b).clone(),
    }
}

/// Texts: of each value of a column how it begins. An error for a value that begins with `forbidden`.
#[derive(Debug)]
struct Beginning {
    column: [usize; 1],
    forbidden: Option<String>,
}

fn beginning(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Number(number) => Some(number.to_string().chars().take(1).collect()),
        Value::Text(text) => Some(text.chars().take(1).collect()),
    }
}

impl RowExpression for Beginning {
    fn columns(&self) -> &[usize] {
        &self.column
    }

    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        let mut texts = StringBuilder::new();
        for row in 0..rows.num_rows() {
            let text = beginning(value(rows.column(0), row));
            if text.is_some() && text == self.forbidden {
                return Err(Error::invalid("a value that must not be looked at"));
            }
            texts.append_option(text);
        }
        Ok(Arc::new(texts.finish()))
    }
}

/// `a * b - a`, of whole numbers; what has more than 110 bits is an error.
#[derive(Debug)]
struct Product(Vec<usize>, usize, usize);

fn product(a: Value, b: Value) -> Option<Option<i128>> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let product = a.checked_mul(b)?.checked_sub(a)?;
            (product.unsigned_abs() < 1 << 110).then_some(Some(product))
        }
        _ => Some(None),
    }
}

impl RowExpression for Product {
    fn columns(&self) -> &[usize] {
        &self.0
    }

    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        let place = |column: usize| self.0.iter().position(|known| *known == column).unwrap();
        let (a, b) = (rows.column(place(self.1)), rows.column(place(self.2)));
        let products = (0..rows.num_rows()).map(|row| product(value(a, row), value(b, row)));
        let products: Option<Vec<Option<i128>>> = products.collect();
        let products = products.ok_or_else(|| Error::invalid("too large a product"))?;
        Ok(Arc::new(Decimal128Array::from(products).with_data_type(WIDE)))
    }
}

/// Whether the value of a column is not NULL, and not one of `out`, as texts.
#[derive(Debug)]
struct NotOneOf([usize; 1], BTreeSet<Value>);

impl RowExpression for NotOneOf {
    fn columns(&self) -> &[usize] {
        &self.0
    }

    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        let kept = (0..rows.num_rows()).map(|row| match value(rows.column(0), row) {
            Value::Null => None,
            value => Some(!self.1.contains(&value)),
        });
        Ok(Arc::new(kept.collect::<BooleanArray>()))
    }
}

fn is_whole(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_decimal()
}

/// What is asked of some columns.
#[derive(Debug)]
struct Asked {
    fold: Fold,
    /// For each key and operand, what the model computes.
    keys: Vec<Modelled>,
    operands: Vec<Modelled>,
    without: BTreeSet<Value>,
}

#[derive(Clone, Copy, Debug)]
enum Modelled {
    Column(usize),
    Beginning(usize),
    Product(usize, usize),
}

impl Modelled {
    fn of(self, columns: &[ArrayRef], row: usize) -> Option<Value> {
        Some(match self {
            Self::Column(column) => value(&columns[column], row),
            Self::Beginning(column) => {
                beginning(value(&columns[column], row)).map_or(Value::Null, Value::Text)
            }
            Self::Product(a, b) => {
                let product = product(value(&columns[a], row), value(&columns[b], row))?;
                product.map_or(Value::Null, Value::Number)
            }
        })
    }

    fn operand(self) -> Operand {
        match self {
            Self::Column(column) => Operand::Column(column),
            Self::Beginning(column) => {
                Operand::Expression(Arc::new(Beginning { column: [column], forbidden: None }))
            }
            Self::Product(a, b) => {
                let mut columns = vec![a, b];
                columns.sort_unstable();
                columns.dedup();
                let of = |column| Box::new(Number::Column(column));
                let product = Number::Of(NumberOp::Multiply, of(a), of(b));
                let number = Number::Of(NumberOp::Subtract, Box::new(product), of(a));
                Operand::Number(number, Arc::new(Product(columns, a, b)))
            }
        }
    }

    fn data_type(self, columns: &[ArrayRef]) -> DataType {
        match self {
            Self::Column(column) => columns[column].data_type().clone(),
            Self::Beginning(_) => DataType::Utf8,
            Self::Product(..) => WIDE,
        }
    }
}

fn asked(columns: &[ArrayRef], choices: &[usize], without: BTreeSet<Value>) -> Asked {
    let mut choices = choices.iter().copied().cycle();
    let mut choose = |count: usize| choices.next().unwrap() % count.max(1);
    let wholes: Vec<usize> =
        (0..columns.len()).filter(|column| is_whole(columns[*column].data_type())).collect();
    let is_float = |column: usize| kind_of(columns[column].data_type()) == Some(ValueKind::Float);
    let mut modelled = |may_be_float: bool| {
        let chosen = choose(columns.len());
        match choose(4) {
            0 if !wholes.is_empty() => {
                Modelled::Product(wholes[choose(wholes.len())], wholes[choose(wholes.len())])
            }
            1 => Modelled::Beginning(chosen),
            _ => {
                let mut from_chosen = (0..columns.len()).cycle().skip(chosen).take(columns.len());
                match from_chosen.find(|column| may_be_float || !is_float(*column)) {
                    Some(column) => Modelled::Column(column),
                    // A table of floating point numbers only.
                    None => Modelled::Beginning(chosen),
                }
            }
        }
    };
    let keys: Vec<Modelled> = (0..columns.len() % 3).map(|_| modelled(false)).collect();
    let operands: Vec<Modelled> = (0..3).map(|_| modelled(true)).collect();
    let mut measures = vec![Measure::Rows];
    for (index, operand) in operands.iter().enumerate() {
        measures.push(Measure::Values(index));
        let data_type = operand.data_type(columns);
        // Sums of 60 of these fit 128 bits.
        let fits = !matches!(data_type, DataType::Decimal128(36.., _))
            || matches!(operand, Modelled::Product(..));
        if is_whole(&data_type) && fits {
            measures.extend([Measure::Sum(index), Measure::Values(index)]);
        }
        if kind_of(&data_type) != Some(ValueKind::Float) {
            measures.extend([Measure::Least(index), Measure::Greatest(index)]);
        }
    }
    let field = |name: String, data_type| Field::new(name, data_type, true);
    let of_keys = keys.iter().enumerate();
    let of_keys = of_keys.map(|(at, key)| field(format!("k{at}"), key.data_type(columns)));
    let of_measures = measures.iter().enumerate().map(|(at, measure)| {
        let data_type = match measure {
            Measure::Rows | Measure::Values(_) => DataType::Int64,
            Measure::Sum(_) => WIDE,
            Measure::Least(index) | Measure::Greatest(index) => operands[*index].data_type(columns),
        };
        field(format!("m{at}"), data_type)
    });
    let schema = Arc::new(Schema::new(of_keys.chain(of_measures).collect::<Vec<_>>()));
    let condition = Arc::new(NotOneOf([0], without.clone()));
    let fold = Fold {
        conditions: vec![condition],
        keys: keys.iter().map(|key| key.operand()).collect(),
        operands: operands.iter().map(|operand| operand.operand()).collect(),
        measures,
        schema,
    };
    Asked { fold, keys, operands, without }
}

/// Groups as the model has them; `None` where a product does not fit.
fn modelled(asked: &Asked, columns: &[ArrayRef], rows: &[u32]) -> Option<Model> {
    let mut model = Model::new();
    for row in rows.iter().map(|row| *row as usize) {
        let first = value(&columns[0], row);
        if first == Value::Null || asked.without.contains(&first) {
            continue;
        }
        let key = asked.keys.iter().map(|key| key.of(columns, row)).collect::<Option<Vec<_>>>()?;
        let values = asked.operands.iter().map(|operand| operand.of(columns, row));
        let values = values.collect::<Option<Vec<_>>>()?;
        let states = asked.fold.measures.iter().map(|measure| match measure {
            Measure::Rows => Value::Number(1),
            Measure::Values(index) => Value::Number((values[*index] != Value::Null).into()),
            Measure::Sum(index) => match &values[*index] {
                Value::Null => Value::Number(0),
                value => value.clone(),
            },
            Measure::Least(index) | Measure::Greatest(index) => values[*index].clone(),
        });
        let states: Vec<Value> = states.collect();
        match model.get_mut(&key) {
            Some(known) => {
                for ((known, more), measure) in
                    known.iter_mut().zip(&states).zip(&asked.fold.measures)
                {
                    *known = merge(*measure, known, more);
                }
            }
            None => {
                model.insert(key, states);
            }
        }
    }
    Some(model)
}

fn take_all(folder: &mut Folder, fold: &Fold, into: &mut Model) {
    while let Some(batch) = folder.take() {
        for row in 0..batch.num_rows() {
            let of = |column: &ArrayRef| value(column, row);
            let key: Vec<Value> = batch.columns()[..fold.keys.len()].iter().map(of).collect();
            let states: Vec<Value> = batch.columns()[fold.keys.len()..].iter().map(of).collect();
            match into.get_mut(&key) {
                Some(known) => {
                    for ((known, more), measure) in
                        known.iter_mut().zip(&states).zip(&fold.measures)
                    {
                        *known = merge(*measure, known, more);
                    }
                }
                None => {
                    into.insert(key, states);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// Groups are those of a model that looks at one row after the other, however chunks keep their values.
    #[test]
    fn groups_are_those_of_the_rows(
        columns in prop::collection::vec(column(), 1..5),
        choices in prop::collection::vec(any::<usize>(), 12),
        selected in prop::collection::vec(0.0..1.0_f64, ROWS),
        share in prop_oneof![Just(2.0), 0.0..1.0_f64],
        cuts in (1_usize..ROWS, any::<bool>(), any::<bool>()),
    ) {
        let (cut, are_compact, gives_early) = cuts;
        let whole = batch_of(&columns);
        let without: BTreeSet<Value> = (0..4).map(|row| value(&columns[0], row)).collect();
        let asked = asked(&columns, &choices, without);
        let rows: Vec<u32> = (0..ROWS as u32).filter(|row| selected[*row as usize] < share).collect();
        let expected = modelled(&asked, &columns, &rows);
        let mut folder = Folder::over(Arc::new(asked.fold.clone()), whole.schema()).unwrap();
        let mut found = Model::new();
        let mut failed = false;
        for part in [0..cut, cut..ROWS] {
            let chunks = columns.iter().map(|column| {
                let chunk = Chunk::of(&column.slice(part.start, part.len())).unwrap();
                Arc::new(if are_compact { chunk.compact() } else { chunk })
            });
            let list = rows.iter().filter(|row| part.contains(&(**row as usize)));
            let list: Vec<u32> = list.map(|row| row - part.start as u32).collect();
            match folder.add_group(chunks.collect(), ChunkRows::of(&list)) {
                Ok(()) => {}
                Err(error) => {
                    failed = true;
                    prop_assert_eq!(error.kind(), stoa_error::ErrorKind::Invalid, "{}", error);
                }
            }
            if gives_early {
                folder.give_all().unwrap();
            }
        }
        folder.give_all().unwrap();
        take_all(&mut folder, &asked.fold, &mut found);
        match expected {
            Some(expected) => {
                prop_assert!(!failed);
                prop_assert_eq!(found, expected);
            }
            None => prop_assert!(failed),
        }
    }
}

#[test]
fn a_sum_of_more_than_128_bits_is_an_error() {
    let large = i128::MAX / 2;
    let column: ArrayRef = Arc::new(Decimal128Array::from(vec![large, large, large]));
    let schema = batch_of(&[Arc::clone(&column)]).schema();
    let fold = Fold {
        conditions: vec![],
        keys: vec![],
        operands: vec![Operand::Column(0)],
        measures: vec![Measure::Sum(0)],
        schema: Arc::new(Schema::new(vec![Field::new("sum", WIDE, true)])),
    };
    let mut folder = Folder::over(Arc::new(fold), schema).unwrap();
    let chunk = || vec![Arc::new(Chunk::of(&column).unwrap())];
    let error = folder.add_group(chunk(), ChunkRows::Range(0..3)).unwrap_err();
    assert_eq!(error.sqlstate(), "22003");
    folder.add_group(chunk(), ChunkRows::Range(0..2)).unwrap();
    assert_eq!(folder.add_group(chunk(), ChunkRows::Range(0..2)).unwrap_err().sqlstate(), "22003");
}

/// An error that comes of a value which no row that counts has is none.
#[test]
fn only_rows_that_count_can_fail() {
    let texts: Vec<String> =
        (0..100).map(|n| if n == 7 { "x".into() } else { format!("a{}", n % 3) }).collect();
    let column: ArrayRef = Arc::new(arrow_array::StringArray::from(texts));
    let schema = batch_of(&[Arc::clone(&column)]).schema();
    let key = Beginning { column: [0], forbidden: Some("x".to_owned()) };
    let fold = Fold {
        conditions: vec![],
        keys: vec![Operand::Expression(Arc::new(key))],
        operands: vec![],
        measures: vec![Measure::Rows],
        schema: Arc::new(Schema::new(vec![
            Field::new("key", DataType::Utf8, true),
            Field::new("rows", DataType::Int64, true),
        ])),
    };
    let chunk = vec![Arc::new(Chunk::of(&column).unwrap().compact())];
    let mut folder = Folder::over(Arc::new(fold), schema).unwrap();
    let error = folder.add_group(chunk.clone(), ChunkRows::Range(0..100)).unwrap_err();
    assert!(error.to_string().contains("must not be looked at"), "{error}");
    folder.add_group(chunk, ChunkRows::Range(8..100)).unwrap();
    folder.give_all().unwrap();
    let batch = folder.take().unwrap();
    assert_eq!(batch.column(0).as_string::<i32>().value(0), "a");
    assert_eq!(batch.column(1).as_primitive::<Int64Type>().values(), &[92]);
}

/// More groups than are kept come in several batches, and what does not come again is not looked for.
#[test]
fn many_groups_are_given_on_the_way() {
    let groups = 3 * GROUPS_MAX;
    let schema =
        batch_of(&[Arc::new(arrow_array::Int64Array::from(vec![0_i64])) as ArrayRef]).schema();
    let fold = Arc::new(Fold {
        conditions: vec![],
        keys: vec![Operand::Column(0)],
        operands: vec![Operand::Column(0)],
        measures: vec![Measure::Sum(0)],
        schema: Arc::new(Schema::new(vec![
            Field::new("key", DataType::Int64, true),
            Field::new("sum", WIDE, true),
        ])),
    });
    let mut folder = Folder::over(fold, schema).unwrap();
    let mut seen = BTreeMap::new();
    let mut most = 0;
    for start in (0..groups as i64).step_by(5_000) {
        let values: Vec<i64> = (start..start + 5_000).flat_map(|n| [n * 1_000_003; 2]).collect();
        let column: ArrayRef = Arc::new(arrow_array::Int64Array::from(values));
        let chunk = Arc::new(Chunk::of(&column).unwrap().compact());
        folder.add_group(vec![chunk], ChunkRows::Range(0..10_000)).unwrap();
        most = most.max(folder.groups.len());
        let mut take = |folder: &mut Folder| {
            while let Some(batch) = folder.take() {
                let keys = batch.column(0).as_primitive::<Int64Type>().clone();
                let sums = batch.column(1).as_primitive::<Decimal128Type>().clone();
                for (key, sum) in keys.values().iter().zip(sums.values()) {
                    assert_eq!(seen.insert(*key, *sum), None);
                }
            }
        };
        take(&mut folder);
        if start + 5_000 >= groups as i64 {
            folder.give_all().unwrap();
            take(&mut folder);
        }
    }
    assert!(most < 2 * TRIAL_GROUPS as usize, "{most} groups were kept though none came again");
    assert!(seen.len() >= groups);
    assert!(seen.iter().all(|(key, sum)| *sum == 2 * i128::from(*key)));
}

#[tokio::test]
async fn rows_of_files_are_grouped_as_they_are() {
    let home = Home::new(3, 5_500).await;
    let reports = Arc::new(crate::tests::reports());
    let schema = home.table.schema();
    let names = ["region", "clicks"];
    let all: Vec<Column> = columns_of(&home.table);
    let wanted: Vec<usize> = names.iter().map(|name| schema.index_of(name).unwrap()).collect();
    let columns = wanted.iter().map(|at| all.iter().find(|c| c.position == *at).unwrap().clone());
    let scan = Arc::new(ChunkScan {
        table: home.table.clone(),
        columns: columns.collect(),
        schema: Arc::new(schema.project(&wanted).unwrap()),
        filter: ScanFilter::All(Vec::new()),
        batch_rows: 700,
        judges: Vec::new(),
        keeps: true,
    });
    let fold = Fold {
        conditions: vec![],
        keys: vec![Operand::Column(0)],
        operands: vec![Operand::Column(1)],
        measures: vec![Measure::Rows, Measure::Sum(0), Measure::Greatest(0)],
        schema: Arc::new(Schema::new(vec![
            Field::new("region", scan.schema.field(0).data_type().clone(), true),
            Field::new("rows", DataType::Int64, true),
            Field::new("sum", WIDE, true),
            Field::new("greatest", scan.schema.field(1).data_type().clone(), true),
        ])),
    };
    let mut folder = Folder::new(Arc::new(fold.clone()), &scan).unwrap();
    let metrics = Arc::new(ReadMetrics::default());
    for file in &home.files {
        for part in 0..2 {
            let open = reports.scan_file(&scan, file, (part, 2), &metrics).await;
            let mut file = open.unwrap().unwrap();
            while crate::tests::sendable(folder.add(&mut file)).await.unwrap() {}
        }
    }
    folder.give_all().unwrap();
    let mut found = Model::new();
    take_all(&mut folder, &fold, &mut found);
    let mut expected = Model::new();
    for (part, file) in (0_i32..).zip(&home.files) {
        let rows = rows(part, file.rows as i64, i64::from(part));
        for row in 0..rows.num_rows() {
            let of = |at: usize| value(rows.column(wanted[at]), row);
            let clicks = of(1);
            let states = vec![Value::Number(1), clicks.clone(), clicks];
            let known = expected
                .entry(vec![of(0)])
                .or_insert_with(|| vec![Value::Number(0), Value::Number(0), Value::Null]);
            for ((known, more), measure) in known.iter_mut().zip(&states).zip(&fold.measures) {
                *known = merge(*measure, known, more);
            }
        }
    }
    assert_eq!(found, expected);
}
