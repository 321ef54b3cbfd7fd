//! Values as PostgreSQL 15.18 reads and shows them. The lists were written from its answers to
//! `set_config` and `SHOW`.

use super::super::declared::SESSION_SETTINGS;

/// Settings, values, and what `SHOW` gives afterwards.
#[rustfmt::skip]
const TAKEN: &[(&str, &str, &str)] = &[
    ("statement_timeout", "0", "0"),
    ("statement_timeout", "1", "1ms"),
    ("statement_timeout", "30", "30ms"),
    ("statement_timeout", "30s", "30s"),
    ("statement_timeout", "30 s", "30s"),
    ("statement_timeout", " 30s ", "30s"),
    ("statement_timeout", "1min", "1min"),
    ("statement_timeout", "1 min", "1min"),
    ("statement_timeout", "60s", "1min"),
    ("statement_timeout", "61s", "61s"),
    ("statement_timeout", "90s", "90s"),
    ("statement_timeout", "1.5min", "90s"),
    ("statement_timeout", "0.5h", "30min"),
    ("statement_timeout", "1h", "1h"),
    ("statement_timeout", "60min", "1h"),
    ("statement_timeout", "24h", "1d"),
    ("statement_timeout", "1d", "1d"),
    ("statement_timeout", "2.5d", "60h"),
    ("statement_timeout", "500ms", "500ms"),
    ("statement_timeout", "500us", "0"),
    ("statement_timeout", "499us", "0"),
    ("statement_timeout", "1500us", "2ms"),
    ("statement_timeout", "0.4ms", "0"),
    ("statement_timeout", "0.5", "0"),
    ("statement_timeout", "1.5", "2ms"),
    ("statement_timeout", "2.5", "2ms"),
    ("statement_timeout", "1e3", "1s"),
    ("statement_timeout", "1e3s", "1000s"),
    ("statement_timeout", "0x10", "16ms"),
    ("statement_timeout", "010", "8ms"),
    ("statement_timeout", "0x1F ms", "31ms"),
    ("statement_timeout", "30 min", "30min"),
    ("statement_timeout", "1us", "0"),
    ("statement_timeout", "2147483647", "2147483647ms"),
    ("statement_timeout", "24d", "24d"),
    ("statement_timeout", "+5", "5ms"),
    ("statement_timeout", "+5s", "5s"),
    ("statement_timeout", ".5s", "500ms"),
    ("statement_timeout", "5.s", "5s"),
    ("statement_timeout", "3600000", "1h"),
    ("statement_timeout", "86400000", "1d"),
    ("statement_timeout", "90000", "90s"),
    ("statement_timeout", "100000", "100s"),
    ("statement_timeout", "999", "999ms"),
    ("statement_timeout", "1000", "1s"),
    ("statement_timeout", "0.0001s", "0"),
    ("statement_timeout", "1000000us", "1s"),
    ("idle_in_transaction_session_timeout", "10s", "10s"),
    ("idle_in_transaction_session_timeout", "0", "0"),
    ("idle_in_transaction_session_timeout", "5min", "5min"),
    ("idle_in_transaction_session_timeout", "1ms", "1ms"),
    ("lock_timeout", "10s", "10s"),
    ("lock_timeout", "0", "0"),
    ("lock_timeout", "1h", "1h"),
    ("work_mem", "64", "64kB"),
    ("work_mem", "64kB", "64kB"),
    ("work_mem", "64MB", "64MB"),
    ("work_mem", "1024", "1MB"),
    ("work_mem", "1024kB", "1MB"),
    ("work_mem", "1GB", "1GB"),
    ("work_mem", "1.5GB", "1536MB"),
    ("work_mem", "1TB", "1TB"),
    ("work_mem", "2000MB", "2000MB"),
    ("work_mem", "4MB ", "4MB"),
    ("work_mem", "4 MB", "4MB"),
    ("work_mem", "65536B", "64kB"),
    ("work_mem", "70000B", "68kB"),
    ("work_mem", "1500MB", "1500MB"),
    ("work_mem", "0.5MB", "512kB"),
    ("work_mem", "2147483647kB", "2147483647kB"),
    ("work_mem", "100000", "100000kB"),
    ("work_mem", "1048576", "1GB"),
    ("work_mem", "0x400", "1MB"),
    ("work_mem", "1e3MB", "1000MB"),
    ("work_mem", "8GB", "8GB"),
    ("row_security", "on", "on"),
    ("row_security", "off", "off"),
    ("row_security", "ON", "on"),
    ("row_security", "Off", "off"),
    ("row_security", "true", "on"),
    ("row_security", "false", "off"),
    ("row_security", "TRUE", "on"),
    ("row_security", "tr", "on"),
    ("row_security", "t", "on"),
    ("row_security", "f", "off"),
    ("row_security", "fal", "off"),
    ("row_security", "yes", "on"),
    ("row_security", "y", "on"),
    ("row_security", "ye", "on"),
    ("row_security", "no", "off"),
    ("row_security", "n", "off"),
    ("row_security", "1", "on"),
    ("row_security", "0", "off"),
    ("row_security", "of", "off"),
    ("extra_float_digits", "0", "0"),
    ("extra_float_digits", "3", "3"),
    ("extra_float_digits", "-15", "-15"),
    ("extra_float_digits", "1.4", "1"),
    ("extra_float_digits", "1.6", "2"),
    ("extra_float_digits", "+2", "2"),
    ("extra_float_digits", "0x2", "2"),
    ("extra_float_digits", " 1 ", "1"),
    ("client_min_messages", "notice", "notice"),
    ("client_min_messages", "WARNING", "warning"),
    ("client_min_messages", "debug", "debug2"),
    ("client_min_messages", "debug1", "debug1"),
    ("client_min_messages", "info", "info"),
    ("client_min_messages", "error", "error"),
    ("bytea_output", "hex", "hex"),
    ("bytea_output", "ESCAPE", "escape"),
    ("bytea_output", "Hex", "hex"),
    ("IntervalStyle", "postgres", "postgres"),
    ("IntervalStyle", "ISO_8601", "iso_8601"),
    ("IntervalStyle", "sql_standard", "sql_standard"),
    ("IntervalStyle", "postgres_verbose", "postgres_verbose"),
    ("DateStyle", "ISO", "ISO, MDY"),
    ("DateStyle", "ISO, MDY", "ISO, MDY"),
    ("DateStyle", "MDY, ISO", "ISO, MDY"),
    ("DateStyle", "default", "ISO, MDY"),
    ("DateStyle", "ISO,ISO", "ISO, MDY"),
    ("DateStyle", "US", "ISO, MDY"),
    ("client_encoding", "UTF8", "UTF8"),
    ("client_encoding", "utf-8", "UTF8"),
    ("client_encoding", "unicode", "UTF8"),
];

