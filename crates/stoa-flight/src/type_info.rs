//! The SQL types, as `GetXdbcTypeInfo` tells them.

use std::sync::OnceLock;

use arrow_flight::sql::metadata::{XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::{Nullable, Searchable, XdbcDataType, XdbcDatetimeSubcode};
use stoa_error::{Error, Result};

use crate::not_built::not_built;

/// All that is told.
///
/// # Errors
/// Internal: it cannot be built.
pub(crate) fn data() -> Result<&'static XdbcTypeInfoData> {
    static DATA: OnceLock<Option<XdbcTypeInfoData>> = OnceLock::new();
    let data = DATA.get_or_init(|| {
        build().inspect_err(|error| tracing::error!(%error, "no information on types")).ok()
    });
    data.as_ref().ok_or_else(|| Error::internal("there is no information on types"))
}

fn build() -> Result<XdbcTypeInfoData> {
    use XdbcDataType as T;
    let mut types = XdbcTypeInfoDataBuilder::new();
    types.append(plain("boolean", T::XdbcBit, 1));
    types.append(number("integer", T::XdbcInteger, 10, 10));
    types.append(number("bigint", T::XdbcBigint, 19, 10));
    types.append(number("real", T::XdbcReal, 24, 2));
    types.append(number("double precision", T::XdbcDouble, 53, 2));
    types.append(XdbcTypeInfo {
        create_params: Some(vec!["precision".to_owned(), "scale".to_owned()]),
        fixed_prec_scale: false,
        minimum_scale: Some(0),
        maximum_scale: Some(38),
        ..number("decimal", T::XdbcDecimal, 38, 10)
    });
    types.append(XdbcTypeInfo { case_sensitive: true, ..quoted("text", T::XdbcVarchar, i32::MAX) });
    types.append(XdbcTypeInfo {
        literal_prefix: Some("'\\x".to_owned()),
        ..quoted("bytea", T::XdbcVarbinary, i32::MAX)
    });
    // The subcode of dates has the number of that of years, whose name it goes by here.
    types.append(time("date", T::XdbcDate, 10, XdbcDatetimeSubcode::XdbcSubcodeYear));
    types.append(time(
        "timestamp",
        T::XdbcTimestamp,
        26,
        XdbcDatetimeSubcode::XdbcSubcodeTimestamp,
    ));
    types.append(time(
        "timestamp with time zone",
        T::XdbcTimestamp,
        32,
        XdbcDatetimeSubcode::XdbcSubcodeTimestampWithTimezone,
    ));
    types.build().map_err(not_built)
}

fn plain(name: &str, data_type: XdbcDataType, size: i32) -> XdbcTypeInfo {
    XdbcTypeInfo {
        type_name: name.to_owned(),
        data_type,
        column_size: Some(size),
        literal_prefix: None,
        literal_suffix: None,
        create_params: None,
        nullable: Nullable::NullabilityNullable,
        case_sensitive: false,
        searchable: Searchable::Full,
        unsigned_attribute: None,
        fixed_prec_scale: false,
        auto_increment: Some(false),
        local_type_name: Some(name.to_owned()),
        minimum_scale: None,
        maximum_scale: None,
        sql_data_type: data_type,
        datetime_subcode: None,
        num_prec_radix: None,
        interval_precision: None,
    }
}

fn number(name: &str, data_type: XdbcDataType, digits: i32, radix: i32) -> XdbcTypeInfo {
    XdbcTypeInfo {
        unsigned_attribute: Some(false),
        num_prec_radix: Some(radix),
        ..plain(name, data_type, digits)
    }
}

fn quoted(name: &str, data_type: XdbcDataType, size: i32) -> XdbcTypeInfo {
    XdbcTypeInfo {
        literal_prefix: Some("'".to_owned()),
        literal_suffix: Some("'".to_owned()),
        ..plain(name, data_type, size)
    }
}

fn time(
    name: &str,
    data_type: XdbcDataType,
    size: i32,
    subcode: XdbcDatetimeSubcode,
) -> XdbcTypeInfo {
    XdbcTypeInfo {
        literal_prefix: Some(format!("{} '", name.to_uppercase())),
        literal_suffix: Some("'".to_owned()),
        sql_data_type: XdbcDataType::XdbcDatetime,
        datetime_subcode: Some(subcode),
        ..plain(name, data_type, size)
    }
}
