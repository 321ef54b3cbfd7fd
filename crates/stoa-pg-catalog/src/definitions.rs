//! Functions that tell of a table by its OID or name: its key, its comments, how large it is.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result as EngineResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use stoa_error::Result;
use stoa_semantics::errors::to_datafusion;

use crate::functions::must_exist;
use crate::keys::{constraint_definition, index_definition};
use crate::known_tables::KnownTables;
use crate::relations::{RelationInfo, Relations, name_parts, well_known_oid};

/// Adds the functions to a context, without tables: sessions know some ([`set_tables`]).
pub(super) fn register(ctx: &SessionContext) {
    let none = Arc::<KnownTables>::default();
    for about in ALL {
        ctx.register_udf(ScalarUDF::new_from_impl(Tells::new(about, &none)));
    }
}

/// Tells a session's functions which tables there are.
///
/// # Errors
/// The engine's, where it takes no functions.
pub fn set_tables(state: &mut SessionState, tables: &Arc<KnownTables>) -> EngineResult<()> {
    for about in ALL {
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(Tells::new(about, tables))))?;
    }
    Ok(())
}

/// What a function tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum About {
    Constraint,
    Index,
    View,
    Comment,
    ColumnComment,
    /// The OID of a name; NULL where there is none.
    Oid,
    /// The OID of a name, which must exist.
    ExistingOid,
    /// The name of an OID, with its schema unless that is the session's.
    Name,
    RelationSize,
    TableSize,
    TotalRelationSize,
    /// There is nothing behind an index.
    IndexesSize,
    DatabaseSize,
}

pub(super) const ALL: [About; 13] = [
    About::Constraint,
    About::Index,
    About::View,
    About::Comment,
    About::ColumnComment,
    About::Oid,
    About::ExistingOid,
    About::Name,
    About::RelationSize,
    About::TableSize,
    About::TotalRelationSize,
    About::IndexesSize,
    About::DatabaseSize,
];

impl About {
    pub(super) fn function(self) -> &'static str {
        match self {
            Self::Constraint => "pg_get_constraintdef",
            Self::Index => "pg_get_indexdef",
            Self::View => "pg_get_viewdef",
            Self::Comment => "obj_description",
            Self::ColumnComment => "col_description",
            Self::Oid => "to_regclass",
            Self::ExistingOid => "regclassin",
            Self::Name => "regclassout",
            Self::RelationSize => "pg_relation_size",
            Self::TableSize => "pg_table_size",
            Self::TotalRelationSize => "pg_total_relation_size",
            Self::IndexesSize => "pg_indexes_size",
            Self::DatabaseSize => "pg_database_size",
        }
    }

    fn gives(self) -> DataType {
        match self {
            Self::Oid | Self::ExistingOid => DataType::Int32,
            Self::Name
            | Self::Constraint
            | Self::Index
            | Self::View
            | Self::Comment
            | Self::ColumnComment => DataType::Utf8,
            _ => DataType::Int64,
        }
    }

    /// `column` is the second argument, the place of a column from 1.
    fn of(self, relation: &RelationInfo, column: Option<i64>) -> ScalarValue {
        let field = || {
            let number = usize::try_from(column?).ok()?;
            let mut known = relation.known_columns();
            known.find(|(place, _)| *place == number).map(|(_, field)| field)
        };
        match (self, column) {
            (Self::Constraint, _) => ScalarValue::Utf8(constraint_definition(relation)),
            (Self::Index, None | Some(0)) => ScalarValue::Utf8(index_definition(relation)),
            (Self::Index, Some(_)) => ScalarValue::Utf8(field().map(|field| field.name().clone())),
            (Self::View, _) => ScalarValue::Utf8(relation.definition.clone()),
            (Self::Comment, _) => ScalarValue::Utf8(relation.comment.clone()),
            (Self::ColumnComment, _) => {
                let comment = field().and_then(|field| field.metadata().get("comment"));
                ScalarValue::Utf8(comment.cloned())
            }
            (Self::Oid | Self::ExistingOid, _) => ScalarValue::Int32(Some(relation.oid)),
            (Self::IndexesSize, _) => ScalarValue::Int64(Some(0)),
            _ => ScalarValue::Int64(Some(relation.bytes.unwrap_or(0))),
        }
    }
}