/// Settings, values, and the message and the hint with which they are refused (22023). The hint `*` is
/// one of Stoa's own.
#[rustfmt::skip]
const REFUSED: &[(&str, &str, &str, &str)] = &[
    ("statement_timeout", "30S", "invalid value for parameter \"statement_timeout\": \"30S\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "1D", "invalid value for parameter \"statement_timeout\": \"1D\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "-1", "-1 ms is outside the valid range for parameter \"statement_timeout\" (0 .. 2147483647)", ""),
    ("statement_timeout", "-1s", "-1000 ms is outside the valid range for parameter \"statement_timeout\" (0 .. 2147483647)", ""),
    ("statement_timeout", "abc", "invalid value for parameter \"statement_timeout\": \"abc\"", ""),
    ("statement_timeout", "", "invalid value for parameter \"statement_timeout\": \"\"", ""),
    ("statement_timeout", "30sec", "invalid value for parameter \"statement_timeout\": \"30sec\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "30 seconds", "invalid value for parameter \"statement_timeout\": \"30 seconds\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "5m", "invalid value for parameter \"statement_timeout\": \"5m\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "1M", "invalid value for parameter \"statement_timeout\": \"1M\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "MIN", "invalid value for parameter \"statement_timeout\": \"MIN\"", ""),
    ("statement_timeout", "2147483648", "invalid value for parameter \"statement_timeout\": \"2147483648\"", "Value exceeds integer range."),
    ("statement_timeout", "25d", "invalid value for parameter \"statement_timeout\": \"25d\"", "Value exceeds integer range."),
    ("statement_timeout", "30s foo", "invalid value for parameter \"statement_timeout\": \"30s foo\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "s", "invalid value for parameter \"statement_timeout\": \"s\"", ""),
    ("statement_timeout", "1..5s", "invalid value for parameter \"statement_timeout\": \"1..5s\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "NaN", "invalid value for parameter \"statement_timeout\": \"NaN\"", ""),
    ("statement_timeout", "inf", "invalid value for parameter \"statement_timeout\": \"inf\"", ""),
    ("statement_timeout", "1e", "invalid value for parameter \"statement_timeout\": \"1e\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "1 0", "invalid value for parameter \"statement_timeout\": \"1 0\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "30ms s", "invalid value for parameter \"statement_timeout\": \"30ms s\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("statement_timeout", "1 e3", "invalid value for parameter \"statement_timeout\": \"1 e3\"", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
    ("lock_timeout", "-1", "-1 ms is outside the valid range for parameter \"lock_timeout\" (0 .. 2147483647)", ""),
    ("work_mem", "2TB", "invalid value for parameter \"work_mem\": \"2TB\"", "Value exceeds integer range."),
    ("work_mem", "63kB", "63 kB is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)", ""),
    ("work_mem", "0", "0 kB is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)", ""),
    ("work_mem", "-1", "-1 kB is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)", ""),
    ("work_mem", "4mb", "invalid value for parameter \"work_mem\": \"4mb\"", "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."),
    ("work_mem", "4Mb", "invalid value for parameter \"work_mem\": \"4Mb\"", "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."),
    ("work_mem", "4M", "invalid value for parameter \"work_mem\": \"4M\"", "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."),
    ("work_mem", "2147483648", "invalid value for parameter \"work_mem\": \"2147483648\"", "Value exceeds integer range."),
    ("row_security", "o", "parameter \"row_security\" requires a Boolean value", ""),
    ("row_security", "2", "parameter \"row_security\" requires a Boolean value", ""),
    ("row_security", "", "parameter \"row_security\" requires a Boolean value", ""),
    ("row_security", "onn", "parameter \"row_security\" requires a Boolean value", ""),
    ("row_security", "enabled", "parameter \"row_security\" requires a Boolean value", ""),
    ("row_security", "  on", "parameter \"row_security\" requires a Boolean value", ""),
    ("row_security", "o n", "parameter \"row_security\" requires a Boolean value", ""),
    ("extra_float_digits", "4", "4 is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)", ""),
    ("extra_float_digits", "-16", "-16 is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)", ""),
    ("extra_float_digits", "abc", "invalid value for parameter \"extra_float_digits\": \"abc\"", ""),
    ("extra_float_digits", "2s", "invalid value for parameter \"extra_float_digits\": \"2s\"", ""),
    ("extra_float_digits", "2kB", "invalid value for parameter \"extra_float_digits\": \"2kB\"", ""),
    ("extra_float_digits", "", "invalid value for parameter \"extra_float_digits\": \"\"", ""),
    ("extra_float_digits", "010", "8 is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)", ""),
    ("client_min_messages", "panic", "invalid value for parameter \"client_min_messages\": \"panic\"", "Available values: debug5, debug4, debug3, debug2, debug1, log, notice, warning, error."),
    ("client_min_messages", "fatal", "invalid value for parameter \"client_min_messages\": \"fatal\"", "Available values: debug5, debug4, debug3, debug2, debug1, log, notice, warning, error."),
    ("client_min_messages", "loud", "invalid value for parameter \"client_min_messages\": \"loud\"", "Available values: debug5, debug4, debug3, debug2, debug1, log, notice, warning, error."),
    ("client_min_messages", "", "invalid value for parameter \"client_min_messages\": \"\"", "Available values: debug5, debug4, debug3, debug2, debug1, log, notice, warning, error."),
    ("bytea_output", "x", "invalid value for parameter \"bytea_output\": \"x\"", "Available values: escape, hex."),
    ("IntervalStyle", "us", "invalid value for parameter \"IntervalStyle\": \"us\"", "Available values: postgres, postgres_verbose, sql_standard, iso_8601."),
    ("DateStyle", "x", "invalid value for parameter \"DateStyle\": \"x\"", "*"),
    ("DateStyle", "ISO, x", "invalid value for parameter \"DateStyle\": \"ISO, x\"", "*"),
    ("client_encoding", "nonsense", "invalid value for parameter \"client_encoding\": \"nonsense\"", "*"),
];

fn read(name: &str, value: &str) -> stoa_error::Result<String> {
    let setting = SESSION_SETTINGS.iter().find(|setting| setting.name == name).unwrap();
    Ok(setting.kind.shown(&setting.kind.read(name, value)?))
}

#[test]
fn values_are_read_and_shown_as_by_postgresql() {
    for (name, value, shown) in TAKEN {
        let read = read(name, value).map_err(|error| error.to_string());
        assert_eq!(read.as_deref(), Ok(*shown), "{name} = {value:?}");
    }
}

#[test]
fn values_are_refused_as_by_postgresql() {
    for (name, value, message, hint) in REFUSED {
        let error = read(name, value).expect_err(value);
        assert_eq!(error.message(), *message, "{name} = {value:?}");
        assert_eq!(error.sqlstate(), "22023", "{name} = {value:?}");
        if *hint != "*" {
            assert_eq!(error.hint().unwrap_or_default(), *hint, "{name} = {value:?}");
        }
    }
}

/// PostgreSQL takes these; dates would be read wrongly.
#[test]
fn orders_in_which_dates_are_not_read_are_refused() {
    for value in ["iso, dmy", "DMY", "ISO,YMD", "ymd", "European"] {
        assert_eq!(read("DateStyle", value).unwrap_err().sqlstate(), "0A000", "{value}");
    }
}

#[test]
fn what_is_shown_reads_back_the_same() {
    for setting in SESSION_SETTINGS {
        let shown = setting.kind.shown(setting.default);
        let kept = setting.kind.read(setting.name, &shown).unwrap();
        assert_eq!(kept, setting.default, "{}", setting.name);
    }
}
