//! What the server can do, as `GetSqlInfo` tells it.

use std::sync::OnceLock;

use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    SqlInfo, SqlNullOrdering, SqlOuterJoinsSupportLevel, SqlSupportedCaseSensitivity,
    SqlSupportedGroupBy, SqlSupportedSubqueries, SqlSupportedTransaction, SqlSupportedUnions,
    SqlTransactionIsolationLevel, SupportedSqlGrammar,
};
use stoa_error::{Error, Result};

use crate::not_built::not_built;

/// A bit per value of an enumeration that counts from 0.
macro_rules! bits {
    ($($value:expr),+ $(,)?) => { $(1 << ($value as i32))|+ };
}

/// All that is told.
///
/// # Errors
/// Internal: it cannot be built.
pub(crate) fn data() -> Result<&'static SqlInfoData> {
    static DATA: OnceLock<Option<SqlInfoData>> = OnceLock::new();
    let data = DATA.get_or_init(|| {
        build().inspect_err(|error| tracing::error!(%error, "no information on the server")).ok()
    });
    data.as_ref().ok_or_else(|| Error::internal("there is no information on the server"))
}

fn build() -> Result<SqlInfoData> {
    let mut info = SqlInfoDataBuilder::new();
    server(&mut info);
    language(&mut info);
    limits(&mut info);
    info.build().map_err(not_built)
}

fn server(info: &mut SqlInfoDataBuilder) {
    info.append(SqlInfo::FlightSqlServerName, "Stoa");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    info.append(SqlInfo::FlightSqlServerReadOnly, false);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    info.append(SqlInfo::FlightSqlServerCancel, true);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    info.append(SqlInfo::FlightSqlServerStatementTimeout, 0i32);
    info.append(SqlInfo::FlightSqlServerTransactionTimeout, 0i32);
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, true);
    info.append(SqlInfo::SqlDdlTable, true);
    info.append(SqlInfo::SqlAllTablesAreSelectable, true);
}

fn language(info: &mut SqlInfoDataBuilder) {
    let lower = SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32;
    let exact = SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32;
    info.append(SqlInfo::SqlIdentifierCase, lower);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlQuotedIdentifierCase, exact);
    info.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i32);
    info.append(SqlInfo::SqlKeywords, KEYWORDS);
    info.append(SqlInfo::SqlNumericFunctions, NUMERIC_FUNCTIONS);
    info.append(SqlInfo::SqlStringFunctions, STRING_FUNCTIONS);
    info.append(SqlInfo::SqlSystemFunctions, SYSTEM_FUNCTIONS);
    info.append(SqlInfo::SqlDatetimeFunctions, DATETIME_FUNCTIONS);
    info.append(SqlInfo::SqlSearchStringEscape, "\\");
    info.append(SqlInfo::SqlExtraNameCharacters, "");
    info.append(SqlInfo::SqlSupportsColumnAliasing, true);
    info.append(SqlInfo::SqlNullPlusNullIsNull, true);
    info.append(SqlInfo::SqlSupportsTableCorrelationNames, true);
    info.append(SqlInfo::SqlSupportsDifferentTableCorrelationNames, false);
    info.append(SqlInfo::SqlSupportsExpressionsInOrderBy, true);
    info.append(SqlInfo::SqlSupportsOrderByUnrelated, true);
    let group_by = bits![
        SqlSupportedGroupBy::SqlGroupByUnrelated,
        SqlSupportedGroupBy::SqlGroupByBeyondSelect,
    ];
    info.append(SqlInfo::SqlSupportedGroupBy, group_by);
    info.append(SqlInfo::SqlSupportsLikeEscapeClause, true);
    info.append(SqlInfo::SqlSupportsNonNullableColumns, true);
    let grammar = bits![
        SupportedSqlGrammar::SqlMinimumGrammar,
        SupportedSqlGrammar::SqlCoreGrammar,
        SupportedSqlGrammar::SqlExtendedGrammar,
    ];
    info.append(SqlInfo::SqlSupportedGrammar, grammar);
    info.append(SqlInfo::SqlAnsi92SupportedLevel, 1i32);
    info.append(SqlInfo::SqlSupportsIntegrityEnhancementFacility, false);
    let joins = bits![
        SqlOuterJoinsSupportLevel::SqlLimitedOuterJoins,
        SqlOuterJoinsSupportLevel::SqlFullOuterJoins,
    ];
    info.append(SqlInfo::SqlOuterJoinsSupportLevel, joins);
    info.append(SqlInfo::SqlSchemaTerm, "schema");
    info.append(SqlInfo::SqlProcedureTerm, "procedure");
    info.append(SqlInfo::SqlCatalogTerm, "database");
    info.append(SqlInfo::SqlCatalogAtStart, true);
    info.append(SqlInfo::SqlSchemasSupportedActions, 0i32);
    info.append(SqlInfo::SqlCatalogsSupportedActions, 0i32);
    info.append(SqlInfo::SqlSupportedPositionedCommands, 0i32);
    info.append(SqlInfo::SqlSelectForUpdateSupported, false);
    info.append(SqlInfo::SqlStoredProceduresSupported, false);
    let subqueries = bits![
        SqlSupportedSubqueries::SqlSubqueriesInComparisons,
        SqlSupportedSubqueries::SqlSubqueriesInExists,
        SqlSupportedSubqueries::SqlSubqueriesInIns,
        SqlSupportedSubqueries::SqlSubqueriesInQuantifieds,
    ];
    info.append(SqlInfo::SqlSupportedSubqueries, subqueries);
    info.append(SqlInfo::SqlCorrelatedSubqueriesSupported, true);
    let unions = bits![SqlSupportedUnions::SqlUnion, SqlSupportedUnions::SqlUnionAll];
    info.append(SqlInfo::SqlSupportedUnions, unions);
}

