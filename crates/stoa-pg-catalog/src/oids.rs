//! `stoa_no_oids()`: a list of OIDs that is NULL, with the type that drivers know before they ask for types (`oid[]`).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

/// The function's name.
pub(super) const NAME: &str = "stoa_no_oids";

/// Adds the function to a context.
pub(super) fn register(ctx: &SessionContext) {
    let signature = Signature::exact(Vec::new(), Volatility::Immutable);
    ctx.register_udf(ScalarUDF::new_from_impl(NoOids { signature }));
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NoOids {
    signature: Signature,
}

fn oids() -> DataType {
    let is_oid = HashMap::from([("pg.oid_alias".to_owned(), "oid".to_owned())]);
    DataType::List(Arc::new(Field::new("item", DataType::Int32, true).with_metadata(is_oid)))
}

impl ScalarUDFImpl for NoOids {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(oids())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::try_from(&oids())?))
    }
}
