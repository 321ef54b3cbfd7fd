//! Names of directories and files as Hive writes them.

/// The directory of rows whose partition column is NULL.
pub const DEFAULT_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// Characters beside control characters that Hive writes as `%XX` (`FileUtils.charToEscape`).
const ESCAPED: &str = "\"#%'*/:=?\\\u{7f}{[]^";

/// A column's name or value as Hive writes it in a path.
pub fn escaped(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            char if char < ' ' || ESCAPED.contains(char) => {
                all.push_str(&format!("%{:02X}", u32::from(char)));
            }
            char => all.push(char),
        }
    }
    all
}

/// What a name in a path stands for: `%XX` is the character with this number, as in Hive. Anything else stays.
pub fn unescaped(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, from) = rest.split_at(at);
        all.push_str(before);
        let code = from.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                all.push(char::from(code));
                rest = from.get(3..).unwrap_or_default();
            }
            None => {
                all.push('%');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    all.push_str(rest);
    all
}

/// Whether Hive does not see a file or directory of this name.
pub fn is_hidden(name: &str) -> bool {
    name.starts_with(['_', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_hive_escapes_them() {
        let check = |text: &str, written: &str| {
            assert_eq!(escaped(text), written);
            assert_eq!(unescaped(written), text);
        };
        check("x y/z:1", "x y%2Fz%3A1");
        check("a=b%\n", "a%3Db%25%0A");
        check("ü{}", "ü%7B}");
        assert_eq!(unescaped("100%"), "100%");
        assert_eq!(unescaped("%zz%4"), "%zz%4");
    }
}
