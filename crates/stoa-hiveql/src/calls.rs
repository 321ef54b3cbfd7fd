//! Hive's functions by name: which of Stoa's each becomes.

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, OrderByExpr, OrderByOptions, Value,
};
use stoa_error::{Error, Result, Subject};

use crate::made::{call, cast, string};

/// What a function of Hive's becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Stoa's of the same name, which means the same.
    Same,
    /// Stoa's of another name.
    Named(&'static str),
    /// `hive_name` of `crate::pack`.
    Pack(&'static str),
    /// An aggregate of doubles or decimals.
    Measure(&'static str),
    /// Something else: see [`written`].
    Special,
    /// Rows: `LATERAL VIEW`, or alone in SELECT.
    Rows,
    /// What Stoa has not, and what to use instead.
    Refused(&'static str),
}

const NONE: &str = "docs/hiveql.md lists the functions";

/// By Hive's name.
pub(crate) static CALLS: &[(&str, Call)] = {
    use Call::{Measure, Named, Pack, Refused, Rows, Same, Special};
    &[
        // Aggregates and windows.
        ("count", Special),
        ("sum", Special),
        ("avg", Measure("avg")),
        ("min", Same),
        ("max", Same),
        ("variance", Measure("var_pop")),
        ("var_pop", Measure("var_pop")),
        ("var_samp", Measure("var_samp")),
        ("std", Measure("stddev_pop")),
        ("stddev", Measure("stddev_pop")),
        ("stddev_pop", Measure("stddev_pop")),
        ("stddev_samp", Measure("stddev_samp")),
        ("covar_pop", Measure("covar_pop")),
        ("covar_samp", Measure("covar_samp")),
        ("corr", Measure("corr")),
        ("regr_slope", Measure("regr_slope")),
        ("regr_intercept", Measure("regr_intercept")),
        ("regr_r2", Measure("regr_r2")),
        ("regr_avgx", Measure("regr_avgx")),
        ("regr_avgy", Measure("regr_avgy")),
        ("regr_sxx", Measure("regr_sxx")),
        ("regr_syy", Measure("regr_syy")),
        ("regr_sxy", Measure("regr_sxy")),
        ("regr_count", Measure("regr_count")),
        ("collect_list", Special),
        ("collect_set", Special),
        ("percentile", Special),
        ("percentile_approx", Special),
        ("percentile_cont", Same),
        ("percentile_disc", Same),
        ("row_number", Same),
        ("rank", Same),
        ("dense_rank", Same),
        ("percent_rank", Same),
        ("cume_dist", Same),
        ("ntile", Same),
        ("lead", Same),
        ("lag", Same),
        ("first_value", Special),
        ("last_value", Special),
        ("grouping", Same),
        // Conditions.
        ("if", Special),
        ("nvl", Named("coalesce")),
        ("coalesce", Same),
        ("nullif", Same),
        ("isnull", Special),
        ("isnotnull", Special),
        ("istrue", Special),
        ("isfalse", Special),
        ("isnottrue", Special),
        ("isnotfalse", Special),
        ("assert_true", Refused("check it in the client")),
        ("greatest", Pack("hive_greatest")),
        ("least", Pack("hive_least")),
        ("between", Special),
        // Texts.
        ("upper", Pack("hive_upper")),
        ("ucase", Pack("hive_upper")),
        ("lower", Pack("hive_lower")),
        ("lcase", Pack("hive_lower")),
        ("initcap", Pack("hive_initcap")),
        ("length", Pack("hive_length")),
        ("char_length", Pack("hive_length")),
        ("character_length", Pack("hive_length")),
        ("octet_length", Pack("hive_octet_length")),
        ("reverse", Pack("hive_reverse")),
        ("repeat", Pack("hive_repeat")),
        ("space", Pack("hive_space")),
        ("trim", Pack("hive_trim")),
        ("ltrim", Pack("hive_ltrim")),
        ("rtrim", Pack("hive_rtrim")),
        ("lpad", Pack("hive_lpad")),
        ("rpad", Pack("hive_rpad")),
        ("substr", Pack("hive_substr")),
        ("substring", Pack("hive_substr")),
        ("mid", Pack("hive_substr")),
        ("substring_index", Pack("hive_substring_index")),
        ("instr", Pack("hive_instr")),
        ("locate", Pack("hive_locate")),
        ("position", Pack("hive_locate")),
        ("translate", Pack("hive_translate")),
        ("replace", Pack("hive_replace")),
        ("ascii", Pack("hive_ascii")),
        ("chr", Pack("hive_chr")),
        ("char", Pack("hive_chr")),
        ("concat", Pack("hive_concat")),
        ("concat_ws", Pack("hive_concat_ws")),
        ("elt", Pack("hive_elt")),
        ("field", Pack("hive_field")),
        ("find_in_set", Pack("hive_find_in_set")),
        ("levenshtein", Pack("hive_levenshtein")),
        ("soundex", Pack("hive_soundex")),
        ("base64", Pack("hive_base64")),
        ("unbase64", Pack("hive_unbase64")),
        ("encode", Pack("hive_encode")),
        ("decode", Pack("hive_decode")),
        ("md5", Pack("hive_md5")),
        ("sha", Pack("hive_sha")),
        ("sha1", Pack("hive_sha")),
        ("sha2", Pack("hive_sha2")),
        ("crc32", Pack("hive_crc32")),
        ("hash", Pack("hive_hash")),
        ("split", Pack("hive_split")),
        ("regexp", Pack("hive_rlike")),
        ("rlike", Pack("hive_rlike")),
        ("regexp_extract", Pack("hive_regexp_extract")),
        ("regexp_replace", Pack("hive_regexp_replace")),
        ("parse_url", Pack("hive_parse_url")),
        ("get_json_object", Pack("hive_get_json_object")),
        ("format_number", Pack("hive_format_number")),
        ("mask", Pack("hive_mask")),
        ("mask_first_n", Pack("hive_mask_first_n")),
        ("mask_last_n", Pack("hive_mask_last_n")),
        ("mask_show_first_n", Pack("hive_mask_show_first_n")),
        ("mask_show_last_n", Pack("hive_mask_show_last_n")),
        ("mask_hash", Pack("hive_mask_hash")),
        // Numbers.
        ("round", Special),
        ("bround", Pack("hive_bround")),
        ("floor", Pack("hive_floor")),
        ("ceil", Pack("hive_ceil")),
        ("ceiling", Pack("hive_ceil")),
        ("abs", Pack("hive_abs")),
        ("sign", Pack("hive_sign")),
        ("negative", Pack("hive_negative")),
        ("positive", Pack("hive_positive")),
        ("sqrt", Pack("hive_sqrt")),
        ("cbrt", Pack("hive_cbrt")),
        ("exp", Pack("hive_exp")),
        ("ln", Pack("hive_ln")),
        ("log", Pack("hive_log")),
        ("log2", Pack("hive_log2")),
        ("log10", Pack("hive_log10")),
        ("pow", Pack("hive_pow")),
        ("power", Pack("hive_pow")),
        ("sin", Pack("hive_sin")),
        ("cos", Pack("hive_cos")),
        ("tan", Pack("hive_tan")),
        ("asin", Pack("hive_asin")),
        ("acos", Pack("hive_acos")),
        ("atan", Pack("hive_atan")),
        ("degrees", Pack("hive_degrees")),
        ("radians", Pack("hive_radians")),
        ("pi", Same),
        ("e", Special),
        ("factorial", Pack("hive_factorial")),
        ("bin", Pack("hive_bin")),
        ("hex", Pack("hive_hex")),
        ("unhex", Pack("hive_unhex")),
        ("conv", Pack("hive_conv")),
        ("pmod", Pack("hive_pmod")),
        ("mod", Pack("hive_mod")),
        ("shiftleft", Pack("hive_shiftleft")),
        ("shiftright", Pack("hive_shiftright")),
        ("shiftrightunsigned", Pack("hive_shiftrightunsigned")),
        ("width_bucket", Pack("hive_width_bucket")),
        ("rand", Special),
        // Dates and times.
        ("year", Pack("hive_year")),
        ("quarter", Pack("hive_quarter")),
        ("month", Pack("hive_month")),
        ("day", Pack("hive_day")),
        ("dayofmonth", Pack("hive_day")),
        ("dayofweek", Pack("hive_dayofweek")),
        ("weekofyear", Pack("hive_weekofyear")),
        ("hour", Pack("hive_hour")),
        ("minute", Pack("hive_minute")),
        ("second", Pack("hive_second")),
        ("to_date", Pack("hive_date_of")),
        ("date", Pack("hive_date_of")),
        ("date_add", Pack("hive_date_add")),
        ("date_sub", Pack("hive_date_sub")),
        ("datediff", Pack("hive_datediff")),
        ("last_day", Pack("hive_last_day")),
        ("next_day", Pack("hive_next_day")),
        ("add_months", Pack("hive_add_months")),
        ("months_between", Pack("hive_months_between")),
        ("trunc", Pack("hive_trunc")),
        ("date_format", Pack("hive_date_format")),
        ("from_unixtime", Special),
        ("unix_timestamp", Special),
        ("to_unix_timestamp", Special),
        ("from_utc_timestamp", Special),
        ("to_utc_timestamp", Special),
        ("current_date", Special),
        ("current_timestamp", Special),
        // Arrays, maps and structs.
        ("array", Pack("hive_array")),
        ("map", Pack("hive_map")),
        ("named_struct", Same),
        ("struct", Special),
        ("str_to_map", Pack("hive_str_to_map")),
        ("size", Pack("hive_size")),
        ("array_contains", Pack("hive_array_contains")),
        ("array_distinct", Pack("hive_array_distinct")),
        ("sort_array", Pack("hive_sort_array")),
        ("map_keys", Pack("hive_map_keys")),
        ("map_values", Pack("hive_map_values")),
        // Rows.
        ("explode", Rows),
        ("posexplode", Rows),
        ("inline", Rows),
        ("stack", Rows),
        ("json_tuple", Rows),
        ("parse_url_tuple", Rows),
        // Who and where.
        ("current_database", Special),
        ("current_user", Special),
        ("logged_in_user", Special),
        ("version", Same),
        ("uuid", Named("gen_random_uuid")),
        // What Stoa has not.
        (
            "reflect",
            Refused("Java's methods cannot be called: use the functions of docs/hiveql.md"),
        ),
        (
            "reflect2",
            Refused("Java's methods cannot be called: use the functions of docs/hiveql.md"),
        ),
        (
            "java_method",
            Refused("Java's methods cannot be called: use the functions of docs/hiveql.md"),
        ),
        ("in_file", Refused("load the file into a table, and use IN (SELECT …)")),
        ("aes_encrypt", Refused("encrypt in the client")),
        ("aes_decrypt", Refused("decrypt in the client")),
        ("ngrams", Refused("split the texts, and count with GROUP BY")),
        ("context_ngrams", Refused("split the texts, and count with GROUP BY")),
        ("sentences", Refused("use split")),
        ("histogram_numeric", Refused("use width_bucket and GROUP BY")),
        ("compute_stats", Refused("ANALYZE TABLE is not needed")),
        ("xpath", Refused("convert the XML before it is loaded")),
        ("xpath_string", Refused("convert the XML before it is loaded")),
        ("xpath_int", Refused("convert the XML before it is loaded")),
        ("xpath_double", Refused("convert the XML before it is loaded")),
        ("xpath_boolean", Refused("convert the XML before it is loaded")),
        ("xpath_long", Refused("convert the XML before it is loaded")),
        ("xpath_float", Refused("convert the XML before it is loaded")),
        ("xpath_number", Refused("convert the XML before it is loaded")),
        ("xpath_short", Refused("convert the XML before it is loaded")),
        ("matchpath", Refused("use window functions")),
        ("noop", Refused(NONE)),
        ("create_union", Refused("use STRUCT")),
        ("extract_union", Refused("use STRUCT")),
        ("sort_array_by", Refused("explode the array, and use ORDER BY")),
        ("array_max", Refused("use max over LATERAL VIEW explode")),
        ("array_min", Refused("use min over LATERAL VIEW explode")),
        ("array_join", Refused("use concat_ws(separator, array)")),
        ("array_slice", Refused("use array[index]")),
        ("array_except", Refused("explode the arrays, and use NOT IN")),
        ("array_intersect", Refused("explode the arrays, and use IN")),
        ("array_union", Refused("explode the arrays, and use UNION")),
        ("array_remove", Refused("explode the array, and filter it")),
        ("array_append", Refused("collect the values with collect_list")),
        ("array_position", Refused("use LATERAL VIEW posexplode")),
        ("surrogate_key", Refused("use uuid()")),
        ("tumbling_window", Refused("use floor(time TO unit)")),
        ("typeof", Refused("DESCRIBE shows the types of columns")),
        ("get_splits", Refused("read the tables over Flight SQL or Iceberg")),
        ("get_llap_splits", Refused("read the tables over Flight SQL or Iceberg")),
        ("get_sql_schema", Refused("use DESCRIBE")),
        ("bloom_filter", Refused(NONE)),
        ("in_bloom_filter", Refused(NONE)),
        ("ewah_bitmap", Refused(NONE)),
        ("ds_hll_sketch", Refused("use count(DISTINCT …)")),
        ("cardinality_violation", Refused(NONE)),
        ("murmur_hash", Refused("use hash, md5 or crc32")),
        ("unwrap", Refused(NONE)),
        ("quote", Refused("escape texts in the client")),
        ("printf", Refused("use concat and format_number")),
        ("str_to_date", Refused("use to_date, or unix_timestamp with a pattern")),
        ("datetime_legacy_hybrid_calendar", Refused("dates are of the Gregorian calendar")),
        ("to_epoch_milli", Refused("use unix_timestamp(time) * 1000")),
        ("current_groups", Refused("roles are granted: SHOW GRANTS")),
        ("current_authorizer", Refused(NONE)),
        ("restrict_information_schema", Refused(NONE)),
        ("exists", Refused("write EXISTS (SELECT …)")),
    ]
};

/// What a function of this name becomes; `None` for those that Hive has not.
pub(crate) fn named(name: &str) -> Option<Call> {
    CALLS.iter().find(|(known, _)| *known == name).map(|(_, call)| *call)
}

/// The functions that there are, by name.
pub fn function_names() -> Vec<&'static str> {
    let is_there = |(_, call): &&(&str, Call)| !matches!(call, Call::Refused(_));
    let mut names: Vec<&str> = CALLS.iter().filter(is_there).map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}

/// The name of a function, if it has one part.
pub(crate) fn name_of(function: &Function) -> Option<&str> {
    match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(&name.value),
        _ => None,
    }
}

/// The operands of a call, without names.
pub(crate) fn operands(function: &Function) -> Vec<Expr> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let expr = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    list.args.iter().filter_map(expr).collect()
}