/// One of the functions, for one session.
#[derive(Debug)]
struct Tells {
    about: About,
    tables: Arc<KnownTables>,
    signature: Signature,
}

impl PartialEq for Tells {
    fn eq(&self, other: &Self) -> bool {
        self.about == other.about && Arc::ptr_eq(&self.tables, &other.tables)
    }
}

impl Eq for Tells {}

impl Hash for Tells {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.about.hash(state);
    }
}

impl Tells {
    fn new(about: About, tables: &Arc<KnownTables>) -> Self {
        let any = vec![TypeSignature::Any(1), TypeSignature::Any(2), TypeSignature::Any(3)];
        let signature = Signature::one_of(any, Volatility::Stable);
        Self { about, tables: Arc::clone(tables), signature }
    }

    fn answer(
        &self,
        relations: &Relations,
        asked: &[ScalarValue],
        namespace: &str,
    ) -> Result<ScalarValue> {
        let null = || ScalarValue::try_from(&self.about.gives()).unwrap_or(ScalarValue::Null);
        if self.about == About::DatabaseSize {
            let bytes = relations.relations.iter().filter_map(|relation| relation.bytes).sum();
            return Ok(ScalarValue::Int64(Some(bytes)));
        }
        let number = |value: &ScalarValue| match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) => number,
            _ => None,
        };
        if self.about == About::Name {
            let found = asked.first().and_then(number).and_then(|oid| relations.with_oid(oid));
            return Ok(ScalarValue::Utf8(found.map(|found| shown_name(found, namespace))));
        }
        if matches!(self.about, About::Oid | About::ExistingOid) {
            let name = asked.first().and_then(|name| name.try_as_str().flatten());
            let known = name.and_then(|name| {
                let bare = name.strip_prefix("pg_catalog.").unwrap_or(name);
                let user = || relations.named(name, namespace).ok().map(|found| found.oid);
                well_known_oid(bare).or_else(user)
            });
            return match (known, name) {
                (None, Some(name)) if self.about == About::ExistingOid => {
                    Err(must_exist("regclass", &name_parts(name).join(".")))
                }
                _ => Ok(ScalarValue::Int32(known)),
            };
        }
        let found = match asked.first() {
            Some(name) if name.data_type().is_string() => match name.try_as_str().flatten() {
                Some(oid) if oid.parse::<i64>().is_ok() => {
                    oid.parse().ok().and_then(|oid| relations.with_oid(oid))
                }
                Some(name) => Some(relations.named(name, namespace)?),
                None => None,
            },
            Some(oid) => number(oid).and_then(|oid| relations.with_oid(oid)),
            None => None,
        };
        let column = match self.about {
            About::Index | About::ColumnComment => asked.get(1).and_then(number),
            _ => None,
        };
        Ok(found.map_or_else(null, |relation| self.about.of(relation, column)))
    }
}

/// The name of a relation as a session of this namespace writes it.
fn shown_name(relation: &RelationInfo, namespace: &str) -> String {
    let quoted = |name: &str| {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        match name.bytes().all(is_plain)
            && !name.starts_with(|letter: char| letter.is_ascii_digit())
        {
            true => name.to_owned(),
            false => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    };
    match relation.namespace == namespace {
        true => quoted(&relation.name),
        false => format!("{}.{}", quoted(&relation.namespace), quoted(&relation.name)),
    }
}

impl ScalarUDFImpl for Tells {
    fn name(&self) -> &str {
        self.about.function()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> EngineResult<DataType> {
        Ok(self.about.gives())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let namespace = args.config_options.catalog.default_schema.as_str();
        let relations = self.tables.own();
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let answer = |row: usize| {
            let values = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            let values = values.collect::<EngineResult<Vec<_>>>()?;
            self.answer(&relations, &values, namespace).map_err(to_datafusion)
        };
        if args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_))) {
            return Ok(ColumnarValue::Scalar(answer(0)?));
        }
        let answers = (0..args.number_rows).map(answer).collect::<EngineResult<Vec<_>>>()?;
        match answers.is_empty() {
            true => Ok(ColumnarValue::Array(arrow::array::new_empty_array(&self.about.gives()))),
            false => ScalarValue::iter_to_array(answers).map(ColumnarValue::Array),
        }
    }
}
