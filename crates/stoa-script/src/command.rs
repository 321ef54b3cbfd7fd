//! A command as its words.

/// The words of a command, as Hive splits them (`ScriptOperator.splitArgs`): at blanks outside of quotes, and where quotes
/// begin and end. There are no escapes, and no shell reads them: `;`, `|`, `$`, `*` and `>` are letters like others.
///
/// `a 'b c'"d"` is `a`, `b c` and `d`.
pub fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for char in command.chars() {
        let is_end = match quote {
            Some(open) if open == char => {
                quote = None;
                true
            }
            None if matches!(char, '\'' | '"') => {
                quote = Some(char);
                true
            }
            None => char == ' ',
            Some(_) => false,
        };
        match (is_end, words.last_mut()) {
            (false, Some(word)) => word.push(char),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_hive() {
        let check = |command: &str, expected: &[&str]| assert_eq!(words(command), expected);
        check("cat", &["cat"]);
        check("  a  b ", &["a", "b"]);
        check("a 'b c'\"d\"", &["a", "b c", "d"]);
        check("awk '{print \"x\"}'", &["awk", "{print \"x\"}"]);
        check("a b'c", &["a", "b", "c"]);
        check("a ''", &["a"]);
        check("a;b | c > d `e` $(f)", &["a;b", "|", "c", ">", "d", "`e`", "$(f)"]);
        check("", &[]);
    }
}
