//! Where NULLs come among sorted rows.

use sqlparser::ast::OrderByOptions;

/// Hive's order: NULLs are the smallest values, unless `hive.default.nulls.last` says otherwise.
pub(crate) fn order_nulls(options: &mut OrderByOptions, nulls_last: bool) {
    let is_ascending = options.asc != Some(false);
    options.nulls_first.get_or_insert(is_ascending != nulls_last);
}
