//! Facts about the server (GetInfo), by their numbers in `TGetInfoType`.

use stoa_error::{Error, Result};
use stoa_thrift::InfoValue;

/// Drivers and tools choose their dialect by it.
const PRODUCT: &str = "Apache Hive";
/// The version of Hive whose protocol this is, then Stoa's own: drivers read the first two numbers.
const VERSION: &str = concat!("4.0.1-stoa-", env!("CARGO_PKG_VERSION"));
/// Characters of a name.
const NAME_CHARS_MAX: i64 = 128;
/// Words that tools quote, beyond those of SQL:2003; JDBC's driver asks for them.
const KEYWORDS: &str = "ANALYZE,BUCKET,CLUSTER,DATABASE,DATABASES,DESCRIBE,EXTENDED,FORMATTED,LATERAL,LIMIT,LOAD,MAP,\
    OFFSET,OPTIMIZE,OVERWRITE,PARTITIONED,REDUCE,RLIKE,SCHEMA,SCHEMAS,SHOW,STRUCT,TABLES,USE,VIEW";

/// The fact with this number.
///
/// # Errors
/// Unsupported: none that clients are known to ask for.
pub(crate) fn info(number: i32) -> Result<InfoValue> {
    Ok(match number {
        // CLI_SERVER_NAME, CLI_DBMS_NAME
        13 | 17 => InfoValue::Text(PRODUCT.to_owned()),
        // CLI_DBMS_VER
        18 => InfoValue::Text(VERSION.to_owned()),
        // CLI_SEARCH_PATTERN_ESCAPE
        14 => InfoValue::Text("\\".to_owned()),
        // CLI_IDENTIFIER_QUOTE_CHAR
        29 => InfoValue::Text("`".to_owned()),
        // CLI_MAX_COLUMN_NAME_LEN, CLI_MAX_SCHEMA_NAME_LEN, CLI_MAX_TABLE_NAME_LEN, CLI_MAX_IDENTIFIER_LEN
        30 | 32 | 35 | 10_005 => InfoValue::Length(NAME_CHARS_MAX),
        // CLI_MAX_CATALOG_NAME_LEN: there are no catalogs.
        34 => InfoValue::Length(0),
        // CLI_TXN_CAPABLE: no transactions.
        46 => InfoValue::Small(0),
        // CLI_ODBC_KEYWORDS
        10_006 => InfoValue::Text(KEYWORDS.to_owned()),
        _ => {
            return Err(Error::unsupported(format!("fact {number} about the server is not known"))
                .with_sqlstate("HYC00"));
        }
    })
}