fn refused(name: &str, hint: &str) -> Error {
    Error::unsupported(format!("the function {name} is not supported"))
        .with_hint(hint)
        .about(Subject::OnlyCall(name.to_owned()))
}

/// What a call becomes; `None` if it stays as it is.
///
/// # Errors
/// 0A000: Stoa has not the function, or not with these operands.
pub(crate) fn written(function: &mut Function) -> Result<Option<Expr>> {
    order_windows(function);
    let Some(name) = name_of(function).map(str::to_owned) else { return Ok(None) };
    let Some(found) = named(&name) else { return unknown(&name).map(|()| None) };
    let args = operands(function);
    match found {
        Call::Same | Call::Rows => Ok(None),
        Call::Refused(hint) => Err(refused(&name, hint)),
        Call::Named(other) => {
            function.name = ObjectName::from(vec![Ident::new(other)]);
            Ok(None)
        }
        Call::Pack(other) => {
            if has_extras(function) {
                return Err(refused(&name, "DISTINCT and OVER are for aggregates"));
            }
            Ok(Some(call(other, args)))
        }
        Call::Measure(other) => {
            function.name = ObjectName::from(vec![Ident::new(other)]);
            each_operand(function, |operand| call("hive_measure", vec![operand]));
            Ok(None)
        }
        Call::Special => special(&name, function, args),
    }
}