fn limits(info: &mut SqlInfoDataBuilder) {
    let unlimited = [
        SqlInfo::SqlMaxBinaryLiteralLength,
        SqlInfo::SqlMaxCharLiteralLength,
        SqlInfo::SqlMaxColumnNameLength,
        SqlInfo::SqlMaxColumnsInGroupBy,
        SqlInfo::SqlMaxColumnsInIndex,
        SqlInfo::SqlMaxColumnsInOrderBy,
        SqlInfo::SqlMaxColumnsInSelect,
        SqlInfo::SqlMaxColumnsInTable,
        SqlInfo::SqlMaxConnections,
        SqlInfo::SqlMaxCursorNameLength,
        SqlInfo::SqlMaxIndexLength,
        SqlInfo::SqlDbSchemaNameLength,
        SqlInfo::SqlMaxProcedureNameLength,
        SqlInfo::SqlMaxCatalogNameLength,
        SqlInfo::SqlMaxRowSize,
        SqlInfo::SqlMaxStatementLength,
        SqlInfo::SqlMaxStatements,
        SqlInfo::SqlMaxTableNameLength,
        SqlInfo::SqlMaxTablesInSelect,
        SqlInfo::SqlMaxUsernameLength,
    ];
    for limit in unlimited {
        info.append(limit, 0i64);
    }
    info.append(SqlInfo::SqlMaxRowSizeIncludesBlobs, true);
    let isolation = SqlTransactionIsolationLevel::SqlTransactionNone;
    info.append(SqlInfo::SqlDefaultTransactionIsolation, i64::from(isolation as i32));
    info.append(SqlInfo::SqlTransactionsSupported, false);
    info.append(SqlInfo::SqlSupportedTransactionsIsolationLevels, bits![isolation]);
    info.append(SqlInfo::SqlDataDefinitionCausesTransactionCommit, true);
    info.append(SqlInfo::SqlDataDefinitionsInTransactionsIgnored, false);
    info.append(SqlInfo::SqlSupportedResultSetTypes, 0i32);
    info.append(SqlInfo::SqlBatchUpdatesSupported, true);
    info.append(SqlInfo::SqlSavepointsSupported, false);
    info.append(SqlInfo::SqlNamedParametersSupported, false);
    info.append(SqlInfo::SqlLocatorsUpdateCopy, false);
    info.append(SqlInfo::SqlStoredFunctionsUsingCallSyntaxSupported, false);
}

/// Words with a meaning of their own that are not SQL:2003's.
const KEYWORDS: &[&str] = &[
    "ANALYZE",
    "COMPACT",
    "COPY",
    "DESCRIBE",
    "EXPIRE",
    "EXPLAIN",
    "FLUSH",
    "ILIKE",
    "LIMIT",
    "OFFSET",
    "OVERWRITE",
    "PURGE",
    "RETURNING",
    "SHOW",
    "TRUNCATE",
];
const NUMERIC_FUNCTIONS: &[&str] = &[
    "abs", "acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "cot", "degrees", "exp",
    "floor", "ln", "log", "log10", "log2", "pi", "power", "radians", "random", "round", "sign",
    "sin", "sqrt", "tan", "trunc",
];
const STRING_FUNCTIONS: &[&str] = &[
    "ascii",
    "btrim",
    "char_length",
    "chr",
    "concat",
    "concat_ws",
    "initcap",
    "left",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "octet_length",
    "position",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "split_part",
    "starts_with",
    "strpos",
    "substr",
    "substring",
    "to_hex",
    "translate",
    "trim",
    "upper",
];
const SYSTEM_FUNCTIONS: &[&str] =
    &["current_database", "current_schema", "current_user", "version"];
const DATETIME_FUNCTIONS: &[&str] = &[
    "current_date",
    "current_time",
    "current_timestamp",
    "date_bin",
    "date_part",
    "date_trunc",
    "extract",
    "from_unixtime",
    "make_date",
    "now",
    "to_char",
    "to_date",
    "to_timestamp",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_told_or_what_was_asked_for() {
        let data = data().unwrap();
        assert!(data.record_batch([]).unwrap().num_rows() > 80);
        let asked = [SqlInfo::FlightSqlServerBulkIngestion, SqlInfo::FlightSqlServerName];
        let asked = asked.map(|info| info as u32).into_iter().chain([9999]);
        assert_eq!(data.record_batch(asked).unwrap().num_rows(), 2);
    }
}
