//! A reader of Prometheus' text format that knows nothing of how it is written here, as strict as
//! `promtool check metrics`.

use std::collections::BTreeMap;

/// What a text exposes.
#[derive(Debug, Default)]
pub struct Exposition {
    pub families: BTreeMap<String, Family>,
    /// Values by name and labels as they are written.
    pub samples: BTreeMap<String, f64>,
}

#[derive(Debug)]
pub struct Family {
    pub help: String,
    pub kind: String,
}

/// # Errors
/// The line that is against the rules, and which rule.
pub fn parse(text: &str) -> Result<Exposition, String> {
    if !text.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    let mut found = Exposition::default();
    let mut help: Option<(String, String)> = None;
    let mut current: Option<String> = None;
    for line in text.lines() {
        let fail = |why: &str| Err(format!("{why}: {line}"));
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let Some((name, text)) = rest.split_once(' ') else { return fail("no text") };
            if help.is_some() {
                return fail("a HELP without TYPE before it");
            }
            help = Some((name.to_owned(), text.to_owned()));
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = rest.split_once(' ') else { return fail("no type") };
            let Some((of, help)) = help.take().filter(|(of, _)| of == name) else {
                return fail("no HELP before it");
            };
            if !["counter", "gauge", "histogram"].contains(&kind) {
                return fail("no such type");
            }
            let family = Family { help, kind: kind.to_owned() };
            if found.families.insert(of.clone(), family).is_some() {
                return fail("the family was there before");
            }
            current = Some(of);
        } else {
            let Some(family) = &current else { return fail("a sample before HELP and TYPE") };
            let (series, value) = sample(line).ok_or_else(|| format!("no sample: {line}"))?;
            let name = series.split('{').next().unwrap_or_default();
            let kind = found.families[family].kind.as_str();
            let suffixes: &[&str] =
                if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            if !suffixes.iter().any(|suffix| name == format!("{family}{suffix}")) {
                return fail("a sample of another family");
            }
            if kind == "counter" && value < 0.0 {
                return fail("a negative counter");
            }
            if found.samples.insert(series, value).is_some() {
                return fail("a series twice");
            }
        }
    }
    Ok(found)
}

/// Name with labels, and value.
fn sample(line: &str) -> Option<(String, f64)> {
    let name = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let rest = &line[name..];
    let labels = if rest.starts_with('{') { labels(rest)? } else { 0 };
    let value = rest[labels..].strip_prefix(' ')?.parse().ok()?;
    (name > 0).then(|| (line[..name + labels].to_owned(), value))
}

/// The length of `{name="value",…}` at the front of `text`.
fn labels(text: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        let name = text[at..].find('=')?;
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        if name == 0 || !text[at..at + name].chars().all(is_name) {
            return None;
        }
        at += name + 1;
        let quoted = text[at..].strip_prefix('"')?;
        let mut escaped = false;
        let end = quoted.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })?;
        at += 1 + end + 1;
        match text[at..].chars().next()? {
            ',' => at += 1,
            '}' => return Some(at + 1),
            _ => return None,
        }
    }
}