/// Functions of Stoa's that Hive has not, but those of the pack, whose names are Stoa's own affair.
fn unknown(name: &str) -> Result<()> {
    if name.starts_with("hive_") {
        return Ok(());
    }
    Err(Error::not_found(format!("Invalid function {name}")).with_sqlstate("42883").with_hint(
        "SHOW FUNCTIONS lists the functions; SET stoa.dialect=postgres gives you Stoa's own",
    ))
}

fn has_extras(function: &Function) -> bool {
    let is_distinct = matches!(
        &function.args,
        FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: Some(DuplicateTreatment::Distinct),
            ..
        })
    );
    function.over.is_some() || function.filter.is_some() || is_distinct
}

fn each_operand(function: &mut Function, of: impl Fn(Expr) -> Expr) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for arg in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
            let operand = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = of(operand);
        }
    }
}

fn order_windows(function: &mut Function) {
    if let Some(sqlparser::ast::WindowType::WindowSpec(spec)) = &mut function.over {
        spec.order_by.iter_mut().for_each(|key| crate::nulls::order_nulls(&mut key.options, false));
    }
}

fn special(name: &str, function: &mut Function, mut args: Vec<Expr>) -> Result<Option<Expr>> {
    let count = args.len();
    let wrong = || {
        Error::invalid(format!("wrong operands of {name}"))
            .with_sqlstate("42883")
            .with_hint("docs/hiveql.md lists the functions")
    };
    let local_now = || Expr::Cast {
        kind: sqlparser::ast::CastKind::Cast,
        expr: Box::new(bare("localtimestamp")),
        data_type: sqlparser::ast::DataType::Timestamp(None, sqlparser::ast::TimezoneInfo::None),
        array: false,
        format: None,
    };
    Ok(Some(match (name, count) {
        ("count", 2..) => {
            let FunctionArguments::List(list) = &mut function.args else { return Ok(None) };
            if list.duplicate_treatment != Some(DuplicateTreatment::Distinct) {
                return Err(refused("count", "count(DISTINCT a, b) and count(a) are supported"));
            }
            list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(call("hive_key", args)))];
            return Ok(None);
        }
        ("count", _) | ("first_value" | "last_value", 1) => return Ok(None),
        ("first_value" | "last_value", 2) => {
            return Err(refused(
                &format!("{name}(value, ignore nulls)"),
                "filter the NULLs in a subquery",
            ));
        }
        ("sum", 1) => {
            // Of a column it stays as it is, so that reports are recognised; sessions know that texts are doubles.
            if !matches!(
                args[0],
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)
            ) {
                each_operand(function, |operand| call("hive_number", vec![operand]));
            }
            return Ok(None);
        }
        ("collect_list" | "collect_set", 1) => {
            if function.over.is_some() {
                return Err(refused(name, "collect in a subquery with GROUP BY"));
            }
            if name == "collect_set"
                && let FunctionArguments::List(list) = &mut function.args
            {
                list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
            }
            function.name = ObjectName::from(vec![Ident::new("array_agg")]);
            function.filter = Some(Box::new(Expr::IsNotNull(Box::new(args.swap_remove(0)))));
            call("hive_collected", vec![Expr::Function(function.clone())])
        }
        ("percentile" | "percentile_approx", 2 | 3) => {
            // Exact, whatever accuracy is asked for.
            let key = call("hive_to_double", vec![args[0].clone()]);
            percentile(function, key, args.swap_remove(1))
        }
        ("if", 3) => {
            let [condition, yes, no] = <[Expr; 3]>::try_from(args).map_err(|_| wrong())?;
            Expr::Nested(Box::new(crate::made::case(condition, yes, no)))
        }
        ("isnull", 1) => Expr::Nested(Box::new(Expr::IsNull(Box::new(args.swap_remove(0))))),
        ("isnotnull", 1) => Expr::Nested(Box::new(Expr::IsNotNull(Box::new(args.swap_remove(0))))),
        ("istrue", 1) => Expr::Nested(Box::new(Expr::IsTrue(Box::new(args.swap_remove(0))))),
        ("isfalse", 1) => Expr::Nested(Box::new(Expr::IsFalse(Box::new(args.swap_remove(0))))),
        ("isnottrue", 1) => Expr::Nested(Box::new(Expr::IsNotTrue(Box::new(args.swap_remove(0))))),
        ("isnotfalse", 1) => {
            Expr::Nested(Box::new(Expr::IsNotFalse(Box::new(args.swap_remove(0)))))
        }
        ("round", 1 | 2) => call("hive_round", args),
        ("e", 0) => cast(string("2.718281828459045"), "double precision"),
        ("rand", 0) => call("random", args),
        ("rand", _) => {
            return Err(refused("rand(seed)", "rows are computed in no certain order: use rand()"));
        }
        ("struct", 1..) => {
            let fields = args.into_iter().enumerate();
            let named = fields.flat_map(|(at, arg)| [string(&format!("col{}", at + 1)), arg]);
            call("named_struct", named.collect())
        }
        ("from_unixtime", 1 | 2) => {
            let seconds = local_seconds(args.swap_remove(0));
            args.insert(0, seconds);
            call("hive_from_unixtime", args)
        }
        ("unix_timestamp" | "to_unix_timestamp", 0) => call(
            "hive_to_bigint",
            vec![call(
                "floor",
                vec![call("date_part", vec![string("epoch"), call("now", Vec::new())])],
            )],
        ),
        ("unix_timestamp" | "to_unix_timestamp", 1 | 2) => call("hive_unix_timestamp", args),
        ("from_utc_timestamp" | "to_utc_timestamp", 2) => {
            let zone = args.swap_remove(1);
            let time = call("hive_to_timestamp", vec![args.swap_remove(0)]);
            let zoned = |time: Expr, zone: Expr| Expr::AtTimeZone {
                timestamp: Box::new(Expr::Nested(Box::new(time))),
                time_zone: Box::new(zone),
            };
            let (from, to) = match name {
                "from_utc_timestamp" => (string("UTC"), zone),
                _ => (zone, string("UTC")),
            };
            Expr::Nested(Box::new(zoned(zoned(time, from), to)))
        }
        ("current_date", 0) => bare("current_date"),
        ("current_timestamp", 0) => local_now(),
        ("current_user" | "logged_in_user", 0) => cast(bare("current_user"), "text"),
        ("current_database", 0) => {
            let schema = call("current_schema", Vec::new());
            let is_default = Expr::BinaryOp {
                left: Box::new(schema.clone()),
                op: sqlparser::ast::BinaryOperator::Eq,
                right: Box::new(string(crate::lexer::DEFAULT_NAMESPACE)),
            };
            crate::made::case(is_default, string("default"), cast(schema, "text"))
        }
        _ => return Err(wrong()),
    }))
}

/// Seconds since 1970 as the seconds of the local time: the session's zone is the server's here, and UTC.
fn local_seconds(seconds: Expr) -> Expr {
    call("hive_to_bigint", vec![seconds])
}

fn percentile(function: &Function, key: Expr, share: Expr) -> Expr {
    let key = OrderByExpr { expr: key, options: OrderByOptions::default(), with_fill: None };
    let mut found = call("percentile_cont", vec![shares(share)]);
    if let Expr::Function(call) = &mut found {
        call.within_group = vec![key];
        call.filter.clone_from(&function.filter);
        call.over.clone_from(&function.over);
    }
    found
}

/// `array(0.5, 0.9)` as an array of doubles, not of Hive's function.
fn shares(share: Expr) -> Expr {
    match share {
        Expr::Function(function) if name_of(&function) == Some("hive_array") => {
            let items: Vec<String> = operands(&function).iter().map(ToString::to_string).collect();
            crate::made::raw(&format!("CAST(ARRAY[{}] AS double precision[])", items.join(", ")))
        }
        other => other,
    }
}

fn bare(name: &str) -> Expr {
    Expr::Identifier(Ident::new(name))
}
