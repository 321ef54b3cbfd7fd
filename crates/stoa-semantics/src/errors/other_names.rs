//! Functions that people know from other databases, and what to write instead.

/// What to write instead of a function that there is not; `None` where nobody knows.
pub(super) fn written_as(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "ifnull" | "nvl" | "isnull" => "coalesce(value, other)",
        "iif" | "if" | "decode" => "CASE WHEN condition THEN value ELSE other END",
        "getdate" | "sysdate" | "curdate" | "current_date" => "current_date or now()",
        "datediff" | "date_diff" => "date - date, or extract(epoch FROM a - b)",
        "dateadd" | "date_add" | "add_months" => "date + interval '1 month'",
        "date_format" | "format_date" => "to_char(value, 'YYYY-MM-DD')",
        "str_to_date" | "parse_date" => "to_date(text, 'YYYY-MM-DD')",
        "year" | "month" | "day" | "hour" | "minute" | "second" | "quarter" | "week" => {
            "extract(year FROM value)"
        }
        "group_concat" | "listagg" => "string_agg(value, ',')",
        "charindex" | "instr" | "locate" => "strpos(text, part)",
        "len" | "datalength" => "length(text)",
        "substr_index" | "substring_index" => "split_part(text, separator, place)",
        "ucase" => "upper(text)",
        "lcase" => "lower(text)",
        "to_number" => "text::numeric",
        "convert" => "CAST(value AS type)",
        "newid" | "uuid" | "generate_uuid" => "gen_random_uuid()",
        "rand" => "random()",
        "median" => "percentile_cont(0.5) WITHIN GROUP (ORDER BY value)",
        "countif" | "count_if" => "count(*) FILTER (WHERE condition)",
        "sumif" | "sum_if" => "sum(value) FILTER (WHERE condition)",
        _ => return None,
    })
}
