"""Rules of values: numbers, texts, times, arrays, conditions, aggregates, windows."""

RULES = {
    # Numbers, integers among them.
    "n": """
        {i}
        {i}
        f
        r
        n
        0.5
        -1.25
        1e10
        1e-300
        12345678901234567890.5
        99999999999999999999999999999999999999
        'NaN'::double precision
        '-Infinity'::real
        ({n} {op} {n})
        ({n} {op} {n})
        (- {n})
        {fn}({n})
        {fn}({n})
        {fn2}({n}, {n})
        round({n}, {i})
        trunc({n}, 2)
        log({n}, {n})
        CASE WHEN {b} THEN {n} ELSE {n} END
        CASE {n} WHEN {n} THEN {n} WHEN 1 THEN {n} END
        coalesce({n}, {n}, 0)
        nullif({n}, {n})
        greatest({n}, {n}, {n})
        least({n}, {n})
        CAST({e} AS {numtype})
        {t}::{numtype}
        (SELECT max(fn) FROM few WHERE fk = {i})
        (SELECT {agg} FROM facts x WHERE x.k = {i})
        {agg} OVER ({over})
        extract({unit} FROM {ts})
        extract(epoch FROM {iv})
        date_part('{unit}', {d})
        random()
        atan2({n}, {n})
        width_bucket({n}, 0, 10, 5)
        to_number({t}, '999.99')
    """,
    "i": """
        k
        i
        s
        0
        1
        -7
        3
        2147483647
        2147483648
        9223372036854775807
        -9223372036854775808
        ({i} {op} {i})
        ({i} {bit} {i})
        (~ {i})
        abs({i})
        length({t})
        char_length({t})
        octet_length({t})
        ascii({t})
        strpos({t}, {t})
        position({t} IN {t})
        ({d} - {d})
        extract(year FROM {d})::int
        CAST({e} AS {inttype})
        cardinality({a})
        array_length({a}, 1)
        ({a})[{i}]
        (SELECT count(*) FROM few WHERE ft = {t})
        gcd({i}, {i})
        lcm({i}, {i})
        factorial({i})
        mod({i}, {i})
        div({i}, {i})
        bit_length({t})
        bit_count({y})
        count(*) OVER ({over})
        row_number() OVER ({over})
        array_position({a}, {i})
        regexp_count({t}, '{regex}')
        levenshtein({t}, {t})
    """,
    "fn": "abs ceil floor round trunc sqrt cbrt exp ln log log10 log2 sin cos tan asin acos atan sinh cosh tanh degrees radians sign",
    "fn2": "power mod atan2 nullif coalesce round",
    "op": "+ - * / % + -",
    "bit": "& | # << >>",
    "numtype": "{inttype} real {numeric} numeric numeric(38,0) numeric(10,2) numeric(38,38) decimal(5,5)",
    "numeric": "float8 float4 float",
    "inttype": "bigint int smallint integer int8 tinyint",
    "type": """
        {numtype}
        {inttype}
        text
        varchar
        varchar(2)
        char
        boolean
        date
        time
        timestamp
        timestamptz
        interval
        uuid
        bytea
        json
        oid
        regclass
        name
        bigint[]
        int[]
        text[]
        numeric(10,2)[]
        date[]
        boolean[]
        timestamp[][]
        double precision
        timestamp with time zone
        timestamp(0)
        unsigned
        nothing
    """,
    "t": """
        t
        v
        ''
        'a'
        'x y'
        'Ünï'
        '2015-01-05'
        '10'
        '-1.5e3'
        '{1,2,NULL}'
        'true'
        E'\\\\x41\\n'
        $$a'b$$
        ({t} || {t})
        ({e} || {t})
        {tfn}({t})
        {tfn}({t})
        substr({t}, {i})
        substr({t}, {i}, {i})
        substring({t} FROM {i} FOR {i})
        substring({t} FROM '{regex}')
        left({t}, {i})
        right({t}, {i})
        lpad({t}, {small}, {t})
        rpad({t}, {small})
        repeat({t}, {small})
        replace({t}, {t}, {t})
        translate({t}, {t}, {t})
        split_part({t}, {t}, {i})
        overlay({t} PLACING {t} FROM {i} FOR {i})
        trim(BOTH {t} FROM {t})
        btrim({t}, {t})
        concat({e}, {e}, {t})
        concat_ws({t}, {e}, {t})
        regexp_replace({t}, '{regex}', {t})
        regexp_replace({t}, '{regex}', {t}, 'gi')
        format('%s-%I-%L', {t}, {t}, {t})
        CAST({e} AS text)
        {e}::text
        to_char({n}, '999,990.99MI')
        to_char({ts}, '{pattern}')
        to_hex({i})
        chr({i})
        md5({t})
        encode({y}, '{coding}')
        coalesce({t}, {t})
        CASE WHEN {b} THEN {t} END
        min({t}) OVER ({over})
        lag({t}, {small}, {t}) OVER ({over})
        string_agg({t}, ',') OVER ({over})
        array_to_string({a}, ',')
        array_to_string({ta}, {t}, 'null')
        (SELECT max(ft) FROM few WHERE fn > {n})
        (SELECT string_agg(t, ',' ORDER BY t) FROM facts x WHERE x.k < {i})
        pg_typeof({e})
        ({ta})[1]
        quote_literal({t})
        quote_ident({t})
        date_trunc('{unit}', {ts})::text
        current_user
        current_setting('timezone')
        version()
    """,
    "tfn": "upper lower trim ltrim rtrim reverse initcap md5 quote_literal btrim",
    "small0": "0 1 3 -1 10 100 9223372036854775807",
    "small": "0 1 3 -1 10 100 k {i}",
    "regex": "^a b$ a.c [ab]+ (a|b)* \\d+ ( x{2,3} (a)(b)? \\y .*?",
    "coding": "hex base64 escape none",
    "pattern": "YYYY-MM-DD HH24:MI:SS.US Day,DDMonYYYY IYYY-IW J WW Q AM FMMM $$ x",
    "unit": "year quarter month week day hour minute second millisecond microsecond decade century millennium dow doy epoch isoyear isodow timezone x",
    "b": """
        b
        true
        false
        NULL
        k > 2
        ({e} {cmp} {e})
        ({n} {cmp} {n})
        ({i} {cmp} {i})
        ({t} {cmp} {t})
        ({d} {cmp} {d})
        ({ts} {cmp} {ts})
        ({b} AND {b})
        ({b} OR {b})
        (NOT {b})
        ({n} BETWEEN {n} AND {n})
        ({d} NOT BETWEEN {d} AND {d})
        ({i} IN ({i}, {i}, NULL))
        ({t} NOT IN ({t}, {t}))
        ({i} IN (SELECT fk FROM few))
        ({t} NOT IN (SELECT ft FROM few WHERE fk = {i}))
        ({n} {cmp} ANY (SELECT fn FROM few))
        ({n} {cmp} ALL (SELECT fn FROM few WHERE ft = t))
        EXISTS (SELECT 1 FROM few WHERE fk = {i} AND {b})
        NOT EXISTS (SELECT 1 FROM facts x WHERE x.k = {i})
        ({e} IS NULL)
        ({e} IS NOT NULL)
        ({b} IS NOT TRUE)
        ({b} IS UNKNOWN)
        ({e} IS DISTINCT FROM {e})
        ({t} LIKE {t})
        ({t} NOT ILIKE 'a%_\\%')
        ({t} LIKE '%b' ESCAPE 'x')
        ({t} SIMILAR TO '{regex}')
        ({t} ~ '{regex}')
        ({t} !~* '{regex}')
        starts_with({t}, {t})
        ({i} = ANY ({a}))
        ({t} <> ALL ({ta}))
        ({a} @> {a})
        ({a} && {a})
        ({a} = {a})
        (({i}, {t}) < ({i}, {t}))
        (({i}, {t}) IN ((1, 'a'), (2, {t})))
        CAST({e} AS boolean)
        {t}::boolean
        coalesce({b}, {b})
        CASE WHEN {b} THEN {b} ELSE {b} END
        bool_and({b}) OVER ({over})
        (({d}, {d}) OVERLAPS ({d}, {d}))
        isnan({n})
        regexp_like({t}, '{regex}')
    """,
    "cmp": "= <> < <= > >= =",
    "d": """
        d
        DATE '2015-01-05'
        DATE '2024-02-29'
        '2015-01-10'::date
        ({d} + {i})
        ({d} - {small})
        CAST({ts} AS date)
        CAST({t} AS date)
        current_date
        make_date({i}, {small}, {small})
        to_date({t}, 'YYYY-MM-DD')
        greatest({d}, {d})
        coalesce({d}, {d})
        lead({d}) OVER ({over})
        (SELECT min(d) FROM facts x WHERE x.i = {i})
        CASE WHEN {b} THEN {d} END
    """,
    "ts": """
        ts
        tz
        TIMESTAMP '2015-01-05 10:00:00.123456'
        TIMESTAMPTZ '2024-03-31 01:30:00+02'
        ({d} + {iv})
        ({ts} + {iv})
        ({ts} - {iv})
        ({d} + {tm})
        date_trunc('{unit}', {ts})
        date_bin({iv}, {ts}, {ts})
        CAST({d} AS timestamp)
        CAST({t} AS timestamptz)
        ({ts} AT TIME ZONE 'Europe/Berlin')
        ({ts} AT TIME ZONE {t})
        to_timestamp({n})
        to_timestamp({t}, 'YYYY-MM-DD HH24:MI')
        make_timestamp({i}, 1, 2, 3, 4, {n})
        now()
        coalesce({ts}, {ts})
        max({ts}) OVER ({over})
    """,
    "iv": """
        INTERVAL '1 day'
        INTERVAL '1 month -1 day 02:03:04.5'
        INTERVAL '-3 years'
        INTERVAL '90' MINUTE
        INTERVAL '178000000 years'
        ({ts} - {ts})
        ({iv} + {iv})
        ({iv} * {n})
        ({iv} / {n})
        (- {iv})
        {t}::interval
        age({ts}, {ts})
        make_interval(days => {i})
        justify_hours({iv})
        ({tm} - {tm})
    """,
    "tm": """
        TIME '10:00'
        '23:59:59.999999'::time
        {ts}::time
        ({tm} + {iv})
        {t}::time
    """,
    "y": """
        y
        '\\xdeadbeef'::bytea
        {t}::bytea
        decode({t}, '{coding}')
        sha256({y})
        ({y} || {y})
        substr({y}, {i}, {i})
        convert_to({t}, 'UTF8')
    """,
    "a": """
        a
        ARRAY[1, NULL]
        ARRAY[]::bigint[]
        '{1,2}'::bigint[]
        ARRAY[{i}, {i}]
        ARRAY[{n}, {i}, NULL]
        ARRAY[[{i}, 1], [2, {i}]]
        array_append({a}, {i})
        array_prepend({i}, {a})
        array_cat({a}, {a})
        array_remove({a}, {i})
        array_replace({a}, {i}, {i})
        array_fill({i}, ARRAY[3])
        ({a} || {a})
        ({a} || {i})
        ({a})[{i}:{i}]
        ARRAY(SELECT fk FROM few WHERE fn > {n})
        (SELECT array_agg({i}) FROM facts x WHERE {b})
        array_agg({i}) OVER ({over})
        array_sort({a})
        array_distinct({a})
        CAST({t} AS bigint[])
        coalesce({a}, {a})
        CASE WHEN {b} THEN {a} END
        range(0, {small})
        flatten({a})
    """,
    "ta": """
        ta
        ARRAY['a', NULL, '']
        ARRAY[{t}, {t}]
        string_to_array({t}, ',')
        string_to_array({t}, {t}, 'a')
        regexp_split_to_array({t}, '{regex}')
        regexp_match({t}, '{regex}')
        {a}::text[]
        array_append({ta}, {t})
    """,
    # Anything that has a value.
    "e": """
        NULL
        k
        i
        f
        n
        t
        v
        b
        d
        ts
        tz
        u
        y
        a
        ta
        1
        0.5
        'x'
        {tm}
        {n}
        {n}
        {i}
        {i}
        {t}
        {t}
        {b}
        {d}
        {ts}
        {iv}
        {a}
        {ta}
        {y}
        CAST({e} AS {type})
        CAST({e} AS {type})
        {e}::{type}
        {t}::{type}
        coalesce({e}, {e})
        CASE WHEN {b} THEN {e} ELSE {e} END
        ROW({e}, {e})
        struct({e}, {e})
        make_array({e}, {e})
        named_struct('x', {e}, 'y', {e})
        MAP {'a': {n}, 'b': {n}}
        first_value({e}) OVER ({over})
        nth_value({e}, {small}) OVER ({over})
        {rank} OVER ({over})
        (SELECT {e} FROM few LIMIT 1)
        (SELECT {e})
        lag({e}) OVER ({over})
        nullif({e}, {e})
        greatest({e}, {e})
    """,
    # What is mostly refused.
    "wrong": """
        $1
        excluded.x
        nothing({e})
        '{"a": [1, null]}'::json
        grouping(k)
        (SELECT fk FROM few)
        (SELECT * FROM few)
        {agg}
        {core}
        DEFAULT
        {e} {e}
    """,
    "lit": "1 NULL -7 0.5 'a' '' true DATE'2015-01-05' 1e10 12345678901 ARRAY[1,NULL] INTERVAL'1d' now() upper('b') 1+1 '5'::int",
    "rank": "rank() dense_rank() percent_rank() cume_dist() ntile({small}) row_number()",
    "over": """
        PARTITION BY k
        ORDER BY k
        PARTITION BY {e} ORDER BY {e}
        PARTITION BY {b} ORDER BY k, {e} DESC NULLS LAST
        ORDER BY k ROWS BETWEEN {small} PRECEDING AND {small} FOLLOWING
        ORDER BY i RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ORDER BY k RANGE BETWEEN {n} PRECEDING AND 1 FOLLOWING
        ORDER BY d RANGE BETWEEN {iv} PRECEDING AND CURRENT ROW
        ORDER BY t GROUPS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING
        PARTITION BY t ORDER BY k ROWS UNBOUNDED PRECEDING
    """,
    "agg": """
        count(*)
        sum(i)
        sum(n)
        max(t)
        min(d)
        avg(f)
        count(b)
        count({e})
        count(DISTINCT {e})
        sum({n})
        sum({i})
        sum(DISTINCT {i})
        avg({n})
        avg({i})
        min({e})
        max({e})
        min({t})
        max({ts})
        sum({n}) FILTER (WHERE {b})
        bool_and({b})
        bool_or({b})
        every({b})
        array_agg({i} ORDER BY k)
        array_agg({t})
        array_agg(DISTINCT {t})
        string_agg({t}, ',')
        string_agg({t}, {t} ORDER BY {e} DESC)
        stddev({n})
        var_pop({n})
        variance({n})
        corr({n}, {n})
        covar_samp({n}, {n})
        regr_slope({n}, {n})
        bit_and({i})
        bit_xor({i})
        median({n})
        mode() WITHIN GROUP (ORDER BY {e})
        percentile_cont(0.5) WITHIN GROUP (ORDER BY {n})
        approx_distinct({e})
        first_value({e} ORDER BY k)
        any_value({e})
        sum({agg1}) OVER (ORDER BY count(*))
    """,
    "agg1": "count(*) sum(i) max(k) min(n) avg(f)",
    "aggs": """
        {agg}
        {agg}, {agg}
        {agg} + {agg}, {agg}
        coalesce({agg}, {agg})
    """,
}  # fmt: skip
