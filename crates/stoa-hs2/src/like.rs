//! Patterns of names: JDBC's (`%`, `_`, a backslash before one that means itself), and Hive's (`*`, `|`).

/// Whether a name matches a pattern of JDBC; upper and lower case are the same, as Hive's names have none.
///
/// Takes at most the product of both lengths.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let parts = parts(pattern);
    let name: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    // Where the last `%` was, and how much of the name it has taken.
    let (mut part, mut place, mut star) = (0, 0, None);
    while place < name.len() {
        match parts.get(part) {
            Some(Part::Any) => {
                star = Some((part, place));
                part += 1;
            }
            Some(Part::One) => (part, place) = (part + 1, place + 1),
            Some(Part::Char(char)) if *char == name[place] => (part, place) = (part + 1, place + 1),
            _ => match &mut star {
                Some((before, taken)) => {
                    *taken += 1;
                    (part, place) = (*before + 1, *taken);
                }
                None => return false,
            },
        }
    }
    parts[part..].iter().all(|part| *part == Part::Any)
}

/// Whether a name matches a pattern of `SHOW TABLES`, in which `*` stands for any text and `|` separates several;
/// `%` as in newer versions of Hive.
pub(crate) fn matches_hive(pattern: &str, name: &str) -> bool {
    pattern.split('|').any(|one| matches(&one.replace('*', "%").replace('_', "\\_"), name))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Any,
    One,
    Char(char),
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            '%' => parts.push(Part::Any),
            '_' => parts.push(Part::One),
            '\\' => parts.push(Part::Char(chars.next().unwrap_or('\\'))),
            other => parts.extend(other.to_lowercase().map(Part::Char)),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_jdbc_and_of_hive() {
        for (pattern, name, expected) in [
            ("%", "", true),
            ("a%", "Abc", true),
            ("a_c", "abc", true),
            ("a\\_c", "abc", false),
            ("a\\_c", "a_c", true),
            ("%b%", "abc", true),
            ("%bc%d", "abcbcd", true),
            ("", "a", false),
            ("ABC", "abc", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        assert!(matches_hive("ads*|x", "ads_day") && matches_hive("ads*|x", "x"));
        assert!(!matches_hive("a_s", "ads"));
        let (pattern, name) = ("%a".repeat(200), "a".repeat(20_000));
        assert!(matches(&pattern, &name) && !matches(&format!("{pattern}b"), &name));
    }
}
